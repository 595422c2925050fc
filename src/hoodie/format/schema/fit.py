"""Fit values whose type nobody declared (Python objects, default types of pandas) to the type of a table's column.

A value fits if nothing of it is lost. Floats fit an integer column if they are whole and at most 2^53: beyond it, the
float may have been rounded before. A float fits a 32-bit or decimal column that has a number with the same text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.arrow_types import LIST_ITEM
from hoodie.format.schema.conform import may_become, plain

_EXACT_MAX: Final = 1 << 53
_TEXT_CHARS_MAX: Final = 60
_PYARROW_ERRORS: Final = (pa.ArrowException, OverflowError, ValueError, TypeError)
_Values = Sequence[Any]
_Rows = Sequence[int]


def fit_array(array: pa.Array, wanted: pa.DataType, path: str, rows: _Rows | None = None) -> pa.Array:
    """Cast an array whose type was inferred to the type of a table's column.

    `path`: name of the column in errors. `rows`: the row number of each value; default is its position.

    Raises: SchemaMismatchError: a value does not fit; the message names column, row, value and type.
    """
    array = plain(array)
    if array.type.equals(wanted):
        return array
    if array.null_count == len(array):
        return pa.nulls(len(array), wanted)
    place = _first(array.is_valid())
    if _becomes(array.type, wanted):
        try:
            return _exactly(array, wanted)
        except pa.ArrowInvalid:
            place = _first_misfit(array, lambda part: _exactly(part, wanted))
    raise _misfit(array[place].as_py(), wanted, path, place if rows is None else rows[place])


def fit_values(values: _Values, wanted: pa.DataType, path: str, rows: _Rows | None = None) -> pa.Array:
    """Convert Python objects to an array of the type of a table's column; None is null.

    Dicts become structs or maps, lists and tuples become lists, and lists of pairs become maps, as the type requires.
    Raises: as `fit_array`.
    """
    rows = range(len(values)) if rows is None else rows
    if pa.types.is_struct(wanted):
        return _struct(values, wanted, path, rows)
    if pa.types.is_map(wanted):
        return _map(values, wanted, path, rows)
    if pa.types.is_list(wanted):
        return _list(values, wanted, path, rows)
    found = inferred(values)
    if found is not None:
        return fit_array(found, wanted, path, rows)
    # The values have several types: each is checked by its own.
    parts = [_fit_one(value, wanted, path, row) for value, row in zip(values, rows, strict=True)]
    return pa.concat_arrays([pa.nulls(0, wanted), *parts])


def inferred(values: _Values) -> pa.Array | None:
    """Return the values as an array of the type that they have; None if they have several types, or an unknown one."""
    kinds = {type(value) for value in values if value is not None}
    if not (len(kinds) <= 1 or kinds <= {int, float}):
        return None
    if len({getattr(value, "tzinfo", None) is None for value in values if value is not None}) > 1:
        return None
    try:
        array = pa.array(values)
    except _PYARROW_ERRORS:
        return None
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _fit_one(value: Any, wanted: pa.DataType, path: str, row: int) -> pa.Array:
    # An integer beyond 64 bits has no integer type in Arrow.
    is_big = isinstance(value, int) and not -(1 << 63) <= value < 1 << 63
    found = inferred([Decimal(value) if is_big else value])
    if found is None:
        raise _misfit(value, wanted, path, row)
    return fit_array(found, wanted, path, [row])


def _becomes(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether values of the inferred type can have the same meaning in a column of the wanted type."""
    by_text = pa.types.is_floating(found) and pa.types.is_decimal(wanted)
    return by_text or (not pa.types.is_nested(found) and may_become(found, wanted))


