"""Evolve a table's schema for new data: the changes that the JVM accepts by default and that lose no value.

On-disk format: docs/format/table.md §3.7. tests/golden/types/evolution.json contains the JVM's rules; the rules of
hoodie allow less (docs/decisions/0006-lossless-evolution.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import pyarrow as pa

from hoodie.config.writes import FILL_MISSING
from hoodie.errors import SchemaMismatchError
from hoodie.format.avro.schema import META_FIELDS, OPERATION_FIELD
from hoodie.format.schema.arrow_types import LIST_ITEM, fields_below, normalise

_WIDENED: Final = frozenset({(pa.int32(), pa.int64()), (pa.float32(), pa.float64())})
_NUMBERS: Final = frozenset(kind for pair in _WIDENED for kind in pair)
_META: Final = frozenset({*META_FIELDS, OPERATION_FIELD})


def evolve(
    table_schema: pa.Schema, incoming_schema: pa.Schema, *, key_fields: Collection[str] = (), fill_missing: bool = True
) -> pa.Schema:
    """Return the table's schema after a write of data with the incoming schema; the data's meta fields are ignored.

    Columns keep their order. New columns, and new fields of structs, are appended and are nullable. An int column
    becomes long if the data is long; a float column becomes double if the data is double. A decimal column gets more
    digits at the same scale. A column becomes nullable if the data's column is nullable. Data of a narrower type, and
    integers for a float column, change nothing; the later cast checks each value. A missing column must be nullable
    and is filled with null (the JVM refuses it by default: `fill_missing=False`). The text of `key_fields` (record key
    and partition columns; nested columns with dots) must not change: there, int may become long, and a decimal may get
    more digits, but no other change is allowed.

    Raises: SchemaMismatchError for any other difference; the message names the field, both types and the remedy.
    """
    incoming = normalise(_with_types(incoming_schema, table_schema))
    kept = [child for child in table_schema if child.name in _META]
    columns = [child for child in table_schema if child.name not in _META]
    merger = _Merger(frozenset(key_fields), fill_missing)
    return pa.schema([*kept, *merger.fields(columns, list(incoming), "")], metadata=table_schema.metadata)


def schema_changes(before: pa.Schema, after: pa.Schema) -> tuple[str, ...]:
    """Describe the columns that an evolution added or changed, one text for each.

    >>> schema_changes(pa.schema([("q", pa.int32())]), pa.schema([("q", pa.int64()), ("x", pa.string())]))
    ('column q: int32 -> int64', 'column x added: string')
    """
    known = {child.name: child for child in before}
    changes: list[str] = []
    for child in after:
        if child.name not in known:
            changes.append(f"column {child.name} added: {child.type}")
        else:
            changes += _field_changes(known[child.name], child, child.name)
    return tuple(changes)


def _field_changes(before: pa.Field, after: pa.Field, path: str) -> list[str]:
    """Describe what changed in a column or nested field; nested fields have dotted names."""
    changes = [f"column {path}: not null -> nullable"] if after.nullable and not before.nullable else []
    if before.type == after.type:
        return changes
    if not pa.types.is_nested(before.type):
        return [*changes, f"column {path}: {before.type} -> {after.type}"]
    old = {child.name: child for child in fields_below(before.type)}
    for child in fields_below(after.type):
        below = f"{path}.{child.name}"
        known = old.get(child.name)
        changes += [f"column {below} added: {child.type}"] if known is None else _field_changes(known, child, below)
    return changes


def missing_paths(table: Iterable[pa.Field], found: Iterable[pa.Field], prefix: str = "") -> list[str]:
    """Return the dotted names of columns and nested fields of a table that data lacks, but no field below these.

    Types of one kind are compared; all values of a column without a type are null, so it lacks no field.

    >>> table = [pa.field("q", pa.int32()), pa.field("s", pa.struct([("x", pa.int32()), ("y", pa.int32())]))]
    >>> missing_paths(table, [pa.field("s", pa.struct([("x", pa.int32())]))])
    ['q', 's.y']
    """
    given = {child.name: child.type for child in found}
    missing: list[str] = []
    for child in table:
        path = f"{prefix}{child.name}"
        if child.name not in given:
            missing.append(path)
        elif pa.types.is_nested(child.type) and child.type.id == given[child.name].id:
            missing += missing_paths(fields_below(child.type), fields_below(given[child.name]), f"{path}.")
    return missing


def _with_types(incoming: pa.Schema, table: pa.Schema) -> pa.Schema:
    """Give columns of nulls without a type the types of the table's columns, and drop meta fields."""
    found = pa.struct([child for child in incoming if child.name not in _META])
    return pa.schema(_typed(found, pa.struct(list(table))).fields)


def _typed(found: pa.DataType, table: pa.DataType) -> pa.DataType:
    if pa.types.is_null(found):
        return table
    if pa.types.is_struct(found) and pa.types.is_struct(table):
        known = {child.name: child.type for child in table.fields}
        return pa.struct([c.with_type(_typed(c.type, known[c.name])) if c.name in known else c for c in found.fields])
    if pa.types.is_list(found) and pa.types.is_list(table):
        return pa.list_(found.value_field.with_type(_typed(found.value_type, table.value_type)))
    return found


