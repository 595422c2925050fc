"""The Arrow types that a Hudi table stores, and the conversion of other Arrow types to them.

On-disk format: docs/format/table.md §3.6 (physical types); the types are those of the JVM's Spark-to-Avro conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError, UnsupportedError
from hoodie.format.avro.schema import META_FIELDS, OPERATION_FIELD
from hoodie.format.schema.plain_types import plain_schema

LIST_ITEM: Final = "element"
"""Name of a list's items in Arrow and in three-level Parquet lists."""

_KEPT: Final = frozenset(
    {
        pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32(),
    }
)  # fmt: skip
_WIDENED: Final = {
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}


def type_at(schema: pa.Schema, name: str) -> pa.DataType | None:
    """Return the type of a column or of a field inside structs; None if the schema lacks it.

    Names of nested fields have dots. A column of type null has every field below it, and all are null.

    >>> nested = pa.schema([("m", pa.struct([("id", pa.int32())]))])
    >>> type_at(nested, "m.id"), type_at(nested, "m.p")
    (DataType(int32), None)
    """
    here: pa.DataType = pa.struct(list(schema))
    for part in name.split("."):
        if pa.types.is_null(here):
            break
        if not pa.types.is_struct(here) or here.get_field_index(part) < 0:
            return None
        here = here.field(here.get_field_index(part)).type
    return here


def fields_below(data_type: pa.DataType) -> list[pa.Field]:
    """Return the fields of a struct, the items of a list or the values of a map, with their names in paths."""
    if pa.types.is_struct(data_type):
        return list(data_type.fields)
    if pa.types.is_list(data_type):
        return [data_type.value_field.with_name(LIST_ITEM)]
    if pa.types.is_map(data_type):
        return [data_type.item_field.with_name("value")]
    return []


def with_fields_below(data_type: pa.DataType, fields: list[pa.Field]) -> pa.DataType:
    """Return a nested type with other fields in the places of `fields_below`; any other type as it is."""
    if pa.types.is_struct(data_type):
        return pa.struct(fields)
    if pa.types.is_list(data_type):
        return pa.list_(fields[0].with_name(data_type.value_field.name))
    if pa.types.is_map(data_type):
        return pa.map_(data_type.key_field, fields[0])
    return data_type


