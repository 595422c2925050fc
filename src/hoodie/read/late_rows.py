"""Find the rows that a commit changed although they keep the commit time of an earlier commit.

In a merge-on-read table with ordering columns, a late row may fill fields of the row that wins, or make a deleted row
visible again (docs/format/table.md §6.4, §6.5). The log blocks of the commit contain the keys of all these rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.files.merged_slice import written_keys
from hoodie.files.slices import FileSlice
from hoodie.read.local import KeySet, SliceScan
from hoodie.records.change import RECORD_KEY
from hoodie.records.keys.sorting import KeyLookup
from hoodie.storage import Store


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
