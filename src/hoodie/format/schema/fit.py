"""Fit values without a declared type (Python objects, default types of pandas) to the type of a table's column.

A value fits if it is kept exactly. Floats fit an integer column if they are whole and at most 2^53: beyond it, the
float may have been rounded before. Decimals fit it if they are whole. A float fits a 32-bit or decimal column that has
a number with the same text. A 32-bit float becomes the double with the same text. `fit_nested` fits structs, lists and
maps.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.conform import may_become, wide_decimals, widened_floats
from hoodie.format.schema.plain_types import plain_array

_EXACT_MAX: Final = 1 << 53
_TEXT_CHARS_MAX: Final = 60
_PYARROW_ERRORS: Final = (pa.ArrowException, OverflowError, ValueError, TypeError)
_MISSING: Final = frozenset({"NoneType", "NaTType", "NAType"})
_CONTAINERS: Final = (list, tuple, dict)
_LEVELS_MAX: Final = 100
Values = Sequence[Any]
RowOf = Callable[[int], int]
"""Return the row number of the value at a place; only errors call it."""


def fit_array(array: pa.Array | pa.ChunkedArray, wanted: pa.DataType, path: str) -> pa.Array | pa.ChunkedArray:
    """Cast an array whose type was inferred to the type of a table's column; chunks are kept.

    `path`: name of the column in errors.

    Raises: SchemaMismatchError: a value does not fit; the message names column, row, value and type.
    """
    return _fit_chunks(array, wanted, path, lambda place: place)


def fit_scalars(
    values: Values, wanted: pa.DataType, path: str, row_of: RowOf, *, from_pandas: bool
) -> pa.Array | pa.ChunkedArray:
    """Convert Python objects to an array of a type that is not nested; None is null. Chunked above 2 GiB of text.

    `from_pandas`: NaN, NaT and NA of pandas are null too. Raises: as `fit_array`.
    """
    found = inferred(values, from_pandas=from_pandas)
    if found is not None:
        return _fit_chunks(found, wanted, path, row_of)
    # The values have several types: those of one type are fitted together, and then put back in their order.
    places: dict[object, list[int]] = {}
    for place, value in enumerate(values):
        places.setdefault(_kind(value), []).append(place)
    parts = [
        _fit_group([values[place] for place in group], wanted, path, _at(row_of, group), from_pandas)
        for group in places.values()
    ]
    order = np.concatenate([np.array(group) for group in places.values()])
    return pa.concat_arrays(parts).take(pa.array(np.argsort(order)))


def infer(values: Any, path: str, *, from_pandas: bool = False) -> pa.Array | pa.ChunkedArray:
    """Return the values of a list, an array or a Series in the type that Arrow infers; chunked above 2 GiB of text.

    Raises: SchemaMismatchError: Arrow has no type for the values, or would cut one of them; names the column and, where
    one value is to blame, its row.
    """
    if isinstance(values, list | tuple) and _is_endless(values):
        raise SchemaMismatchError(
            f"column {path!r}: expected values with at most {_LEVELS_MAX} levels, found deeper ones, or a value that "
            "contains itself; change the values"
        )
    try:
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        found = pa.array(values, from_pandas=from_pandas)
    except _PYARROW_ERRORS as error:
        raise _no_type(values, path, from_pandas, str(error)) from error
    if isinstance(values, list | tuple) and not _is_kept(values, found.type):
        raise _no_type(values, path, from_pandas, f"{found.type} would cut some of them")
    return found


def _no_type(values: Any, path: str, from_pandas: bool, reason: str) -> SchemaMismatchError:
    def is_refused(value: Any) -> bool:
        try:
            return not _is_kept([value], pa.array([value], from_pandas=from_pandas).type)
        except _PYARROW_ERRORS:
            return True

    if isinstance(values, list | tuple):
        for row, value in enumerate(values):
            if is_refused(value):
                return SchemaMismatchError(
                    f"column {path!r}, row {row}: Arrow has no type for {shortened(value)} ({type(value).__name__}): "
                    f"{reason}; change the value"
                )
    return SchemaMismatchError(f"column {path!r}: expected values of one type that Arrow has ({reason}); cast them")


def inferred(values: Values, *, from_pandas: bool = False) -> pa.Array | pa.ChunkedArray | None:
    """Return the values as an array of the type that they have; None if they have several types, or an unknown one.

    None too if Arrow would cut a value. The array is chunked if it has more than 2 GiB of text.
    """
    kinds = set(map(type, values)) - {type(None)}
    if not (len(kinds) <= 1 or kinds <= {int, float}) or _is_endless(values):
        return None
    try:
        found = pa.array(values, from_pandas=from_pandas)
    except _PYARROW_ERRORS:
        return None
    return found if _is_kept(values, found.type) else None


def _is_endless(values: Values) -> bool:
    """Return whether values have too many levels; Arrow ends the process at a value that contains itself."""
    level: list[Any] = [value for value in values if isinstance(value, _CONTAINERS)]
    for _ in range(_LEVELS_MAX):
        if not level:
            return False
        inside = (value.values() if isinstance(value, Mapping) else value for value in level)
        level = list({id(v): v for v in itertools.chain.from_iterable(inside) if isinstance(v, _CONTAINERS)}.values())
    return True


def _is_kept(values: Values, found: pa.DataType) -> bool:
    """Return whether the type that Arrow inferred keeps the values.

    Arrow cuts nanoseconds of pandas, makes dates of times that follow a date, bytes of texts and texts of bytes, and
    drops the zones of times beside times without a zone. Values of types that cannot be cut are not looked at.
    """
    if pa.types.is_struct(found):
        rows = [value for value in values if isinstance(value, Mapping)]
        return all(_is_kept([row.get(child.name) for row in rows], child.type) for child in found.fields)
    if pa.types.is_list(found):
        lists = (value for value in values if isinstance(value, Sequence | np.ndarray))
        return _is_kept(list(itertools.chain.from_iterable(lists)), found.value_type)
    if not (pa.types.is_temporal(found) or pa.types.is_binary(found) or pa.types.is_string(found)):
        return True
    kinds = {kind for kind in map(type, values) if kind.__name__ not in _MISSING}
    if len({_family(kind) for kind in kinds}) > 1:
        return False
    if any(hasattr(kind, "nanosecond") or hasattr(kind, "nanoseconds") for kind in kinds):
        cut = (getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0) for value in values)
        if any(nanoseconds > 0 for nanoseconds in cut):
            return False
    has_zones = any(hasattr(kind, "tzinfo") for kind in kinds)
    return not has_zones or len({value.tzinfo is None for value in values if type(value) in kinds}) == 1


def _family(kind: type) -> type:
    """Return the type of Python that stands for the kinds of values which one type of Arrow keeps."""
    known = (datetime, date, time, timedelta, np.datetime64, np.timedelta64, str)
    return next((base for base in known if issubclass(kind, base)), bytes)


def _kind(value: object) -> object:
    """Return a key that values of one Arrow type share."""
    # An integer beyond 64 bits has no integer type in Arrow, and a time has another type with a zone than without.
    is_big = isinstance(value, int) and not -(1 << 63) <= value < 1 << 63
    return type(value), is_big, getattr(value, "tzinfo", None) is None


def _fit_group(values: Values, wanted: pa.DataType, path: str, row_of: RowOf, from_pandas: bool) -> pa.Array:
    """Fit values of one kind. If Arrow refuses them together, each half is tried, down to the value that it refuses."""
    if _kind(values[0]) == (int, True, True):
        values = [Decimal(value) for value in values]
    found = inferred(values, from_pandas=from_pandas)
    if found is not None:
        return whole(_fit_chunks(found, wanted, path, row_of))
    if len(values) == 1:
        raise misfit(values[0], wanted, path, row_of(0))
    half = len(values) // 2
    first = _fit_group(values[:half], wanted, path, row_of, from_pandas)
    second = _fit_group(values[half:], wanted, path, shifted(row_of, half), from_pandas)
    return pa.concat_arrays([first, second])


def _at(row_of: RowOf, places: Sequence[int]) -> RowOf:
    return lambda place: row_of(places[place])


def shifted(row_of: RowOf, start: int) -> RowOf:
    """Return the row numbers of the values from `start` on."""
    return lambda place: row_of(start + place)


def whole(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return one array. Raises: pa.ArrowInvalid above 2 GiB of text."""
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _fit_chunks(
    array: pa.Array | pa.ChunkedArray, wanted: pa.DataType, path: str, row_of: RowOf
) -> pa.Array | pa.ChunkedArray:
    if not isinstance(array, pa.ChunkedArray):
        return fit_chunk(array, wanted, path, row_of)
    starts = np.cumsum([0, *(len(chunk) for chunk in array.chunks)])
    chunks = [
        fit_chunk(chunk, wanted, path, shifted(row_of, int(start)))
        for chunk, start in zip(array.chunks, starts, strict=False)
    ]
    return pa.chunked_array(chunks, wanted)


