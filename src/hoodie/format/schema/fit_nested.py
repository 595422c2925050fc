"""Fit Python objects, also nested ones, to the type of a table's column.

Dicts become structs or maps, lists, tuples and NumPy arrays become lists, and lists of pairs become maps, as the type
requires. The values of all rows are fitted level by level, so that those of one type are converted at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hoodie.config.writes import SCHEMA_EVOLUTION
from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.arrow_types import LIST_ITEM, without_null
from hoodie.format.schema.fit import RowOf, Values, fit_chunk, fit_scalars, misfit, shifted, whole

_CHUNK_ROWS: Final = 1 << 16
"""Rows of nested columns that are converted together."""
_LISTS: Final = (list, tuple, np.ndarray)
FitScalars = Callable[[Values, pa.DataType, str, RowOf], pa.Array | pa.ChunkedArray]


def fit_values(
    values: Values,
    wanted: pa.DataType,
    path: str,
    *,
    from_pandas: bool = False,
    scalars: FitScalars | None = None,
    row_of: RowOf = int,
) -> pa.Array | pa.ChunkedArray:
    """Convert Python objects to an array of the type of a table's column; None is null.

    `path`: name of the column in errors. `from_pandas`: NaN, NaT and NA of pandas are null too. `scalars` converts
    values that are not nested, instead of `fit_scalars`. `row_of`: numbers of rows in errors; default is from 0. Nested
    columns are chunked, so that the flat items of a few rows are in memory at a time.

    Raises: SchemaMismatchError: a value does not fit; the message names column, row, value and type.
    """
    fitter = _Fitter(from_pandas, scalars or partial(fit_scalars, from_pandas=from_pandas))
    if not pa.types.is_nested(wanted):
        return fitter.values(values, wanted, path, row_of)
    starts = range(0, len(values), _CHUNK_ROWS)
    parts = [
        part
        for at in starts
        for part in fitter.chunks(values[at : at + _CHUNK_ROWS], wanted, path, shifted(row_of, at))
    ]
    return pa.chunked_array(parts, wanted)


def given_type(values: Values, wanted: pa.DataType) -> pa.DataType:
    """Return the type of a table's column without the fields of its structs that no dict has.

    A struct keeps all fields if its values are null or empty dicts, or if a dict has a field that the table lacks.

    >>> given_type([{"x": 1}, None], pa.struct([("x", pa.int32()), ("y", pa.int32())]))
    StructType(struct<x: int32>)
    """
    if pa.types.is_struct(wanted):
        rows = [value for value in values if isinstance(value, Mapping)]
        names = set(itertools.chain.from_iterable(rows))
        if not names or not names <= {child.name for child in wanted.fields}:
            return wanted
        children = [(child, [row[child.name] for row in rows if child.name in row]) for child in wanted.fields]
        return pa.struct([child.with_type(given_type(own, child.type)) for child, own in children if own])
    if pa.types.is_map(wanted) and pa.types.is_nested(wanted.item_type):
        items = [value.values() for value in values if isinstance(value, Mapping)]
        pairs = [pair for value in values if isinstance(value, _LISTS) for pair in _items(value) or ()]
        below = [*itertools.chain.from_iterable(items), *(pair[-1] for pair in pairs if isinstance(pair, _LISTS))]
        return pa.map_(wanted.key_field, wanted.item_field.with_type(given_type(below, wanted.item_type)))
    if pa.types.is_list(wanted) and pa.types.is_nested(wanted.value_type):
        below = [item for value in values if isinstance(value, _LISTS) for item in _items(value) or ()]
        return pa.list_(wanted.value_field.with_type(given_type(below, wanted.value_type)))
    return wanted


@dataclass(frozen=True, slots=True)
class _Fitter:
    """Fits the values of one level of a column."""

    from_pandas: bool
    scalars: FitScalars

    def chunks(self, values: Values, wanted: pa.DataType, path: str, row_of: RowOf) -> list[pa.Array]:
        """Return the rows as one array; as several if their items exceed the limits of an array."""
        try:
            return [whole(self.values(values, wanted, path, row_of))]
        except pa.ArrowInvalid:
            half = len(values) // 2
            if not half:
                raise
            first = self.chunks(values[:half], wanted, path, row_of)
            return [*first, *self.chunks(values[half:], wanted, path, shifted(row_of, half))]

    def values(self, values: Values, wanted: pa.DataType, path: str, row_of: RowOf) -> pa.Array | pa.ChunkedArray:
        """Fit values of any type."""
        if pa.types.is_struct(wanted):
            return self._struct(values, wanted, path, row_of)
        if pa.types.is_map(wanted):
            return self._map(values, wanted, path, row_of)
        if pa.types.is_list(wanted):
            return self._list(values, wanted, path, row_of)
        return self.scalars(values, wanted, path, row_of)

    def _child(self, values: Values, child: pa.Field, path: str, row_of: RowOf, parents: Values = ()) -> pa.Array:
        """Fit the values of a nested field. `parents`: the enclosing values; below None, None is allowed."""
        array = whole(self.values(values, child.type, path, row_of))
        if child.nullable or not array.null_count:
            return array
        mask = np.asarray(array.is_null())
        if parents:
            mask &= np.fromiter((parent is not None for parent in parents), np.bool_, len(parents))
        if mask.any():
            raise SchemaMismatchError(
                f"column {path!r}, row {row_of(int(np.argmax(mask)))}: the value is missing, and the table allows no "
                "null in it: add the value"
            )
        return without_null(array)

    def _struct(self, values: Values, wanted: pa.StructType, path: str, row_of: RowOf) -> pa.StructArray:
        _check_types(values, (Mapping,), wanted, path, row_of)
        names = [child.name for child in wanted.fields]
        unknown = set(itertools.chain.from_iterable(filter(None, values))).difference(names)
        if unknown:
            place, name = next((i, n) for i, value in enumerate(values) for n in value or () if n in unknown)
            raise SchemaMismatchError(
                f"column {f'{path}.{name}'!r}, row {row_of(place)}: the table has no such field in {path!r} "
                f"({', '.join(names)}); drop the field, or add it with Arrow data "
                f"({SCHEMA_EVOLUTION.key}=always adds columns only)"
            )
        children = []
        for child in wanted.fields:
            below = [None if value is None else value.get(child.name) for value in values]
            children.append(self._child(below, child, f"{path}.{child.name}", row_of, values))
        return pa.StructArray.from_arrays(children, fields=wanted.fields, mask=_nulls(values))

    def _list(self, values: Values, wanted: pa.ListType, path: str, row_of: RowOf) -> pa.ListArray:
        _check_types(values, (list, tuple, np.ndarray), wanted, path, row_of)
        child, below = wanted.value_field, f"{path}.{LIST_ITEM}"
        flat = None if pa.types.is_nested(child.type) else self._flat_numpy(values)
        if flat is not None:
            offsets = _offsets(values)
            items = fit_chunk(flat, child.type, below, _row_below(offsets, row_of))
            if child.nullable or not items.null_count:
                return _list_array(offsets, items, wanted, values)
        lists = [_items(value) for value in values]
        offsets = _offsets(lists)
        items = self._child(_flat(lists), child, below, _row_below(offsets, row_of))
        return _list_array(offsets, items, wanted, values)

    def _flat_numpy(self, values: Values) -> pa.Array | None:
        """Return the items of NumPy arrays of one type; None if some are of another type, or are Python objects."""
        arrays = [value for value in values if value is not None]
        if not arrays or set(map(type, arrays)) != {np.ndarray}:
            return None
        dtypes = {array.dtype for array in arrays}
        if len(dtypes) > 1 or next(iter(dtypes)).char in "OV" or any(array.ndim != 1 for array in arrays):
            return None
        try:
            return whole(pa.array(np.concatenate(arrays), from_pandas=self.from_pandas))
        except pa.ArrowException:
            # Arrow has no type for the items, or they are too long for one array: each item is looked at.
            return None

    def _map(self, values: Values, wanted: pa.MapType, path: str, row_of: RowOf) -> pa.MapArray:
        _check_types(values, (Mapping, list, tuple, np.ndarray), wanted, path, row_of)
        pairs = [list(value.items()) if isinstance(value, Mapping) else _items(value) for value in values]
        offsets, flat = _offsets(pairs), _flat(pairs)
        rows = _row_below(offsets, row_of)
        for place, pair in enumerate(flat):
            if not (isinstance(pair, Sequence) and len(pair) == 2):
                raise misfit(pair, wanted, path, rows(place))
        keys = self._child([key for key, _ in flat], wanted.key_field, f"{path}.key", rows)
        items = self._child([item for _, item in flat], wanted.item_field, f"{path}.value", rows)
        entries = pa.StructArray.from_arrays([keys, items], fields=[wanted.key_field, wanted.item_field])
        plain_list = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), entries, mask=_nulls(values))
        buffers = plain_list.buffers()[:2]
        return pa.Array.from_buffers(wanted, len(values), buffers, plain_list.null_count, children=[entries])


def _check_types(values: Values, types: tuple[type, ...], wanted: pa.DataType, path: str, row_of: RowOf) -> None:
    """Refuse values of other types, and NumPy arrays without a dimension."""
    kinds = set(map(type, values)) - {type(None)}
    if np.ndarray not in kinds and all(issubclass(kind, types) for kind in kinds):
        return
    for place, value in enumerate(values):
        if value is not None and (not isinstance(value, types) or getattr(value, "ndim", 1) == 0):
            raise misfit(value, wanted, path, row_of(place))


def _items(value: Any) -> Sequence[Any] | None:
    # The items of `tolist` would lose their type: 32-bit floats, and times as integers.
    is_array = isinstance(value, np.ndarray) and value.dtype.char != "O"
    return list(value) if is_array else value.tolist() if isinstance(value, np.ndarray) else value


def _flat(lists: Iterable[Sequence[Any] | None]) -> list[Any]:
    return list(itertools.chain.from_iterable(one for one in lists if one is not None))


def _offsets(lists: Values) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.cumsum([0, *(0 if one is None else len(one) for one in lists)])


def _row_below(offsets: np.ndarray[tuple[int], np.dtype[np.int64]], row_of: RowOf) -> RowOf:
    """Return the rows of the items of lists with these offsets."""
    return lambda place: row_of(int(np.searchsorted(offsets, place, side="right")) - 1)


def _nulls(values: Values) -> pa.BooleanArray:
    return pa.array([value is None for value in values], pa.bool_())


def _list_array(
    offsets: np.ndarray[tuple[int], np.dtype[np.int64]], items: pa.Array, wanted: pa.ListType, values: Values
) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, type=wanted, mask=_nulls(values))
