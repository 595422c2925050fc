"""Run hoodie's functions on Spark executors by `mapInArrow` only, in classic and Connect sessions, 3.5 and 4.x.

The listener of `hoodie.progress` is notified of finished tasks. DataFrames have no progress of their job: in a
classic session `sparkContext` has it; Connect sessions have progress handlers from Spark 4.0 on.
"""

from __future__ import annotations

import contextvars
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField, StructType

from hoodie import progress
from hoodie.engine.api import Consume, Dataset, Engine, Exchange, Prepare, TaskContext
from hoodie.engine.packing import balanced_groups
from hoodie.errors import HoodieError
from hoodie.format.schema.plain_types import valid_batches
from hoodie.spark.tasks import each_in_a_task, in_workers, packed_tasks, salts, task_context
from hoodie.spark.types import Carrier, arrow_schema_of
from hoodie.spark.workers import errors_of_jobs, is_connect

Task = TypeVar("Task")
Result = TypeVar("Result")

_RESULT = "result"
_RESULT_SCHEMA = StructType([StructField(_RESULT, BinaryType(), False)])
_RESULT_ARROW = pa.schema([pa.field(_RESULT, pa.binary(), False)])
_PARTS_MAX = 1000
_JOINED_BYTES = 64 * 1024 * 1024
"""Bytes of tasks that may run in one Spark task: about two seconds of work."""
_POLL_SECONDS = 0.2
_slots: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class SparkDataset:
    """The caller's data as a Spark DataFrame."""

    frame: Any

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the batches that Spark sends to Python workers."""
        return arrow_schema_of(self.frame.schema)


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """An engine over one Spark session."""

    session: Any

    @property
    def parallelism(self) -> int:
        """Number of tasks that Spark creates for a shuffle, at most the number that it creates for a range.

        It usually is the number of cores.
        """
        shuffled = int(self.session.conf.get("spark.sql.shuffle.partitions"))
        return max(min(self.slots, shuffled), 1)

    @property
    def slots(self) -> int:
        """Number of tasks that Spark creates for a range.

        The first call of a session runs a small Spark job, because Connect has no other way to read the number.
        """
        if self.session not in _slots:
            with errors_of_jobs(self.session):
                parts = self.session.range(0, _PARTS_MAX).select(F.spark_partition_id()).distinct().count()
            _slots[self.session] = max(parts, 1)
        return _slots[self.session]

    def run(
        self,
        function: Callable[[Task, TaskContext], Result],
        tasks: Sequence[Task],
        sizes: Sequence[int] | None = None,
    ) -> list[Result]:
        """Call the function for every task, each call in its own Spark task; see `Engine.run`.

        With `sizes`, one Spark task for each core, or for 64 MiB, gets several tasks: a Spark task costs some 50 ms of
        CPU time. If it fails, all of them are repeated. A worker unpickles its own tasks only. Many or large tasks are
        sent as rows, which requires a shuffle.
        """
        if not tasks:
            return []

        def work(_: int, packed: bytes) -> Iterator[pa.RecordBatch]:
            for number, task in pickle.loads(packed):
                try:
                    result = function(pickle.loads(task), replace(task_context(), partition=number))
                except HoodieError as error:
                    yield _row(_Failure(error, number))
                    return
                yield _row((number, result))

        packed = packed_tasks(tasks)
        groups = [pickle.dumps([(number, packed[number]) for number in group]) for group in self._groups(tasks, sizes)]
        found = dict(self._collect(each_in_a_task(self.session, groups, work, _RESULT_SCHEMA)))
        return [found[number] for number in range(len(tasks))]

    def _groups(self, tasks: Sequence[Any], sizes: Sequence[int] | None) -> list[tuple[int, ...]]:
        """Return the numbers of the tasks that each Spark task runs."""
        if sizes is None or len(tasks) == 1:
            return [(number,) for number in range(len(tasks))]
        rounds = max(-(-sum(sizes) // (self.slots * _JOINED_BYTES)), 1)
        return balanced_groups(sizes, rounds * self.slots)

    def process(
        self,
        data: Dataset,
        prepare: Prepare,
        prepared_schema: pa.Schema,
        consume: Consume[Result],
        exchange: Exchange | None = None,
    ) -> list[Result]:
        """Run `prepare`, exchange the rows and run `consume`; see `Engine.process`.

        Without an exchange both functions run in one Python stage. Spark's own functions make text of any bytes; text
        that is not valid UTF-8 is refused here, as `ArrowDataset` refuses it. Its error counts the rows of a task.
        """
        if not isinstance(data, SparkDataset):
            raise TypeError(f"the Spark engine expects a Spark DataFrame, found {type(data).__name__}")

        carrier = Carrier(prepared_schema)

        def prepare_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from map(carrier.sent, prepare(valid_batches(batches), task_context()))

        def consume_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from _answers(lambda: consume(map(carrier.received, batches), task_context()))

        def both(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = task_context()
            yield from _answers(lambda: consume(prepare(valid_batches(batches), context), context))

        if exchange is None:
            return self._collect(in_workers(data.frame, both, _RESULT_SCHEMA))
        prepared = in_workers(data.frame, prepare_all, carrier.spark_schema)
        if exchange.range_by:
            # Spark samples the rows to find the ranges. Without persist() the caller's data is evaluated twice.
            prepared = prepared.persist()
        try:
            exchanged = self._exchange(prepared, exchange)
            return self._collect(in_workers(exchanged, consume_all, _RESULT_SCHEMA))
        finally:
            if exchange.range_by:
                prepared.unpersist()

    def _exchange(self, frame: Any, exchange: Exchange) -> Any:
        count = exchange.tasks or self.parallelism
        if exchange.range_by:
            frame = frame.repartitionByRange(count, *exchange.range_by)
        elif exchange.bucket_by is not None:
            frame = frame.repartition(count, salts(exchange.bucket_by, count))
        return frame.sortWithinPartitions(*exchange.sort_by) if exchange.sort_by else frame

    def _collect(self, frame: Any) -> list[Any]:
        """Run the job and unpickle the results; raise the first HoodieError of a worker with its own type.

        Raises: as `errors_of_jobs`.
        """
        with errors_of_jobs(self.session), _watched(self.session):
            rows = frame.collect()
        answers = [pickle.loads(row[0]) for row in rows]
        failures = [answer for answer in answers if isinstance(answer, _Failure)]
        if failures:
            raise min(failures, key=lambda failure: failure.number).error
        return answers


@dataclass(frozen=True, slots=True)
class _Failure:
    """A HoodieError that a worker returns as a result, because Spark's retries of the task would fail again."""

    error: HoodieError
    number: int = 0
    """The number of the task that raised it."""


