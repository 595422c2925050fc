"""Merges of Spark DataFrames: who computes them, how often the source is evaluated, and who decides about errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hoodie
from hoodie.errors import JobFailedError
from hoodie.merge_into.changes import merged_rows
from hoodie.spark import merge
from hoodie.spark.assignment import Assignment, types_of
from tests.contract.table_lanes import ANSI, ON_WORKERS, session_with
from tests.support.tables import new_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS = pa.table({"id": pa.array(range(8), pa.int64()), "part": ["a", "b"] * 4, "n": pa.array([1] * 8, pa.int32())})


@pytest.fixture
def table(tmp_path: Path) -> hoodie.Table:
    new_table(ROWS.schema, ROWS, path=tmp_path / "t", partition_by="part")
    return hoodie.open(tmp_path / "t")


@pytest.fixture
def computed_here(monkeypatch: pytest.MonkeyPatch) -> list[pa.Table]:
    """The changes that this process computed, merge by merge."""
    found: list[pa.Table] = []

    def noted(*arguments: Any) -> pa.Table:
        found.append(merged_rows(*arguments))
        return found[-1]

    monkeypatch.setattr(merge, "merged_here", noted)
    return found


def noting(folder: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A step of a plan that leaves a file each time it is evaluated."""
    folder.mkdir()

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        (folder / uuid4().hex).touch()
        yield from batches

    return step


