"""Merges of Spark DataFrames: who computes them, how often the source is evaluated, and who decides about errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import JobFailedError
from hoodie.spark import merge_rows
from hoodie.write.merge_rows import merged_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS = pa.table({"id": pa.array(range(8), pa.int64()), "part": ["a", "b"] * 4, "n": pa.array([1] * 8, pa.int32())})
BY_ALL = {"hoodie.python.local.bytes.max": "0"}


@pytest.fixture
def table(tmp_path: Path) -> hoodie.Table:
    made = hoodie.create(tmp_path / "t", ROWS.schema, record_key="id", partition_by="part")
    made.insert(ROWS)
    return made


@pytest.fixture
def computed_here(monkeypatch: pytest.MonkeyPatch) -> list[pa.Table]:
    """The changes that this process computed, merge by merge."""
    found: list[pa.Table] = []

    def noted(*arguments: Any) -> pa.Table:
        found.append(merged_rows(*arguments))
        return found[-1]

    monkeypatch.setattr(merge_rows, "merged_here", noted)
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
        ("t.id = s.id", "t.n + s.n", BY_ALL, False),
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
    before = spark.conf.get("spark.sql.ansi.enabled", "false")
    try:
        spark.conf.set("spark.sql.ansi.enabled", "true")
        with pytest.raises((ArithmeticException, JobFailedError), match=r"(?i)overflow"):
            merge.execute()
        assert held(table) == dict.fromkeys(range(8), 1)
        spark.conf.set("spark.sql.ansi.enabled", "false")
        assert merge.execute().updated == 1
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))
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
    for properties in ({}, BY_ALL):
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
    before = spark.conf.get("spark.sql.ansi.enabled", "false")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for given in ("3000000000L", "'abc'", "1.5D", "named_struct('x', 1)"):
            source = spark.sql(f"SELECT 1L AS id, 'b' AS part, {given} AS n")
            with pytest.raises(hoodie.SchemaMismatchError, match="n of type"):
                table.upsert(source, partial=True)
            with pytest.raises(hoodie.SchemaMismatchError, match="n of type"):
                table.merge(source, "t.id = s.id").when_matched_update({"n": "s.n"}, "t.n / 1 = 1").execute()
        source = spark.sql("SELECT 1L AS id, 'b' AS part, 7L AS n")
        assert table.merge(source, "t.id = s.id").when_matched_update({"n": "s.n"}, "t.n / 1 = 1").execute().updated
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))
    assert held(table) == {**dict.fromkeys(range(8), 1), 1: 7}
