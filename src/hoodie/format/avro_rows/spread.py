"""Columns with nulls from the values that are there.

Below a null struct stands something that is not null in every required field: Parquet writers refuse null there.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hoodie.format.avro_rows.cursor import Int64Array


def spread(parts: list[pa.Array], places: list[Int64Array], length: int, kind: pa.DataType) -> pa.Array:
    """Return a column of `length` rows with the parts' values at their places, else null."""
    if not parts:
        return blanks(kind, length, is_null=True)
    index = np.zeros(length, np.int32)
    missing = np.ones(length, np.bool_)
    used = np.concatenate(places)
    index[used] = np.arange(len(used), dtype=np.int32)
    missing[used] = False
    values = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    if not pa.types.is_struct(kind):
        return values.take(pa.array(index, mask=missing))
    rows = pa.array(index)
    children = [values.field(place).take(rows) for place in range(kind.num_fields)]
    return pa.StructArray.from_arrays(children, fields=kind.fields, mask=pa.array(missing))


def blanks(kind: pa.DataType, length: int, *, is_null: bool) -> pa.Array:
    """Return a column of nulls, or of values that stand where nobody looks."""
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
