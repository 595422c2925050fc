"""Nested values at every depth come back from every frame library as they were stored; writing them changes nothing."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hoodie
from tests.support.seeds import examples

_INTS = st.sampled_from([0, -1, 2**53 + 1, -(2**63) + 1, 2**63 - 1])
LEAVES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), _INTS),
    (pa.int32(), st.sampled_from([0, -(2**31), 2**31 - 1])),
    (pa.bool_(), st.booleans()),
    (pa.float64(), st.sampled_from([0.5, -1e308, 2.0**53 + 2])),
    (pa.string(), st.sampled_from(["", "x", "ß", "1"])),
    (pa.binary(), st.sampled_from([b"", b"\x00\xff"])),
    (pa.date32(), st.sampled_from([date(1, 1, 1), date(2026, 11, 29), date(9999, 12, 31)])),
    (pa.decimal128(20, 3), st.sampled_from([Decimal("0.001"), Decimal("-12345678901234567.125")])),
    (pa.timestamp("us"), st.sampled_from([datetime(1800, 1, 1, 1, 2, 3, 4), datetime(2026, 3, 29, 2, 30)])),
    (pa.timestamp("us", "UTC"), st.sampled_from([datetime(2026, 3, 29, 1, 0, 0, 1, tzinfo=UTC)])),
]
Column = tuple[pa.DataType, st.SearchStrategy[Any]]


def columns(depth: int) -> st.SearchStrategy[Column]:
    """A type, and a strategy of its values with nulls, at most `depth` levels deep."""
    leaf = st.sampled_from(LEAVES).map(lambda found: (found[0], st.none() | found[1]))
    if not depth:
        return leaf
    below = columns(depth - 1)
    return st.one_of(leaf, below.map(_list_of), below.map(_map_of), st.tuples(below, below).map(_struct_of))


def _list_of(column: Column) -> Column:
    return pa.list_(column[0]), st.none() | st.lists(column[1], max_size=3)


def _map_of(column: Column) -> Column:
    entries = st.dictionaries(st.sampled_from(["a", "b", "c"]), column[1], max_size=2)
    return pa.map_(pa.string(), column[0]), st.none() | entries.map(lambda found: list(found.items()))


def _struct_of(fields: tuple[Column, Column]) -> Column:
    named = dict(zip(("x", "y"), fields, strict=True))
    kind = pa.struct([pa.field(name, column[0]) for name, column in named.items()])
    return kind, st.none() | st.fixed_dictionaries({name: column[1] for name, column in named.items()})


@st.composite
def nested_rows(draw: st.DrawFn) -> pa.Table:
    """Six rows with a key and three columns of nested types."""
    drawn = [draw(columns(3)) for _ in range(3)]
    named = {
        f"c{number}": pa.array([draw(values) for _ in range(6)], kind) for number, (kind, values) in enumerate(drawn)
    }
    return pa.table({"id": [f"k{number}" for number in range(6)], **named})


WAYS: dict[str, Any] = {
    "pandas": lambda t: t.to_pandas(),
    "Polars": lambda t: t.to_polars().collect(),
    "Polars from Arrow": lambda t: pl.from_arrow(t.to_arrow()),
    "DuckDB": lambda t: t.to_duckdb(duckdb.connect()).arrow(),
    "dataset": lambda t: t.to_dataset().to_table(),
    "batches": lambda t: t.to_batches(),
    "stream": pa.table,
}


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=examples(12))
@given(rows=nested_rows())
def test_a_frame_that_is_written_back_changes_no_value(way: str, rows: pa.Table) -> None:
    table = hoodie.create(f"memory://nested-{uuid.uuid4().hex}", rows.schema, record_key="id", spark=False)
    table.upsert(rows)
    before = table.to_arrow(rows.column_names).sort_by("id")
    assert before.to_pylist() == rows.to_pylist()
    frame = WAYS[way](table)
    table.upsert(frame)
    after = table.to_arrow(rows.column_names).sort_by("id")
    assert after.to_pylist() == rows.to_pylist()
    assert after.schema.equals(before.schema)
