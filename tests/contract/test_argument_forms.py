"""Arguments in the forms that Python has for them: expressions of pyarrow, numbers as instants, dicts as partitions."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("day", pa.date32()),
        ("city", pa.string()),
        ("n", pa.int64()),
        ("t", pa.timestamp("us", "UTC")),
    ]
)


def row(key: str, day: int, city: str, n: int) -> dict[str, Any]:
    when = dt.datetime(2026, 1, day, 12, tzinfo=dt.UTC)
    return {"id": key, "day": when.date(), "city": city, "n": n, "t": when}


@pytest.fixture
def table(tmp_path: Path) -> hoodie.Table:
    made = hoodie.create(tmp_path / "t", SCHEMA, record_key="id", partition_by=["city", "day"], spark=False)
    made.upsert([row("a", 1, "sf", 1), row("b", 2, "sf", 2), row("c", 2, "nyc", 3), row("d", 3, "a/b", 4)])
    return made


def ids(table: hoodie.Table, **how: Any) -> list[str]:
    return sorted(table.to_arrow("id", **how)["id"].to_pylist())


def test_a_condition_can_be_an_expression_of_pyarrow(table: hoodie.Table) -> None:
    n, city = pc.field("n"), pc.field("city")
    assert ids(table, where=(n > 1) & (city == "sf")) == ["b"]
    assert ids(table, where=~city.isin(["sf"]) | (n == 1)) == ["a", "c", "d"]
    assert ids(table, where=pc.field("t") >= dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)) == ["b", "c", "d"]
    assert table.count(n < 3) == 2
    assert table.explain(city == "nyc").file_slices == 1
    assert table.head(5, where=n == 4).num_rows == 1
    assert table.update({"n": 10}, where=n == 4).updated == 1
    assert table.delete_where(pc.field("id") == "a").deleted == 1
    with pytest.raises(hoodie.UnsupportedError, match="expected comparisons of columns with values"):
        table.count(n == pc.field("day"))


def test_an_instant_can_be_a_number(table: hoodie.Table) -> None:
    first, done = table.timeline.instants[0].requested_time, int(table.timeline.instants[0].completion_time or "")
    table.savepoint()
    table.upsert([row("e", 1, "sf", 1)])
    assert ids(table, as_of=done) == ["a", "b", "c", "d"]
    assert table.changes(since=done)["id"].to_pylist() == ["e"]  # type: ignore[arg-type]
    table.restore(int(first))  # type: ignore[arg-type]
    assert ids(table) == ["a", "b", "c", "d"]
    for number in (0, -20261127110540527, 1700000000, True, 20261127110540527.0):
        with pytest.raises(hoodie.InvalidConfigError, match="expected an instant"):
            table.to_arrow(as_of=number)  # type: ignore[arg-type]


def test_partitions_can_be_dicts_of_their_columns(table: hoodie.Table) -> None:
    day = dt.date(2026, 1, 2)
    assert table.delete_partitions([{"city": "sf", "day": day}]).deleted == 1
    assert table.delete_partitions([{"day": dt.date(2026, 1, 3), "city": "a/b"}]).deleted == 1
    assert ids(table) == ["a", "c"]
    with pytest.raises(hoodie.SchemaMismatchError, match="lack the partition columns"):
        table.delete_partitions([{"city": "nyc"}])
    with pytest.raises(hoodie.InvalidConfigError, match="no partitions"):
        table.delete_partitions([{"city": "la", "day": day}])
    with pytest.raises(hoodie.InvalidConfigError, match="list of partition paths"):
        table.delete_partitions([{"city": "la", "day": day}, "x"])
    assert ids(table) == ["a", "c"]
