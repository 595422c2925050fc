"""`t.stream`: each micro-batch of a Spark stream is one commit, also when the query dies and goes on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.format.instants.sink_checkpoint import CHECKPOINT_KEY
from tests.support.streams import forget_batch
from tests.support.tables import values_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
MOR = pytest.param("merge_on_read", marks=[pytest.mark.connect, pytest.mark.surface])
NOW = {"availableNow": True}
KEY = "_hoodie_record_key"
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])


def put(source: Path, number: int, ids: range, ts: int) -> None:
    source.mkdir(exist_ok=True)
    rows = pa.table({"id": [f"k{n}" for n in ids], "ts": pa.array([ts] * len(ids), pa.int64())})
    pq.write_table(rows, source / f"{number}.parquet")


def files(spark: SparkSession, source: Path) -> Any:
    return spark.readStream.schema("id string, ts long").option("maxFilesPerTrigger", 1).parquet(str(source))


def batches(table: hoodie.Table) -> list[str]:
    view = table.view()
    return [view.commit_facts(instant).sink[CHECKPOINT_KEY] for instant in view.completed_writes()]


@pytest.mark.parametrize("table_type", ["copy_on_write", MOR])
def test_each_batch_is_one_commit_also_after_a_death(spark: SparkSession, tmp_path: Path, table_type: str) -> None:
    source, checkpoint = tmp_path / "source", tmp_path / "{check}point[1]"
    table = hoodie.create(tmp_path / "table", SCHEMA, record_key="id", ordering="ts", type=table_type, spark=spark)

    def run(**options: Any) -> None:
        query = table.stream(files(spark, source), checkpoint=str(checkpoint), trigger=NOW, identifier="s1", **options)
        query.awaitTermination()

    put(source, 0, range(5), ts=1)
    put(source, 1, range(3, 8), ts=2)
    run(name="first")
    expected = {**{f"k{n}": 1 for n in range(3)}, **{f"k{n}": 2 for n in range(3, 8)}}
    assert rows(table) == expected
    assert batches(table) == ['{"s1":"0"}', '{"s1":"1"}']
    # The query died before it noted the last batch. It goes on from its checkpoint, and skips that batch.
    forget_batch(checkpoint, 1)
    put(source, 2, range(7, 10), ts=3)
    run()
    assert rows(table) == {**expected, **{f"k{n}": 3 for n in range(7, 10)}}
    assert batches(table) == ['{"s1":"0"}', '{"s1":"1"}', '{"s1":"2"}']
    # Another checkpoint: all batches would count as written.
    shutil.rmtree(checkpoint)
    put(source, 3, range(10, 11), ts=4)
    with pytest.raises(Exception, match="numbers its batches anew"):
        run()
    assert "k10" not in rows(table)


def rows(table: hoodie.Table) -> dict[str, int]:
    return dict(values_of(table, "id", "ts"))


@pytest.mark.connect
@pytest.mark.surface
def test_the_data_source_writes_each_batch_once(spark: SparkSession, tmp_path: Path) -> None:
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    table = hoodie.create(tmp_path / "table", SCHEMA, record_key="id", ordering="ts", spark=spark)

    def run(place: Path = checkpoint, mode: str = "append", frame: Any = None, **options: str) -> None:
        writer = (files(spark, source) if frame is None else frame).writeStream.format("hoodie").options(**options)
        query = writer.option("checkpointLocation", str(place)).outputMode(mode).trigger(**NOW).start(table.path)
        query.awaitTermination()

    put(source, 0, range(5), ts=1)
    if tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 1):
        with pytest.raises(Exception, match="hoodie"):  # PySpark 3.5 has no such sources, 4.0 gives them rows
            run()
        assert len(table.timeline) == 0
        return
    put(source, 1, range(3, 8), ts=2)
    jvm: dict[str, Any] = {"hoodie.datasource.write.operation": "upsert"}
    run(record_key="id", **jvm)
    assert rows(table) == {**{f"k{n}": 1 for n in range(3)}, **{f"k{n}": 2 for n in range(3, 8)}}
    forget_batch(checkpoint, 1)
    put(source, 2, range(8, 9), ts=3)
    run()  # inserts
    assert rows(table)["k8"] == 3
    assert table.count() == 9
    assert batches(table) == [f'{{"default_single_writer":"{number}"}}' for number in range(3)]
    with pytest.raises(Exception, match="numbers its batches anew"):
        run(tmp_path / "new")
    put(source, 3, range(9, 10), ts=4)
    with pytest.raises(Exception, match="unknown options"):
        run(no_such_option="1")
    several: dict[str, Any] = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    with pytest.raises(Exception, match="announces several writers"):
        run(**several)
    whole = files(spark, source).groupBy("ts").count().selectExpr("concat('t', ts) AS id", "ts")
    run(tmp_path / "whole", "complete", whole, **{"hoodie.datasource.write.streaming.checkpoint.identifier": "w"})
    assert rows(table) == {"t1": 1, "t2": 2, "t3": 3, "t4": 4}
    assert table.view().store.list(".hoodie/.temp", recursive=True) == []


def test_inserts_into_a_table_with_automatic_keys(spark: SparkSession, tmp_path: Path) -> None:
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    for number in range(2):
        put(source, number, range(10 * number, 10 * number + 10), ts=number)
    table = hoodie.create(tmp_path / "table", SCHEMA, spark=spark)

    def run() -> None:
        table.stream(files(spark, source), "insert", checkpoint=str(checkpoint), trigger=NOW).awaitTermination()

    run()
    found = table.to_arrow([KEY, "id", "_hoodie_commit_time"]).to_pylist()
    assert len({row[KEY] for row in found}) == len(found) == 20
    assert all(row[KEY].startswith(f"{row['_hoodie_commit_time']}_") for row in found)
    forget_batch(checkpoint, 1)
    table.cluster(properties={"hoodie.clustering.plan.strategy.small.file.limit": "100000000"})
    run()
    again = table.to_arrow([KEY, "id", "_hoodie_commit_time"]).to_pylist()
    assert sorted(again, key=lambda row: row["id"]) == sorted(found, key=lambda row: row["id"])


@pytest.mark.connect
@pytest.mark.surface
def test_a_wrong_stream_is_refused_before_it_starts(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "source", 0, range(3), ts=1)
    frame = files(spark, tmp_path / "source")
    table = hoodie.create(tmp_path / "table", pa.schema([("id", pa.string())]), record_key="id", spark=spark)
    cases: list[tuple[type[Exception], str, Any, dict[str, Any]]] = [
        (InvalidConfigError, "expected checkpoint=", frame, {}),
        (InvalidConfigError, "takes one of upsert", frame, {"operation": "merge", "checkpoint": "c"}),
        (InvalidConfigError, "streaming DataFrame", spark.range(3), {"checkpoint": "c"}),
        (SchemaMismatchError, "id", frame.select("ts"), {"checkpoint": "c"}),
        (SchemaMismatchError, "schema='strict'", frame, {"checkpoint": "c", "schema": "strict"}),
        (InvalidConfigError, "hoodie.no.such", frame, {"checkpoint": "c", "properties": {"hoodie.no.such": "1"}}),
    ]
    for error, says, data, arguments in cases:
        with pytest.raises(error, match=says):
            table.stream(data, **arguments)
    memory = hoodie.create("memory://stream-sink", {"id": ["a"]}, record_key="id")
    with pytest.raises(UnsupportedError, match="use a folder"):
        memory.stream(frame, checkpoint="c")
    assert len(table.timeline) == 0
