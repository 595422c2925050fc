"""Transforms, and the sources `hudi` and `query`: the same cases in process and on Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import InvalidConfigError, SchemaMismatchError
from hoodie.ingest.json_on_spark import valid_text
from hoodie.ingest.latest import latest
from hoodie.ingest.source import Decoded, Request
from hoodie.ingest.sources.hudi import Hudi
from hoodie.ingest.sources.query import Query
from hoodie.ingest.transforms import Context, transforms_of
from tests.contract.table_lanes import TIME_ZONE, Lane, trips

ROWS = pa.table(
    {
        "id": ["a", "b", "a", None, None],
        "n": [1, 2, 3, 4, 5],
        "o": [2.0, None, float("nan"), 1.0, 1.0],
        "x": ["1", "2", "3", None, "5"],
        "st": [{"a b": 1, "c": {"d": "x"}}, None, None, None, None],
    }
)


def changed(lane: Lane, transform: Any, *, rows: pa.Table = ROWS, schema: pa.Schema | None = None) -> pa.Table:
    found = lane.data(rows)
    for one in transforms_of(transform):
        found = one(found, Context(spark=lane.session, schema=schema))
    return lane.arrow(found)


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=str)


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        ("SELECT id, n + 1 AS m FROM <SRC> WHERE n > 4;", [{"id": None, "m": 6}]),
        ("WITH a AS (SELECT * FROM source) SELECT a.n FROM a JOIN a b ON a.n = b.n + 4 -- {x}", [{"n": 5}]),
        ("SELECT sum(n) AS s, count(*) AS c FROM source", [{"s": 15, "c": 5}]),
        (
            [{"kind": "flatten", "separator": "."}, "SELECT n, `st.c.d` AS d, `st.a b` AS e FROM source WHERE n < 3"],
            [{"n": 1, "d": "x", "e": 1}, {"n": 2, "d": None, "e": None}],
        ),
        (
            [
                {"kind": "flatten", "depth": 1},
                {"kind": "drop", "columns": ["o", "x", "st_a b"]},
                "FROM source SELECT *",
            ],
            None,
        ),
        ([{"kind": "rename", "columns": {"N": "m"}}, {"kind": "drop", "columns": ["o", "x", "st"]}], None),
        (
            [{"kind": "deduplicate", "keys": "id", "by": ["o", "n"]}, {"kind": "drop", "columns": ["o", "x", "st"]}],
            [{"id": "a", "n": 1}, {"id": "b", "n": 2}, {"id": None, "n": 4}, {"id": None, "n": 5}],
        ),
        (
            [{"kind": "cast", "columns": {"x": "int", "n": "decimal(5, 1)"}}, {"kind": "drop", "columns": ["o", "st"]}],
            None,
        ),
        (
            [
                {"kind": "cast", "columns": {"n": "string", "o": "float"}},
                lambda rows: rows.select("n") if hasattr(rows, "sparkSession") else rows.select(["n"]),
            ],
            [{"n": str(number)} for number in range(1, 6)],
        ),
    ],
)
def test_transforms(lane: Lane, transform: Any, expected: list[dict[str, Any]] | None) -> None:
    quoted = [
        one.replace("`", '"') if lane.session is None and isinstance(one, str) else one for one in _listed(transform)
    ]
    found = changed(lane, quoted)
    if expected is None:
        here = changed(Lane(None, lane.folder), quoted)
        assert found.schema.names == here.schema.names
        assert found.schema.types == here.schema.types
        expected = here.to_pylist()
    assert sorted_rows(found) == sorted(expected, key=str)


def _listed(transform: Any) -> list[Any]:
    return transform if isinstance(transform, list) else [transform]


def test_cast_to_the_table(lane: Lane) -> None:
    schema = pa.schema([("X", pa.int64()), ("n", pa.int16()), ("st", pa.struct([("b", pa.int32())])), ("z", pa.int8())])
    found = changed(lane, {"kind": "cast", "to_table": True}, schema=schema)
    assert found.schema.field("x").type == pa.int64()
    assert found.schema.field("n").type == pa.int16()
    assert sorted(found["n"].to_pylist()) == [1, 2, 3, 4, 5]
    assert found.schema.field("st").type.names == ["a b", "c"]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("two", "int"),
        ("2.5", "int"),
        ("2024-02-30", "date"),
        ("x", "boolean"),
        (300, "tinyint"),
        (12345, "decimal(4, 0)"),
    ],
)
def test_a_value_that_does_not_fit_is_named(lane: Lane, value: Any, kind: str) -> None:
    rows = pa.table({"it's": [value]})
    words = rf"column .it.+s.: the value {value} is no {kind.partition('(')[0]}"
    with pytest.raises(SchemaMismatchError, match=words):
        changed(lane, {"kind": "cast", "columns": {"it's": kind}}, rows=rows)


@pytest.mark.parametrize("query", ["SELECT nothing FROM source", "SELECT 1; SELECT 2", "CREATE TABLE t (a INT)"])
def test_a_query_that_is_none_is_refused(lane: Lane, query: str) -> None:
    with pytest.raises(InvalidConfigError, match="query"):
        changed(lane, query)


def test_the_last_row_of_each_key(lane: Lane) -> None:
    rows = pa.table({"st": [{"k": 1}, {"k": 1}, {"k": 2}], "o": [2, 1, 1], "v": ["a", "b", "c"]})
    found = lane.arrow(latest(lane.data(rows), ["ST.k"], ["o"]))
    assert found.schema.names == rows.column_names
    assert sorted(found["v"].to_pylist()) == ["a", "c"]


@pytest.mark.spark
@pytest.mark.connect
def test_times_without_a_zone_reach_spark_so(spark_lane: Lane) -> None:
    local, utc = pa.array(["2026-03-08T02:30:00"]).cast(pa.timestamp("us")), pa.array([0], pa.timestamp("us", "UTC"))
    nested = pa.array([[{"at": local[0].as_py()}]], pa.list_(pa.struct([("at", pa.timestamp("us"))])))
    rows = pa.table({"local": local, "utc": utc, "nested": nested})
    before = spark_lane.session.conf.get(TIME_ZONE)
    spark_lane.session.conf.set(TIME_ZONE, "America/New_York")
    try:
        (transform,) = transforms_of("SELECT * FROM source")
        found = spark_lane.arrow(transform(rows, Context(spark=spark_lane.session)))
    finally:
        spark_lane.session.conf.set(TIME_ZONE, before)
    assert found.schema.field("local").type == pa.timestamp("us")
    assert found.to_pylist() == rows.to_pylist()


@pytest.mark.spark
@pytest.mark.connect
def test_a_key_that_is_no_text(spark_lane: Lane) -> None:
    keys = [b"\xff\xfea", "é".encode(), None, b"\xe2\x82", b""]
    frame = spark_lane.data(pa.table({"key": pa.array(keys, pa.binary())}))
    found = frame.selectExpr(f"{valid_text('key', spark_lane.session.version)} AS text").collect()
    assert [row["text"] for row in found] == [key if key is None else key.decode(errors="replace") for key in keys]


@pytest.mark.spark
@pytest.mark.connect
def test_no_view_remains(spark_lane: Lane) -> None:
    changed(spark_lane, "SELECT n FROM source")
    assert [row["tableName"] for row in spark_lane.session.sql("SHOW TABLES").collect() if row["isTemporary"]] == []


def test_a_query_over_tables(lane: Lane) -> None:
    lane.table(trips(("a", 1, 1.5, "x"), ("b", 1, 2.5, "x")))
    source = Query("SELECT city, sum(fare) AS fare FROM trips GROUP BY city", tables={"trips": str(lane.path)})
    found = source.plan(Request(spark=lane.session)).read()
    table = found.read_all() if isinstance(found, pa.RecordBatchReader) else lane.arrow(found)
    assert table.to_pylist() == [{"city": "x", "fare": 4.0}]


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
def test_a_table_as_a_source(lane: Lane, kind: str) -> None:
    table = lane.table(trips(("a", 1, 1.0, "x"), ("b", 1, 1.0, "x")), type=kind, partition_by="city")
    first = Hudi(str(lane.path)).plan(Request(spark=lane.session))
    assert first is not None
    assert _rows(lane, first.read()) == [("a", 1.0), ("b", 1.0)]
    table.upsert(trips(("a", 2, 2.0, "x")))
    table.delete(["b"])
    second = Hudi(str(lane.path)).plan(Request(after=first.place, spark=lane.session))
    assert second is not None
    assert _rows(lane, second.read()) == [("a", 2.0)]
    changes = Hudi(str(lane.path), mode="cdc").plan(Request(after=first.place, spark=lane.session))
    assert changes is not None
    read = changes.read()
    assert isinstance(read, Decoded)
    found = lane.arrow(latest(read.rows, ["id"], read.order))
    assert {*found.schema.names} == {"id", "ts", "fare", "city", "_hoodie_is_deleted", *read.order}
    assert sorted((one["id"], one["fare"], one["_hoodie_is_deleted"]) for one in found.to_pylist()) == [
        ("a", 2.0, False),
        ("b", 1.0, True),
    ]
    nothing = Hudi(str(lane.path), start="latest").plan(Request(spark=lane.session))
    assert nothing is not None
    assert _rows(lane, nothing.read()) == []
    assert nothing.place == second.place


def _rows(lane: Lane, read: Any) -> list[tuple[Any, ...]]:
    table = read.read_all() if isinstance(read, pa.RecordBatchReader) else lane.arrow(read)
    assert table.schema.names == ["id", "ts", "fare", "city"]
    return sorted((one["id"], one["fare"]) for one in table.to_pylist())
