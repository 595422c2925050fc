"""Compare the rows of two tables, value by value.

Nulls are the same, and so are lists, maps and structs whose parts are all the same. Floats are compared by their bits:
0.0 and -0.0 differ, and equal NaNs are the same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]


def differing_rows(left: pa.Table, right: pa.Table) -> Mask:
    """Mark the rows that differ in a column; both tables have the same columns and number of rows.

    Memory: a copy of one column.

    >>> left = pa.table({"v": [1.0, None, float("nan")], "tags": [["a"], ["b", None], None]})
    >>> right = pa.table({"v": [1.0, None, float("nan")], "tags": [["a"], ["b", "c"], None]})
    >>> differing_rows(left, right).tolist()
    [False, True, False]
    """
    differs = np.zeros(left.num_rows, np.bool_)
    for name in left.column_names:
        differs |= _differing(left[name].combine_chunks(), right[name].combine_chunks())
    return differs


def are_same_rows(left: pa.Table, right: pa.Table) -> bool:
    """Return whether no row differs; both tables have the same columns and number of rows.

    Columns of different types differ. Columns behind the first different column are not compared. Memory: a copy of one
    column.

    >>> rows = pa.table({"v": [1.0, float("nan")]})
    >>> are_same_rows(rows, rows), are_same_rows(rows, rows.cast(pa.schema([("v", pa.float32())])))
    (True, False)
    """
    pairs = ((left[name], right[name]) for name in left.column_names)
    return all(a.type == b.type and not _differing(a.combine_chunks(), b.combine_chunks()).any() for a, b in pairs)


def differing_columns(left: pa.Table, right: pa.Table) -> set[str]:
    """Return the columns in which a row differs; both tables have the same columns, types and number of rows.

    >>> left = pa.table({"v": [1.0, None], "n": [1, 2]})
    >>> differing_columns(left, pa.table({"v": [1.0, 0.0], "n": [1, 2]}))
    {'v'}
    """
    return {name for name in left.column_names if not are_same_rows(left.select([name]), right.select([name]))}


def _differing(left: pa.Array, right: pa.Array) -> Mask:
    here, there = np.asarray(left.is_valid()), np.asarray(right.is_valid())
    differs: Mask = here != there
    kind = left.type
    if pa.types.is_struct(kind):
        for one, other in zip(left.flatten(), right.flatten(), strict=True):
            differs |= _differing(one, other)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        both = np.flatnonzero(here & there)
        differs[both] = _differing_lists(left.take(pa.array(both)), right.take(pa.array(both)))
    elif not pa.types.is_null(kind):
        if pa.types.is_floating(kind):
            bits = pa.binary(kind.bit_width // 8)
            left, right = left.view(bits), right.view(bits)
        differs |= np.asarray(pc.fill_null(pc.not_equal(left, right), False))
    return differs


def _differing_lists(left: pa.Array, right: pa.Array) -> Mask:
    """Mark the lists or maps that differ; none of them is null."""
    lengths = np.diff(np.asarray(left.offsets))
    differs: Mask = lengths != np.diff(np.asarray(right.offsets))
    same = np.flatnonzero(~differs)
    left, right = left.take(pa.array(same)), right.take(pa.array(same))
    rows = np.repeat(same, lengths[same])
    for one, other in zip(_items(left), _items(right), strict=True):
        differs[rows[_differing(one, other)]] = True
    return differs


def _items(lists: pa.Array) -> list[pa.Array]:
    return [lists.keys, lists.items] if pa.types.is_map(lists.type) else [lists.flatten()]
