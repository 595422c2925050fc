"""Columns of INT96 in Parquet files of others: points in time, as Spark and Hive write and read them, not local times.

Arrow reads them as timestamps without a zone.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.format.schema.arrow_types import with_leaves


def int96_columns(schema: pq.ParquetSchema) -> frozenset[str]:
    """Return the columns of a file that have INT96, at any depth."""
    leaves = (schema.column(number) for number in range(len(schema)))
    return frozenset(leaf.path.partition(".")[0] for leaf in leaves if leaf.physical_type == "INT96")


def with_utc(kind: pa.DataType) -> pa.DataType:
    """Return the type with UTC as the zone of all timestamps, at any depth; keys of maps stay.

    >>> with_utc(pa.list_(pa.timestamp("us")))
    ListType(list<item: timestamp[us, tz=UTC]>)
    """
    return with_leaves(kind, lambda leaf: pa.timestamp(leaf.unit, "UTC") if pa.types.is_timestamp(leaf) else leaf)


def without_zone(kind: pa.DataType) -> pa.DataType:
    """Return the type without the zones of timestamps, at any depth; keys of maps stay.

    >>> without_zone(pa.timestamp("us", "UTC"))
    TimestampType(timestamp[us])
    """
    return with_leaves(kind, lambda leaf: pa.timestamp(leaf.unit) if pa.types.is_timestamp(leaf) else leaf)