class _Merger:
    """One evolution: compares two schemas field by field."""

    def __init__(self, key_fields: frozenset[str], fill_missing: bool) -> None:
        self._key_fields = key_fields
        self._fill_missing = fill_missing

    def fields(self, table: Sequence[pa.Field], incoming: Sequence[pa.Field], prefix: str) -> list[pa.Field]:
        """Return the evolved columns of a table or fields of a struct."""
        found = {child.name: child for child in incoming}
        _refuse_other_case([child.name for child in table], list(found), prefix)
        out = [self._field(child, found.pop(child.name, None), f"{prefix}{child.name}") for child in table]
        return [*out, *(child.with_nullable(True) for child in found.values())]

    def _field(self, table: pa.Field, incoming: pa.Field | None, path: str) -> pa.Field:
        if incoming is None:
            if table.nullable and self._fill_missing and path not in self._key_fields:
                return table
            advice = f"add the column to the data{self._advice(table, path)}"
            raise SchemaMismatchError(f"column {path!r} ({table.type}) is missing in the data: {advice}")
        merged = self._type(table.type, incoming.type, path)
        same_text = merged in (table.type, pa.int64()) or pa.types.is_decimal(merged)
        if path in self._key_fields and not same_text:
            raise _mismatch(
                path, table.type, incoming.type, "keys are made of its text, and its text would change: cast the data"
            )
        return pa.field(table.name, merged, nullable=table.nullable or incoming.nullable, metadata=table.metadata)

    def _advice(self, table: pa.Field, path: str) -> str:
        if not table.nullable:
            return "; it allows no null"
        if path in self._key_fields:
            return "; it is part of the record key or the partition path"
        # A partial upsert keeps whole columns.
        partial = "" if "." in path else ", or upsert with partial=True, which keeps the stored values"
        return (
            f"{partial}. {FILL_MISSING.key}=true in the properties of the call, or of the table "
            "(t.alter.set_property), sets missing columns to null"
        )

    def _type(self, table: pa.DataType, incoming: pa.DataType, path: str) -> pa.DataType:
        if table == incoming and not pa.types.is_nested(table):
            return table
        if table in _NUMBERS and incoming in _NUMBERS:
            return _number(table, incoming, path)
        if pa.types.is_decimal(table) and pa.types.is_decimal(incoming):
            return _decimal(table, incoming, path)
        if pa.types.is_timestamp(table) and pa.types.is_timestamp(incoming) and table.tz == incoming.tz:
            return table
        if pa.types.is_fixed_size_binary(table) and pa.types.is_binary(incoming):
            return table
        return self._nested(table, incoming, path)

    def _nested(self, table: pa.DataType, incoming: pa.DataType, path: str) -> pa.DataType:
        if pa.types.is_struct(table) and pa.types.is_struct(incoming):
            return pa.struct(self.fields(table.fields, incoming.fields, f"{path}."))
        if pa.types.is_list(table) and pa.types.is_list(incoming):
            items = self._field(table.value_field, incoming.value_field, f"{path}.{LIST_ITEM}")
            return pa.list_(items.with_name(LIST_ITEM))
        if pa.types.is_map(table) and pa.types.is_map(incoming):
            values = self._field(table.item_field, incoming.item_field, f"{path}.value")
            return pa.map_(table.key_type, values.with_name("value"))
        raise _mismatch(path, table, incoming, "cast the column, or write it under another name")


def _number(table: pa.DataType, incoming: pa.DataType, path: str) -> pa.DataType:
    if pa.types.is_integer(table) and pa.types.is_floating(incoming):
        advice = f"integers would be rounded: cast the data to {table}"
        raise _mismatch(path, table, incoming, f"{advice} (pandas makes missing integers floats: astype('Int64'))")
    return incoming if (table, incoming) in _WIDENED else table


def _decimal(table: pa.DataType, incoming: pa.DataType, path: str) -> pa.DataType:
    if table.scale != incoming.scale:
        raise _mismatch(
            path, table, incoming, f"the scale of a decimal column cannot change: cast it to scale {table.scale}"
        )
    return max(table, incoming, key=lambda data_type: int(data_type.precision))


def _refuse_other_case(table: list[str], incoming: list[str], prefix: str) -> None:
    """Refuse names that differ from a column of the table in case only: Spark could not read such a table."""
    known = {name.lower(): name for name in table}
    for name in incoming:
        twin = known.get(name.lower(), name)
        if twin != name:
            raise SchemaMismatchError(
                f"column {prefix + name!r}: in the table it is named {prefix + twin!r}; the case must match: rename it"
            )


def _mismatch(path: str, table: pa.DataType, incoming: pa.DataType, advice: str) -> SchemaMismatchError:
    return SchemaMismatchError(f"column {path!r}: {table} in the table, {incoming} in the data; {advice}")
