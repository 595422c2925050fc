"""Columns of nulls that a Parquet writer accepts.

The required fields of a null struct contain values that are not null, because a Parquet writer refuses null there.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def blanks(kind: pa.DataType, length: int, *, is_null: bool) -> pa.Array:
    """Return a column of nulls, or of arbitrary valid values for the required fields of null structs."""
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


def without_null(array: pa.Array) -> pa.Array:
    """Return the values of a required field; values that are null because of a null struct become arbitrary values."""
    if not array.null_count:
        return array
    places = pc.if_else(array.is_valid(), pa.array(np.arange(len(array))), len(array))
    return pa.concat_arrays([array, blanks(array.type, 1, is_null=False)]).take(places)
