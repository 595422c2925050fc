"""`hoodie.register`: loads and saves of a session are those of `Table`, for our formats only, until `unregister`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import hoodie
from tests.contract.table_lanes import TRIPS, Lane, trips
from tests.support.rows import assert_same_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.connect, pytest.mark.surface]
ROWS = trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "nyc"), ("c", 1, None, "nyc"))
CREATED = {"record_key": "id", "ordering": "ts", "partition_by": "city"}


@pytest.fixture
def lane(spark: SparkSession, tmp_path: Path) -> Iterator[Lane]:
    """A folder without a table, and a registered session."""
    hoodie.register(spark)
    yield Lane(spark, tmp_path)
    hoodie.unregister(spark)


def save(lane: Lane, rows: pa.Table, mode: str | None = "append", **options: str) -> None:
    writer = lane.data(rows).write.format("hoodie").options(**options)
    (writer if mode is None else writer.mode(mode)).save(str(lane.path))


def ids(lane: Lane, **options: str) -> list[str]:
    return sorted(row["id"] for row in lane.session.read.format("hoodie").load(str(lane.path), **options).collect())


def test_a_load_is_a_native_scan(lane: Lane, capsys: pytest.CaptureFixture[str]) -> None:
    table = lane.create(partition_by="city")
    first = table.upsert(ROWS).instant
    table.upsert(trips(("a", 2, 3.0, "sf")))
    reader = lane.session.read.option("columns", "id,fare").format("hoodie")
    frame = reader.option("where", "city = 'sf'").load(str(lane.path))
    assert [tuple(row) for row in frame.collect()] == [("a", 3.0)]
    frame.explain()
    assert "FileScan parquet" in capsys.readouterr().out
    assert ids(lane, as_of=first) == ["a", "b", "c"]
    assert ids(lane, since=first) == ["a"]
    assert ids(lane, keys='["c"]') == ["c"]
    found = lane.session.read.load(str(lane.path), format="hoodie", schema="id string, ts bigint")
    assert sorted(tuple(row) for row in found.collect()) == [("a", 2), ("b", 1), ("c", 1)]


def test_errors_are_ours_and_of_one_line(lane: Lane) -> None:
    with pytest.raises(hoodie.TableNotFoundError):
        lane.session.read.format("hoodie").load(str(lane.path))
    with pytest.raises(hoodie.TableNotFoundError):
        save(lane, ROWS)
    lane.create()
    with pytest.raises(hoodie.InvalidConfigError, match="expected one of upsert, insert"):
        save(lane, ROWS, operation="merge")
    with pytest.raises(hoodie.InvalidConfigError, match=r"unknown options \['colums'\]"):
        ids(lane, colums="id")
    with pytest.raises(hoodie.InvalidConfigError, match="path of one table"):
        lane.session.read.format("hoodie").load([str(lane.path), "other"])


def test_all_save_modes_exist(lane: Lane) -> None:
    save(lane, ROWS, None, **CREATED)
    table = lane.open()
    with pytest.raises(hoodie.TableExistsError, match="mode\\('append'\\)"):
        save(lane, ROWS, "errorifexists", **CREATED)
    save(lane, trips(("z", 1, 1.0, "sf")), "ignore", **CREATED)
    assert ids(lane) == ["a", "b", "c"]
    save(lane, trips(("a", 5, 5.0, "sf"), ("d", 1, 4.0, "sf")), operation="upsert")
    assert_same_rows(
        table.to_arrow(TRIPS.names),
        trips(("a", 5, 5.0, "sf"), *[tuple(row.values()) for row in ROWS[1:].to_pylist()], ("d", 1, 4.0, "sf")),
    )
    save(lane, ROWS.slice(1, 1), operation="delete_partition")
    assert ids(lane) == ["a", "d"]
    first = table.timeline.instants[0]
    save(lane, ROWS, "overwrite", **CREATED)
    assert (ids(lane), table.timeline.instants[0]) == (["a", "b", "c"], first)


def test_a_table_is_replaced_by_rows_that_are_read_from_it(lane: Lane) -> None:
    save(lane, ROWS, **CREATED)
    found: Any = lane.session.read.format("hoodie").load(str(lane.path)).where("fare > 1").select("id", "fare")
    writer = found.write.format("hoodie").mode("overwrite")
    with pytest.raises(hoodie.SchemaMismatchError):
        writer.options(record_key="nothing").save(str(lane.path))
    with pytest.warns(hoodie.HoodieWarning, match="deleted the table with its history, and created it anew"):
        writer.options(record_key="fare").save(str(lane.path))
    table = lane.open()
    assert table.to_arrow(["id", "fare"]).to_pylist() == [{"id": "b", "fare": 2.0}]
    assert table.verify(full=True).ok
    assert table.view().store.list(".hoodie/.temp", recursive=True) == []


def test_other_formats_and_sessions_are_those_of_spark(lane: Lane, tmp_path: Path) -> None:
    folder = str(tmp_path / "plain")
    lane.data(ROWS).write.format("parquet").mode("overwrite").save(folder)
    lane.data(ROWS).write.mode("append").parquet(folder)
    assert lane.session.read.option("mergeSchema", True).parquet(folder).count() == 6
    assert lane.session.read.format("parquet").schema("id string").load(folder).columns == ["id"]
    before = type(lane.session.read)
    hoodie.unregister(lane.session)
    after = type(lane.session.read)
    assert issubclass(before, after)
    assert before is not after
    hoodie.register(lane.session)
    hoodie.register(lane.session)
    assert type(lane.session.read) is before


def test_the_session_of_a_batch_of_a_stream_is_served_too(lane: Lane, tmp_path: Path) -> None:
    if not hasattr(lane.session, "_jvm"):  # Spark Connect runs the function in a process of the server
        assert type(lane.session.range(0).writeStream).__mro__[1] is object
        return
    save(lane, ROWS, **CREATED)
    source = tmp_path / "in"
    lane.data(trips(("a", 9, 9.0, "sf"), ("d", 1, 4.0, "nyc"))).write.parquet(str(source))
    changes = lane.session.readStream.schema("id string, ts long, fare double, city string").parquet(str(source))
    path = str(lane.path)

    def merge(batch: Any, _number: int) -> None:
        batch.write.format("hoodie").mode("ignore").save(path)
        batch.createOrReplaceTempView("changes")
        batch.sparkSession.sql(
            f"MERGE INTO hoodie.`{path}` AS t USING changes AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    writer = changes.writeStream.foreachBatch(merge).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert ids(lane) == ["a", "b", "c", "d"]
