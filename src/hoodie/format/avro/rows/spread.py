"""Build columns with nulls from the values that are present."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hoodie.format.avro.rows.cursor import Int64Array
from hoodie.format.schema.blanks import blanks


def spread(parts: list[pa.Array], places: list[Int64Array], length: int, kind: pa.DataType) -> pa.Array:
    """Return a column of `length` rows with the parts' values at their places, and null at other places."""
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
