"""Change events of Debezium (PostgreSQL, MySQL) as JSON: rows to upsert and to delete.

An event has the row `before` and `after` a change, `op` and `source`; with schemas it is the member `payload` of an
object. Events come in the order of the offsets of their partition, which Debezium fills by key.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidConfigError, SourceError
from hoodie.ingest.json_types import JsonParser, infer_schema
from hoodie.ingest.values import Parsed
from hoodie.records.change import IS_DELETED

COLUMNS: Final[Mapping[str, tuple[str, pa.DataType]]] = {
    "_change_operation_type": ("op", pa.string()),
    "_upstream_event_processed_ts_ms": ("ts_ms", pa.int64()),
    "_event_origin_ts_ms": ("source.ts_ms", pa.int64()),
    "_event_tx_id": ("source.txId", pa.int64()),
    "_event_lsn": ("source.lsn", pa.int64()),
    "_event_xmin": ("source.xmin", pa.int64()),
    "_event_bin_file": ("source.file", pa.string()),
    "_event_pos": ("source.pos", pa.int64()),
    "_event_row": ("source.row", pa.int32()),
    "_event_schema": ("source.schema", pa.string()),
    "_event_table": ("source.table", pa.string()),
}
"""Columns that can be added to the rows, with the names of JVM Hudi, and the members of the event that they are."""
_UNAVAILABLE: Final = "__debezium_unavailable_value"
"""Debezium's text in place of a large value that PostgreSQL did not send, as the change left it alone."""
_UNSENT_TEXTS: Final = pa.array(
    [_UNAVAILABLE, base64.b64encode(_UNAVAILABLE.encode()).decode(), f'{{"{_UNAVAILABLE}":"{_UNAVAILABLE}"}}']
)
"""It as text, as bytes (bytea), and as an hstore in JSON. Arrays have it as the only text, or have the codes of it."""
_UNSENT_CODES: Final = np.frombuffer(_UNAVAILABLE.encode(), np.uint8)
_READ: Final = ("c", "r", "u")
_NO_EVENT: Final = "expected a change event of Debezium: its member `op` is missing"
_TRUNCATED: Final = "the source table was truncated: delete the rows of the target, then continue behind this message"
_WITHOUT_AFTER: Final = "a change without the row `after`"
_WITHOUT_BEFORE: Final = "a delete without the row `before`: set REPLICA IDENTITY of the source table"
_KEY_ONLY: Final = (
    "a delete whose row `before` has the key only, and the table needs {} to delete: set REPLICA IDENTITY FULL for the "
    "source table"
)
_PLACEHOLDER: Final = (
    f"a value is {_UNAVAILABLE}, as PostgreSQL did not send it: set REPLICA IDENTITY FULL for the source table"
)


@dataclass(slots=True)
class DebeziumForm:
    """A change event in each value; null values (tombstones) and events `m` are left out.

    `row_schema`: of the rows of the source table. `columns`: names of `COLUMNS` to add. `epoch`: as in `JsonParser`.
    `keys` and `deletes_by`: as in `Request`.

    The rows have the column `_hoodie_is_deleted` too; for a delete they are the row `before`.
    """

    row_schema: pa.Schema
    columns: tuple[str, ...] = ()
    epoch: str | None = None
    keys: tuple[str, ...] = ()
    deletes_by: tuple[str, ...] = ()
    _parser: JsonParser = field(init=False)

    def __post_init__(self) -> None:
        check_columns(self.columns)
        row = [child for child in self.row_schema if child.name not in (IS_DELETED, *COLUMNS)]
        self._parser = JsonParser(_event_schema(row), epoch=self.epoch)
        self.row_schema = pa.schema(self._parser.schema.field("after").type.fields)
        others = {*self.row_schema.names} - {*self.keys}
        self.deletes_by = tuple(name for name in self.deletes_by if name in others)

    @property
    def schema(self) -> pa.Schema:
        added = [pa.field(name, COLUMNS[name][1]) for name in self.columns]
        return pa.schema([*self.row_schema, *added, pa.field(IS_DELETED, pa.bool_())])

    def parse(self, values: pa.Array) -> Parsed:
        events = _payloads(self._parser.parse(values))
        op = _member(events, "op")
        is_delete = pc.fill_null(pc.equal(op, "d"), False)
        row = pc.if_else(is_delete, _member(events, "before"), _member(events, "after"))
        columns = [_member(row, child.name) for child in self.row_schema]
        columns += [_member(events, COLUMNS[name][0]) for name in self.columns]
        schema = self.schema
        rows = pa.StructArray.from_arrays([*columns, is_delete], fields=list(schema))
        ignored = pc.or_(pc.is_null(values), pc.fill_null(pc.equal(op, "m"), False))
        is_unsent = (_is_unsent(column, values) for column in columns)
        has_unsent = functools.reduce(pc.or_, is_unsent, pa.repeat(False, len(values)))
        return Parsed(rows, self._reasons(op, row, columns, has_unsent), pc.invert(ignored))

    def _reasons(self, op: pa.Array, row: pa.StructArray, columns: list[pa.Array], has_unsent: pa.Array) -> pa.Array:
        is_missing = pc.is_null(row)
        checks = [
            (pc.is_null(op), _NO_EVENT),
            (pc.equal(op, "t"), _TRUNCATED),
            (pc.and_(pc.equal(op, "d"), is_missing), _WITHOUT_BEFORE),
            (self._lacks_columns(op, columns), _KEY_ONLY.format(", ".join(self.deletes_by))),
            (pc.and_(pc.is_in(op, pa.array(_READ)), is_missing), _WITHOUT_AFTER),
            (has_unsent, _PLACEHOLDER),
            (pc.invert(pc.is_in(op, pa.array([*_READ, "d", "t", "m"]))), "expected op c, r, u, d, t or m of Debezium"),
        ]
        reason = pa.nulls(len(op), pa.string())
        for fails, text in reversed(checks):
            reason = pc.if_else(pc.fill_null(fails, False), text, reason)
        return reason

    def _lacks_columns(self, op: pa.Array, columns: list[pa.Array]) -> pa.Array:
        """Return the deletes whose row has the key only, if other columns decide what they delete."""
        if not self.deletes_by:
            return pa.repeat(False, len(op))
        others = [column for name, column in zip(self.row_schema.names, columns, strict=False) if name not in self.keys]
        # Where all other columns decide, a row with 0 in them may be whole.
        is_blank = _is_blank if len(others) > len(self.deletes_by) else pc.is_null
        return functools.reduce(pc.and_, map(is_blank, others), pc.equal(op, "d"))


