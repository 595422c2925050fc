"""Columns that allow no null: they stay so while no stored row has a null, also if the data declares them nullable."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import SchemaMismatchError
from tests.support.tables import TYPES, new_table
from tests.unit.write.tables import untouched

N = pa.int64()


def _schema(*, nullable: bool) -> pa.Schema:
    inner = pa.field("x", N, nullable)
    return pa.schema(
        [
            pa.field("id", N, nullable),
            pa.field("n", N, nullable),
            ("s", pa.struct([inner])),
            ("items", pa.list_(pa.field("element", pa.struct([inner]), nullable))),
            ("m", pa.map_(pa.string(), pa.field("value", N, nullable))),
        ]
    )


REQUIRED, DECLARED = _schema(nullable=False), _schema(nullable=True)
OPERATIONS = ["upsert", "insert", "bulk_insert", "insert_overwrite"]
KINDS = [
    (table_type, operation, (row + column) % 2 == 1)
    for row, table_type in enumerate(TYPES)
    for column, operation in enumerate(OPERATIONS)
]
"""Each operation on each type of table, and a table or a stream of data in each of both."""


@pytest.fixture
def ids() -> Iterator[int]:
    return itertools.count()


def _rows(ids: Iterator[int], **changed: Any) -> pa.Table:
    row = {"n": 1, "s": {"x": 1}, "items": [{"x": 1}], "m": [("k", 1)], **changed}
    return pa.Table.from_pylist([{"id": next(ids), **row} for _ in range(3)], DECLARED)


@pytest.mark.parametrize(("table_type", "operation", "is_stream"), KINDS)
def test_only_a_null_lifts_the_rule(ids: Iterator[int], table_type: str, operation: str, is_stream: bool) -> None:
    table = new_table(REQUIRED, type=table_type)

    def write(schema: str | None = None, **changed: Any) -> tuple[str, ...]:
        rows = _rows(ids, **changed)
        result = getattr(table, operation)(rows.to_reader() if is_stream else rows, schema=schema)
        return tuple(note for note in result.notes if "nullable" in note)

    assert write() == ()
    assert write(s=None, items=[], m=None) == ()  # a null struct has no fields, and an empty list no items
    assert write(schema="strict") == ()
    assert table.schema.equals(REQUIRED)
    with untouched(table, "column 'n' allows no null; 3 of 3 values are null", SchemaMismatchError):
        write(schema="strict", n=None)
    assert write(n=None) == ("column n: not null -> nullable",)
    assert write(s={"x": None}, items=[{"x": None}]) == (
        "column s.x: not null -> nullable",
        "column items.element.x: not null -> nullable",
    )
    assert write(m=[("k", None)], items=[None]) == (
        "column items.element: not null -> nullable",
        "column m.value: not null -> nullable",
    )
    expected = DECLARED.set(0, REQUIRED.field("id"))
    assert hoodie.open(table.path, spark=False).schema.equals(expected)
    assert [("k", None)] in table.to_arrow(["m"])["m"].to_pylist()


def test_a_deleted_row_may_have_nulls(ids: Iterator[int]) -> None:
    table = new_table(REQUIRED)
    rows = _rows(ids)
    table.upsert(rows)
    gone = rows.slice(0, 1).set_column(1, "n", pa.nulls(1, N)).append_column("_hoodie_is_deleted", pa.array([True]))
    assert table.upsert(gone).deleted == 1
    assert table.schema.equals(REQUIRED)
    assert table.count() == 2


def test_services_keep_the_rule(ids: Iterator[int]) -> None:
    """Files of a streamed bulk insert have optional columns; a rewrite with the table's schema reads them."""
    table = new_table(REQUIRED, type="mor")
    rows = _rows(ids)
    table.bulk_insert(rows.to_reader())
    table.upsert(rows.set_column(1, "n", pa.array([7, 8, 9], N)).to_reader())
    table.schedule_compaction()
    table.compact()
    table.schedule_clustering()
    table.cluster()
    assert sorted(table.to_arrow(["n"])["n"].to_pylist()) == [7, 8, 9]
    assert table.schema.equals(REQUIRED)
    assert table.verify().ok
