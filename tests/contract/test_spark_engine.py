"""The Spark engine keeps the contract of `hoodie.engine.Engine`: order of results, places of rows, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hoodie
from hoodie.engine import ArrowDataset, Engine, Exchange, LocalEngine, TaskContext
from hoodie.spark import SparkDataset, SparkEngine, from_arrow, to_arrow
from hoodie.spark.tasks import murmur3_of_int, salts
from tests.contract.table_lanes import Lane

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema([("n", pa.int64()), ("bucket", pa.int32()), ("name", pa.string())])
ROWS = pa.table([pa.array(range(100)), pa.array([n * 7 % 5 for n in range(100)], pa.int32()), [f"r{n % 10}" for n in range(100)]], schema=SCHEMA)  # fmt: skip  # noqa: E501


@pytest.fixture
def engine(lane: Lane) -> Engine:
    """The engine of the lane."""
    return LocalEngine(2) if lane.session is None else SparkEngine(lane.session)


def dataset(lane: Lane, rows: pa.Table) -> Any:
    """Rows as the lane's engine takes them."""
    return ArrowDataset(rows) if lane.session is None else SparkDataset(lane.data(rows).repartition(3))


def gathering() -> Callable[[Iterator[pa.RecordBatch], TaskContext], list[pa.Table]]:
    """A consumer whose result is its task's rows, none if it has none."""

    def gather(batches: Iterator[pa.RecordBatch], context: TaskContext) -> list[pa.Table]:
        import pyarrow

        found = [batch for batch in batches if batch.num_rows]
        return [pyarrow.Table.from_batches(found)] if found else []

    return gather


def preparing() -> Callable[[Iterator[pa.RecordBatch], TaskContext], Iterator[pa.RecordBatch]]:
    """As `same`, but pickled by value: workers cannot import the tests."""

    def prepare(batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterator[pa.RecordBatch]:
        return batches

    return prepare


def test_results_come_in_the_order_of_the_tasks(engine: Engine) -> None:
    def square(task: int, context: TaskContext) -> tuple[int, int]:
        return task * task, context.partition

    results = engine.run(square, list(range(20)))
    assert [result for result, _ in results] == [task * task for task in range(20)]
    assert len({partition for _, partition in results}) == 20
    assert engine.run(square, []) == []


def test_tasks_may_be_large(engine: Engine) -> None:
    def size(task: bytes, context: TaskContext) -> int:
        return len(task)

    assert engine.run(size, [bytes(3_000_000 + number) for number in range(4)]) == [3_000_000 + n for n in range(4)]


def test_the_first_error_of_ours_comes_out_as_it_was(engine: Engine) -> None:
    def fail(task: int, context: TaskContext) -> int:
        if task == 2:
            raise hoodie.CorruptFileError("no footer", path="a/b.parquet", offset=7)
        return task

    with pytest.raises(hoodie.CorruptFileError, match=r"^a/b\.parquet at byte 7: no footer$") as caught:
        engine.run(fail, [1, 2, 3])
    assert (caught.value.path, caught.value.offset) == ("a/b.parquet", 7)


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("tasks", [None, 1, 3, 5])
def test_rows_of_a_bucket_meet_sorted_in_one_task(lane: Lane, engine: Engine, tasks: int | None) -> None:
    exchange = Exchange(bucket_by="bucket", sort_by=("name", "n"), tasks=tasks)
    parts = engine.process(dataset(lane, ROWS), preparing(), SCHEMA, gathering(), exchange)
    assert all(part.schema == SCHEMA for part in parts)
    buckets = [set(part["bucket"].to_pylist()) for part in parts]
    assert sorted(bucket for found in buckets for bucket in found) == [0, 1, 2, 3, 4]
    count = tasks or engine.parallelism
    assert all(len({bucket % count for bucket in found}) == 1 for found in buckets)
    for part in parts:
        rows = list(zip(part["name"].to_pylist(), part["n"].to_pylist(), strict=True))
        assert rows == sorted(rows)
    assert sorted(n for part in parts for n in part["n"].to_pylist()) == list(range(100))


def test_ranges_ascend_from_task_to_task(lane: Lane, engine: Engine) -> None:
    exchange = Exchange(range_by=("name", "n"), sort_by=("name", "n"), tasks=3)
    parts = engine.process(dataset(lane, ROWS), preparing(), SCHEMA, gathering(), exchange)
    rows = [list(zip(part["name"].to_pylist(), part["n"].to_pylist(), strict=True)) for part in parts]
    assert [row for part in rows for row in part] == sorted(row for part in rows for row in part)
    assert len(rows) == 3


def test_without_an_exchange_every_row_comes_once(lane: Lane, engine: Engine) -> None:
    parts = engine.process(dataset(lane, ROWS), preparing(), SCHEMA, gathering())
    assert sorted(n for part in parts for n in part["n"].to_pylist()) == list(range(100))


@pytest.mark.spark
@pytest.mark.connect
def test_bucket_b_lands_in_partition_b(spark: SparkSession) -> None:
    for count in (1, 2, 7, 200):
        frame = spark.range(0, count, 1, 4).select(F.col("id").cast("int").alias("bucket"))
        placed = frame.repartition(count, salts("bucket", count)).select("bucket", F.spark_partition_id().alias("part"))
        assert all(row["bucket"] == row["part"] for row in placed.collect())


@pytest.mark.spark
@pytest.mark.connect
def test_our_murmur3_is_sparks(spark: SparkSession) -> None:
    numbers = [0, 1, 2, 41, 1000, 2**31 - 1]
    frame = from_arrow(spark, pa.table({"n": pa.array(numbers, pa.int32())})).select("n", F.hash("n").alias("hash"))
    assert {row["n"]: row["hash"] for row in frame.collect()} == {n: murmur3_of_int(n) for n in numbers}


@pytest.mark.spark
@pytest.mark.connect
def test_small_tables_go_to_spark_and_back(spark: SparkSession) -> None:
    table = pa.table({"s": ["a", None], "n": pa.array([1, None], pa.int64())})
    assert to_arrow(from_arrow(spark, table)).to_pylist() == table.to_pylist()
    assert to_arrow(from_arrow(spark, table).limit(0)).schema.names == ["s", "n"]
