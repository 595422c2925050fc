"""Frames of Polars are data like Arrow tables; values that Arrow has no type for are refused by their column."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import hoodie
from tests.support.rows import assert_same_rows

_numbers = itertools.count()


def new_table(schema: Any) -> hoodie.Table:
    return hoodie.create(f"memory://polars-{next(_numbers)}", schema, record_key="id", spark=False)


WRITES: dict[str, Callable[[hoodie.Table, Any], Any]] = {
    "bulk_insert": lambda table, data: table.bulk_insert(data),
    "upsert": lambda table, data: table.upsert(data),
    "partial upsert": lambda table, data: table.upsert(data, partial=True),
    "merge": lambda table, data: table.merge(data, "t.id = s.id").when_matched_update_all("s.id > '0'").execute(),
    "insert_overwrite": lambda table, data: table.insert_overwrite(data),
}


def test_frames_of_polars_are_taken_like_arrow() -> None:
    texts = ["a", "b", None]
    frame = pl.DataFrame(
        {
            "id": ["1", "2", "3"],
            "text": texts,
            "category": pl.Series(texts, dtype=pl.Categorical),
            "enum": pl.Series(texts, dtype=pl.Enum(["a", "b"])),
            "data": [b"\xff", None, b""],
            "list": [["a"], [], None],
            "categories": pl.Series([["a"], [None], None], dtype=pl.List(pl.Categorical)),
            "array": pl.Series([["a", "b"], ["c", None], None], dtype=pl.Array(pl.String, 2)),
            "struct": [{"f": "a", "g": ["b"]}, {"f": None, "g": None}, None],
        }
    )
    plain = pa.Table.from_pylist(frame.to_dicts())
    table = new_table(frame)
    columns = {name: frame[name] for name in frame.columns}
    for data, writes in ((frame, list(WRITES)), (frame.lazy(), ["upsert"]), (columns, ["upsert"])):
        for write in writes:
            WRITES[write](table, data)
        found = table.to_arrow(columns=frame.columns)
        assert_same_rows(found, plain, key="id")
    assert table.read_keys(frame["id"]).num_rows == 3
    assert table.read_keys(frame["enum"].cast(pl.Categorical).drop_nulls()).num_rows == 0
    assert table.filter_exists(frame).num_rows == 0
    statement = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    assert hoodie.sql(None, statement, tables={"t": table, "s": frame}).updated == 3
    assert table.delete(frame.head(1)).deleted == 1


UNKNOWN: dict[str, Callable[[], pl.Series]] = {
    "Object": lambda: pl.Series([object()], dtype=pl.Object),
    "Int128": lambda: pl.Series([1], dtype=pl.Int128),
    "List(Int128)": lambda: pl.Series([[1]], dtype=pl.List(pl.Int128)),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_values_without_a_type_of_arrow_are_refused_by_their_column(kind: str) -> None:
    series = UNKNOWN[kind]()
    frame = pl.DataFrame({"id": ["a"], "odd": series})
    table = new_table(pa.schema([("id", pa.string()), ("odd", pa.binary())]))
    for data in (frame, frame.lazy(), {"id": ["a"], "odd": series}):
        for write in WRITES.values():
            with pytest.raises(hoodie.SchemaMismatchError, match="column 'odd': Arrow has no type"):
                write(table, data)
        for look_up in (table.filter_exists, table.read_keys, table.delete, table.record_locations):
            with pytest.raises(hoodie.SchemaMismatchError, match="column 'odd': Arrow has no type"):
                look_up(data)
    with pytest.raises(hoodie.SchemaMismatchError, match="column 'odd': Arrow has no type"):
        new_table(frame)
    with pytest.raises(hoodie.SchemaMismatchError, match="column 'keys': Arrow has no type"):
        table.delete(series)
    with pytest.raises(hoodie.SchemaMismatchError, match="expected columns of Arrow's types"):
        table.upsert(frame["id"])
    assert not table.history().num_rows
