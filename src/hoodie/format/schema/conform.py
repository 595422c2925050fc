"""Convert Arrow data to a table's schema: cast, reorder and fill columns. Lossy conversions of new data are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.arrow_types import LIST_ITEM, blanks, without_null
from hoodie.format.schema.column_ids import SAME_NAMES, StoredNames
from hoodie.format.schema.java_text import java_text, shortest_text
from hoodie.format.schema.plain_types import own_items, plain_array, with_items

_Data = TypeVar("_Data", pa.RecordBatch, pa.Table)


def conform(data: _Data, schema: pa.Schema, *, stored: bool = False, names: StoredNames = SAME_NAMES) -> _Data:
    """Return the data with exactly this schema: columns are matched by name and cast.

    Missing nullable columns are filled with null. Numbers and decimals change their type only if no value changes;
    timestamps keep their point in time. A float becomes the double with the same decimal text, as in the JVM. Struct
    fields, list items and map values are treated like columns. Columns that are not in the schema are refused.
    Vectorised; columns that already fit are not copied.

    With `stored` the data are rows of a file of the table, which may be older than the schema. Then columns that are
    not in the schema are dropped, and all type promotions of the JVM are applied, even with a loss: integers are
    rounded to floats; integers, decimals and dates become text; text becomes binary and binary becomes text; text
    becomes dates and decimals; floats become decimals. `names` are the names that fields of the schema have in the
    data, where they differ.

    Raises: SchemaMismatchError if a column is unknown, is required but missing, has a type that cannot be cast to the
        expected type, or is required but contains null; or a value would be cut. The message names the field.
    """
    if not names and data.schema.equals(schema, check_metadata=True) and not _has_forbidden_null(data):
        return data
    conformer = _Conformer(stored, names)
    conformer.check_names(data.schema.names, schema.names, "")
    positions = {name: position for position, name in enumerate(data.schema.names)}
    columns = [
        _nulls(child, child.name, data.num_rows) if position is None else conformer.column(data.column(position), child)
        for child, position in ((child, positions.get(names.get(child.name, child.name))) for child in schema)
    ]
    if isinstance(data, pa.Table):
        return pa.Table.from_arrays(columns, schema=schema)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _has_forbidden_null(data: pa.RecordBatch | pa.Table) -> bool:
    """Return whether a required column or nested field may contain null, which Arrow does not check."""
    columns = ((data.column(place), child) for place, child in enumerate(data.schema))
    return any(
        _may_break(chunk, child)
        for column, child in columns
        for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else (column,))
    )


def _may_break(array: pa.Array, child: pa.Field) -> bool:
    """Return whether a required field has a null at or below the array; nulls of a null struct count too."""
    if not child.nullable and array.null_count:
        return True
    kind = child.type
    if pa.types.is_struct(kind):
        return any(_may_break(array.field(place), below) for place, below in enumerate(kind.fields))
    if pa.types.is_map(kind):
        return _may_break(array.items, kind.item_field)
    return bool(pa.types.is_list(kind)) and _may_break(array.values, kind.value_field)


@dataclass(frozen=True, slots=True)
class _Conformer:
    """Casts arrays; nested arrays from the outside to the inside."""

    stored: bool
    names: StoredNames

    def column(self, column: pa.Array | pa.ChunkedArray, child: pa.Field) -> pa.Array | pa.ChunkedArray:
        """Cast a column of a batch or of a table."""
        if isinstance(column, pa.ChunkedArray):
            chunks = [self.array(_plain(chunk, child), child, child.name) for chunk in column.chunks]
            return pa.chunked_array(chunks, type=child.type)
        return self.array(_plain(column, child), child, child.name)

    def array(self, array: pa.Array, child: pa.Field, path: str, parents: pa.Array | None = None) -> pa.Array:
        """Cast one array of a plain type. `parents`: where the enclosing struct is not null; else null is allowed."""
        if not child.nullable and array.null_count:
            missing = array.is_null() if parents is None else pc.and_(array.is_null(), parents)
            if count := pc.sum(missing).as_py():
                problem = f"{count} of {len(array)} values are null: fill them"
                raise SchemaMismatchError(f"column {path!r} allows no null; {problem}")
            return without_null(self._converted(array, child, path))
        return self._converted(array, child, path)

    def _converted(self, array: pa.Array, child: pa.Field, path: str) -> pa.Array:
        if array.type.equals(child.type) and not pa.types.is_nested(child.type):
            return array
        if pa.types.is_null(array.type):
            return blanks(child.type, len(array), is_null=True)
        if pa.types.is_struct(child.type) and pa.types.is_struct(array.type):
            return self._struct(array, child.type, path)
        if pa.types.is_map(child.type) and pa.types.is_map(array.type):
            return self._map(array, child.type, path)
        if pa.types.is_list(child.type) and pa.types.is_list(array.type):
            return self._list(array, child.type, path)
        return _cast(array, child.type, path, stored=self.stored)

    def check_names(self, found: list[str], wanted: list[str], prefix: str) -> None:
        """Refuse columns that occur twice and, in new data, columns that are not in the schema."""
        if len(set(found)) != len(found):
            twice = next(name for name in found if found.count(name) > 1)
            raise SchemaMismatchError(f"column {prefix + twice!r} occurs twice; rename one of them")
        known = set(wanted)
        unknown = () if self.stored else [name for name in found if name not in known]
        if unknown:
            raise SchemaMismatchError(
                f"column {prefix + unknown[0]!r} is not in the table's schema ({', '.join(wanted)}): "
                f"evolve the schema or drop the column"
            )

    def _struct(self, array: pa.StructArray, wanted: pa.StructType, path: str) -> pa.StructArray:
        found = {child.name: place for place, child in enumerate(array.type.fields)}
        self.check_names(
            [child.name for child in array.type.fields], [child.name for child in wanted.fields], f"{path}."
        )
        valid = array.is_valid() if array.null_count else None
        children = []
        for child in wanted.fields:
            below = f"{path}.{child.name}"
            name = self.names.get(below, child.name)
            place = None if name is None else found.get(name)
            children.append(
                _nulls(child, below, len(array))
                if place is None
                else self.array(array.field(place), child, below, valid)
            )
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=wanted.fields, mask=mask)

    def _list(self, array: pa.Array, wanted: pa.ListType, path: str) -> pa.ListArray:
        offsets, (items,) = own_items(array, array.values)
        return with_items(array, wanted, offsets, self.array(items, wanted.value_field, f"{path}.{LIST_ITEM}"))

    def _map(self, array: pa.MapArray, wanted: pa.MapType, path: str) -> pa.MapArray:
        offsets, (keys, values) = own_items(array, array.keys, array.items)
        keys = self.array(keys, wanted.key_field, f"{path}.key")
        values = self.array(values, wanted.item_field, f"{path}.value")
        entries = pa.StructArray.from_arrays([keys, values], fields=[wanted.key_field, wanted.item_field])
        return with_items(array, wanted, offsets, entries)


def _plain(array: pa.Array, child: pa.Field) -> pa.Array:
    try:
        return plain_array(array)
    except pa.ArrowInvalid as error:
        raise _does_not_fit(array.type, child.type, child.name, error) from error


def _nulls(child: pa.Field, path: str, row_count: int) -> pa.Array:
    if not child.nullable:
        raise SchemaMismatchError(f"column {path!r} is missing, and the table allows no null in it: add the column")
    return blanks(child.type, row_count, is_null=True)


def _cast(array: pa.Array, wanted: pa.DataType, path: str, *, stored: bool) -> pa.Array:
    found = array.type
    if found == pa.float32() and wanted == pa.float64():
        return widened_floats(array)
    if stored and pa.types.is_floating(found) and pa.types.is_string(wanted):
        return java_text(array)
    if stored and _is_promoted(found, wanted):
        return pc.cast(array, wanted, safe=False) if pa.types.is_floating(wanted) else _checked(array, wanted, path)
    if stored and _is_parsed(found, wanted):
        return _parsed(array, wanted, path)
    if not may_become(found, wanted):
        raise _stored_mismatch(found, wanted, path) if stored else _mismatch(found, wanted, path)
    if pa.types.is_floating(found) and pa.types.is_floating(wanted) and found.bit_width > wanted.bit_width:
        return _narrow(array, wanted, path)
    return _checked(array, wanted, path)


def widened_floats(array: pa.Array) -> pa.Array:
    """Return float32 values as doubles by their shortest decimal text, as the JVM widens them: 0.6 stays 0.6.

    The double that is equal to the float would be 0.6000000238418579.
    """
    return pc.cast(shortest_text(array), pa.float64())


def _mismatch(found: pa.DataType, wanted: pa.DataType, path: str) -> SchemaMismatchError:
    return SchemaMismatchError(f"column {path!r}: {wanted} expected, found {found}; cast the column first")


def _stored_mismatch(found: pa.DataType, wanted: pa.DataType, path: str) -> SchemaMismatchError:
    advice = "this release does not convert stored values of this type; read the table with JVM Hudi"
    return SchemaMismatchError(f"column {path!r}: {wanted} in the table, {found} in an older file; {advice}")


def _checked(array: pa.Array, wanted: pa.DataType, path: str) -> pa.Array:
    try:
        return pc.cast(array, wanted)
    except pa.ArrowInvalid as error:
        raise _does_not_fit(array.type, wanted, path, error) from error
    except pa.ArrowNotImplementedError as error:
        raise _mismatch(array.type, wanted, path) from error


def _does_not_fit(found: pa.DataType, wanted: pa.DataType, path: str, error: Exception) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"column {path!r}: a value of type {found} does not fit {wanted} ({error}); cast the column first"
    )


def wide_decimals(texts: pa.Array, scale: int) -> pa.Array:
    """Return numbers written as texts as decimals of 76 digits. Raises: pa.ArrowInvalid: one has more digits.

    Arrow's own cast of text ignores an overflow of the bits: 3e38 becomes a negative decimal of 38 digits.
    """
    sizes = pc.abs(pc.cast(texts, pa.float64()))
    fits = pc.and_(pc.less(sizes, 10.0 ** (76 - scale)), pc.less_equal(pc.binary_length(texts), 76))
    if pc.all(fits).as_py() is False:
        raise pa.ArrowInvalid("a number has too many digits")
    return pc.cast(texts, pa.decimal256(76, scale))


def _narrow(array: pa.Array, wanted: pa.DataType, path: str) -> pa.Array:
    """Cast to a smaller float and refuse values that would change; Arrow rounds them without an error."""
    narrow = pc.cast(array, wanted, safe=False)
    same = pc.or_(pc.equal(pc.cast(narrow, array.type), array), pc.is_nan(array))
    if pc.all(same).as_py() is False:
        first = array.filter(pc.invert(same))[0].as_py()
        raise SchemaMismatchError(
            f"column {path!r}: {first!r} of type {array.type} would be rounded as {wanted}; cast the column first"
        )
    return narrow


_TEXTS: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BYTES: Final = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)
_NUMBERS: Final = (pa.types.is_integer, pa.types.is_floating)
# For each family of expected types, the types whose values have the same meaning; the cast then checks each value.
_SOURCES: Final = (
    (_NUMBERS, _NUMBERS),
    ((pa.types.is_decimal,), (pa.types.is_decimal, pa.types.is_integer)),
    (_TEXTS, _TEXTS),
    (_BYTES, _BYTES),
    ((pa.types.is_date,), (pa.types.is_date,)),
    ((pa.types.is_time,), (pa.types.is_time,)),
)


def may_become(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether values of type `found` have the same meaning as values of type `wanted`."""
    if pa.types.is_null(found):
        return True
    if pa.types.is_timestamp(wanted):
        return bool(pa.types.is_timestamp(found)) and (found.tz is None) == (wanted.tz is None)
    for family, sources in _SOURCES:
        if any(is_kind(wanted) for is_kind in family):
            return any(is_kind(found) for is_kind in sources)
    return False


