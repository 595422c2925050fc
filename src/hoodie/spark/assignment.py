"""Assign values of Spark expressions to columns of a table, as `records.sql.cast` does in this process.

Spark's own cast matches the fields of structs by their position, and outside of ANSI mode it wraps numbers that do not
fit, and makes texts null that are no values. Here fields are matched by name, and both are errors in every session.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hoodie.errors import SchemaMismatchError
from hoodie.spark.types import spark_schema_of

_NESTED: Final = (T.StructType, T.ArrayType, T.MapType)
_BITS: Final[Mapping[type[T.DataType], int]] = {T.ByteType: 8, T.ShortType: 16, T.IntegerType: 32, T.LongType: 64}


def types_of(frame: Any, texts: Mapping[str, str]) -> dict[str, T.DataType]:
    """Return the types that Spark gives to SQL expressions over a DataFrame, by the names of the texts."""
    found = frame.select(*(F.expr(text).alias(f"_{number}") for number, text in enumerate(texts.values())))
    return {name: field.dataType for name, field in zip(texts, found.schema.fields, strict=True)}


@dataclass(frozen=True, slots=True)
class Assignment:
    """An assignment to a column. `call` names the operation in errors.

    `exact`: nested values are not cast, they must have the types of the table.
    """

    call: str
    column: str
    given: T.DataType
    wanted: T.DataType
    exact: bool = False

    def of(self, value: Any) -> Any:
        """Return the value, of the given type, as the wanted type.

        Raises: SchemaMismatchError for nested types with other fields. A job of Spark raises it for values.
        """
        return self._converted(value, self.given, self.wanted)

    @property
    def _mismatch(self) -> str:
        return (
            f"{self.call}: a value of type {self.given.simpleString()} for the table's column {self.column} of type "
            f"{self.wanted.simpleString()}"
        )

    def _converted(self, value: Any, given: T.DataType, wanted: T.DataType) -> Any:
        if given.simpleString() == wanted.simpleString() or isinstance(given, T.NullType):
            return value.cast(wanted)
        if isinstance(given, T.StructType) and isinstance(wanted, T.StructType):
            return self._struct(value, given, wanted)
        if isinstance(given, T.ArrayType) and isinstance(wanted, T.ArrayType):
            old, new = given.elementType, wanted.elementType
            return F.transform(value, lambda item: self._converted(item, old, new))
        if isinstance(given, T.MapType) and isinstance(wanted, T.MapType):
            return self._map(value, given, wanted)
        if isinstance(given, _NESTED) or isinstance(wanted, _NESTED):
            raise SchemaMismatchError(f"{self._mismatch}: expected the same nested fields; nothing was written")
        return self._leaf(value, given, wanted)

    def _struct(self, value: Any, given: T.StructType, wanted: T.StructType) -> Any:
        found = {field.name.lower(): field for field in given.fields}
        names = sorted(field.name.lower() for field in wanted.fields)
        if sorted(field.name.lower() for field in given.fields) != names or len(found) < len(names):
            raise SchemaMismatchError(
                f"{self._mismatch}: expected the same nested fields, {', '.join(wanted.names)}, found "
                f"{', '.join(given.names)}; name them, as in named_struct('{wanted.names[0]}', …); nothing was written"
            )
        fields = []
        for field in wanted.fields:
            old = found[field.name.lower()]
            fields.append(self._converted(value[old.name], old.dataType, field.dataType).alias(field.name))
        return F.when(value.isNotNull(), F.struct(*fields))

    def _map(self, value: Any, given: T.MapType, wanted: T.MapType) -> Any:
        keys = given.keyType, wanted.keyType
        if keys[0] != keys[1]:
            value = F.transform_keys(value, lambda key, _: self._converted(key, *keys))
        old, new = given.valueType, wanted.valueType
        return F.transform_values(value, lambda _, item: self._converted(item, old, new))

    def _leaf(self, value: Any, given: T.DataType, wanted: T.DataType) -> Any:
        if self.exact:
            raise SchemaMismatchError(
                f"{self._mismatch}: expected the same types of nested fields; nothing was written"
            )
        if isinstance(given, T.StringType) and not isinstance(wanted, T.StringType):
            return self._parsed(value, wanted)
        cast = value.cast(wanted)
        if not isinstance(given, T.NumericType):
            return cast
        if type(wanted) in _BITS:
            if _BITS.get(type(given), 65) <= _BITS[type(wanted)]:
                return cast
            fits = _in_range(value, given, _BITS[type(wanted)])
        elif isinstance(wanted, T.DecimalType):
            fits = cast.isNotNull()
        else:
            return cast
        return F.when(value.isNull() | fits, cast).otherwise(self._refused("a number does not fit"))

    def _parsed(self, value: Any, wanted: T.DataType) -> Any:
        """Return a text as another type: outside of ANSI mode Spark gives null for a text that is no value of it."""
        cast = value.try_cast(wanted) if hasattr(type(value), "try_cast") else value.cast(wanted)
        refused = self._refused("a text is no value of that type, and CAST gives null for it")
        return F.when(value.isNull() | cast.isNotNull(), cast).otherwise(refused)

    def _refused(self, why: str) -> Any:
        return F.raise_error(
            F.lit(f"hoodie.errors.SchemaMismatchError: {self._mismatch}: {why}; nothing was committed")
        )


def _in_range(value: Any, given: T.DataType, bits: int) -> Any:
    """Return whether a number, without its fraction, fits an integer of so many bits; NaN does not."""
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1)
    if isinstance(given, (T.FloatType, T.DoubleType)):
        number = value.cast("double")
        # Below the smallest long there is no double that is cut off to it.
        return ((number >= float(low)) | (number > float(low - 1))) & (number < float(high))
    wide = "decimal(38,18)" if isinstance(given, T.DecimalType) else given.simpleString()
    return (value > F.lit(str(low - 1)).cast(wide)) & (value < F.lit(str(high)).cast(wide))


def in_types(frame: Any, texts: Mapping[str, str], schema: pa.Schema, call: str, constant: Collection[str]) -> Any:
    """Return SQL expressions over a DataFrame as columns of a schema.

    Text becomes another type only in the columns `constant`, as in Spark's `INSERT`.

    Raises: as `Assignment.of`; SchemaMismatchError for text in a column of another type.
    """
    wanted = {field.name: field.dataType for field in spark_schema_of(schema)}
    columns = []
    for name, given in types_of(frame, texts).items():
        if isinstance(given, T.StringType) and not isinstance(wanted[name], T.StringType) and name not in constant:
            raise SchemaMismatchError(
                f"{call}: the table's column {name} has the type {wanted[name].simpleString()}, and the query a text: "
                "cast it; nothing was written"
            )
        columns.append(Assignment(call, name, given, wanted[name]).of(F.expr(texts[name])).alias(name))
    return frame.select(*columns)
