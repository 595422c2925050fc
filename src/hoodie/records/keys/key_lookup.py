"""Find many record keys in a fixed set of known record keys."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.records.keys.key_hash import spread

Rows = npt.NDArray[np.int64]
_SMALL: Final = 32 * 1024
"""Up to this number of known keys, Arrow's hash table (built for each call) is faster than sorted hashes."""


class KeyLookup:
    """Known distinct keys, in which batches of keys are looked up.

    Memory: the known keys, and above 32 Ki keys 12 bytes for each.
    """

    def __init__(self, keys: pa.StringArray) -> None:
        self._keys = keys
        self._hashes: npt.NDArray[np.uint32] | None = None
        if len(keys) > _SMALL:
            hashes = spread(keys)
            self._order = np.argsort(hashes, kind="stable")
            self._hashes = hashes[self._order]

    def find(self, keys: pa.ChunkedArray) -> tuple[Rows, Rows]:
        """Return the row numbers of `keys` that are known, ascending, and their positions in the known keys."""
        if self._hashes is None:
            places = pc.index_in(keys, value_set=self._keys).combine_chunks()
            if places.null_count == len(places):
                return np.zeros(0, np.int64), np.zeros(0, np.int64)
            return np.flatnonzero(np.asarray(places.is_valid())), np.asarray(places.drop_null()).astype(np.int64)
        return self._find_hashed(keys.combine_chunks(), self._hashes)

    def _find_hashed(self, keys: pa.StringArray, hashes: npt.NDArray[np.uint32]) -> tuple[Rows, Rows]:
        """Find keys by sorted hashes; if several known keys have the same hash, compare with each of them in turn."""
        wanted = spread(keys)
        at = np.searchsorted(hashes, wanted)
        rows = np.arange(len(wanted))
        found_rows: list[Rows] = []
        found_places: list[Rows] = []
        while len(rows):
            within = at < len(hashes)
            rows, at = rows[within], at[within]
            same = hashes[at] == wanted[rows]
            rows, at = rows[same], at[same]
            places = self._order[at]
            equal = np.asarray(pc.equal(keys.take(pa.array(rows)), self._keys.take(pa.array(places))))
            found_rows.append(rows[equal])
            found_places.append(places[equal])
            rows, at = rows[~equal], at[~equal] + 1
        all_rows = np.concatenate([np.zeros(0, np.int64), *found_rows])
        order = np.argsort(all_rows, kind="stable")
        return all_rows[order], np.concatenate([np.zeros(0, np.int64), *found_places])[order]
