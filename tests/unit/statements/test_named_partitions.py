"""PARTITION (…) of TRUNCATE, ALTER TABLE … DROP PARTITION and SHOW PARTITIONS: which partitions its values name."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.support.tables import new_table

DAY = datetime.date(2026, 1, 1)


def table_of(kind: pa.DataType, values: list[Any]) -> hoodie.Table:
    """A table with one row in each partition of the column `n`."""
    rows = pa.table({"id": [str(place) for place in range(len(values))], "n": pa.array(values, kind)})
    return made(rows, "n")


def made(rows: pa.Table, *partition_by: str, **options: Any) -> hoodie.Table:
    return new_table(rows.schema, rows, partition_by=partition_by, **options)


def run(text: str, table: hoodie.Table) -> Any:
    return hoodie.sql(False, text, tables={"t": table})


def left(table: hoodie.Table) -> list[Any]:
    """The values of the partition column, in the order of the ids."""
    found: list[Any] = table.to_arrow(["id", "n"]).sort_by("id")["n"].to_pylist()
    return found


@pytest.mark.parametrize("statement", ["ALTER TABLE t DROP PARTITION (n = {})", "TRUNCATE TABLE t PARTITION (N = {})"])
@pytest.mark.parametrize(
    ("kind", "values", "text", "gone"),
    [
        (pa.int32(), [5, -5, 2], "-5", -5),
        (pa.int32(), [5, -5, 2], "1 + 1", 2),
        (pa.int64(), [5, -5], "'5'", 5),
        (pa.string(), ["SF", "sf"], "lower('SF')", "sf"),
        (pa.string(), ["it's", "its"], "'it''s'", "it's"),
        (pa.string(), ["NULL", None], "NULL", None),
        (pa.string(), ["NULL", None], "'NULL'", "NULL"),
        (pa.bool_(), [True, False], "true", True),
        (pa.date32(), [DAY, DAY.replace(day=2)], "DATE '2026-01-01'", DAY),
        (pa.date32(), [DAY, DAY.replace(day=2)], "'2026-01-01'", DAY),
    ],
)
def test_the_partition_of_a_value(statement: str, kind: pa.DataType, values: list[Any], text: str, gone: Any) -> None:
    table = table_of(kind, values)
    result = run(statement.format(text), table)
    assert result.deleted == 1
    assert left(table) == [value for value in values if value != gone]
    assert run(statement.format(text), table) is None  # it has no such partition any more


def test_several_partitions_in_one_commit() -> None:
    table = table_of(pa.int32(), [1, 2, 3])
    before = len(table.timeline.instants)
    assert run("ALTER TABLE t DROP PARTITION (n = 1), PARTITION (n = 3)", table).deleted == 2
    assert left(table) == [2]
    assert len(table.timeline.instants) == before + 1


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("ALTER TABLE t DROP PARTITION (n = 'abc')", hoodie.SchemaMismatchError, "'abc' is not a value of type int32"),
        ("ALTER TABLE t DROP PARTITION (n = 1, N = 2)", hoodie.InvalidConfigError, "found N twice"),
        ("ALTER TABLE t DROP PARTITION (id = '1')", hoodie.InvalidConfigError, "id is no partition column"),
        ("ALTER TABLE t DROP PARTITION (n)", hoodie.InvalidConfigError, "a value of each of n"),
        ("TRUNCATE TABLE t, t", hoodie.UnsupportedError, "the name of one table"),
    ],
)
def test_what_names_no_partition_is_refused(text: str, error: type[Exception], message: str) -> None:
    table = table_of(pa.int32(), [1, 2])
    before = table.timeline.instants
    with pytest.raises(error, match=message):
        run(text, table)
    assert left(table) == [1, 2]
    assert table.timeline.instants == before


def test_show_partitions_with_some_of_the_values() -> None:
    rows = pa.table({"id": ["1", "2", "3"], "p": ["x", "x", "y"], "q": pa.array([1, -1, -1], pa.int32())})
    table = made(rows, "p", "q")

    def shown(text: str) -> list[str]:
        found: list[str] = run(f"SHOW PARTITIONS t {text}", table)["partition"].to_pylist()
        return found

    assert shown("") == ["p=x/q=-1", "p=x/q=1", "p=y/q=-1"]
    assert shown("PARTITION (q = -1)") == ["p=x/q=-1", "p=y/q=-1"]
    assert shown("PARTITION (p = 'x', q = -1)") == ["p=x/q=-1"]
    assert shown("PARTITION (p = 'z')") == []


def test_show_partitions_of_paths_with_several_folders() -> None:
    rows = pa.table({"id": ["1", "2", "3"], "day": ["2026-01-02", "2026-01-03", "2025-01-02"], "city": ["x", "x", "y"]})
    slashes = {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}
    days = made(rows, "day", properties=slashes)
    assert run("SHOW PARTITIONS t PARTITION (day = '2026-01-02')", days)["partition"].to_pylist() == ["day=2026/01/02"]
    months = made(
        rows,
        "day:TIMESTAMP",
        "city:SIMPLE",
        key_generator="custom",
        properties={
            "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
            "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd",
            "hoodie.keygen.timebased.output.dateformat": "yyyy/MM",
        },
    )
    whole = "SHOW PARTITIONS t PARTITION (day = '2026-01-09', city = 'x')"
    assert run(whole, months)["partition"].to_pylist() == ["day=2026/01/city=x"]
    with pytest.raises(hoodie.UnsupportedError, match="a value of each of day, city"):
        run("SHOW PARTITIONS t PARTITION (city = 'x')", months)
