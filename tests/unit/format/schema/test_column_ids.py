"""Column ids of JVM Hudi: parsing of the history, names in older files, and rows in the current columns."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import CorruptFileError, SchemaMismatchError
from hoodie.format.schema.column_ids import ColumnId, parse_history, parse_latest, stored_names
from hoodie.format.schema.conform import conform


def _field(number: int, name: str, kind: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "optional": True, "type": kind}


def _record(*fields: dict[str, Any], **more: int) -> dict[str, Any]:
    return {**more, "type": "record", "fields": list(fields)}


def _schema(version: int, *, struct: str, inner: str, last: int) -> dict[str, Any]:
    """Columns as the JVM writes them: a struct, a list and a map with a renamed field, and one more column."""
    below = _record(_field(10, inner, "string"), _field(11, "w", "int"))
    array = {"type": "array", "element_id": 12, "element": below, "element_optional": True}
    mapped = {"type": "map", "key_id": 13, "key": "string", "value_id": 14, "value": below, "value_optional": True}
    fields = (
        _field(5, "id", "string"),
        _field(6, struct, below),
        _field(7, "l", array),
        _field(8, "m", mapped),
        _field(last, "b", "string"),
    )
    return _record(*fields, max_column_id=20, version_id=version)


_OLD, _NEW = _schema(0, struct="s", inner="y", last=9), _schema(7, struct="t", inner="z", last=20)
_BELOW = pa.struct([("z", pa.string()), ("w", pa.int64())])
_CURRENT = pa.schema(
    [
        ("id", pa.string()),
        ("t", _BELOW),
        ("l", pa.list_(pa.field("element", _BELOW))),
        ("m", pa.map_(pa.string(), pa.field("value", _BELOW))),
        ("b", pa.string()),
        # Added by a writer that knows no ids.
        ("s", pa.string()),
    ]
)


def test_the_history_is_in_the_order_of_versions() -> None:
    schemas = parse_history(json.dumps({"schemas": [_NEW, _OLD]}), path="f")
    assert [found.version for found in schemas] == [0, 7]
    assert schemas[1] == parse_latest(json.dumps(_NEW), path="f")
    assert schemas[1].columns[1] == ColumnId(6, "t", (ColumnId(10, "z"), ColumnId(11, "w")))
    assert [found.below[0].name for found in schemas[1].columns[2:4]] == ["element", "value"]


def test_rows_of_an_older_file_get_the_current_columns() -> None:
    old, new = parse_history(json.dumps({"schemas": [_NEW, _OLD]}), path="f")
    names = stored_names(old.columns, new.columns, list(_CURRENT))
    assert names == {"t": "s", "t.z": "y", "l.element.z": "y", "m.value.z": "y", "b": None, "s": None}
    assert stored_names(new.columns, new.columns, list(_CURRENT)) == {}
    below = {"y": "v", "w": 1}
    stored_below = pa.struct([("y", pa.string()), ("w", pa.int32())])
    stored = pa.table(
        {
            "id": ["k1", "k2"],
            "s": pa.array([below, None], stored_below),
            "l": pa.array([[below], []], pa.list_(stored_below)),
            "m": pa.array([[("q", below)], None], pa.map_(pa.string(), stored_below)),
            "b": ["old b", None],
        }
    )
    now = {"z": "v", "w": 1}
    assert conform(stored, _CURRENT, stored=True, names=names).to_pylist() == [
        {"id": "k1", "t": now, "l": [now], "m": [("q", now)], "b": None, "s": None},
        {"id": "k2", "t": None, "l": [], "m": None, "b": None, "s": None},
    ]
    # Two columns that exchange their names have equal schemas, and different values.
    pair = pa.schema([("x", pa.string()), ("y", pa.string())])
    swapped = pa.table([["1"], ["2"]], schema=pair)
    assert conform(swapped, pair, stored=True, names={"x": "y", "y": "x"}).to_pylist() == [{"x": "2", "y": "1"}]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"schemas": 1}',
        '{"schemas": [{"type": "record"}]}',
        '{"schemas": [{"type": "record", "version_id": "1", "fields": []}]}',
        '{"schemas": [{"type": "record", "version_id": 1, "fields": [{"name": "a", "id": true, "type": "int"}]}]}',
        '{"schemas": [{"type": "record", "version_id": 1, "fields": [{"id": 1, "type": "int"}]}]}',
        '{"schemas": [{"type": "record", "version_id": 1, "fields": [{"name": "a", "id": 1, "type": 7}]}]}',
        "[" * 100_000,
    ],
)
def test_a_damaged_history_is_our_error(text: str) -> None:
    with pytest.raises(CorruptFileError, match="expected"):
        parse_history(text, path="f")


def test_deep_types_are_refused() -> None:
    kind: Any = "int"
    for number in range(100):
        kind = {"type": "array", "element_id": number, "element": kind, "element_optional": True}
    with pytest.raises(CorruptFileError, match="nested at most 64 times"):
        parse_latest(json.dumps(_record(_field(1, "a", kind), version_id=1)), path="f")


def test_types_that_sql_changed() -> None:
    stored = pa.table(
        {"d": ["2024-01-02", None], "t": ["12.345", "-3"], "x": [0.1, -1.5e10], "n": pa.array([1, None], pa.int32())}
    )
    types = [("d", pa.date32()), ("t", pa.decimal128(10, 2)), ("x", pa.decimal128(30, 10)), ("n", pa.string())]
    rows = conform(stored, pa.schema(types), stored=True)
    assert [list(map(str, rows[name].to_pylist())) for name, _ in types] == [
        ["2024-01-02", "None"],
        ["12.35", "-3.00"],
        ["0.1000000000", "-15000000000.0000000000"],
        ["1", "None"],
    ]
    with pytest.raises(SchemaMismatchError, match=r"bool in the table, double in an older file; .*JVM Hudi"):
        conform(stored.select(["x"]), pa.schema([("x", pa.bool_())]), stored=True)
    with pytest.raises(SchemaMismatchError, match="date32"):
        conform(pa.table({"d": ["never"]}), pa.schema([("d", pa.date32())]), stored=True)
    # New data is not parsed.
    with pytest.raises(SchemaMismatchError, match="cast the column first"):
        conform(stored.select(["d"]), pa.schema([("d", pa.date32())]))