def _is_blank(column: pa.Array) -> pa.Array:
    """Return whether values are null, or what Debezium puts into a column without null: 0, false, or no text."""
    kind, is_null = column.type, pc.is_null(column)
    if pa.types.is_nested(kind):
        return is_null
    zero = pa.scalar("" if pa.types.is_string(kind) else False if pa.types.is_boolean(kind) else 0, kind)
    return pc.or_(is_null, pc.fill_null(pc.equal(column, zero), False))


def _is_unsent(column: pa.Array, values: pa.Array) -> pa.Array:
    """Return whether a column of the rows of `values` has the placeholder of Debezium."""
    kind, found = column.type, np.zeros(len(column), np.bool_)
    if pa.types.is_string(kind):
        return pc.is_in(column, _UNSENT_TEXTS)
    if pa.types.is_list(kind) and pa.types.is_string(kind.value_type):
        found[pc.list_parent_indices(column).filter(pc.equal(column.flatten(), _UNAVAILABLE))] = True
    elif pa.types.is_list(kind) and pa.types.is_integer(kind.value_type):
        is_long = pc.fill_null(pc.equal(pc.list_value_length(column), len(_UNSENT_CODES)), False)
        codes = pc.fill_null(column.filter(is_long).flatten(), 0).to_numpy(zero_copy_only=False)
        found[np.asarray(is_long)] = (codes.reshape(-1, len(_UNSENT_CODES)) == _UNSENT_CODES).all(axis=1)
    elif pa.types.is_struct(kind):
        # A map with the placeholder as its key has none of the fields.
        fields = [pc.is_null(pc.struct_field(column, child.name)) for child in kind if child.name != _UNAVAILABLE]
        is_empty = functools.reduce(pc.and_, fields, pc.is_valid(column))
        return pc.and_(is_empty, pc.fill_null(pc.match_substring(values, _UNAVAILABLE), False))
    return pa.array(found)


def check_columns(columns: tuple[str, ...]) -> None:
    """Raise unless the columns are columns of events. Raises: InvalidConfigError."""
    unknown = sorted(set(columns) - set(COLUMNS))
    if unknown:
        raise InvalidConfigError(
            f"debezium_columns has {', '.join(map(repr, unknown))}: expected some of {', '.join(COLUMNS)}"
        )


def infer_row_schema(values: pa.ChunkedArray) -> pa.Schema:
    """Return the schema of the rows in events, as `infer_schema` does for plain rows.

    Raises: SourceError if no event has a row.
    """
    found = infer_schema(values.drop_null())
    event = found.field("payload").type if "payload" in found.names else pa.struct(list(found))
    members = event.fields if pa.types.is_struct(event) else []
    rows = [one.type for one in members if one.name in ("after", "before") and pa.types.is_struct(one.type)]
    if not rows:
        raise SourceError(
            "the columns cannot be inferred: no event of Debezium among the first has a row; pass a schema"
        )
    schema: pa.Schema = pa.unify_schemas([pa.schema(row.fields) for row in rows], promote_options="permissive")
    return schema


def _event_schema(row: list[pa.Field]) -> pa.Schema:
    members = [pa.field(name, pa.struct(row)) for name in ("before", "after")]
    source = [pa.field(path.partition(".")[2], kind) for path, kind in COLUMNS.values() if path.startswith("source.")]
    members += [pa.field("op", pa.string()), pa.field("ts_ms", pa.int64()), pa.field("source", pa.struct(source))]
    return pa.schema([*members, pa.field("payload", pa.struct(members))])


def _payloads(values: pa.StructArray) -> pa.StructArray:
    """Return the events: the member `payload` where an object has it, otherwise the object."""
    payload = _member(values, "payload")
    fields = payload.type.fields
    if payload.null_count == 0:
        return payload
    plain = pa.StructArray.from_arrays([_member(values, child.name) for child in fields], fields=fields)
    return plain if payload.null_count == len(payload) else pc.if_else(pc.is_valid(payload), payload, plain)


def _member(rows: pa.StructArray, path: str) -> pa.Array:
    """Return a member of objects, null where one of the objects on the path is null."""
    return pc.struct_field(rows, path.split("."))
