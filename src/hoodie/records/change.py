"""Change batches: the form in which all steps of a write exchange the incoming rows.

A change batch has three leading columns (kind of change, record key, partition path). The table's data columns follow,
without Hudi's meta columns. All data columns are nullable, because a delete by key has no values but its key. Nested
types are those of the table: a required field of a null struct has an arbitrary value (`blanks`), never null.
"""

from __future__ import annotations

from enum import IntEnum

import pyarrow as pa

KIND = "#change"
"""Columns that exist only while a write works have a # in their names, which a column of a table cannot have."""
RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
LEADING = (KIND, RECORD_KEY, PARTITION_PATH)
IS_DELETED = "_hoodie_is_deleted"
"""The boolean column that is true in rows that delete their key (docs/format/table.md §6.4)."""


class Kind(IntEnum):
    """The effect of a change on its key."""

    ROW = 0
    """Insert or update with this row."""
    DELETE = 1
    """Delete the stored row, whatever its ordering value (commit-time delete)."""
    DELETE_IN_ORDER = 2
    """Delete unless the stored row has a higher ordering value (`_hoodie_is_deleted`, delete markers)."""


def change_schema(table_schema: pa.Schema) -> pa.Schema:
    """Return the schema of change batches of a table; `table_schema` has its data columns, without meta columns."""
    types = (pa.int8(), pa.string(), pa.string())
    leading = [pa.field(name, kind, False) for name, kind in zip(LEADING, types, strict=True)]
    return pa.schema([*leading, *(field.with_nullable(True) for field in table_schema)])


def flags_deletes(schema: pa.Schema) -> bool:
    """Return whether rows of a schema can delete their keys by `IS_DELETED`."""
    return IS_DELETED in schema.names and pa.types.is_boolean(schema.field(IS_DELETED).type)
