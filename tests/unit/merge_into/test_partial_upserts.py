"""Upserts of data that lacks columns: stored values stay, in process, on both table types and every index."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import HoodieError, RecordKeyError, SchemaMismatchError
from tests.support import tables
from tests.support.rows import assert_same_rows
from tests.support.tables import TYPES, table_of, values_of
from tests.unit.write.tables import SCHEMA, new_table, trips, untouched

GLOBAL = ("record", "global_simple", "global_bloom")
B, C = ("b", 5, 2.0, "sf"), ("c", 5, 3.0, "la")
STORED = trips(("a", 5, 1.0, "sf"), B, C)
PART = SCHEMA.remove(2)


def without_fare(*rows: tuple[str | None, int, str]) -> pa.Table:
    return table_of(PART, *rows)


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("index", [*GLOBAL, "simple", "bloom", "bucket"])
def test_missing_columns_keep_their_values(index: str, table_type: str) -> None:
    table = new_table(STORED, index=index, type=table_type)
    before = len(table.timeline.completed())
    data = without_fare(("a", 6, "sf"), ("b", 4, "sf"), ("c", 5, "nyc"), ("n", 1, "la"))
    result = table.upsert(data, partial=True)
    assert len(table.timeline.completed()) == before + 1
    assert table.history(1)["operation"].to_pylist() == ["upsert"]
    # The row moves to the partition of the data, as by a whole row.
    moved = [("c", 5, 3.0, "nyc")] if index in GLOBAL else [("c", 5, None, "nyc"), C]
    expected = trips(("a", 6, 1.0, "sf"), B, *moved, ("n", 1, None, "la"))
    assert_same_rows(table.to_arrow(), expected)
    assert index not in GLOBAL or result.inserted == 1
    assert table.verify(full=True).ok


@pytest.mark.parametrize("table_type", TYPES)
def test_without_event_time_the_ordering_column_is_a_column_as_others(table_type: str) -> None:
    table = new_table(STORED, ordering=None, type=table_type)
    data = [{"id": "a", "city": "sf", "fare": None}, {"id": "n", "city": "sf", "fare": 9.0}]
    result = table.upsert(data, partial=True)
    assert (result.inserted, result.updated) == (1, 1)
    assert values_of(table) == [("a", 5, None, "sf"), B, C, ("n", None, 9.0, "sf")]


REFUSED: dict[str, tuple[Any, type[HoodieError], str]] = {
    "no key": ({"city": ["sf"], "ts": [9]}, SchemaMismatchError, r"lacks \['id'\]"),
    "no partition": ({"id": ["a"], "ts": [9]}, SchemaMismatchError, r"lacks \['city'\]"),
    "no ordering": ({"id": ["a"], "city": ["sf"]}, SchemaMismatchError, r"lacks \['ts'\].*merge"),
    "unknown column": (
        without_fare(("a", 9, "sf")).append_column("more", pa.array([1])),
        SchemaMismatchError,
        r"no columns \['more'\]",
    ),
    "twice one key": (without_fare(("a", 9, "sf"), ("a", 8, "sf")), RecordKeyError, "nothing was committed"),
    "twice a new key": (without_fare(("n", 9, "sf"), ("n", 8, "sf")), RecordKeyError, "nothing was committed"),
    "null key": (without_fare((None, 9, "sf")), RecordKeyError, "null"),
    "dicts with different keys": (
        [{"id": "a", "ts": 9, "city": "sf"}, {"id": "b", "ts": 9, "city": "sf", "fare": 1.0}],
        SchemaMismatchError,
        "different keys",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_clear_is_refused(case: str) -> None:
    data, error, message = REFUSED[case]
    table = new_table(STORED)
    with untouched(table, message, error):
        table.upsert(data, partial=True)


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


def test_values_that_do_not_fit_are_refused() -> None:
    """As by an upsert of whole rows; a condition of a merge changes nothing about it."""
    table = tables.new_table(TYPED)
    table.upsert([{"id": "a", "n": 1}], partial=True)
    wrong = {"f": [1e300], "day": ["garbage"], "ok": [7], "p": [Decimal("1.239")], "a": [{"p": "1", "q": "2"}]}
    for name, values in [("n", ["abc"]), ("n", [1.7]), ("n", [1 << 40]), *wrong.items()]:
        data = pa.table({"id": ["a"], name: pa.array(values)})
        with untouched(table, name, SchemaMismatchError):
            table.upsert(data, partial=True)
        with untouched(table, name, SchemaMismatchError):
            table.merge(data, "t.id = s.id").when_matched_update({name: f"s.{name}"}, "t.n = 1").execute()


def test_a_struct_without_some_fields_is_refused() -> None:
    """A column is set as a whole, so that the stored values of the missing fields would become null."""
    table = tables.new_table(TYPED)
    table.upsert([{"id": "a", "a": {"x": "X", "y": "Y"}}], partial=True)
    rows = [{"id": "a", "a": {"x": "new"}}]
    for data in (rows, pa.Table.from_pylist(rows)):
        merge = table.merge(data, "t.id = s.id")
        for call in (
            lambda data=data: table.upsert(data, partial=True),
            merge.when_matched_update({"a": "s.a"}).execute,
            merge.when_not_matched_insert({"id": "s.id", "a": "s.a"}).execute,
        ):
            with untouched(table, r"'a' .*lacks \['a\.y'\]", SchemaMismatchError):
                call()
    table.upsert([{"id": "a", "a": None}, {"id": "b", "a": {"x": "new", "y": None}}], partial=True)
    assert values_of(table, "id", "a") == [("a", None), ("b", {"x": "new", "y": None})]


def test_fields_of_structs_are_matched_by_name() -> None:
    table = tables.new_table(TYPED)
    table.upsert([{"id": "a", "n": 1}], partial=True)
    table.upsert(pa.table({"id": ["a"], "a": [{"y": "Y", "x": "X"}], "n": [5]}), partial=True)
    assert table.to_arrow(["n", "a"]).to_pylist() == [{"n": 5, "a": {"x": "X", "y": "Y"}}]
