"""Run hoodie's functions on Spark executors, through `mapInArrow` only: classic and Connect, 3.5 and 4.x."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField, StructType

from hoodie import errors
from hoodie.engine.api import Consume, Dataset, Exchange, Prepare, TaskContext
from hoodie.errors import HoodieError
from hoodie.spark.partitioning import salts
from hoodie.spark.progress import watched
from hoodie.spark.tasks import each_in_a_task, guarded, packed_tasks, task_context
from hoodie.spark.types import arrow_schema_of, spark_schema_of

Task = TypeVar("Task")
Result = TypeVar("Result")

_RESULT = "result"
_RESULT_SCHEMA = StructType([StructField(_RESULT, BinaryType(), False)])
_RESULT_ARROW = pa.schema([pa.field(_RESULT, pa.binary(), False)])
_PARTS_MAX = 1000
_parallelism: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class SparkDataset:
    """A Spark DataFrame as the caller's data."""

    frame: Any

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the batches Spark sends to Python workers."""
        return arrow_schema_of(self.frame.schema)


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """An engine over one Spark session."""

    session: Any

    @property
    def name(self) -> str:
        """`spark`."""
        return "spark"

    @property
    def parallelism(self) -> int:
        """How many tasks Spark makes of a shuffle, but no more than it makes of a range: its cores, usually.

        Asking costs a small job, once per session. Connect has no other way to tell.
        """
        if self.session not in _parallelism:
            parts = self.session.range(0, _PARTS_MAX).select(F.spark_partition_id()).distinct().count()
            shuffled = int(self.session.conf.get("spark.sql.shuffle.partitions"))
            _parallelism[self.session] = max(min(parts, shuffled), 1)
        return _parallelism[self.session]

    def run(self, function: Callable[[Task, TaskContext], Result], tasks: Sequence[Task]) -> list[Result]:
        """Call the function for every task, each in a Spark task of its own; see `Engine.run`.

        A worker unpickles its own task only. Many or large tasks travel as rows, which costs a shuffle.
        """
        if not tasks:
            return []

        def work(number: int, packed: bytes) -> Iterator[pa.RecordBatch]:
            yield from _answers(lambda: [(number, function(pickle.loads(packed), task_context()))])

        found = dict(self._collect(each_in_a_task(self.session, packed_tasks(tasks), work, _RESULT_SCHEMA)))
        return [found[number] for number in range(len(tasks))]

    def process(
        self,
        data: Dataset,
        prepare: Prepare,
        prepared_schema: pa.Schema,
        consume: Consume[Result],
        exchange: Exchange | None = None,
    ) -> list[Result]:
        """See `Engine.process`. Without an exchange both functions run in one Python stage."""
        if not isinstance(data, SparkDataset):
            raise TypeError(f"the Spark engine takes Spark DataFrames, got {type(data).__name__}")

        def prepare_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from prepare(batches, task_context())

        def consume_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            # Spark hands the same data back in types of its own: another time zone, other nullability.
            same = (batch.cast(prepared_schema) for batch in batches)
            yield from _answers(lambda: consume(same, task_context()))

        def both(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = task_context()
            yield from _answers(lambda: consume(prepare(batches, context), context))

        if exchange is None:
            return list(self._collect(data.frame.mapInArrow(guarded(both), _RESULT_SCHEMA)))
        prepared = data.frame.mapInArrow(guarded(prepare_all), spark_schema_of(prepared_schema))
        if exchange.range_by:
            # Spark cuts ranges by a sample of the rows: unless they are kept, the caller's data is evaluated twice.
            prepared = prepared.persist()
        try:
            exchanged = self._exchange(prepared, exchange)
            return list(self._collect(exchanged.mapInArrow(guarded(consume_all), _RESULT_SCHEMA)))
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

    def _collect(self, frame: Any) -> Iterable[Any]:
        """Run the job and unpack the results; the first error of ours comes out as what it was."""
        try:
            with watched(self.session):
                rows = frame.collect()
        except PySparkException as error:
            own = _own_error(error)
            if own is None:
                raise
            raise own from error
        for row in rows:
            answer = pickle.loads(row[0])
            if isinstance(answer, _Failure):
                raise answer.error
            yield answer


@dataclass(frozen=True, slots=True)
class _Failure:
    """An error of ours that a worker sends back as a result: retrying it would be in vain."""

    error: HoodieError


def _answers(work: Callable[[], Iterable[Any]]) -> Iterator[pa.RecordBatch]:
    """Results of the work, pickled, one row each; an error of ours ends them as a result of its own."""
    try:
        for result in work():
            yield _row(result)
    except HoodieError as error:
        yield _row(_Failure(error))


def _row(result: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(result)], pa.binary())], schema=_RESULT_ARROW)


def _own_error(error: Exception) -> HoodieError | None:
    """The error of ours that a worker raised, found in the text of Spark's error; None if there is none."""
    match = re.search(r"hoodie\.errors\.(\w+): (.*)", str(error))
    kind = getattr(errors, match[1], None) if match else None
    if match is None or not isinstance(kind, type) or not issubclass(kind, HoodieError):
        return None
    found = kind.__new__(kind)
    Exception.__init__(found, match[2])
    return found


def session_of(frame: Any) -> Any:
    """The session of a DataFrame."""
    return frame.sparkSession


def active_session() -> Any | None:
    """The session of this thread or, without one, of the program, classic or Connect; None if there is none."""
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkException:
        return None
