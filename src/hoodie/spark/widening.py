"""Cast stored columns to the table's current types in Spark, as `format.schema.conform` does in Arrow.

Spark's own cast of a float to double keeps the binary value (0.6 becomes 0.6000000238418579). JVM Hudi keeps the
decimal text (0.6), so floats are cast through text.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F
from pyspark.sql import types as T


def widened(column: Any, stored: T.DataType, current: T.DataType) -> Any:
    """Return the column of type `stored` as type `current`. Both types have the same structure."""
    if not _widens_float(stored, current):
        return column.cast(current)
    if isinstance(stored, T.StructType) and isinstance(current, T.StructType):
        pairs = zip(stored.fields, current.fields, strict=True)
        fields = [widened(column[new.name], old.dataType, new.dataType).alias(new.name) for old, new in pairs]
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(stored, T.ArrayType) and isinstance(current, T.ArrayType):
        old, new = stored.elementType, current.elementType
        return F.transform(column, lambda item: widened(item, old, new))
    if isinstance(stored, T.MapType) and isinstance(current, T.MapType):
        old, new = stored.valueType, current.valueType
        return F.transform_values(column, lambda _, value: widened(value, old, new))
    return column.cast("string").cast("double")


def _widens_float(stored: T.DataType, current: T.DataType) -> bool:
    """Return whether a float in the stored type, at any depth, is a double in the current type."""
    if isinstance(stored, T.StructType) and isinstance(current, T.StructType):
        pairs = zip(stored.fields, current.fields, strict=True)
        return any(_widens_float(old.dataType, new.dataType) for old, new in pairs)
    if isinstance(stored, T.ArrayType) and isinstance(current, T.ArrayType):
        return _widens_float(stored.elementType, current.elementType)
    if isinstance(stored, T.MapType) and isinstance(current, T.MapType):
        return _widens_float(stored.valueType, current.valueType)
    return isinstance(stored, T.FloatType) and isinstance(current, T.DoubleType)
