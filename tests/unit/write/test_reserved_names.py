"""Columns may have every name but those of Hudi's meta columns, and arguments name them in any case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.table_schema import META_FIELDS, OPERATION_FIELD
from tests.support.rows import assert_same_rows
from tests.support.tables import TYPES, new_table

ROWS = pa.table({"id": ["a", "b"], "x": [1, 2]})
# Names of columns that exist while a write, a look-up or a merge works, with and without the mark of this package.
_STEPS = ("change", "place", "row", "bucket", "ordinal", "clause", "stored", "given", "wanted_key", "has", "hash_0")
_OTHERS = "code kind position partition_path file_id instant key value element s t op"
INTERNAL = (*_STEPS, *_OTHERS.split(), *(f"_hoodie_{name}" for name in _STEPS))
WRITES: dict[str, Callable[[hoodie.Table, Any], Any]] = {
    "bulk_insert": lambda table, data: table.bulk_insert(data),
    "upsert": lambda table, data: table.upsert(data),
    "partial upsert": lambda table, data: table.upsert(data, partial=True),
    "merge": lambda table, data: table.merge(data, "t.id = s.id").when_matched_update_all("s.id > 'A'").execute(),
    "join": lambda table, data: table.merge(data, "t.x = s.x").when_matched_update({"x": "s.x"}).execute(),
    "insert_overwrite": lambda table, data: table.insert_overwrite(data),
}


@pytest.mark.parametrize(
    ("kind", "index"),
    [
        ("copy_on_write", "record"),
        ("merge_on_read", "record"),
        ("copy_on_write", "simple"),
        ("merge_on_read", "bucket"),
        ("copy_on_write", "bloom"),
    ],
)
def test_names_of_the_writers_own_columns_are_free(kind: str, index: str) -> None:
    rows = ROWS
    for name in INTERNAL:
        rows = rows.append_column(name, pa.array([f"{name} of a", f"{name} of b"]))
    table = new_table(rows.schema, type=kind, index=index)
    for write in WRITES.values():
        write(table, rows)
        assert_same_rows(table.to_arrow(columns=rows.column_names), rows, key="id")
    assert table.update({"_hoodie_change": "'new'"}, where="_hoodie_row = '_hoodie_row of a'").updated == 1
    assert table.filter_exists(rows).num_rows == 0
    evolved = new_table(ROWS.schema, type=kind, index=index)
    evolved.insert(rows)
    assert_same_rows(evolved.to_arrow(columns=rows.column_names), rows, key="id")


def test_meta_names_in_another_case_are_refused() -> None:
    table = new_table(ROWS.schema)
    for name in (*META_FIELDS, OPERATION_FIELD):
        for other in (name.upper(), name.title()):
            rows = ROWS.append_column(other, pa.array(["p", "q"]))
            with pytest.raises(SchemaMismatchError, match=f"column '{other}': every row has Hudi's column '{name}'"):
                new_table(rows.schema)
            for data in (rows, rows.to_pydict()):
                with pytest.raises(SchemaMismatchError, match=f"column '{other}'"):
                    table.upsert(data)
    assert table.history().num_rows == 0


def test_meta_columns_of_data_are_noted_and_nested_ones_are_data() -> None:
    names, values = [*META_FIELDS, OPERATION_FIELD], pa.array(["p", "q"])
    rows = pa.table([*ROWS.columns, *[values] * len(names)], [*ROWS.column_names, *names])
    table = new_table(rows.schema)
    assert table.schema.names == ROWS.column_names
    for write, call in WRITES.items():
        assert any(f"columns {', '.join(names)} are not stored" in note for note in call(table, rows).notes), write
    assert_same_rows(table.to_arrow(columns=ROWS.column_names), ROWS, key="id")
    for name in names:
        (note,) = table.upsert(ROWS.append_column(name, values)).notes
        assert f"columns {name} are not stored" in note
    nested = ROWS.append_column("s", pa.StructArray.from_arrays([values] * len(names), names=names))
    table = new_table(nested.schema)
    assert table.upsert(nested).notes == ()
    assert_same_rows(table.to_arrow(columns=nested.column_names), nested, key="id")


def test_rows_that_were_read_are_written_back_with_a_note() -> None:
    table = new_table(ROWS.schema)
    assert table.upsert(ROWS).notes == ()
    result = table.upsert(table.to_arrow())
    assert (result.updated, len(result.notes)) == (2, 1)
    assert ", ".join(META_FIELDS) in result.notes[0]
    assert table.delete(table.to_arrow()).notes == ()


def test_an_expression_may_use_a_meta_column_of_the_source() -> None:
    table = new_table(pa.schema([("id", pa.string()), ("x", pa.int64()), ("at", pa.string())]))
    table.upsert(ROWS.append_column("at", pa.array(["", ""])))
    source = table.to_arrow(columns=["_hoodie_commit_time", "id"])
    result = table.merge(source, "t.id = s.id").when_matched_update({"at": "s._hoodie_commit_time"}).execute()
    assert result.notes == ()
    assert table.to_arrow(columns=["at"])["at"].to_pylist() == source["_hoodie_commit_time"].to_pylist()


@pytest.mark.parametrize("kind", TYPES)
def test_arguments_take_names_in_any_case(kind: str) -> None:
    rows = pa.table({"id": ["a", "b"], "Name": ["x", "y"], "N": [1, 2]})
    table = new_table(rows.schema, rows, index="simple", type=kind)
    assert table.update({"n": "n + 1", "NAME": "upper(name)"}, where="ID = 'a'").updated == 1
    assert hoodie.sql(None, "UPDATE t SET name = 'z', t.n = N + 1 WHERE Id = 'b'", tables={"t": table}).updated == 1
    merge = table.merge(rows, "T.ID = s.Id").when_matched_update({"n": "t.N + 10"})
    assert merge.execute().updated == 2
    expected = [{"Name": "X", "N": 12, "id": "a"}, {"Name": "z", "N": 13, "id": "b"}]
    found = table.to_arrow(columns=["NAME", "n", "Id"])
    assert found.column_names == ["Name", "N", "id"]
    assert found.sort_by("id").to_pylist() == expected
    assert table.head(1, columns="nAmE").column_names == ["Name"]
    assert table.to_arrow(columns="_HOODIE_RECORD_KEY").column_names == ["_hoodie_record_key"]
