"""`spark.read.format("hoodie")` gives the rows that `Table.read` gives."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections import Counter
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.errors import SchemaMismatchError
from hoodie.spark import to_arrow
from hoodie.spark.read_options import check_schema
from hoodie.spark.types import arrow_schema_of
from tests.contract.table_lanes import TIME_ZONE, TRIPS, Lane, session_with, trips
from tests.contract.test_table_values import TYPES, VALUES
from tests.support.rows import assert_same_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.connect, pytest.mark.surface, pytest.mark.usefixtures("has_data_sources")]
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
ROWS = trips(("a", 1, 1.0, "sf"), ("b", 2, 2.5, "it's"), ("c", 3, None, "é [1]*"), ("d", 4, 4.0, None))


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lane, str]:
    """A table of two commits, and the instant of the first. Nobody registered the data source."""
    lane = Lane(spark, tmp_path_factory.mktemp("source"))
    made = lane.table(ROWS, partition_by="city")
    made.delete(ROWS.slice(3, 1))
    return lane, made.timeline.instants[0].requested_time


CONDITIONS = {
    "true": "abc",
    "ts > 1 AND ts < 3": "b",
    "city = 'it\\'s' AND fare IS NOT NULL": "b",
    "city IN ('sf', 'é [1]*') AND ts >= 1": "ac",
    "fare IS NULL": "c",
    "fare > 0.5": "ab",
    "city LIKE 's%' OR ts = 2": "ab",
    "city = 'nowhere'": "",
}


def test_rows_are_those_of_the_table(table: tuple[Lane, str]) -> None:
    """Whether Spark filters them or the option `where` does."""
    lane, _ = table
    loaded = lane.session.read.format("hoodie").load(str(lane.path))
    parts = [loaded.where(where).selectExpr(f"{number} AS n", *TRIPS.names) for number, where in enumerate(CONDITIONS)]
    reader = lane.session.read.format("hoodie").option("where", "fare > 1 OR city = 'sf'")
    parts.append(reader.load(str(lane.path)).where("ts < 3").selectExpr("-1 AS n", *TRIPS.names))
    found = to_arrow(reduce(lambda left, right: left.union(right), parts))
    for number, ids in enumerate([*CONDITIONS.values(), "ab"]):
        rows = found.filter(pc.equal(found["n"], number if number < len(CONDITIONS) else -1)).select(TRIPS.names)
        assert_same_rows(rows, ROWS.filter(pc.is_in(ROWS["id"], pa.array([*ids], pa.string()))), key="id")


def test_columns_and_as_of_are_options(table: tuple[Lane, str]) -> None:
    lane, first = table
    frame = lane.session.read.format("hoodie").option("as_of", first).option("columns", "id, _hoodie_partition_path")
    found = to_arrow(frame.load(str(lane.path)))
    assert found.schema.names == ["id", "_hoodie_partition_path"]
    assert sorted(found["id"].to_pylist()) == ["a", "b", "c", "d"]


def test_a_condition_of_another_time_zone_is_refused(spark_lane: Lane) -> None:
    lane = spark_lane
    at = pa.array([dt.datetime(2026, 1, 1, 3, tzinfo=dt.UTC)], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": ["a"], "at": at})
    lane.table(rows, schema=rows.schema)

    def count(where: str) -> int:
        return int(lane.session.read.format("hoodie").option("where", where).load(str(lane.path)).count())

    with session_with(lane.session, {TIME_ZONE: "America/New_York"}):
        assert count("at >= TIMESTAMP '2026-01-01 00:00:00Z'") == 1
        with pytest.raises(Exception, match=r"evaluates the condition in UTC, and .* is America/New_York"):
            count("at >= '2026-01-01'")
    with session_with(lane.session, {TIME_ZONE: "UTC"}):
        assert count("at >= '2026-01-01'") == 1


def test_fields_of_structs_are_columns(spark_lane: Lane) -> None:
    lane = spark_lane
    rows = pa.table({"id": ["a", "b"], "st": [{"x": 1, "y": "p"}, None]})
    lane.table(rows, schema=rows.schema)
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


@pytest.mark.later
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


def test_all_types_pass(spark_lane: Lane) -> None:
    lane = spark_lane
    lane.create(TYPES).insert(VALUES)
    found = to_arrow(lane.session.read.format("hoodie").load(str(lane.path)).select(*TYPES.names))
    assert_same_rows(found, VALUES, key="id")
    loaded = lane.session.read.format("hoodie").load(str(lane.path))
    wheres = ("nest.x = 1", "day = DATE '9999-12-31'", "large > 1000", "flag", "at > TIMESTAMP '2000-01-01'")
    matching = reduce(lambda left, right: left.union(right), [loaded.where(where).select("id") for where in wheres])
    assert [row["id"] for row in matching.collect()] == ["high"] * len(wheres)


@pytest.fixture(params=["unregistered", "registered"])
def any_session(request: pytest.FixtureRequest, spark_lane: Lane) -> Iterator[Lane]:
    """A session whose reads the data source serves, or `hoodie.register`."""
    if request.param == "registered":
        hoodie.register(spark_lane.session)
    yield spark_lane
    hoodie.unregister(spark_lane.session)


def test_a_schema_of_the_caller_changes_no_value(any_session: Lane) -> None:
    lane = any_session
    spark, types = lane.session, "id STRING, n BIGINT, i INT, f FLOAT, t STRING, b BINARY, m STRUCT<a: INT, b: BIGINT>"
    pair = "STRUCT<x: INT, y: INT, z: FLOAT>"
    types += f", s {pair}, l ARRAY<{pair}>, k MAP<STRING, {pair}>"
    values = (1, 2, 0.6)
    row = ("a", 2**53 + 1, 7, 0.6, "7", b"7", (1, 2**53 + 1), values, [values, None], {"one": values})
    data = spark.createDataFrame([row, ("none", *[None] * 9)], types)
    hoodie.create(lane.path, data, record_key="id").insert(data)

    def read(schema: str, **options: str) -> Any:
        return spark.read.format("hoodie").schema(schema).options(**options).load(str(lane.path))

    some = read("m STRUCT<b: BIGINT>, f DOUBLE, id STRING, i BIGINT").where("id = 'a'").collect()
    assert [row.asDict(recursive=True) for row in some] == [{"m": {"b": 2**53 + 1}, "f": 0.6, "id": "a", "i": 7}]
    other = "STRUCT<z: DOUBLE, y: BIGINT, x: INT>"
    nested = read(f"id STRING, s {other}, l ARRAY<{other}>, k MAP<STRING, {other}>").orderBy("id").collect()
    moved = {"z": 0.6, "y": 2, "x": 1}
    assert [row.asDict(recursive=True) for row in nested] == [
        {"id": "a", "s": moved, "l": [moved, None], "k": {"one": moved}},
        {"id": "none", "s": None, "l": None, "k": None},
    ]
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
    with pytest.raises(Exception, match="column 'n' has type int64"):
        read("n DOUBLE").collect()
    with pytest.raises(Exception, match=r"column 'x' is not in op, ts_ms"):
        read("op STRING, x INT", mode="cdc").collect()
    with pytest.raises(Exception, match=r"columns \['x'\] are not in the table|column 'x' is not in _hoodie"):
        read("id STRING, x INT").collect()


def test_the_message_of_an_error_is_first_and_has_no_frames(spark_lane: Lane) -> None:
    lane = spark_lane
    lane.table(ROWS)
    for path, options, error in (
        (lane.path, {"as_off": "2024"}, "InvalidConfigError: unknown options ['as_off']; did you mean 'as_of'?"),
        (lane.path, {"hoodie.datasource.query.typ": "incremental"}, "did you mean 'hoodie.datasource.query.type'?"),
        (lane.path, {"as_of": "long ago"}, "InvalidConfigError"),
        (lane.folder, {}, "TableNotFoundError"),
    ):
        with pytest.raises(Exception, match=re.escape(error)) as raised:
            lane.session.read.format("hoodie").load(str(path), **options).collect()
        assert "Traceback" not in str(raised.value)
        assert error in str(raised.value).splitlines()[0]
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
    other = loaded.where("ts >= 2").withColumnRenamed("ts", "later")
    queries = [
        (loaded.where("ts > 2"), 1),
        (loaded, 3),
        (loaded.where("ts < 2").union(loaded.where("ts > 1")), 3),
        (loaded.where("ts <= 2").join(other, "id"), 1),
        (loaded.alias("a").join(loaded.alias("b"), "id").where("a.ts = 1 OR b.ts = 3"), 2),
    ]
    counts = [query.selectExpr(f"{number} AS n") for number, (query, _) in enumerate(queries)]
    found = Counter(row["n"] for row in reduce(lambda left, right: left.union(right), counts).collect())
    assert found == {number: count for number, (_, count) in enumerate(queries)}
    loaded.where("ts = 3").createOrReplaceTempView("one_trip")
    loaded.createOrReplaceTempView("all_trips")
    of_views = "SELECT (SELECT count(*) FROM one_trip), (SELECT count(*) FROM all_trips WHERE ts < 3), count(*)"
    assert tuple(session.sql(f"{of_views} FROM all_trips").first() or ()) == (1, 2, 3)
    cached = loaded.where("city = 'sf'").cache()
    assert (cached.count(), loaded.count()) == (1, 3)
    cached.unpersist()


def test_a_program_may_register_the_source_itself(spark_lane: Lane) -> None:
    """The last test of the module: the others use the source that Spark found."""
    hoodie.register(spark_lane.session)
    hoodie.unregister(spark_lane.session)  # the data source stays
    spark_lane.table(ROWS)
    assert spark_lane.session.read.format("hoodie").load(str(spark_lane.path)).count() == 4