def _answers(work: Callable[[], Iterable[Any]]) -> Iterator[pa.RecordBatch]:
    """Pickle the results of the work, one row for each; a HoodieError becomes the last result."""
    try:
        for result in work():
            yield _row(result)
    except HoodieError as error:
        yield _row(_Failure(error))


def _row(result: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(result)], pa.binary())], schema=_RESULT_ARROW)


def engine_of(session: Any) -> Engine:
    """Return the engine of a session."""
    return SparkEngine(session)


def engine_and_dataset(frame: Any) -> tuple[Engine, Dataset]:
    """Return the engine of a DataFrame's session, and its rows as a dataset."""
    return SparkEngine(frame.sparkSession), SparkDataset(frame)


def active_session() -> Any | None:
    """Return the session of this thread, otherwise the session of the program, classic or Connect; None without any."""
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkException:
        return None


@contextmanager
def _watched(session: Any) -> Iterator[None]:
    """Notify the listener how many tasks of the session's active stages are done while the body runs its job."""
    if not progress.is_heard():
        yield
    elif not is_connect(session):
        with _polled(session.sparkContext.statusTracker()):
            yield
    elif hasattr(session, "registerProgressHandler"):

        def handle(stages: Iterable[Any] | None, **_: object) -> None:
            _report((stage.num_completed_tasks, stage.num_tasks) for stage in stages or ())

        session.registerProgressHandler(handle)
        try:
            yield
        finally:
            session.removeProgressHandler(handle)
    else:
        yield


@contextmanager
def _polled(tracker: Any) -> Iterator[None]:
    ended = threading.Event()

    def poll() -> None:
        while not ended.wait(_POLL_SECONDS):
            infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            _report((info.numCompletedTasks, info.numTasks) for info in infos if info is not None)

    # The thread runs in a copy of this context, so it notifies this context's listener, with this context's phase.
    thread = threading.Thread(target=contextvars.copy_context().run, args=(poll,), name="hoodie progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _report(stages: Iterable[tuple[int, int]]) -> None:
    counts = list(stages)
    if counts:
        progress.report(sum(done for done, _ in counts), sum(total for _, total in counts))