def fit_chunk(array: pa.Array, wanted: pa.DataType, path: str, row_of: RowOf) -> pa.Array:
    """Cast one array, as `fit_array`; errors name the row that `row_of` returns for the place of the value."""
    array = plain_array(array)
    if array.type.equals(wanted):
        return array
    if array.null_count == len(array):
        return pa.nulls(len(array), wanted)
    place = _first(array.is_valid())
    if _becomes(array.type, wanted):
        try:
            return _exactly(array, wanted)
        except pa.ArrowInvalid:
            place = first_misfit(array, lambda part: _exactly(part, wanted))
    raise misfit(array[place].as_py(), wanted, path, row_of(place))


def _becomes(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether values of the inferred type can have the same meaning in a column of the wanted type."""
    by_text = {pa.types.is_floating, pa.types.is_decimal}
    is_by_text = any(one(found) and other(wanted) for one in by_text for other in by_text - {one})
    is_by_text |= pa.types.is_decimal(found) and pa.types.is_integer(wanted)
    return is_by_text or (not pa.types.is_nested(found) and may_become(found, wanted))


def _exactly(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast the array. Raises: pa.ArrowInvalid if a value does not fit."""
    found = array.type
    if found == pa.float32() and wanted == pa.float64():
        return widened_floats(array)
    if pa.types.is_decimal(found) and pa.types.is_floating(wanted):
        floats = array.cast(pa.string()).cast(wanted)
        if not floats.cast(found).equals(array):
            raise pa.ArrowInvalid(f"digits are lost in {wanted}")
        return floats
    if pa.types.is_floating(found) and pa.types.is_integer(wanted):
        if pc.any(pc.greater(pc.abs(array), float(_EXACT_MAX))).as_py():
            raise pa.ArrowInvalid("a float above 2^53 may have been rounded")
        return pc.cast(array, wanted)
    if pa.types.is_floating(found) and pa.types.is_floating(wanted) and found.bit_width > wanted.bit_width:
        return narrowed(array, wanted)
    if pa.types.is_floating(found) and pa.types.is_decimal(wanted):
        return pc.cast(wide_decimals(pc.cast(array, pa.string()), wanted.scale), wanted)
    if pa.types.is_integer(found) and pa.types.is_decimal(wanted):
        return pc.cast(pc.cast(array, pa.decimal128(20, 0)), wanted)
    return pc.cast(array, wanted)


def narrowed(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast doubles to a smaller float type. Raises: pa.ArrowInvalid if it has no number with the text of a double."""
    narrow = pc.cast(array, wanted, safe=False)
    same = pc.or_(pc.equal(pc.cast(narrow, array.type), array), pc.is_nan(array))
    if pc.all(same).as_py() is False:
        by_text = pc.cast(pc.cast(narrow, pa.string()), array.type)
        if pc.all(pc.or_(same, pc.equal(by_text, array))).as_py() is False:
            raise pa.ArrowInvalid("a float would be rounded")
    return narrow


def _first(mask: pa.BooleanArray) -> int:
    return int(np.argmax(np.asarray(mask)))


def first_misfit(array: pa.Array, cast: Callable[[pa.Array], pa.Array]) -> int:
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


def misfit(value: Any, wanted: pa.DataType, path: str, row: int) -> SchemaMismatchError:
    """Return the error of a value that does not fit its column."""
    can_widen = wanted in (pa.int32(), pa.float32()) and isinstance(value, int | float)
    advice = f", or pass Arrow data with a {'long' if wanted == pa.int32() else 'double'} column, which widens it"
    return SchemaMismatchError(
        f"column {path!r}, row {row}: {shortened(value)} ({type(value).__name__}) does not fit {wanted}, the column's "
        f"type in the table; change the value{advice if can_widen and not isinstance(value, bool) else ''}"
    )


def shortened(value: object) -> str:
    """Return the value for a message, without the end of a long one."""
    text = repr(value)
    return text if len(text) <= _TEXT_CHARS_MAX else f"{text[:_TEXT_CHARS_MAX]}…"
