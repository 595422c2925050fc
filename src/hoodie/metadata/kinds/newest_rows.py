"""Merge a file slice in which the newest row, or the deletion, of each key counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.metadata.slice_content import RowBlock, SliceContent


def compact_newest(content: SliceContent) -> tuple[pa.Array, pa.Array]:
    """Merge a file slice into the keys and values of its next base file, which has no deletions.

    Memory: three times the file slice's keys and values.
    """
    keys, values = _newest(content.blocks)
    live = pc.is_valid(values)
    if content.base is not None:
        base_keys, base_values = content.base.entries()
        kept = pc.invert(pc.is_in(base_keys, value_set=keys))
        keys = pa.concat_arrays([base_keys.filter(kept), keys.filter(live)])
        values = pa.concat_arrays([base_values.filter(kept), values.filter(live)])
    else:
        keys, values = keys.filter(live), values.filter(live)
    order = pc.sort_indices(keys)
    return keys.take(order).cast(pa.string()), values.take(order)


def _newest(blocks: Sequence[RowBlock]) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Return the newest value of each key in the blocks (oldest first); null if the key is deleted."""
    if not blocks:
        return pa.array([], pa.binary()), pa.array([], pa.binary())
    keys = pa.concat_arrays([block.keys.cast(pa.binary()) for block in blocks])
    values = pa.concat_arrays(
        [pa.nulls(len(block.keys), pa.binary()) if block.values is None else block.values for block in blocks]
    )
    encoded = keys.dictionary_encode()
    last = np.zeros(len(encoded.dictionary), np.int64)
    np.maximum.at(last, np.asarray(encoded.indices), np.arange(len(keys)))
    return encoded.dictionary, values.take(pa.array(last))
