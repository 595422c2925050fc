"""Convert Spark types to Arrow types and back, and cast stored columns to the table's current types in Spark.

PySpark's own conversion is not used, because its signature changes between releases.

`widened` casts as `format.schema.conform` does in Arrow. Spark's own cast of a float to double keeps the binary value
(0.6 becomes 0.6000000238418579). JVM Hudi keeps the decimal text (0.6), so floats are cast through text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.arrow_types import with_leaves
from hoodie.format.schema.conform import conform
from hoodie.records.sql.quoting import quoted

_SIMPLE = {
    T.NullType: pa.null(),
    T.BooleanType: pa.bool_(),
    T.ByteType: pa.int8(),
    T.ShortType: pa.int16(),
    T.IntegerType: pa.int32(),
    T.LongType: pa.int64(),
    T.FloatType: pa.float32(),
    T.DoubleType: pa.float64(),
    T.StringType: pa.string(),
    T.CharType: pa.string(),
    T.VarcharType: pa.string(),
    T.BinaryType: pa.binary(),
    T.DateType: pa.date32(),
    T.TimestampType: pa.timestamp("us", "UTC"),
    T.TimestampNTZType: pa.timestamp("us"),
}
_SPARK_OF_SIMPLE: dict[pa.DataType, type[T.DataType]] = {
    arrow: kind for kind, arrow in _SIMPLE.items() if kind not in (T.CharType, T.VarcharType)
}


def arrow_schema_of(schema: T.StructType) -> pa.Schema:
    """Return the Arrow schema of a Spark StructType; timestamps are in UTC.

    Raises: SchemaMismatchError for a type that a Hudi table cannot store. The message names the column.
    """
    return pa.schema([_arrow_field(field, "") for field in schema.fields])


def spark_schema_of(schema: pa.Schema) -> T.StructType:
    """Return the Spark StructType of the Arrow schema of a table; timestamps without time zone stay without time zone.

    Raises: SchemaMismatchError for a type that Spark does not have (times of day). The message names the column.
    """
    return T.StructType(
        [T.StructField(field.name, _spark_type(field.type, field.name), field.nullable) for field in schema]
    )


@dataclass(frozen=True, slots=True)
class Carrier:
    """Converts batches of a table's types for a shuffle by Spark, which casts nothing, and back. Picklable.

    Spark has no fixed-size binaries and no milliseconds: these become binaries and microseconds. Times of day become
    their numbers.
    """

    schema: pa.Schema

    @property
    def spark_schema(self) -> T.StructType:
        """Return the Spark schema of the batches between `sent` and `received`."""
        return spark_schema_of(self._with_numbers)

    def sent(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch that Spark accepts. Raises: SchemaMismatchError: a timestamp has no microseconds."""
        return conform(_viewed(batch, self.schema, self._with_numbers), arrow_schema_of(self.spark_schema))

    def received(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of Spark in the types of the schema.

        Spark changes the time zone of timestamps and the nullability of columns, and makes the required fields of a
        null struct null.
        """
        return _viewed(conform(batch, self._with_numbers), self._with_numbers, self.schema)

    @property
    def _with_numbers(self) -> pa.Schema:
        return pa.schema([child.with_type(with_leaves(child.type, _numbered)) for child in self.schema])


def _numbered(given: pa.DataType) -> pa.DataType:
    """Return the type of the numbers of times of day; other types as they are."""
    if not pa.types.is_time(given):
        return given
    return pa.int32() if given.bit_width == 32 else pa.int64()


def _viewed(batch: pa.RecordBatch, given: pa.Schema, wanted: pa.Schema) -> pa.RecordBatch:
    """Return a batch of the schema `given`, with the columns that differ in `wanted` as views of its types."""
    if given.equals(wanted):
        return batch
    columns = [
        column if old.equals(new) else column.view(new.type)
        for column, old, new in zip(batch.columns, given, wanted, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _arrow_field(field: Any, prefix: str) -> pa.Field:
    path = f"{prefix}{field.name}"
    return pa.field(field.name, _arrow_type(field.dataType, path), field.nullable)


def _arrow_type(data_type: Any, path: str) -> pa.DataType:
    if type(data_type) in _SIMPLE:
        return _SIMPLE[type(data_type)]
    if isinstance(data_type, T.DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    if isinstance(data_type, T.ArrayType):
        return pa.list_(pa.field("element", _arrow_type(data_type.elementType, path), data_type.containsNull))
    if isinstance(data_type, T.MapType):
        values = pa.field("value", _arrow_type(data_type.valueType, path), data_type.valueContainsNull)
        return pa.map_(_arrow_type(data_type.keyType, path), values)
    if isinstance(data_type, T.StructType):
        return pa.struct([_arrow_field(field, f"{path}.") for field in data_type.fields])
    raise SchemaMismatchError(
        f"column {path!r}: a Hudi table has no type for Spark's {data_type.simpleString()}; cast it"
    )


def _spark_type(data_type: pa.DataType, path: str) -> T.DataType:
    if data_type in _SPARK_OF_SIMPLE:
        return _SPARK_OF_SIMPLE[data_type]()
    if pa.types.is_timestamp(data_type):
        return T.TimestampNTZType() if data_type.tz is None else T.TimestampType()
    if pa.types.is_decimal(data_type):
        return T.DecimalType(data_type.precision, data_type.scale)
    if pa.types.is_fixed_size_binary(data_type):
        return T.BinaryType()
    if pa.types.is_list(data_type):
        return T.ArrayType(_spark_type(data_type.value_type, path), data_type.value_field.nullable)
    if pa.types.is_map(data_type):
        value = data_type.item_field
        return T.MapType(_spark_type(data_type.key_type, path), _spark_type(value.type, path), value.nullable)
    if pa.types.is_struct(data_type):
        children = [
            T.StructField(c.name, _spark_type(c.type, f"{path}.{c.name}"), c.nullable) for c in data_type.fields
        ]
        return T.StructType(children)
    raise SchemaMismatchError(f"column {path!r}: Spark has no type for Arrow's {data_type}; read it with to_arrow()")


def widened(column: Any, stored: T.DataType, current: T.DataType) -> Any:
    """Return the column of type `stored` as type `current`, which has the same fields of structs, or fewer.

    Fields are matched by name; Spark's own cast matches them by their position.
    """
    if not _changes_by_cast(stored, current):
        return column.cast(current)
    if isinstance(stored, T.StructType) and isinstance(current, T.StructType):
        old = {field.name: field.dataType for field in stored.fields}
        fields = [widened(column[new.name], old[new.name], new.dataType).alias(new.name) for new in current.fields]
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(stored, T.ArrayType) and isinstance(current, T.ArrayType):
        items = stored.elementType, current.elementType
        return F.transform(column, lambda item: widened(item, *items))
    if isinstance(stored, T.MapType) and isinstance(current, T.MapType):
        values = stored.valueType, current.valueType
        return F.transform_values(column, lambda _, value: widened(value, *values))
    return column.cast("string").cast("double")


def in_schema(frame: Any, schema: Any) -> Any:
    """Select the columns of a Spark schema from a DataFrame that has them, in the types of the schema."""
    stored = {field.name: field.dataType for field in frame.schema}
    columns = (widened(F.col(quoted(new.name)), stored[new.name], new.dataType).alias(new.name) for new in schema)
    return frame.select(*columns)


def _changes_by_cast(stored: T.DataType, current: T.DataType) -> bool:
    """Return whether Spark's cast changes values: a float becomes a double, or names of fields differ, at any depth."""
    if isinstance(stored, T.StructType) and isinstance(current, T.StructType):
        pairs = zip(stored.fields, current.fields, strict=False)
        has_other_fields = stored.names != current.names
        return has_other_fields or any(_changes_by_cast(old.dataType, new.dataType) for old, new in pairs)
    if isinstance(stored, T.ArrayType) and isinstance(current, T.ArrayType):
        return _changes_by_cast(stored.elementType, current.elementType)
    if isinstance(stored, T.MapType) and isinstance(current, T.MapType):
        return _changes_by_cast(stored.valueType, current.valueType)
    return isinstance(stored, T.FloatType) and isinstance(current, T.DoubleType)
