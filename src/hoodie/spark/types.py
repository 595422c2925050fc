"""Spark's types as Arrow's, and back, as the workers see them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema


def arrow_schema_of(schema: Any) -> pa.Schema:
    """Arrow schema of a Spark StructType; timestamps with zone are UTC."""
    return pa.schema([_utc(field) for field in to_arrow_schema(schema)])


def spark_schema_of(schema: pa.Schema) -> Any:
    """Spark StructType of an Arrow schema; timestamps without zone stay so."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def _utc(field: pa.Field) -> pa.Field:
    return field.with_type(_utc_type(field.type))


def _utc_type(data_type: pa.DataType) -> pa.DataType:
    """`to_arrow_schema` puts some zone on every timestamp with zone; the instant is the same in UTC."""
    if pa.types.is_timestamp(data_type) and data_type.tz is not None:
        return pa.timestamp(data_type.unit, "UTC")
    if pa.types.is_list(data_type):
        return pa.list_(_utc(data_type.value_field))
    if pa.types.is_struct(data_type):
        return pa.struct([_utc(child) for child in data_type.fields])
    if pa.types.is_map(data_type):
        return pa.map_(_utc_type(data_type.key_type), _utc(data_type.item_field))
    return data_type


