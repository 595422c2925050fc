"""What a table takes as data, whatever engine reads it; and how Spark reads a table."""

from __future__ import annotations

import contextlib
import io
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from tests.contract.table_lanes import TRIPS, Lane, trips
from tests.support.rows import assert_same_rows
from tests.support.steps import once_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = trips(("a", 1, 1.0, "sf"), ("b", 2, 2.5, "nyc"))


class Stream:
    """Data that is known by its Arrow stream only, as a Polars frame is."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return ROWS.__arrow_c_stream__(requested_schema)


INPUTS: dict[str, Callable[[], Any]] = {
    "table": lambda: ROWS,
    "batch": lambda: ROWS.combine_chunks().to_batches()[0],
    "reader": lambda: pa.RecordBatchReader.from_batches(TRIPS, iter(ROWS.to_batches(max_chunksize=1))),
    "pandas": lambda: ROWS.to_pandas(),
    "stream": Stream,
    "dicts": ROWS.to_pylist,
    "dictionary": lambda: ROWS.set_column(3, "city", ROWS["city"].dictionary_encode()),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_arrow_data_of_every_kind_is_written(lane: Lane, kind: str) -> None:
    table = lane.table(partition_by="city", ordering="ts")
    assert table.bulk_insert(INPUTS[kind]()).inserted == 2
    assert table.upsert(INPUTS[kind]()).updated == 2
    assert_same_rows(lane.read(table), ROWS, key="id")


def test_a_reader_is_read_once(lane: Lane) -> None:
    table = lane.create(partition_by="city", index="global_simple")
    table.upsert(INPUTS["reader"]())
    assert_same_rows(lane.read(table), ROWS, key="id")
    table.insert_overwrite(INPUTS["reader"]())
    table.delete(INPUTS["reader"]())
    assert_same_rows(lane.read(table), trips())


def test_dates_and_times_of_pandas_arrive(lane: Lane) -> None:
    import pandas as pd

    data = pd.DataFrame({"id": ["a", "b"], "at": pd.to_datetime(["2024-01-01T00:00:00.000001", None], utc=True)})
    table = lane.create(pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC"))]))
    table.upsert(data)
    found = {row["id"]: row["at"] for row in lane.read(table).to_pylist()}
    assert (found["a"].microsecond, found["b"]) == (1, None)


def explained(frame: DataFrame) -> str:
    """The physical plan of a DataFrame, as `explain` prints it."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain()
    return text.getvalue()


@pytest.mark.spark
@pytest.mark.connect
def test_spark_scans_a_copy_on_write_table_without_python(spark: SparkSession, tmp_path: Path) -> None:
    lane = Lane(spark, tmp_path)
    newer = ROWS.append_column("new", pa.array([1, None], pa.int32()))
    newest = ROWS.slice(0, 1).append_column("new", pa.array([1], pa.int64()))
    table = lane.table(ROWS, newer, newest, partition_by="city")
    first = table.timeline.instants[0].requested_time
    frames = {
        "snapshot": table.read(where="fare > 1.5", columns=["id"]),
        "time travel": table.read(as_of=first),
        "changes": table.changes(first),
        "keys": table.read_keys(["a"]),
        "keys and partitions": table.read_keys(ROWS),
    }
    plans = {name: explained(frame) for name, frame in frames.items()}
    for name, plan in plans.items():
        assert "FileScan parquet" in plan, name
        assert "Python" not in plan, name
        assert "InArrow" not in plan, name
    assert "GreaterThan(fare,1.5)" in plans["snapshot"]
    assert "In(_hoodie_record_key" in plans["keys"] or "EqualTo(_hoodie_record_key" in plans["keys"]


@pytest.mark.spark
@pytest.mark.connect
def test_the_data_is_evaluated_once(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    lane = Lane(spark, tmp_path)
    table = lane.create(pa.schema([("id", pa.string()), ("n", pa.int64())]), index="global_simple")
    table.upsert(spark.range(20).select(F.expr("uuid()").alias("id"), F.col("id").alias("n")))
    assert sorted(lane.read(table)["n"].to_pylist()) == list(range(20))
    found = lane.read(table)
    table.upsert(table.read(columns=["id", "n"]))
    assert_same_rows(lane.read(table), found, key="id")


@pytest.mark.spark
@pytest.mark.connect
def test_the_data_is_evaluated_once_if_the_write_is_retried(spark: SparkSession, tmp_path: Path) -> None:
    lane = Lane(spark, tmp_path)
    table = lane.table(trips(("a", 1, 1.0, "sf")), partition_by="city")
    evaluations = tmp_path / "evaluations"
    evaluations.mkdir()

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        (evaluations / uuid.uuid4().hex).touch()
        yield from batches

    rows = lane.data(trips(("a", 3, 3.0, "sf"), ("x", 3, 3.0, "sf"))).coalesce(1)
    rows = rows.mapInArrow(counted, rows.schema)
    other = hoodie.open(lane.path, spark=False)
    with once_at(Step.WRITTEN, lambda: other.upsert(trips(("a", 2, 2.0, "sf"), ("x", 2, 2.0, "sf")))):
        result = table.upsert(rows)
    assert (result.inserted, result.updated) == (0, 2)
    assert result.notes[0].startswith("retried once: ")
    assert len(list(evaluations.iterdir())) == 1
    assert lane.read(table)["ts"].to_pylist() == [3, 3]
