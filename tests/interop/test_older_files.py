"""Files that are older than the table's schema: the JVM's values in every reader and in every rewritten file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.interop.judges import Jvm, to_arrow
from tests.support.rows import assert_same_rows

F, D = pa.float32(), pa.float64()
# Name, old type and value, new type and value.
COLUMNS: list[tuple[str, pa.DataType, Any, pa.DataType, Any]] = [
    ("float_double", F, 0.6, D, 0.1),
    ("big_double", F, 1e10, D, 0.1),
    ("float_string", F, 0.6, pa.string(), "x"),
    ("double_string", D, 1e10, pa.string(), "x"),
    ("int_long", pa.int32(), 7, pa.int64(), 1 << 40),
    ("int_float", pa.int32(), 16777217, F, 2.5),
    ("int_double", pa.int32(), 16777217, D, 2.5),
    ("long_float", pa.int64(), 16777217, F, 2.5),
    ("long_double", pa.int64(), (1 << 53) + 1, D, 2.5),
    ("string_binary", pa.string(), "ü", pa.binary(), b"z"),
    ("binary_string", pa.binary(), "ü".encode(), pa.string(), "w"),
]
NESTED: list[tuple[str, pa.DataType, Any, pa.DataType, Any]] = [
    ("struct", pa.struct([("x", F)]), {"x": 0.6}, pa.struct([("x", D)]), {"x": 0.1}),
    ("list", pa.list_(F), [0.6, 0.1], pa.list_(D), [0.1]),
    ("map", pa.map_(pa.string(), F), [("k", 0.6)], pa.map_(pa.string(), D), [("k", 0.1)]),
]
KEYS = [("id", pa.string()), ("part", pa.string())]
LISTS = {"hoodie.parquet.writelegacyformat.enabled": "false", "parquet.avro.write-old-list-structure": "false"}


def _old(*keys: str, nested: bool = False) -> pa.Table:
    columns = NESTED if nested else COLUMNS
    values = {name: value for name, _, value, _, _ in columns}
    schema = pa.schema([*KEYS, *((name, kind) for name, kind, *_ in columns)])
    return pa.Table.from_pylist([{"id": key, "part": key[0], **values} for key in keys], schema=schema)


def _new(*keys: str, nested: bool = False) -> pa.Table:
    columns = NESTED if nested else COLUMNS
    values = {name: value for name, *_, value in columns}
    schema = pa.schema([*KEYS, *((name, kind) for name, _, _, kind, _ in columns)])
    return pa.Table.from_pylist([{"id": key, "part": key[0], **values} for key in keys], schema=schema)


def _in_types_of(table: hoodie.Table, rows: pa.Table) -> pa.Table:
    """The JVM took binary for a text column, and the reverse, without a change of the type; we take the type only."""
    kinds = table.view().schema().arrow
    return rows.cast(pa.schema([kinds.field(name).with_nullable(True) for name in rows.column_names]))


def _assert_same(jvm: Jvm, path: Path, other: Path | None = None) -> pa.Table:
    """We read locally and with Spark what the JVM reads (from `other`: from there)."""
    columns = [name for name in hoodie.open(path).to_arrow().column_names if not name.startswith("_hoodie_")]
    theirs = jvm.read(other or path, columns)
    assert_same_rows(hoodie.open(path).to_arrow(columns), theirs, key="id")
    assert_same_rows(to_arrow(hoodie.open(path, spark=jvm.spark).read(columns)), theirs, key="id")
    return theirs


@pytest.mark.parametrize(
    ("table_type", "block_format"), [("COPY_ON_WRITE", "avro"), ("MERGE_ON_READ", "avro"), ("MERGE_ON_READ", "parquet")]
)
def test_widened_columns(jvm: Jvm, tmp_path: Path, table_type: str, block_format: str) -> None:
    path, copy = tmp_path / "older", tmp_path / "copy"
    options = {**LISTS, "hoodie.logfile.data.block.format": block_format, "hoodie.compact.inline": "false"}

    def write(rows: pa.Table) -> None:
        jvm.write(rows, path, table_name="older", key="id", partition="part", table_type=table_type, options=options)

    write(_old("a1", "b1", "b2", "c1"))
    if table_type == "MERGE_ON_READ":
        write(_old("b1"))
    write(_new("a2"))
    theirs = _assert_same(jvm, path)
    float_doubles = dict(zip(theirs["id"].to_pylist(), theirs["float_double"].to_pylist(), strict=True))
    assert float_doubles == {"a1": 0.6, "a2": 0.1, "b1": 0.6, "b2": 0.6, "c1": 0.6}
    assert hoodie.open(path).to_arrow("id", where="float_double = 0.6").num_rows == 4
    shutil.copytree(path, copy)
    ours = hoodie.open(copy)
    if table_type == "MERGE_ON_READ":
        ours.schedule_compaction()
        ours.compact()
        jvm.compact(path)
    else:
        # Files of old rows are rewritten, by each side in its own copy.
        ours.upsert(_in_types_of(ours, _new("b3", "c3")))
        write(_new("b3", "c3"))
    _assert_same(jvm, copy, path)
    _assert_same(jvm, path)


def test_float_data_for_a_double_column(jvm: Jvm, tmp_path: Path) -> None:
    path, copy = tmp_path / "doubles", tmp_path / "copy"
    double, single = pa.schema([("id", pa.string()), ("x", D)]), pa.schema([("id", pa.string()), ("x", F)])
    jvm.write(pa.table({"id": ["a"], "x": [0.1]}, schema=double), path, table_name="doubles", key="id")
    shutil.copytree(path, copy)
    data = pa.table({"id": ["b"], "x": [0.6]}, schema=single)
    jvm.write(data, path, table_name="doubles", key="id")
    hoodie.open(copy).upsert(data)
    assert _assert_same(jvm, copy, path).sort_by("id")["x"].to_pylist() == [0.1, 0.6]


def test_nested_floats_in_rewritten_files(jvm: Jvm, tmp_path: Path) -> None:
    """The JVM rewrites such files, but fails when it reads them as they are."""
    path, copy = tmp_path / "nested", tmp_path / "copy"
    jvm.write(_old("a1", nested=True), path, table_name="nested", key="id", options=LISTS)
    shutil.copytree(path, copy)
    hoodie.open(copy).upsert(_new("a2", nested=True))
    jvm.write(_new("a2", nested=True), path, table_name="nested", key="id", options=LISTS)
    theirs = _assert_same(jvm, copy, path)
    assert theirs.sort_by("id")["struct"].to_pylist() == [{"x": 0.6}, {"x": 0.1}]
