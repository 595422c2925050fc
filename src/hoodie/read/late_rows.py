"""Find the rows that a commit changed although they keep the commit time of an earlier commit.

In a merge-on-read table with ordering columns, a late row may fill fields of the row that wins, or make a deleted row
visible again (docs/format/table.md §6.4, §6.5). The log blocks of the commit contain the keys of all these rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.files.merged_slice import written_keys
from hoodie.files.slices import FileSlice
from hoodie.read.local import KeySet, SliceScan
from hoodie.records.change import RECORD_KEY
from hoodie.records.keys.sorting import KeyLookup
from hoodie.storage import Store

Mask = npt.NDArray[np.bool_]


def scan_of_late_rows(
    store: Store, after: FileSlice, scan: SliceScan, instant_time: str, written: pa.StringArray, left: KeyLookup
) -> SliceScan | None:
    """Return `scan`, limited to the keys in the commit's log blocks whose rows have another commit time; None if none.

    `after` is the slice after the commit. `written` are the keys of the rows with the commit's time, `left` all keys
    after the commit. Memory: the keys that the commit logged.

    Raises: as `written_keys`.
    """
    if not after.log_files or scan.merge is None:
        return None
    keys = written_keys(store, after, scan.merge, instant_time)
    keys = keys.filter(pc.invert(pc.is_in(keys, value_set=written)))
    found, _ = left.find(pa.chunked_array([keys]))
    return replace(scan, keys=KeySet.of(pa.table({RECORD_KEY: keys.take(pa.array(found))}))) if len(found) else None


def numbered_keys(rows: pa.Table) -> pa.Table:
    """Return the rows with record keys that occur once: a number is appended, which counts the rows with the key.

    So rows of a key that a file group holds twice are compared in their order.

    >>> numbered_keys(pa.table({RECORD_KEY: ["a", "b", "a"]}))[RECORD_KEY].to_pylist()
    ['a:0', 'b:0', 'a:1']
    """
    keys = rows[RECORD_KEY].combine_chunks()
    codes = np.asarray(keys.dictionary_encode().indices)
    order = np.argsort(codes, kind="stable")
    ordered, places = codes[order], np.arange(len(codes))
    numbers = np.empty_like(places)
    numbers[order] = places - np.searchsorted(ordered, ordered)
    numbered = pc.binary_join_element_wise(keys, pa.array(numbers).cast(pa.string()), ":")
    place = rows.schema.get_field_index(RECORD_KEY)
    return rows.set_column(place, rows.schema.field(place), numbered)


def differing_rows(left: pa.Table, right: pa.Table) -> Mask:
    """Mark the rows that differ in a column; both tables have the same columns and number of rows.

    Nulls are the same, and so are lists, maps and structs whose parts are all the same. Floats are compared by their
    bits: 0.0 and -0.0 differ, and equal NaNs are the same. Memory: a copy of one column.

    >>> left = pa.table({"v": [1.0, None, float("nan")], "tags": [["a"], ["b", None], None]})
    >>> right = pa.table({"v": [1.0, None, float("nan")], "tags": [["a"], ["b", "c"], None]})
    >>> differing_rows(left, right).tolist()
    [False, True, False]
    """
    differs = np.zeros(left.num_rows, np.bool_)
    for name in left.column_names:
        differs |= _differing(left[name].combine_chunks(), right[name].combine_chunks())
    return differs


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
    else:
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
