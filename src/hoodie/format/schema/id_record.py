"""All that is known of a table's columns, with their ids, as the JSON of a schema history.

On-disk format: docs/format/table.md §3.8. `record_of` gives ids to the columns of a schema, in the JVM's order;
`schema_of` returns the columns of such a record. Comments are the metadata `doc` of Arrow fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from hoodie.errors import UnsupportedError
from hoodie.format.avro.schema import DOC, META_FIELDS, OPERATION_FIELD
from hoodie.format.schema.arrow_types import LIST_ITEM

Record = dict[str, Any]
Kind = str | Record
"""The text of a plain type, or the object of a record, an array or a map."""
MAX_ID: Final = "max_column_id"

_ARROW: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    "string": pa.string(),
    "uuid": pa.string(),
    "binary": pa.binary(),
    "time-millis": pa.time32("ms"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
}
_TEXTS: Final = {kind: text for text, kind in _ARROW.items() if text != "uuid"}
_NOT_READ: Final = frozenset({"time-millis", "timestamp-millis", "local-timestamp-millis", "local-timestamp-micros"})
"""Types that JVM Hudi 1.2 writes to such a record, and fails to parse."""
_DECIMAL: Final = re.compile(r"decimal(?:_fixed|_bytes)?\((\d+),\s*(\d+)\)(?:\[\d+\])?")
_FIXED: Final = re.compile(r"fixed\[(\d+)\]")


def record_of(schema: pa.Schema) -> Record:
    """Return a record with the columns of a schema, which begins with the meta columns; ids begin at 0."""
    ids = _Ids(0)
    fields = _with_ids(list(schema), ids)
    for field in fields:
        if field["name"] in (*META_FIELDS, OPERATION_FIELD):
            field["doc"] = ""
    return {MAX_ID: ids.next - 1, "version_id": 0, "type": "record", "fields": fields}


def new_field(child: pa.Field, first_id: int) -> tuple[Record, int]:
    """Return a new column or nested field, whose ids begin at `first_id`, and its greatest id."""
    ids = _Ids(first_id)
    (field,) = _with_ids([child], ids)
    return field, ids.next - 1


def type_text(kind: pa.DataType) -> str:
    """Return the text of a plain type; all releases of the JVM parse it, also those before `decimal_fixed`."""
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_fixed_size_binary(kind):
        return f"fixed[{kind.byte_width}]"
    return _TEXTS[kind]


def plain_type(text: str) -> pa.DataType:
    """Return the Arrow type of the text of a plain type. Raises: UnsupportedError for an unknown text."""
    if text in _ARROW:
        return _ARROW[text]
    if found := _DECIMAL.fullmatch(text):
        return pa.decimal128(int(found[1]), int(found[2]))
    if found := _FIXED.fullmatch(text):
        return pa.binary(int(found[1]))
    raise UnsupportedError(f"a column with an id has the unknown type {text[:50]!r}")


def schema_of(record: Record) -> pa.Schema:
    """Return the columns of a record; comments are metadata of the fields. Raises: UnsupportedError."""
    return pa.schema([_field(found) for found in record["fields"]])


def refuse_types_without_ids(record: Record, where: str) -> None:
    """Refuse columns that may not get ids: JVM Hudi fails to parse the types that it writes for them.

    Raises: UnsupportedError; the message begins with `where` and names the column.
    """
    for path, text in _plain_types(record, ""):
        if text in _NOT_READ:
            raise UnsupportedError(
                f"{where}: this change gives the columns ids, and JVM Hudi 1.2 cannot read the ids of a table with a "
                f"column of the type of {path!r} ({plain_type(text)}); it reads them if times have microseconds and a "
                "time zone"
            )


class _Ids:
    """Counts ids."""

    def __init__(self, first: int) -> None:
        self.next = first

    def take(self, count: int = 1) -> int:
        self.next += count
        return self.next - count


def _with_ids(fields: list[pa.Field], ids: _Ids) -> list[Record]:
    """Return fields whose ids are consecutive; the ids of nested fields follow, depth first."""
    first = ids.take(len(fields))
    found = []
    for number, child in enumerate(fields):
        kind = _kind(child.type, ids)
        field = {"id": first + number, "name": child.name, "optional": child.nullable, "type": kind}
        doc = (child.metadata or {}).get(DOC)
        found.append(field if doc is None else {**field, "doc": doc.decode()})
    return found


def _kind(kind: pa.DataType, ids: _Ids) -> Kind:
    if pa.types.is_struct(kind):
        return {"type": "record", "fields": _with_ids(kind.fields, ids)}
    if pa.types.is_list(kind):
        item, number = kind.value_field, ids.take()
        below = _kind(item.type, ids)
        return {"type": "array", "element_id": number, "element": below, "element_optional": item.nullable}
    if pa.types.is_map(kind):
        value, number = kind.item_field, ids.take(2)
        below = _kind(value.type, ids)
        keys = {"type": "map", "key_id": number, "key": "string", "value_id": number + 1}
        return {**keys, "value": below, "value_optional": value.nullable}
    return type_text(kind)


def _field(found: Record) -> pa.Field:
    metadata = {DOC: found["doc"].encode()} if found.get("doc") else None
    return pa.field(found["name"], _arrow(found["type"]), nullable=found["optional"], metadata=metadata)


def _arrow(kind: Kind) -> pa.DataType:
    if isinstance(kind, str):
        return plain_type(kind)
    if kind["type"] == "record":
        return pa.struct([_field(found) for found in kind["fields"]])
    if kind["type"] == "array":
        return pa.list_(pa.field(LIST_ITEM, _arrow(kind["element"]), nullable=kind["element_optional"]))
    return pa.map_(pa.string(), pa.field("value", _arrow(kind["value"]), nullable=kind["value_optional"]))


def _plain_types(kind: Kind, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each plain type."""
    if isinstance(kind, str):
        yield path, kind
        return
    below = {"array": [(LIST_ITEM, "element")], "map": [("value", "value")]}.get(kind["type"])
    children = (
        [(found["name"], found["type"]) for found in kind["fields"]]
        if below is None
        else [(name, kind[key]) for name, key in below]
    )
    for name, child in children:
        yield from _plain_types(child, f"{path}.{name}".lstrip("."))