def with_leaves(data_type: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return the type with the changed types of values that are not nested, at any depth; keys of maps stay."""
    below = [child.with_type(with_leaves(child.type, change)) for child in fields_below(data_type)]
    return with_fields_below(data_type, below) if pa.types.is_nested(data_type) else change(data_type)


def has_null_type(data_type: pa.DataType) -> bool:
    """Return whether the type is null, or has a nested field of type null: all its values are null."""
    children = (data_type.field(number) for number in range(data_type.num_fields))
    return pa.types.is_null(data_type) or any(has_null_type(child.type) for child in children)


def normalise(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the types that a Hudi table stores.

    Names, order and nullability are kept; metadata is removed. Integers of less than 32 bits become int32, uint32
    becomes int64, half floats become float32. Other types become their plain types (`plain_types`). Timestamps become
    microseconds (`conform` refuses values that would be cut): the JVM's data frames write only microseconds, and refuse
    to write to a column of milliseconds. Every time zone becomes UTC; timestamps without a zone stay without a zone.

    Raises:
        SchemaMismatchError: a Hudi table cannot store a type (null, uint64, durations, intervals, unions, ...), or a
            column name occurs twice in any case, or equals the name of a meta field in another case.
        UnsupportedError: columns nest too deep.
    """
    _refuse_meta_names(schema.names)
    _refuse_duplicates(schema.names, "")
    try:
        return pa.schema([_field(child, child.name) for child in plain_schema(schema)])
    except RecursionError as error:
        raise UnsupportedError("the data's schema: columns of fewer nested levels expected") from error


def _field(child: pa.Field, path: str) -> pa.Field:
    return pa.field(child.name, normal_type(child.type, path), nullable=child.nullable)


def normal_type(data_type: pa.DataType, path: str) -> pa.DataType:
    """Return the type that a Hudi table stores for one plain type; `path` is the column's name in errors.

    Raises: SchemaMismatchError if a Hudi table cannot store the type.
    """
    if data_type in _KEPT or pa.types.is_fixed_size_binary(data_type):
        return data_type
    if data_type in _WIDENED:
        return _WIDENED[data_type]
    if pa.types.is_timestamp(data_type):
        return pa.timestamp("us") if data_type.tz is None else pa.timestamp("us", "UTC")
    if pa.types.is_decimal(data_type):
        return _decimal(data_type, path)
    return _nested(data_type, path)


def _nested(data_type: pa.DataType, path: str) -> pa.DataType:
    if pa.types.is_struct(data_type):
        if data_type.num_fields == 0:
            raise _refused(path, data_type, "a struct needs at least one field: drop the column")
        _refuse_duplicates([child.name for child in data_type.fields], f"{path}.")
        return pa.struct([_field(child, f"{path}.{child.name}") for child in data_type.fields])
    if pa.types.is_map(data_type):
        if normal_type(data_type.key_type, f"{path}.key") != pa.string():
            raise _refused(path, data_type, "keys of maps are strings: cast them")
        values = data_type.item_field
        value_type = normal_type(values.type, f"{path}.value")
        return pa.map_(pa.string(), pa.field("value", value_type, nullable=values.nullable))
    if pa.types.is_list(data_type):
        items = data_type.value_field
        item_type = normal_type(items.type, f"{path}.{LIST_ITEM}")
        return pa.list_(pa.field(LIST_ITEM, item_type, nullable=items.nullable))
    raise _refused(path, data_type, _advice(data_type))


def _decimal(data_type: pa.DataType, path: str) -> pa.DataType:
    precision, scale = data_type.precision, data_type.scale
    if precision > 38 or not 0 <= scale <= precision:
        raise _refused(path, data_type, "decimals have up to 38 digits and a scale from 0 to their precision: cast it")
    return pa.decimal128(precision, scale)


def _advice(data_type: pa.DataType) -> str:
    if pa.types.is_null(data_type):
        return "a column of nulls only has no type: cast it to the type that the column should have"
    if pa.types.is_uint64(data_type):
        return "Hudi has no unsigned numbers: cast it to int64 or decimal128(20, 0)"
    if pa.types.is_duration(data_type) or pa.types.is_interval(data_type):
        return "Hudi stores no durations: cast it to int64 and write the unit into the column's name"
    if pa.types.is_time(data_type):
        return "Spark reads no times of day: cast it to int64 (microseconds) or to string"
    return "cast or drop the column"


def _refused(path: str, data_type: pa.DataType, advice: str) -> SchemaMismatchError:
    return SchemaMismatchError(f"column {path!r}: Hudi has no type for Arrow's {data_type}; {advice}")


def _refuse_meta_names(names: list[str]) -> None:
    meta = {*META_FIELDS, OPERATION_FIELD}
    for name in names:
        if name.lower() in meta and name not in meta:
            raise SchemaMismatchError(
                f"column {name!r}: every row has Hudi's column {name.lower()!r}, and to Spark both names are one: "
                "rename it"
            )


def _refuse_duplicates(names: list[str], prefix: str) -> None:
    seen: dict[str, str] = {}
    for name in names:
        twin = seen.get(name.lower())
        if twin is not None:
            clash = "occurs twice" if twin == name else f"differs from {prefix + twin!r} in case only"
            raise SchemaMismatchError(
                f"column {prefix + name!r} {clash}; names must be unique, also without regard to case: rename one"
            )
        seen[name.lower()] = name


def blanks(kind: pa.DataType, length: int, *, is_null: bool) -> pa.Array:
    """Return a column of nulls, or of arbitrary valid values for the required fields of null structs.

    A Parquet writer refuses null in the required fields of a null struct.
    """
    if pa.types.is_struct(kind):
        children = [blanks(child.type, length, is_null=child.nullable) for child in kind.fields]
        mask = pa.array(np.full(length, is_null))
        return pa.StructArray.from_arrays(children, fields=kind.fields, mask=mask)
    if is_null:
        return pa.nulls(length, kind)
    offsets = pa.array(np.zeros(length + 1, np.int32))
    if pa.types.is_map(kind):
        keys, values = pa.array([], kind.key_type), pa.array([], kind.item_type)
        return pa.MapArray.from_arrays(offsets, keys, values, type=kind)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(offsets, pa.array([], kind.value_type), type=kind)
    if kind in (pa.string(), pa.binary()):
        return pa.Array.from_buffers(kind, length, [None, offsets.buffers()[1], pa.py_buffer(b"")])
    return pa.Array.from_buffers(kind, length, [None, pa.py_buffer(bytes(-(-length * kind.bit_width // 8)))])


def offsets_of(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return where the values of a column begin, and at last where the last one ends.

    The column has texts, byte strings or lists with offsets of 32 bits, or large byte strings.
    """
    kind = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    places = np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column) + 1]
    return places.astype(np.int64, copy=False)


def bytes_of(column: pa.LargeBinaryArray) -> memoryview:
    """Return the bytes of all values of a column, one after the other."""
    offsets, data = offsets_of(column), column.buffers()[2]
    return memoryview(b"") if data is None or not len(column) else memoryview(data)[offsets[0] : offsets[-1]]


def ranges_of(bounds: npt.NDArray[np.int64], bytes_max: int) -> Iterator[tuple[int, int]]:
    """Yield ranges `[first, stop)` of the pieces between `bounds`: as many pieces as fit `bytes_max`, at least one."""
    first, count = 0, len(bounds) - 1
    while first < count:
        fitting = int(np.searchsorted(bounds, bounds[first] + bytes_max, side="right")) - 1
        stop = max(fitting, first + 1)
        yield first, stop
        first = stop


def pieces_of(data: Any, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> pa.BinaryArray:
    """Return pieces of a buffer of bytes as a column.

    A first column has the pieces and the gaps between them as values; the result is every second value.
    """
    if not len(starts):
        return pa.array([], pa.binary())
    bounds = np.empty(2 * len(starts), np.int32)
    bounds[0::2] = starts
    bounds[1::2] = ends
    pieces = pa.BinaryArray.from_buffers(pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
    return pieces.take(pa.array(np.arange(0, len(bounds), 2, dtype=np.int32)))


def without_null(array: pa.Array) -> pa.Array:
    """Return the values of a required field; values that are null because of a null struct become arbitrary values."""
    if not array.null_count:
        return array
    places = pc.if_else(array.is_valid(), pa.array(np.arange(len(array))), len(array))
    return pa.concat_arrays([array, blanks(array.type, 1, is_null=False)]).take(places)