def _is_parsed(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether the JVM makes stored values to the other type by way of their text."""
    if pa.types.is_string(found):
        return bool(pa.types.is_date32(wanted) or pa.types.is_decimal(wanted))
    return bool(pa.types.is_floating(found) and pa.types.is_decimal(wanted))


def _parsed(array: pa.Array, wanted: pa.DataType, path: str) -> pa.Array:
    """Return dates or decimals of texts, or decimals of floats; digits that do not fit are rounded half up."""
    texts = shortest_text(array) if pa.types.is_floating(array.type) else array
    if not pa.types.is_decimal(wanted):
        return _checked(texts, wanted, path)
    try:
        # As many digits behind the point as the digits before it leave.
        exact = wide_decimals(texts, 38 - (wanted.precision - wanted.scale))
    except pa.ArrowInvalid as error:
        raise _does_not_fit(array.type, wanted, path, error) from error
    return _checked(pc.round(exact, ndigits=wanted.scale, round_mode="half_towards_infinity"), wanted, path)


def _is_promoted(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether the JVM promotes a stored column from one type to the other, although values may be lost."""
    if pa.types.is_integer(found):
        return bool(pa.types.is_floating(wanted) or pa.types.is_string(wanted))
    if pa.types.is_string(wanted):
        return bool(pa.types.is_date32(found) or pa.types.is_decimal(found) or pa.types.is_binary(found))
    return bool(pa.types.is_string(found) and pa.types.is_binary(wanted))
