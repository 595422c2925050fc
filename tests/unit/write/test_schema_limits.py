"""A table never gets a schema that hoodie refuses to read: a write or a creation beyond the limits is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.avro.safe_schema import FIXED_BYTES_MAX, LEVELS_MAX
from tests.unit.write.tables import files_below


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
    "columns": (pa.struct([(f"c{number}", pa.int32()) for number in range(70_000)]), "at most 200000 types"),
}


def _table(path: Path, schema: pa.Schema, table_type: str = "copy_on_write") -> hoodie.Table:
    return hoodie.create(path, schema=schema, record_key="id", type=table_type)


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("case", _WITHIN)
def test_the_greatest_columns_are_written_and_read(tmp_path: Path, case: str, table_type: str) -> None:
    column = pa.field("v", _WITHIN[case])
    table = _table(tmp_path, pa.schema([("id", pa.string())]), table_type)
    table.upsert(pa.table({"id": ["a"]}))
    rows = pa.table({"id": ["a"], "v": pa.array([_value(column.type)], column.type)})
    table.upsert(rows)
    table.upsert(rows)
    if table_type == "merge_on_read":
        table.compact()
    assert hoodie.open(tmp_path).to_arrow()["v"].to_pylist() == rows["v"].to_pylist()


@pytest.mark.parametrize("case", _BEYOND)
def test_an_upsert_beyond_a_limit_leaves_the_table_as_it_was(tmp_path: Path, case: str) -> None:
    wide, limit = _BEYOND[case]
    table = _table(tmp_path, pa.schema([("id", pa.string())]))
    table.upsert(pa.table({"id": ["a"]}))
    before = files_below(tmp_path)
    with pytest.raises(hoodie.UnsupportedError, match=limit):
        table.upsert(pa.table({"id": ["b"], "v": pa.nulls(1, wide)}))
    assert files_below(tmp_path) == before
    assert hoodie.open(tmp_path).to_arrow()["id"].to_pylist() == ["a"]


@pytest.mark.parametrize("case", _BEYOND)
def test_a_table_beyond_a_limit_is_not_created(tmp_path: Path, case: str) -> None:
    wide, limit = _BEYOND[case]
    with pytest.raises(hoodie.UnsupportedError, match=limit):
        _table(tmp_path / "t", pa.schema([("id", pa.string()), ("v", wide)]))
    assert not hoodie.exists(tmp_path / "t")
