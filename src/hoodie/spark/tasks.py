"""Run tasks in Spark's Python workers, each task in its own Spark task; send rows to a chosen Spark partition.

`DataFrame.repartition(n, column)` sends a row to partition `pmod(murmur3(value), n)`. `salts` finds for each partition
an integer whose hash selects the partition, and rows are repartitioned by it. Spark 4.1 has `repartitionById`. It is
not used, because one way for all versions needs fewer tests.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from hoodie.engine import TaskContext
from hoodie.spark.types import spark_schema_of
from hoodie.spark.workers import checked_in_worker, own_python

Batches = Iterator[pa.RecordBatch]
_TASK_SCHEMA = StructType([StructField("number", IntegerType(), False), StructField("task", BinaryType(), False)])
_CARRIED_BYTES_MAX = 4 * 1024 * 1024
"""Up to this many bytes all tasks are sent to every worker; above it each worker receives its own task only."""
_SEED = 42
_MASK = 0xFFFFFFFF


def packed_tasks(tasks: Sequence[Any]) -> list[bytes]:
    """Pickle tasks for workers."""
    return [cloudpickle.dumps(task) for task in tasks]  # type: ignore[no-untyped-call]


def each_in_a_task(
    session: Any, packed: Sequence[bytes], work: Callable[[int, bytes], Batches], schema: StructType
) -> Any:
    """Return a DataFrame of the batches that `work(number, packed task)` yields; each call runs in its own Spark task.

    A worker receives the bytes of all tasks if these are few, otherwise the bytes of its own task. Many or large tasks
    are sent as rows, which requires a shuffle. `packed` must contain at least one task.
    """
    carries = sum(map(len, packed)) <= _CARRIED_BYTES_MAX
    return (_carried if carries else _sent)(session, packed, work, schema)


def _carried(session: Any, packed: Sequence[bytes], work: Callable[[int, bytes], Batches], schema: StructType) -> Any:
    """Send all tasks with the function, without a shuffle."""
    count = len(packed)

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from work(number, packed[number])

    run.__name__ = work.__name__
    return in_workers(session.range(0, count, 1, count), run, schema)


def _sent(session: Any, packed: Sequence[bytes], work: Callable[[int, bytes], Batches], schema: StructType) -> Any:
    """Send each task as a row, with a shuffle."""
    count = len(packed)

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number, task in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield from work(number, task)

    run.__name__ = work.__name__
    with own_python(session):
        frame = session.createDataFrame([(n, bytearray(task)) for n, task in enumerate(packed)], _TASK_SCHEMA)
    return in_workers(frame.repartition(count, salts("number", count)), run, schema)


def in_workers(frame: Any, work: Callable[[Batches], Batches], schema: Any) -> Any:
    """Return the batches that `work` makes of those of a DataFrame, in Python workers, as a DataFrame of this schema.

    Arrow is limited to one thread, because Spark runs a worker for each core. After each task Spark's worker collects
    garbage among all its objects; this took longer than many a task, so that imported modules are exempt (see
    `exempt_modules`). The name of the function is the name of its step in Spark's plan.
    """

    def run(batches: Batches) -> Batches:
        pa.set_cpu_count(1)
        exempt_modules()
        yield from work(batches)

    run.__name__ = work.__name__
    with own_python(frame.sparkSession):
        return frame.mapInArrow(checked_in_worker(run), schema)


def mapped(frame: Any, work: Callable[[pa.Table], pa.Table], schema: pa.Schema) -> Any:
    """Return the rows that `work` makes of each batch of a DataFrame, as a DataFrame of the Arrow schema.

    `work` is pickled; its tables must have the schema. Memory of a worker: a batch and what `work` makes of it.
    """

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from work(pa.Table.from_batches([batch])).to_batches()

    return in_workers(frame, decode, spark_schema_of(schema))


_exempted_modules = 0


def exempt_modules() -> None:
    """Exempt all objects of this process from garbage collection, if modules were imported since the last call.

    Spark collects garbage before a task begins: these objects are those of modules and a few of the task. Python still
    frees them when nothing refers to them, except for cycles.
    """
    global _exempted_modules
    if len(sys.modules) > _exempted_modules:
        _exempted_modules = len(sys.modules)
        gc.freeze()


def task_context() -> TaskContext:
    """Return the task attempt that this worker runs. Raises: RuntimeError outside of a Spark task."""
    from pyspark import TaskContext as SparkTaskContext

    context = SparkTaskContext.get()
    if context is None:
        raise RuntimeError("no Spark task here: this function runs in a worker")
    return TaskContext(context.partitionId(), context.stageId(), context.taskAttemptId())


def salts(bucket_column: str, count: int) -> Any:
    """Return a column expression that `repartition(count, ...)` maps to partition `bucket % count`."""
    numbers = F.array(*(F.lit(number) for number in _salt_numbers(count)))
    return F.element_at(numbers, (F.col(bucket_column) % count + 1).cast("int"))


@lru_cache
def _salt_numbers(count: int) -> tuple[int, ...]:
    """Return for each partition the smallest number whose hash selects it."""
    found: dict[int, int] = {}
    number = 0
    while len(found) < count:
        found.setdefault(murmur3_of_int(number) % count, number)
        number += 1
    return tuple(found[partition] for partition in range(count))


def murmur3_of_int(value: int) -> int:
    """Compute Spark's hash of an int column: Murmur3 x86 32-bit with seed 42, as a signed number.

    >>> murmur3_of_int(0), murmur3_of_int(1)
    (933211791, -559580957)
    """
    mixed = value * 0xCC9E2D51 & _MASK
    mixed = ((mixed << 15) | (mixed >> 17)) & _MASK
    mixed = mixed * 0x1B873593 & _MASK
    hashed = _SEED ^ mixed
    hashed = ((hashed << 13) | (hashed >> 19)) & _MASK
    hashed = (hashed * 5 + 0xE6546B64) & _MASK
    hashed ^= 4
    hashed ^= hashed >> 16
    hashed = hashed * 0x85EBCA6B & _MASK
    hashed ^= hashed >> 13
    hashed = hashed * 0xC2B2AE35 & _MASK
    hashed ^= hashed >> 16
    return hashed - (1 << 32) if hashed >= 1 << 31 else hashed
