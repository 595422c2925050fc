"""Columns of INT96 in Parquet files of others: points in time, as Spark and Hive write and read them, not local times.

Arrow reads them as timestamps without a zone.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq


def int96_columns(schema: pq.ParquetSchema) -> frozenset[str]:
    """Return the columns of a file that have INT96, at any depth."""
    leaves = (schema.column(number) for number in range(len(schema)))
    return frozenset(leaf.path.partition(".")[0] for leaf in leaves if leaf.physical_type == "INT96")


def with_utc(kind: pa.DataType) -> pa.DataType:
    """Return the type with UTC as the zone of all timestamps, at any depth.

    >>> with_utc(pa.list_(pa.timestamp("us")))
    ListType(list<item: timestamp[us, tz=UTC]>)
    """
    return _changed(kind, lambda leaf: pa.timestamp(leaf.unit, "UTC"))


def without_zone(kind: pa.DataType) -> pa.DataType:
    """Return the type without the zones of timestamps, at any depth.

    >>> without_zone(pa.timestamp("us", "UTC"))
    TimestampType(timestamp[us])
    """
    return _changed(kind, lambda leaf: pa.timestamp(leaf.unit))


def _changed(kind: pa.DataType, change: Callable[[pa.TimestampType], pa.DataType]) -> pa.DataType:
    def child(field: pa.Field) -> pa.Field:
        return field.with_type(_changed(field.type, change))

    if pa.types.is_timestamp(kind):
        return change(kind)
    if pa.types.is_struct(kind):
        return pa.struct([child(field) for field in kind.fields])
    if pa.types.is_map(kind):
        return pa.map_(child(kind.key_field), child(kind.item_field))
    return pa.list_(child(kind.value_field)) if pa.types.is_list(kind) else kind
