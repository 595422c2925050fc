"""`spark.read.format("hoodie")` gives the rows that `Table.read` gives."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import SchemaMismatchError
from hoodie.spark import to_arrow
from hoodie.spark.read_options import check_schema
from hoodie.spark.types import arrow_schema_of
from tests.contract.table_lanes import TRIPS, Lane, table_of, trips
from tests.contract.test_table_values import TYPES, VALUES
from tests.support.rows import assert_same_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.connect, pytest.mark.surface]
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
ROWS = trips(("a", 1, 1.0, "sf"), ("b", 2, 2.5, "it's"), ("c", 3, None, "é [1]*"), ("d", 4, 4.0, None))


def needs_data_sources(spark: SparkSession) -> None:
    """PySpark 3.5 has none; what hoodie says there is a test of its own."""
    if not hasattr(spark, "dataSource"):
        pytest.skip("PySpark 3.5 has no data sources in Python")


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lane, str]:
    """A table of two commits, and the instant of the first. Nobody registered the data source."""
    needs_data_sources(spark)
    lane = Lane(spark, tmp_path_factory.mktemp("source"))
    made = lane.create(partition_by="city")
    first = made.insert(ROWS)
    made.delete(ROWS.slice(3, 1))
    return lane, first.instant


@pytest.mark.parametrize(
    ("options", "where", "expected"),
    [
        ({}, None, "abc"),
        ({"where": "fare > 1 OR city = 'sf'"}, None, "ab"),
        ({"where": "ts > 1"}, "ts < 3", "b"),
        ({}, "city = 'it\\'s' AND fare IS NOT NULL", "b"),
        ({}, "city IN ('sf', 'é [1]*') AND ts >= 1", "ac"),
        ({}, "fare IS NULL", "c"),
        ({}, "fare > 0.5", "ab"),
        ({}, "city LIKE 's%' OR ts = 2", "ab"),
        ({}, "city = 'nowhere'", ""),
    ],
)
def test_rows_are_those_of_the_table(
    table: tuple[Lane, str], options: dict[str, str], where: str | None, expected: str
) -> None:
    lane, _ = table
    frame = lane.session.read.format("hoodie").options(**options).load(str(lane.path))
    found = to_arrow(frame if where is None else frame.where(where)).select(TRIPS.names)
    rows = [row for row in ROWS.to_pylist() if row["id"] in expected]
    assert_same_rows(found, table_of(TRIPS, *(tuple(row.values()) for row in rows)), key="id")


def test_columns_and_as_of_are_options(table: tuple[Lane, str]) -> None:
    lane, first = table
    frame = lane.session.read.format("hoodie").option("as_of", first).option("columns", "id, _hoodie_partition_path")
    found = to_arrow(frame.load(str(lane.path)))
    assert found.schema.names == ["id", "_hoodie_partition_path"]
    assert sorted(found["id"].to_pylist()) == ["a", "b", "c", "d"]


def test_fields_of_structs_are_columns(spark: SparkSession, tmp_path: Path) -> None:
    needs_data_sources(spark)
    lane = Lane(spark, tmp_path)
    rows = pa.table({"id": ["a", "b"], "st": [{"x": 1, "y": "p"}, None]})
    lane.create(rows.schema).upsert(rows)
    reader = lane.session.read.format("hoodie").option("columns", "ST.x, id").option("where", "st.y = 'p' OR id = 'b'")
    assert_same_rows(to_arrow(reader.load(str(lane.path))), pa.table({"x": [1, None], "id": ["a", "b"]}), key="id")


def test_keys_are_an_option(table: tuple[Lane, str]) -> None:
    lane, _ = table

    def ids(keys: str, **options: str) -> list[str]:
        reader = lane.session.read.format("hoodie").option("keys", keys).options(columns="id", **options)
        return sorted(row["id"] for row in reader.load(str(lane.path)).collect())

    assert ids('["c", "a", "d", "unknown"]') == ["a", "c"]
    assert ids('[{"id": "b"}]') == ["b"]
    for wrong in ("a,b", "[]", '"a"'):
        with pytest.raises(Exception, match="expected a list of record keys in JSON"):
            ids(wrong)
    with pytest.raises(Exception, match="options as_of and keys belong to different reads"):
        ids('["a"]', as_of="2024-01-01")


def test_changes_are_options(table: tuple[Lane, str]) -> None:
    lane, first = table
    made = lane.open()

    def changes(**options: str) -> Any:
        return lane.session.read.format("hoodie").options(**options).load(str(lane.path))

    second = made.upsert(trips(("b", 9, 9.0, "it's")))
    assert [(row["id"], row["ts"]) for row in changes(since=first).collect()] == [("b", 9)]
    until = changes(since="2020-01-01", until=first).select("id")
    assert sorted(row["id"] for row in until.collect()) == ["a", "b", "c", "d"]
    nothing = changes(since=second.instant, mode="latest", columns="ts")
    assert (nothing.columns, nothing.count()) == (["ts"], 0)
    images = changes(since=first, mode="cdc")
    assert_same_rows(to_arrow(images), lane.arrow(made.changes(since=first, mode="cdc")))
    assert sorted(row["op"] for row in images.collect()) == ["d", "u"]
    flat = changes(since="2020-01-01", until=second.instant, mode="cdc", flat="true").where("op = 'u'")
    assert [(row["before_ts"], row["after_ts"]) for row in flat.collect()] == [(2, 9)]
    assert changes(since=second.instant, mode="cdc").count() == 0
    made.rollback(second.instant)
    for wrong in ({"mode": "all"}, {"flat": "true"}, {"mode": "cdc", "flat": "1"}, {"mode": "cdc", "columns": "id"}):
        with pytest.raises(Exception, match=r"mode='(all|latest|cdc)'"):
            changes(since=first, **wrong).collect()


def test_all_types_pass(spark: SparkSession, tmp_path: Path) -> None:
    needs_data_sources(spark)
    lane = Lane(spark, tmp_path)
    lane.create(TYPES).insert(VALUES)
    found = to_arrow(spark.read.format("hoodie").load(str(lane.path)).select(*TYPES.names))
    assert_same_rows(found, VALUES, key="id")
    for where in ("nest.x = 1", "day = DATE '9999-12-31'", "large > 1000", "flag", "at > TIMESTAMP '2000-01-01'"):
        frame = spark.read.format("hoodie").load(str(lane.path)).where(where)
        assert to_arrow(frame)["id"].to_pylist() == ["high"], where


def test_a_schema_of_the_caller_changes_no_value(spark: SparkSession, tmp_path: Path) -> None:
    needs_data_sources(spark)
    lane = Lane(spark, tmp_path)
    types = "id STRING, n BIGINT, i INT, f FLOAT, t STRING, b BINARY, m STRUCT<a: INT, b: BIGINT>"
    data = spark.createDataFrame([("a", 2**53 + 1, 7, 0.6, "7", b"7", (1, 2**53 + 1))], types)
    hoodie.create(lane.path, data, record_key="id").insert(data)

    def read(schema: str, **options: str) -> Any:
        return spark.read.format("hoodie").schema(schema).options(**options).load(str(lane.path))

    some = read("m STRUCT<b: BIGINT>, f DOUBLE, id STRING, i BIGINT").collect()
    assert [row.asDict(recursive=True) for row in some] == [{"m": {"b": 2**53 + 1}, "f": 0.6, "id": "a", "i": 7}]
    wrong = {
        "n DOUBLE": "int64",
        "n INT": "int64",
        "n STRING": "int64",
        "b STRING": "binary",
        "t DATE": "string",
        "i FLOAT": "int32",
        "m STRUCT<a: INT, c: INT>": "struct",
        "m STRUCT<a: INT, b: DOUBLE>": "struct",
    }
    for schema, there in wrong.items():  # in this process, as each read starts Python processes
        with pytest.raises(SchemaMismatchError, match=f"column '{schema[0]}' has type {there}.*load the table"):
            check_schema(arrow_schema_of(data.schema), arrow_schema_of(spark.createDataFrame([], schema).schema))
    with pytest.raises(Exception, match="SchemaMismatchError: column 'n' has type int64"):
        read("n DOUBLE").collect()
    with pytest.raises(Exception, match=r"SchemaMismatchError: column 'x' is not in op, ts_ms"):
        read("op STRING, x INT", mode="cdc").collect()
    with pytest.raises(Exception, match=r"SchemaMismatchError: columns \['x'\] are not in the table"):
        read("id STRING, x INT").collect()


def test_wrong_options_are_refused(table: tuple[Lane, str]) -> None:
    lane, _ = table
    with pytest.raises(Exception, match="unknown options"):
        lane.session.read.format("hoodie").option("as_off", "2024").load(str(lane.path)).collect()
    with pytest.raises(Exception, match="TableNotFoundError"):
        lane.session.read.format("hoodie").load(str(lane.folder)).collect()


def test_the_message_of_an_error_is_first_and_has_no_frames(spark: SparkSession, tmp_path: Path) -> None:
    needs_data_sources(spark)
    lane = Lane(spark, tmp_path)
    lane.create().insert(ROWS)
    for options in ({"as_off": "2024"}, {"as_of": "long ago"}, {"keys": "a"}):
        with pytest.raises(Exception, match="InvalidConfigError") as raised:
            lane.session.read.format("hoodie").load(str(lane.path), **options).collect()
        assert "Traceback" not in str(raised.value)
        assert "InvalidConfigError" in str(raised.value).splitlines()[0]
    for file in lane.path.rglob("*.parquet"):
        if ".hoodie" not in file.parts:
            os.truncate(file, 100)
    with pytest.raises(Exception, match="CorruptFileError: file:") as raised:
        lane.session.read.format("hoodie").load(str(lane.path)).collect()
    assert "Traceback" not in str(raised.value)
    writer = lane.data(trips((None, 1, 1.0, "sf"))).write.format("hoodie").mode("append")
    with pytest.raises(Exception, match="RecordKeyError") as raised:
        writer.save(str(lane.path))
    assert "Traceback" not in str(raised.value)
    assert "RecordKeyError" in str(raised.value).splitlines()[0]


@pytest.mark.parametrize("pushdown", ["false", "true"])
def test_one_loaded_table_serves_queries_with_other_filters(table: tuple[Lane, str], pushdown: str) -> None:
    """Spark plans a loaded DataFrame once: pushed filters of one query would reduce the rows of another."""
    lane, _ = table
    session = lane.session
    session.conf.set(PUSHDOWN, pushdown)
    loaded = session.read.format("hoodie").load(str(lane.path)).select("id", "ts", "city")
    assert loaded.where("ts > 2").count() == 1
    assert loaded.count() == 3
    assert loaded.where("ts < 2").union(loaded.where("ts > 1")).count() == 3
    other = loaded.where("ts >= 2").withColumnRenamed("ts", "later")
    assert loaded.where("ts <= 2").join(other, "id").count() == 1
    assert loaded.alias("a").join(loaded.alias("b"), "id").where("a.ts = 1 OR b.ts = 3").count() == 2
    loaded.where("ts = 3").createOrReplaceTempView("one_trip")
    loaded.createOrReplaceTempView("all_trips")
    counts = "SELECT (SELECT count(*) FROM one_trip), (SELECT count(*) FROM all_trips WHERE ts < 3), count(*)"
    assert tuple(session.sql(f"{counts} FROM all_trips").first() or ()) == (1, 2, 3)
    cached = loaded.where("city = 'sf'").cache()
    assert (cached.count(), loaded.count()) == (1, 3)
    cached.unpersist()


def test_a_program_may_register_the_source_itself(spark: SparkSession, tmp_path: Path) -> None:
    """The last test of the module: the others use the source that Spark found."""
    if not hasattr(spark, "dataSource"):
        pytest.skip("PySpark 3.5 has no data sources in Python")
    hoodie.register(spark)
    hoodie.unregister(spark)  # the data source stays
    lane = Lane(spark, tmp_path)
    lane.create().insert(ROWS)
    assert spark.read.format("hoodie").load(str(lane.path)).count() == 4
