"""A table never gets a schema that hoodie refuses to read: a write or a creation beyond the limits is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import UnsupportedError
from hoodie.format.avro import safe_schema
from hoodie.format.avro.safe_schema import FIXED_BYTES_MAX, LEVELS_MAX
from hoodie.storage import MemoryStore
from tests.support.tables import TYPES, new_table
from tests.unit.write.tables import untouched

FIRST = pa.table({"id": ["a"]})


def _structs(levels: int) -> pa.DataType:
    return pa.struct([("a", _structs(levels - 1))]) if levels else pa.int64()


def _lists(levels: int) -> pa.DataType:
    return pa.list_(pa.struct([("a", _lists(levels - 1))])) if levels else pa.int64()


def _maps(levels: int) -> pa.DataType:
    return pa.map_(pa.string(), _maps(levels - 1)) if levels else pa.int64()


def _value(data_type: pa.DataType) -> Any:
    if pa.types.is_struct(data_type):
        return {"a": _value(data_type.field(0).type)}
    if pa.types.is_map(data_type):
        return [("k", _value(data_type.item_type))]
    if pa.types.is_list(data_type):
        return [_value(data_type.value_type)]
    return b"x" * data_type.byte_width if pa.types.is_fixed_size_binary(data_type) else 1


_WITHIN = {
    "structs": _structs(LEVELS_MAX - 1),
    "lists": _lists((LEVELS_MAX - 1) // 2),
    "maps": _maps((LEVELS_MAX - 1) // 2),
    "fixed": pa.binary(FIXED_BYTES_MAX),
}
_BEYOND = {
    "structs": (_structs(LEVELS_MAX), "at most 60 nested levels"),
    "lists": (_lists(LEVELS_MAX // 2), "at most 60 nested levels"),
    "maps": (_maps(LEVELS_MAX // 2), "at most 60 nested levels"),
    "very deep structs": (_structs(300), "nested levels"),
    "fixed": (pa.binary(FIXED_BYTES_MAX + 1), "a fixed of 1 to 1048576 bytes"),
    "columns": (pa.struct([(f"c{number}", pa.int32()) for number in range(700)]), "at most 2000 types"),
}


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("case", _WITHIN)
def test_the_greatest_columns_are_written_and_read(case: str, table_type: str) -> None:
    column = pa.field("v", _WITHIN[case])
    table = new_table(FIRST.schema, FIRST, type=table_type)
    rows = FIRST.append_column(column, pa.array([_value(column.type)], column.type))
    table.upsert(rows)
    table.upsert(rows)
    if table_type == "merge_on_read":
        table.compact()
    assert hoodie.open(table.path).to_arrow()["v"].to_pylist() == rows["v"].to_pylist()


@pytest.mark.parametrize("case", _BEYOND)
def test_no_write_and_no_creation_goes_beyond_a_limit(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert safe_schema.TYPES_MAX == 200_000
    monkeypatch.setattr(safe_schema, "TYPES_MAX", 2_000)
    wide, limit = _BEYOND[case]
    table = new_table(FIRST.schema, FIRST)
    with untouched(table, limit, UnsupportedError):
        table.upsert(pa.table({"id": ["b"], "v": pa.nulls(1, wide)}))
    assert hoodie.open(table.path).to_arrow()["id"].to_pylist() == ["a"]
    store = MemoryStore()
    with untouched(store, limit, UnsupportedError):
        hoodie.create(store.uri(""), pa.schema([("id", pa.string()), ("v", wide)]), record_key="id")
