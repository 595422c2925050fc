"""What runs in Spark's Python workers, and how tasks get there: one task of ours in a Spark task of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from hoodie.engine import TaskContext
from hoodie.spark.partitioning import salts

Batches = Iterator[pa.RecordBatch]
_TASK_SCHEMA = StructType([StructField("number", IntegerType(), False), StructField("task", BinaryType(), False)])
_CARRIED_BYTES_MAX = 4 * 1024 * 1024
"""Bytes of tasks that the function itself carries to every worker; above, each worker gets its own task only."""


def packed_tasks(tasks: Sequence[Any]) -> list[bytes]:
    """Tasks as workers unpickle them."""
    return [cloudpickle.dumps(task) for task in tasks]  # type: ignore[no-untyped-call]


def each_in_a_task(
    session: Any, packed: Sequence[bytes], work: Callable[[int, bytes], Batches], schema: StructType
) -> Any:
    """A DataFrame of all that `work(number, packed task)` yields, each call in a Spark task of its own.

    A worker gets the bytes of its own task, or few bytes of others beside them. Many or large tasks travel as rows,
    which costs a shuffle. There is one task at least.
    """
    carries = sum(map(len, packed)) <= _CARRIED_BYTES_MAX
    return (_carried if carries else _sent)(session, packed, work, schema)


def _carried(session: Any, packed: Sequence[bytes], work: Callable[[int, bytes], Batches], schema: StructType) -> Any:
    """The function carries the tasks: no shuffle."""
    count = len(packed)

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from work(number, packed[number])

    return session.range(0, count, 1, count).mapInArrow(guarded(run), schema)


def _sent(session: Any, packed: Sequence[bytes], work: Callable[[int, bytes], Batches], schema: StructType) -> Any:
    """Each task lies in a row."""
    count = len(packed)

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number, task in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield from work(number, task)

    frame = session.createDataFrame([(n, bytearray(task)) for n, task in enumerate(packed)], _TASK_SCHEMA)
    return frame.repartition(count, salts("number", count)).mapInArrow(guarded(run), schema)


def guarded(work: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """Limit Arrow to one thread in a worker: Spark runs as many workers as there are cores."""

    def run(batches: Batches) -> Batches:
        pa.set_cpu_count(1)
        yield from work(batches)

    return run


def task_context() -> TaskContext:
    """Which task attempt this worker runs."""
    from pyspark import TaskContext as SparkTaskContext

    context = SparkTaskContext.get()
    if context is None:
        raise RuntimeError("no Spark task here: this function runs in a worker")
    return TaskContext(context.partitionId(), context.stageId(), context.taskAttemptId())
