"""Change batches: the incoming rows as every step of a write sees them.

A change batch has three columns in front (what to do, record key, partition path) and then the table's own columns,
nullable all, without Hudi's meta columns: a delete by key has nothing but its key.
"""

from __future__ import annotations

from enum import IntEnum

import pyarrow as pa

KIND = "_hoodie_change"
RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
LEADING = (KIND, RECORD_KEY, PARTITION_PATH)
IS_DELETED = "_hoodie_is_deleted"
"""The boolean column by which a row says that it deletes its key (docs/format/table.md §6.4)."""


class Kind(IntEnum):
    """What a change does to its key."""

    ROW = 0
    """Insert or update with this row."""
    DELETE = 1
    """Delete whatever is there, whatever its ordering value (commit-time delete)."""
    DELETE_IN_ORDER = 2
    """Delete unless the stored row has a higher ordering value (`_hoodie_is_deleted`, delete markers)."""


def change_schema(table_schema: pa.Schema) -> pa.Schema:
    """Schema of change batches for a table with these data columns (meta columns not among them)."""
    leading = [pa.field(KIND, pa.int8(), False), pa.field(RECORD_KEY, pa.string(), False)]
    return pa.schema(
        [
            *leading,
            pa.field(PARTITION_PATH, pa.string(), False),
            *(field.with_nullable(True) for field in table_schema),
        ]
    )