def _exactly(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast the array. Raises: pa.ArrowInvalid if a value does not fit."""
    found = array.type
    if pa.types.is_floating(found) and pa.types.is_integer(wanted):
        if pc.any(pc.greater(pc.abs(array), float(_EXACT_MAX))).as_py():
            raise pa.ArrowInvalid("a float above 2^53 may have been rounded")
        return pc.cast(array, wanted)
    if pa.types.is_floating(found) and pa.types.is_floating(wanted) and found.bit_width > wanted.bit_width:
        return _narrow(array, wanted)
    if pa.types.is_floating(found) and pa.types.is_decimal(wanted):
        return pc.cast(pc.cast(array, pa.string()), wanted)
    if pa.types.is_integer(found) and pa.types.is_decimal(wanted):
        return pc.cast(pc.cast(array, pa.decimal128(20, 0)), wanted)
    return pc.cast(array, wanted)


def _narrow(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    narrow = pc.cast(array, wanted, safe=False)
    same = pc.or_(pc.equal(pc.cast(narrow, array.type), array), pc.is_nan(array))
    if pc.all(same).as_py() is False:
        by_text = pc.cast(pc.cast(narrow, pa.string()), array.type)
        if pc.all(pc.or_(same, pc.equal(by_text, array))).as_py() is False:
            raise pa.ArrowInvalid("a float would be rounded")
    return narrow


def _first(mask: pa.BooleanArray) -> int:
    return int(np.argmax(np.asarray(mask)))


def _first_misfit(array: pa.Array, cast: Callable[[pa.Array], pa.Array]) -> int:
    """Return the place of the first value that cannot be cast; the cast of the whole array fails."""
    start, length = 0, len(array)
    while length > 1:
        half = length // 2
        try:
            cast(array.slice(start, half))
        except pa.ArrowInvalid:
            length = half
        else:
            start, length = start + half, length - half
    return start


def _misfit(value: Any, wanted: pa.DataType, path: str, row: int) -> SchemaMismatchError:
    text = repr(value)
    text = text if len(text) <= _TEXT_CHARS_MAX else f"{text[:_TEXT_CHARS_MAX]}…"
    can_widen = wanted in (pa.int32(), pa.float32()) and isinstance(value, int | float)
    advice = f", or pass Arrow data with a {'long' if wanted == pa.int32() else 'double'} column, which widens it"
    return SchemaMismatchError(
        f"column {path!r}, row {row}: {text} ({type(value).__name__}) does not fit {wanted}, the column's type in the "
        f"table; change the value{advice if can_widen and not isinstance(value, bool) else ''}"
    )


def _struct(values: _Values, wanted: pa.StructType, path: str, rows: _Rows) -> pa.StructArray:
    names = [child.name for child in wanted.fields]
    for value, row in zip(values, rows, strict=True):
        if value is not None and not isinstance(value, Mapping):
            raise _misfit(value, wanted, path, row)
        unknown = [name for name in value or () if name not in names]
        if unknown:
            raise SchemaMismatchError(
                f"column {f'{path}.{unknown[0]}'!r}, row {row}: the table has no such field in {path!r} "
                f"({', '.join(names)}); drop the field, or pass Arrow data to add it"
            )
    children = [
        fit_values([None if v is None else v.get(child.name) for v in values], child.type, f"{path}.{child.name}", rows)
        for child in wanted.fields
    ]
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(children, fields=wanted.fields, mask=mask)


def _list(values: _Values, wanted: pa.ListType, path: str, rows: _Rows) -> pa.ListArray:
    lists = [_items(value, wanted, path, row) for value, row in zip(values, rows, strict=True)]
    items = fit_values(_flat(lists), wanted.value_type, f"{path}.{LIST_ITEM}", _rows_of(lists, rows))
    return pa.ListArray.from_arrays(_offsets(lists), items, type=wanted)


def _map(values: _Values, wanted: pa.MapType, path: str, rows: _Rows) -> pa.MapArray:
    pairs = [
        list(value.items()) if isinstance(value, Mapping) else _items(value, wanted, path, row)
        for value, row in zip(values, rows, strict=True)
    ]
    for pair, row in zip(_flat(pairs), _rows_of(pairs, rows), strict=True):
        if not (isinstance(pair, Sequence) and len(pair) == 2):
            raise _misfit(pair, wanted, path, row)
    below = _rows_of(pairs, rows)
    keys = fit_values([key for key, _ in _flat(pairs)], wanted.key_type, f"{path}.key", below)
    items = fit_values([item for _, item in _flat(pairs)], wanted.item_type, f"{path}.value", below)
    entries = pa.StructArray.from_arrays([keys, items], fields=[wanted.key_field, wanted.item_field])
    offsets = _offsets(pairs)
    plain_list = pa.ListArray.from_arrays(offsets, entries)
    buffers = plain_list.buffers()[:2]
    return pa.Array.from_buffers(wanted, len(values), buffers, plain_list.null_count, children=[entries])


def _items(value: Any, wanted: pa.DataType, path: str, row: int) -> list[Any] | None:
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        return list(value.tolist())
    if not isinstance(value, list | tuple):
        raise _misfit(value, wanted, path, row)
    return list(value)


def _flat(lists: Sequence[list[Any] | None]) -> list[Any]:
    return [item for one in lists if one is not None for item in one]


def _rows_of(lists: Sequence[list[Any] | None], rows: _Rows) -> list[int]:
    return [row for one, row in zip(lists, rows, strict=True) if one is not None for _ in one]


def _offsets(lists: Sequence[list[Any] | None]) -> pa.Int32Array:
    """Return the offsets of list arrays: null where the list is null."""
    ends = np.cumsum([0, *(len(one or ()) for one in lists)])
    mask = np.array([*(one is None for one in lists), False], np.bool_)
    return pa.array(ends, pa.int32(), mask=mask)