def held(table: hoodie.Table) -> dict[int, int]:
    rows = table.to_arrow(["id", "n"])
    return dict(zip(rows["id"].to_pylist(), rows["n"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("on", "value", "properties", "here"),
    [
        ("t.id = s.id", "t.n + s.n", {}, True),
        ("t.id = s.id AND t.part = s.part", "greatest(t.n, t.n + s.n)", {}, False),
        ("t.id = s.id", "t.n + s.n", ON_WORKERS, False),
        ("t.id = s.id AND t.n < s.n", "t.n + s.n", {}, None),
        ("t.id = s.id AND t.n = s.one", "t.n + s.n", {}, False),
    ],
)
@pytest.mark.connect
def test_a_source_is_evaluated_once(
    spark: SparkSession,
    table: hoodie.Table,
    tmp_path: Path,
    computed_here: list[pa.Table],
    on: str,
    value: str,
    properties: dict[str, str],
    here: bool | None,
) -> None:
    """Also if the join is evaluated twice. `here`: whether this process computes the changes."""
    source = spark.range(4, 12, 1, 1).selectExpr("id", "if(id % 2 = 0, 'a', 'b') AS part", "5 AS n", "1 AS one")
    source = source.mapInArrow(noting(tmp_path / "evaluated"), source.schema)
    merge = table.merge(source, on=on, properties=properties).when_matched_update({"n": value}, "s.id < 7")
    merge = merge.when_not_matched_insert({"id": "s.id", "part": "s.part", "n": "s.n"}, "s.id < 10")
    if here is None:
        with pytest.raises(hoodie.UnsupportedError, match="only equalities"):
            merge.execute()
        assert not list((tmp_path / "evaluated").iterdir())
        return
    result = merge.execute()
    assert (result.inserted, result.updated) == (2, 3)
    assert held(table) == {**dict.fromkeys((0, 1, 2, 3, 7), 1), **dict.fromkeys((4, 5, 6), 6), 8: 5, 9: 5}
    assert len(list((tmp_path / "evaluated").iterdir())) == 1
    assert bool(computed_here) == here
    assert not list((tmp_path / "t" / ".hoodie" / ".temp").glob("stage-*"))


def test_spark_decides_about_numbers_that_overflow(
    spark: SparkSession, table: hoodie.Table, computed_here: list[pa.Table]
) -> None:
    """They wrap without ANSI mode, and are an error in ANSI mode; the commit before stays the newest."""
    from pyspark.errors import ArithmeticException

    merge = table.merge(spark.createDataFrame([(1, 2**31 - 1)], "id long, n int"), on="t.id = s.id")
    merge = merge.when_matched_update({"n": "t.n + s.n"})
    overflows = pytest.raises((ArithmeticException, JobFailedError), match=r"(?i)overflow")
    with session_with(spark, {ANSI: "true"}), overflows:
        merge.execute()
    assert held(table) == dict.fromkeys(range(8), 1)
    with session_with(spark, {ANSI: "false"}):
        assert merge.execute().updated == 1
    assert held(table)[1] == -(2**31)
    assert not computed_here


def test_rows_without_a_key_match_nothing(spark: SparkSession, table: hoodie.Table) -> None:
    """They are no error unless they are inserted."""
    source = spark.createDataFrame([(None, 3), (2, 3)], "id long, n int")
    merge = table.merge(source, on="t.id = s.id").when_matched_update({"n": "s.n"})
    assert merge.execute().updated == 1
    assert held(table)[2] == 3
    with pytest.raises(hoodie.RecordKeyError, match="null"):
        merge.when_not_matched_insert({"id": "s.id", "part": "'a'", "n": "s.n"}).execute()
    assert held(table)[2] == 3


@pytest.mark.parametrize("rows", [[], [(99, 3)]])
def test_a_source_that_meets_nothing(spark: SparkSession, table: hoodie.Table, rows: list[tuple[int, int]]) -> None:
    source = spark.createDataFrame(rows, "id long, n int")
    for properties in ({}, ON_WORKERS):
        merge = table.merge(source, on="t.id = s.id", properties=properties).when_matched_update({"n": "s.n + t.n"})
        assert merge.execute().updated == 0
    assert held(table) == dict.fromkeys(range(8), 1)


def test_a_column_that_arrow_has_no_type_for(spark: SparkSession, table: hoodie.Table) -> None:
    """The source is not staged, and Spark joins it."""
    source = spark.sql("SELECT 2L AS id, INTERVAL '3' MONTH AS long_ago, 4 AS n")
    assert table.merge(source, on="t.id = s.id").when_matched_update({"n": "s.n"}).execute().updated == 1
    assert held(table)[2] == 4


@pytest.mark.connect
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_column_of_the_source_keeps_its_values_or_is_refused(
    spark: SparkSession, table: hoodie.Table, ansi: str
) -> None:
    """Whatever ANSI mode does to such a cast; numbers of another type that fit are taken."""
    with session_with(spark, {ANSI: ansi}):
        for given in ("3000000000L", "'abc'", "1.5D", "named_struct('x', 1)"):
            source = spark.sql(f"SELECT 1L AS id, 'b' AS part, {given} AS n")
            with pytest.raises(hoodie.SchemaMismatchError, match="n of type"):
                table.upsert(source, partial=True)
            with pytest.raises(hoodie.SchemaMismatchError, match="n of type"):
                table.merge(source, "t.id = s.id").when_matched_update({"n": "s.n"}, "t.n / 1 = 1").execute()
        source = spark.sql("SELECT 1L AS id, 'b' AS part, 7L AS n")
        assert table.merge(source, "t.id = s.id").when_matched_update({"n": "s.n"}, "t.n / 1 = 1").execute().updated
    assert held(table) == {**dict.fromkeys(range(8), 1), 1: 7}


NESTED = "m STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<x: INT, y: INT>>, d MAP<STRING, STRUCT<p: INT, q: BIGINT>>"
OTHER_ORDER = {
    "m": "named_struct('b', 'x', 'a', t.n + 9L)",
    "l": "array(named_struct('y', 2, 'x', 1), null)",
    "d": "map('k', named_struct('q', 4, 'p', 3L))",
}
BY_NAME = {"m": {"a": 10, "b": "x"}, "l": [{"x": 1, "y": 2}, None], "d": [("k", {"p": 3, "q": 4})]}
OTHER_FIELDS = {
    "struct(1, 'x')": "fields, a, b, found col1, col2",
    "named_struct('a', 1)": "fields, a, b, found a;",
    "named_struct('a', 1, 'b', 'x', 'c', 2)": "found a, b, c",
    "named_struct('a', array(1), 'b', 'x')": "expected the same nested fields",
}


@pytest.mark.connect
def test_nested_fields_are_assigned_by_name(spark: SparkSession, tmp_path: Path) -> None:
    """In updates and merges; Spark's own cast goes by position."""
    made = hoodie.create(tmp_path / "t", spark.createDataFrame([], f"id BIGINT, n INT, {NESTED}"), record_key="id")
    made.insert(spark.createDataFrame([(1, 1, (1, "o"), None, None)], f"id BIGINT, n INT, {NESTED}"))
    source = spark.sql("SELECT 1L AS id, named_struct('b', 'z', 'a', 5) AS m, array(named_struct('y', 7, 'x', 6)) AS l")

    def merge(assignments: dict[str, str]) -> hoodie.WriteResult:
        return made.merge(source, on="t.id = s.id").when_matched_update(assignments, "t.n / 1 = 1").execute()

    for text, says in OTHER_FIELDS.items():
        with pytest.raises(hoodie.SchemaMismatchError, match=says):
            made.update({"m": text})
        with pytest.raises(hoodie.SchemaMismatchError, match=says):
            merge({"m": text})
    with pytest.raises(hoodie.SchemaMismatchError, match=r"update: .* does not fit; nothing was committed"):
        made.update({"m": "named_struct('a', 3000000000L, 'b', 'x')"})
    assert len(made.timeline.completed()) == 1
    assert made.update({name: text.replace("t.n", "n") for name, text in OTHER_ORDER.items()}).updated == 1
    assert made.to_arrow([*BY_NAME]).to_pylist() == [BY_NAME]
    assert merge({"m": "s.m", "l": "s.l", "d": OTHER_ORDER["d"]}).updated == 1
    assert made.to_arrow([*BY_NAME]).to_pylist() == [{**BY_NAME, "m": {"a": 5, "b": "z"}, "l": [{"x": 6, "y": 7}]}]
    assert made.update({"m": "null"}).updated == 1
    assert made.to_arrow(["m"]).to_pylist() == [{"m": None}]


@pytest.mark.connect
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_assigned_numbers_fit_or_are_refused_in_every_session(spark: SparkSession, ansi: str) -> None:
    """Spark's own cast wraps numbers, or makes them null, without ANSI mode."""

    def assigned(*cases: tuple[str, str]) -> list[Any]:
        """The values of the texts as columns of these types, in one job."""
        frame, columns = spark.range(1), []
        for number, (text, wanted) in enumerate(cases):
            given = types_of(frame, {"": text})[""]
            wanted_type = spark.createDataFrame([], f"v {wanted}").schema["v"].dataType
            columns.append(Assignment("update", "v", given, wanted_type).of(F.expr(text)).alias(f"v{number}"))
        return [*frame.select(*columns).collect()[0]]

    with session_with(spark, {ANSI: ansi}):
        for text in ("2147483648L", "-2147483649L", "1e10D", "double('NaN')", "3e9BD"):
            with pytest.raises(Exception, match=r"update: .* a number does not fit"):
                assigned((text, "int"))
        for text, wanted in (
            ("'x'", "int"),
            ("'1.5.2'", "double"),
            ("'2024-13-01'", "date"),
            ("array('1', 'x')", "array<int>"),
        ):
            with pytest.raises(Exception, match=r"a text is no value of that type|CAST_INVALID_INPUT"):
                assigned((text, wanted))
        assert assigned(("'12'", "int"), ("array('7', null)", "array<int>")) == [12, [7, None]]
        assert assigned(
            ("array(2147483647L, -2147483648L, 7, null)", "array<int>"),
            ("array(-1.9D, 2147483647.5D, -2147483648.9D)", "array<int>"),
            ("array(-9223372036854775808D, 9.5D)", "array<bigint>"),
            ("map(1, 12.34BD)", "map<bigint,decimal(3,1)>"),
        ) == [[2147483647, -2147483648, 7, None], [-1, 2147483647, -2147483648], [-(2**63), 9], {1: Decimal("12.3")}]
