"""`df.write.format("hoodie")` and SQL on a table of the catalog write what the methods of `Table` write."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.contract.table_lanes import TRIPS, Lane, trips
from tests.support.tables import values_of

pytestmark = [pytest.mark.spark, pytest.mark.connect, pytest.mark.surface]
ROWS = trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "nyc"), ("c", 1, None, "nyc"))


@pytest.fixture
def lane(spark_lane: Lane, has_data_sources: None) -> Lane:
    """A folder without a table."""
    return spark_lane


def save(lane: Lane, rows: pa.Table, mode: str = "append", **options: str) -> None:
    lane.data(rows).write.format("hoodie").options(**options).mode(mode).save(str(lane.path))


def found(table: hoodie.Table) -> list[tuple[Any, ...]]:
    """The rows of the table, and no staged file that a write left."""
    store = table.view().store
    assert store.list(".hoodie/.temp", recursive=True) == []
    return values_of(table, *TRIPS.names)


def test_each_operation_is_one_commit(lane: Lane) -> None:
    table = lane.create(partition_by="city")
    save(lane, ROWS)
    assert found(table) == [("a", 1, 1.0, "sf"), ("b", 1, 2.0, "nyc"), ("c", 1, None, "nyc")]
    save(lane, trips(("a", 2, 3.0, "sf"), ("d", 2, 4.0, "sf")), operation="upsert")
    save(lane, trips(("e", 3, 5.0, "la")), operation="bulk_insert")
    save(lane, trips(("c", 0, 0.0, "nyc")).select(["id", "city"]), operation="delete")
    assert found(table) == [("a", 2, 3.0, "sf"), ("b", 1, 2.0, "nyc"), ("d", 2, 4.0, "sf"), ("e", 3, 5.0, "la")]
    save(lane, trips(("f", 4, 6.0, "sf")), operation="insert_overwrite")
    assert found(table) == [("b", 1, 2.0, "nyc"), ("e", 3, 5.0, "la"), ("f", 4, 6.0, "sf")]
    save(lane, trips(("g", 5, 7.0, "sf")), "overwrite")
    assert found(table) == [("g", 5, 7.0, "sf")]
    save(lane, trips(("h", 6, 8.0, "sf")), operation="insert")
    save(lane, trips(("x", 0, 0.0, "sf"), ("y", 0, 0.0, "none")), operation="delete_partition")
    assert found(table) == []
    done = [row["operation"] for row in reversed(table.history().to_pylist())]
    changes = ["upsert", "upsert", "bulk_insert", "delete", "insert_overwrite", "insert_overwrite_table", "insert"]
    assert done == [*changes, "delete_partition"]
    assert table.verify(full=True).ok


def test_overwrite_replaces_the_rows_in_one_commit_or_the_table(lane: Lane) -> None:
    definition = {"record_key": "id", "ordering": "ts", "partition_by": "city", "name": "trips"}
    save(lane, ROWS, **definition)
    first = lane.open().timeline.latest()
    save(lane, trips(("a", 1, 1.0, "sf"), ("a", 3, 3.0, "nyc"), ("a", 2, 2.0, "sf")), "overwrite", **definition)
    table = lane.open()
    assert found(table) == [("a", 3, 3.0, "nyc")]
    assert first in table.timeline.instants  # the same definition: readers see the old rows or the new ones
    wrong = trips(("a", 1, 1.0, None), (None, 3, 3.0, "nyc"))
    with pytest.raises(Exception, match="RecordKeyError"):
        save(lane, wrong, "overwrite", **{**definition, "ordering": "fare"})
    assert found(table) == [("a", 3, 3.0, "nyc")]
    read_back = lane.session.read.format("hoodie").load(str(lane.path)).select("id", "fare")
    read_back.write.format("hoodie").options(record_key="fare").mode("overwrite").save(str(lane.path))
    table = lane.open()
    assert table.to_arrow(["id", "fare"]).to_pylist() == [{"id": "a", "fare": 3.0}]
    assert table.view().config.record_key_fields == ("fare",)
    assert first not in table.timeline.instants


def test_a_flag_deletes_rows_and_is_no_column(lane: Lane) -> None:
    table = lane.table(ROWS)
    flags = pa.array([True, False])
    rows = trips(("a", 2, 0.0, "sf"), ("d", 2, 4.0, "sf")).append_column("_hoodie_is_deleted", flags)
    save(lane, rows)
    assert found(table) == [("b", 1, 2.0, "nyc"), ("c", 1, None, "nyc"), ("d", 2, 4.0, "sf")]
    assert table.schema.names == TRIPS.names


def test_a_table_without_key_takes_rows_and_its_own_rows_back(lane: Lane) -> None:
    save(lane, ROWS, name="trips")
    save(lane, ROWS.slice(1))
    table = lane.open()
    assert table.count() == 5
    read = lane.session.read.format("hoodie").load(str(lane.path)).where("id = 'a'").withColumnRenamed("fare", "was")
    read.selectExpr("*", "was + 1 AS fare").drop("was").write.format("hoodie").mode("append").save(str(lane.path))
    assert [row["fare"] for row in table.to_arrow(["fare"], where="id = 'a'").to_pylist()] == [2.0]


def test_rows_that_were_read_can_be_written_back_with_options(lane: Lane) -> None:
    table = lane.table(ROWS)
    read = lane.session.read.format("hoodie").load(str(lane.path)).where("id <> 'b'").selectExpr("*", "'x' AS more")
    options = {"operation": "upsert", "hoodie.python.schema.evolution": "never"}
    writer = read.write.format("hoodie").mode("append")
    with pytest.raises(Exception, match="SchemaMismatchError"):
        writer.options(**options).save(str(lane.path))
    writer.options(**{**options, "hoodie.python.schema.evolution": "typed"}).save(str(lane.path))
    assert values_of(table, "id", "more") == [("a", "x"), ("b", None), ("c", "x")]


def test_each_save_names_the_payload_class_as_scripts_for_jvm_hudi_do(lane: Lane) -> None:
    payload = "org.apache.hudi.common.model.AWSDmsAvroPayload"
    options = {"record_key": "id", "ordering": "ts", "hoodie.datasource.write.payload.class": payload}

    def change(operation: str, *rows: tuple[Any, ...]) -> None:
        data = trips(*rows)
        save(lane, data.append_column("Op", pa.array([operation] * data.num_rows)), **options)

    change("I", ("a", 1, 1.0, "sf"), ("b", 1, 2.0, "nyc"))
    change("U", ("b", 0, 3.0, "nyc"))
    change("D", ("a", 2, 1.0, "sf"))
    assert found(hoodie.open(lane.path)) == [("b", 0, 3.0, "nyc")]


@pytest.mark.later
def test_writes_that_cannot_be_are_refused_before_a_task_runs(lane: Lane) -> None:
    with pytest.raises(Exception, match=r"TableNotFoundError.*create a table with hoodie\.create"):
        save(lane, ROWS)
    table = lane.create()
    for rows, mode, options, message in (
        (ROWS, "append", {"operation": "merge"}, "expected one of upsert, insert, bulk_insert, delete"),
        (ROWS, "overwrite", {"operation": "delete"}, "operation='delete' takes the mode 'append' only"),
        (ROWS, "append", {"hoodie.datasource.write.partitions.to.delete": "x"}, "operation='delete_partition'"),
        (ROWS, "append", {"as_of": "2024"}, r"unknown options \['as_of'\]"),
        (ROWS, "append", {"hoodie.no.such": "1"}, "InvalidConfigError"),
        (
            ROWS,
            "append",
            {"hoodie.datasorce.write.operaton": "insert"},
            r"mean 'hoodie\.datasource\.write\.operation'\?",
        ),
        (ROWS, "append", {"operaton": "insert"}, r"unknown options \['operaton'\]; did you mean 'operation'\?"),
        (ROWS.select(["ts"]), "append", {}, "column 'id' .* is missing in the data"),
        (ROWS, "error", {}, 'use either the "Append" or "Overwrite" mode'),
    ):
        with pytest.raises(Exception, match=message):
            save(lane, rows, mode, **options)
    assert table.timeline.instants == ()
    null_key = trips((None, 1, 1.0, "sf"))
    with pytest.raises(Exception, match="RecordKeyError"):
        save(lane, null_key)
    assert found(table) == []


def test_a_first_write_creates_the_table_from_its_options(lane: Lane) -> None:
    jvm = {
        "hoodie.table.name": "journeys",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "upsert",
    }
    with pytest.raises(Exception, match="TableNotFoundError"):
        save(lane, ROWS.select(["id"]), operation="delete", record_key="id")
    save(lane, ROWS, **jvm)
    save(lane, trips(("a", 0, 9.0, "sf"), ("b", 2, 3.0, "nyc")), **jvm)
    table = lane.open()
    assert found(table) == [("a", 1, 1.0, "sf"), ("b", 2, 3.0, "nyc"), ("c", 1, None, "nyc")]
    assert table.view().config.name == "journeys"
    with pytest.raises(Exception, match=r"the table exists with record_key=\('id',\), .*'ts'"):
        save(lane, ROWS, record_key="ts")
    save(lane, ROWS, "overwrite", record_key="id", type="merge_on_read", operation="insert_overwrite_table")
    assert table.count() == 3


def test_sql_reads_and_writes_views_and_tables_of_the_catalog(lane: Lane) -> None:
    table = lane.create()
    sql = lane.session.sql
    options = f"path '{lane.path}', columns '{','.join(TRIPS.names)}'"
    sql(f"CREATE TEMPORARY VIEW sql_view USING hoodie OPTIONS ({options})")
    sql(f"CREATE TABLE sql_trips USING hoodie OPTIONS ({options})")
    inserts = f"{options}, `hoodie.datasource.write.operation` 'insert'"
    sql(f"CREATE TEMPORARY VIEW sql_inserts USING hoodie OPTIONS ({inserts})")
    path = f"path = '{lane.path}'"
    try:
        sql("INSERT INTO sql_view VALUES ('a', 1, 1.0, 'sf'), ('b', 2, NULL, 'nyc')")
        assert [row["id"] for row in sql("SELECT id FROM sql_view WHERE fare IS NULL").collect()] == ["b"]
        sql(f"INSERT INTO sql_trips WITH ({path}, operation = 'upsert') VALUES ('b', 3, 3.0, 'nyc')")
        assert found(table) == [("a", 1, 1.0, "sf"), ("b", 3, 3.0, "nyc")]
        sql("INSERT INTO sql_view VALUES ('b', 3, 3.0, 'nyc')")
        assert table.count() == 2  # a save of rows with keys is an upsert
        newest = f"sql_trips WITH ({path})"
        sql(f"INSERT OVERWRITE {newest} SELECT id, ts + 1, fare, city FROM {newest} WHERE id = 'b'")
        assert found(table) == [("b", 4, 3.0, "nyc")]
        sql("INSERT INTO sql_inserts VALUES ('b', 4, 3.0, 'nyc')")
        assert found(table) == [("b", 4, 3.0, "nyc")] * 2
        for statement in ("INSERT INTO sql_trips VALUES ('c', 1, 1.0, 'sf')", "SELECT * FROM sql_trips"):
            with pytest.raises(Exception, match=r"no path: .* tables of the catalog need .* WITH \(path = '\.\.\.'\)"):
                sql(statement).collect()
    finally:
        sql("DROP TABLE sql_trips")
        sql("DROP VIEW sql_view")
        sql("DROP VIEW sql_inserts")
    assert table.count() == 2
