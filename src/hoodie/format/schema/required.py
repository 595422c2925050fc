"""Columns that allow no null: where a write would lift the rule, and whether its values make that necessary.

Engines such as Spark declare nearly every column nullable. A declaration of new data does not count: a column of the
table stays NOT NULL as long as no row that is written has a null in it (docs/decisions/0006-lossless-evolution.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.format.schema.arrow_types import LIST_ITEM, fields_below, with_fields_below
from hoodie.format.schema.plain_types import own_items

Paths = frozenset[str]
"""Names of columns and nested fields with dots, as in messages: `s.x`, `items.element`, `m.value`."""


def loosened(before: pa.Schema, after: pa.Schema) -> Paths:
    """Return the columns and nested fields that allow no null in `before`, and allow it in `after`.

    >>> loosened(pa.schema([pa.field("id", pa.int64(), nullable=False)]), pa.schema([("id", pa.int64())]))
    frozenset({'id'})
    """
    return frozenset() if before.equals(after) else frozenset(_loosened(list(before), list(after), ""))


def with_required(schema: pa.Schema, paths: Collection[str]) -> pa.Schema:
    """Return the schema whose columns and nested fields at these paths allow no null."""
    if not paths:
        return schema
    return pa.schema([_required(child, child.name, paths) for child in schema], metadata=schema.metadata)


def paths_with_null(rows: pa.RecordBatch | pa.Table, paths: Collection[str]) -> Paths:
    """Return those of the paths that have a null in the rows. A null struct has no fields, so no null in its fields."""
    found: set[str] = set()
    for child in rows.schema if paths else ():
        below = [path for path in paths if path == child.name or path.startswith(f"{child.name}.")]
        column = rows.column(child.name) if below else None
        for array in column.chunks if isinstance(column, pa.ChunkedArray) else [column] if below else []:
            found.update(_nulls(array, child, child.name, below, None))
    return frozenset(found)


def _loosened(before: list[pa.Field], after: list[pa.Field], prefix: str) -> Iterator[str]:
    known = {child.name: child for child in before}
    for child in after:
        old = known.get(child.name)
        if old is None:
            continue
        path = f"{prefix}{child.name}"
        if child.nullable and not old.nullable:
            yield path
        yield from _loosened(fields_below(old.type), fields_below(child.type), f"{path}.")


def _required(child: pa.Field, path: str, paths: Collection[str]) -> pa.Field:
    below = [_required(found, f"{path}.{found.name}", paths) for found in fields_below(child.type)]
    kind = with_fields_below(child.type, below)
    return child.with_type(kind).with_nullable(child.nullable and path not in paths)


def _nulls(
    array: pa.Array, child: pa.Field, path: str, paths: Collection[str], parents: pa.Array | None
) -> Iterator[str]:
    """Yield the paths at and below the array that have a null. `parents`: where the enclosing struct is not null."""
    if path in paths and array.null_count:
        missing = array.is_null() if parents is None else pc.and_(array.is_null(), parents)
        if pc.any(missing).as_py():
            yield path
    if not any(found.startswith(f"{path}.") for found in paths):
        return
    if pa.types.is_struct(child.type):
        valid = array.is_valid() if array.null_count else None
        for place, below in enumerate(child.type.fields):
            yield from _nulls(array.field(place), below, f"{path}.{below.name}", paths, valid)
    elif pa.types.is_map(child.type):
        _, (_, values) = own_items(array, array.keys, array.items)
        yield from _nulls(values, child.type.item_field, f"{path}.value", paths, None)
    elif pa.types.is_list(child.type):
        _, (items,) = own_items(array, array.values)
        yield from _nulls(items, child.type.value_field, f"{path}.{LIST_ITEM}", paths, None)
