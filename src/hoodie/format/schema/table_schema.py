"""The schema of a table: its meta fields; also exports all functions on the types of a table.

On-disk format: docs/format/table.md §3.2 (meta fields), §3.6 and §3.7 (types, and where the schema is stored).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

import pyarrow as pa

from hoodie.errors import UnsupportedError
from hoodie.format.avro.safe_schema import parse_schema
from hoodie.format.avro.schema import (
    META_FIELDS,
    OPERATION_FIELD,
    arrow_to_avro,
    avro_record_name,
    avro_to_arrow,
    schema_text,
)
from hoodie.format.schema.arrow_types import LIST_ITEM, normalise
from hoodie.format.schema.conform import conform
from hoodie.format.schema.evolution import evolve

__all__ = [
    "LIST_ITEM",
    "META_FIELDS",
    "OPERATION_FIELD",
    "arrow_to_avro",
    "avro_record_name",
    "avro_to_arrow",
    "columns_with_defaults",
    "conform",
    "evolve",
    "new_table_avro",
    "normalise",
    "spelled",
    "with_meta_fields",
    "without_columns",
    "without_meta_fields",
]


def with_meta_fields(schema: pa.Schema, *, has_operation: bool = False) -> pa.Schema:
    """Return the schema with the meta fields first, as nullable strings; existing meta fields are replaced.

    `has_operation` adds `_hoodie_operation` as the sixth meta field.
    """
    names = (*META_FIELDS, OPERATION_FIELD) if has_operation else META_FIELDS
    meta = [pa.field(name, pa.string()) for name in names]
    return pa.schema([*meta, *without_meta_fields(schema)], metadata=schema.metadata)


def without_meta_fields(schema: pa.Schema) -> pa.Schema:
    """Return the schema without any meta field, `_hoodie_operation` included."""
    meta = {*META_FIELDS, OPERATION_FIELD}
    return pa.schema([child for child in schema if child.name not in meta], metadata=schema.metadata)


def spelled(names: Iterable[str], schema: pa.Schema) -> list[str | None]:
    """Return each name as the schema spells it, which may differ in case; None for a name that no one column has."""
    known = frozenset(schema.names)
    by_lower: dict[str, list[str]] = {}
    for name in known:
        by_lower.setdefault(name.lower(), []).append(name)
    found = ([name] if name in known else by_lower.get(str(name).lower(), []) for name in names)
    return [only[0] if len(only) == 1 else None for only in found]


def without_columns(avro: str, names: Collection[str]) -> str:
    """Return the Avro text of a table's schema without some of its columns; without names, as it is."""
    if not names:
        return avro
    record = json.loads(avro)
    fields = [child for child in record["fields"] if child["name"] not in names]
    return schema_text(record | {"fields": fields})


def columns_with_defaults(avro: str) -> list[str]:
    """Return the columns of a table's schema, given as its Avro text, whose default is a value, not null.

    >>> columns_with_defaults('{"fields": [{"name": "a", "default": 0}, {"name": "b", "default": null}]}')
    ['a']
    """
    return [child["name"] for child in json.loads(avro)["fields"] if child.get("default") is not None]


def new_table_avro(schema: pa.Schema, *, table_name: str) -> str:
    """Return the Avro text of a schema that a table is about to get, as `arrow_to_avro`; it has no meta fields.

    The text is checked with meta fields, as files have them: a table must not get a schema that reads refuse.

    Raises: as `arrow_to_avro`; UnsupportedError that names the limit that the schema exceeds.
    """
    try:
        parse_schema(arrow_to_avro(with_meta_fields(schema), table_name=table_name), path="the data's schema")
        return arrow_to_avro(schema, table_name=table_name)
    except RecursionError as error:
        raise UnsupportedError("the data's schema: columns of fewer nested levels expected") from error
