"""Compare columns value by value, so exactly that one row may stand for the other."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

_BITS = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def same_values(left: pa.Table, right: pa.Table, columns: Sequence[str]) -> bool:
    """Return whether both tables have the same values in these columns, row by row.

    Floats are compared by their bits: 0.0 and -0.0 differ, and equal NaNs are the same. Columns that have floats inside
    of lists, maps or structs always count as different. Memory: no copy of the columns.
    """
    return all(_same(left[name], right[name]) for name in columns)


def _same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> bool:
    if left.type != right.type:
        return False
    if pa.types.is_floating(left.type):
        return bool(_bits(left).equals(_bits(right)))
    return not _has_floats(left.type) and bool(left.equals(right))


def _bits(floats: pa.ChunkedArray) -> pa.ChunkedArray:
    bits = _BITS[floats.type.bit_width]
    return pa.chunked_array([chunk.view(bits) for chunk in floats.chunks], bits)


def _has_floats(found: pa.DataType) -> bool:
    return pa.types.is_floating(found) or any(_has_floats(found.field(place).type) for place in range(found.num_fields))
