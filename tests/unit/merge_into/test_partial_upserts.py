"""Upserts of data that lacks columns: stored values stay, in process, on both table types and every index."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.unit.write.tables import SCHEMA, trips

GLOBAL = ("record", "global_simple", "global_bloom")
STORED = trips(("a", 5, 1.0, "sf"), ("b", 5, 2.0, "sf"), ("c", 5, 3.0, "la"))


def table_with_rows(name: str, **parts: Any) -> hoodie.Table:
    options: dict[str, Any] = {"record_key": "id", "partition_by": "city", "ordering": "ts", **parts}
    table = hoodie.create(f"memory://partial-{name}", SCHEMA, **options)
    table.upsert(STORED)
    return table


def rows_of(table: hoodie.Table) -> dict[str, tuple[int, float | None, str]]:
    rows = table.to_arrow(columns=["id", "ts", "fare", "city"]).to_pylist()
    return {row["id"]: (row["ts"], row["fare"], row["city"]) for row in rows}


def without_fare(*rows: tuple[str, int, str]) -> pa.Table:
    return trips(*((key, ts, 0.0, city) for key, ts, city in rows)).drop_columns(["fare"])


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("index", [*GLOBAL, "simple", "bloom", "bucket"])
def test_missing_columns_keep_their_values(index: str, table_type: str) -> None:
    table = table_with_rows(f"{index}-{table_type}", index=index, type=table_type)
    before = len(table.timeline.completed())
    data = without_fare(("a", 6, "sf"), ("b", 4, "sf"), ("c", 5, "nyc"), ("n", 1, "la"))
    result = table.upsert(data, partial=True)
    assert len(table.timeline.completed()) == before + 1
    assert table.history(1)["operation"].to_pylist() == ["upsert"]
    expected = {"a": (6, 1.0, "sf"), "b": (5, 2.0, "sf"), "n": (1, None, "la")}
    if index in GLOBAL:
        # The row moves to the partition of the data, as by a whole row.
        assert rows_of(table) == {**expected, "c": (5, 3.0, "nyc")}
        assert result.inserted == 1
    else:
        assert table.count() == 5
        assert table.to_arrow(["fare"], "id = 'c' AND city = 'nyc'").to_pylist() == [{"fare": None}]
        assert table.to_arrow(["fare"], "id = 'c' AND city = 'la'").to_pylist() == [{"fare": 3.0}]
    assert rows_of(table).items() >= expected.items()
    assert table.verify(full=True).ok


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_without_event_time_the_ordering_column_is_a_column_as_others(table_type: str) -> None:
    table = table_with_rows(f"commit-{table_type}", ordering=None, type=table_type)
    result = table.upsert(
        [{"id": "a", "city": "sf", "fare": None}, {"id": "n", "city": "sf", "fare": 9.0}], partial=True
    )
    assert (result.inserted, result.updated) == (1, 1)
    assert rows_of(table) == {"a": (5, None, "sf"), "b": (5, 2.0, "sf"), "c": (5, 3.0, "la"), "n": (None, 9.0, "sf")}


REFUSED: dict[str, tuple[Any, type[hoodie.HoodieError], str]] = {
    "no key": (pa.table({"city": ["sf"], "ts": [9]}), hoodie.SchemaMismatchError, r"lacks \['id'\]"),
    "no partition": (pa.table({"id": ["a"], "ts": [9]}), hoodie.SchemaMismatchError, r"lacks \['city'\]"),
    "no ordering": (pa.table({"id": ["a"], "city": ["sf"]}), hoodie.SchemaMismatchError, r"lacks \['ts'\].*merge"),
    "unknown column": (
        without_fare(("a", 9, "sf")).append_column("more", pa.array([1])),
        hoodie.SchemaMismatchError,
        r"no columns \['more'\]",
    ),
    "twice one key": (
        without_fare(("a", 9, "sf"), ("a", 8, "sf")),
        hoodie.RecordKeyError,
        "nothing was committed",
    ),
    "twice a new key": (without_fare(("n", 9, "sf"), ("n", 8, "sf")), hoodie.RecordKeyError, "nothing was committed"),
    "null key": (pa.table({"id": [None], "ts": [9], "city": ["sf"]}, SCHEMA.remove(2)), hoodie.RecordKeyError, "null"),
    "dicts with different keys": (
        [{"id": "a", "ts": 9, "city": "sf"}, {"id": "b", "ts": 9, "city": "sf", "fare": 1.0}],
        hoodie.SchemaMismatchError,
        "different keys",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_clear_is_refused(case: str) -> None:
    table = table_with_rows(f"refused {case}".replace(" ", "-"))
    data, error, message = REFUSED[case]
    before = rows_of(table), len(table.timeline.instants)
    with pytest.raises(error, match=message):
        table.upsert(data, partial=True)
    assert (rows_of(table), len(table.timeline.instants)) == before


def test_automatic_keys_are_refused() -> None:
    table = hoodie.create("memory://partial-keyless", SCHEMA)
    with pytest.raises(hoodie.UnsupportedError, match="automatically"):
        table.upsert(without_fare(("a", 9, "sf")), partial=True)


TYPED = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int32()),
        ("f", pa.float32()),
        ("day", pa.date32()),
        ("ok", pa.bool_()),
        ("p", pa.decimal128(10, 2)),
        ("a", pa.struct([("x", pa.string()), ("y", pa.string())])),
    ]
)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("n", pa.array(["abc"])),
        ("n", pa.array([1.7])),
        ("n", pa.array([1 << 40])),
        ("f", pa.array([1e300])),
        ("day", pa.array(["garbage"])),
        ("ok", pa.array([7])),
        ("p", pa.array([Decimal("1.239")])),
        ("a", pa.array([{"p": "1", "q": "2"}])),
    ],
)
def test_values_that_do_not_fit_are_refused(name: str, values: pa.Array) -> None:
    """As by an upsert of whole rows; a condition of a merge changes nothing about it."""
    table = hoodie.create(f"memory://partial-fits-{name}-{values.type}", TYPED, record_key="id")
    table.upsert([{"id": "a", "n": 1}], partial=True)
    data = pa.table({"id": ["a"], name: values})
    with pytest.raises(hoodie.SchemaMismatchError):
        table.upsert(data, partial=True)
    with pytest.raises(hoodie.SchemaMismatchError):
        table.merge(data, "t.id = s.id").when_matched_update({name: f"s.{name}"}, "t.n = 1").execute()
    assert table.to_arrow(["id", "n"]).to_pylist() == [{"id": "a", "n": 1}]


def test_fields_of_structs_are_matched_by_name() -> None:
    table = hoodie.create("memory://partial-structs", TYPED, record_key="id")
    table.upsert([{"id": "a", "n": 1}], partial=True)
    table.upsert(pa.table({"id": ["a"], "a": [{"y": "Y", "x": "X"}], "n": [5]}), partial=True)
    assert table.to_arrow(["n", "a"]).to_pylist() == [{"n": 5, "a": {"x": "X", "y": "Y"}}]
