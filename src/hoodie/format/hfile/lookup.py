"""Find sorted keys among the sorted rows of data blocks: compare words of eight bytes instead of whole keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError
from hoodie.format.hfile.entries import Entries, words_of
from hoodie.format.hfile.key_order import Int64Array, lower_bounds


@dataclass(frozen=True, slots=True)
class SortedKeys:
    """Distinct keys in byte order: as an Arrow column, and as a buffer from which words can be read."""

    keys: pa.BinaryArray
    data: npt.NDArray[np.uint8]
    bounds: Int64Array

    @classmethod
    def of(cls, keys: pa.BinaryArray) -> SortedKeys:
        """Build from keys that ascend strictly. Memory: a copy of their bytes."""
        _, offsets, data = keys.buffers()
        bounds = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
        start, end = int(bounds[0]), int(bounds[-1])
        # Words are read up to eight bytes after the end of a key.
        copied = np.zeros(end - start + 8, np.uint8)
        if end > start:
            copied[: end - start] = np.frombuffer(data, np.uint8)[start:end]
        return cls(keys, copied, bounds - start)

    def words(self, first: int, stop: int, skipped_bytes: int) -> npt.NDArray[np.uint64]:
        """Return eight bytes of the keys `[first, stop)` after `skipped_bytes`, as numbers that sort like the bytes."""
        starts = self.bounds[first:stop] + skipped_bytes
        lengths = self.bounds[first + 1 : stop + 1] - starts
        return words_of(self.data, np.minimum(starts, len(self.data) - 8), lengths)


def find_rows(
    entries: Entries, wanted: SortedKeys, first: int, stop: int, *, path: str, offset: int
) -> tuple[Int64Array, Int64Array]:
    """Find which of the wanted keys `[first, stop)` are rows of `entries`.

    Returns the numbers of the found keys and the numbers of their entries, both ascending. All rows have the prefix
    that the first and the last row share. The eight bytes after this prefix nearly always distinguish two rows. Where
    they are equal, whole rows are compared by binary search. Of equal rows, the first row is returned.

    Raises: CorruptFileError if the eight bytes after the shared prefix show that the rows do not ascend.
    """
    ends = entries.rows(np.array([0, len(entries) - 1], np.int64)) if len(entries) > 1 else entries.rows(slice(None))
    shared_bytes = _shared_bytes(ends[0].as_py(), ends[-1].as_py())
    is_sorted = int(entries.row_bytes.min()) >= shared_bytes
    if is_sorted:
        words = entries.row_words(shared_bytes)
        is_sorted = bool((words[1:] >= words[:-1]).all())
    if not is_sorted:
        raise CorruptFileError("the keys of a block do not ascend", path=path, offset=offset)
    needles = wanted.words(first, stop, shared_bytes)
    low = np.searchsorted(words, needles)
    hits = np.flatnonzero(words[np.minimum(low, len(words) - 1)] == needles)
    low = low[hits]
    keys = wanted.keys.take(pa.array(hits + first)) if len(hits) < stop - first else wanted.keys[first:stop]
    ties = np.flatnonzero(words[np.minimum(low + 1, len(words) - 1)] == words[low])
    if len(ties):
        high = low.copy() + 1
        high[ties] = np.searchsorted(words, words[low[ties]], "right")
        low[ties] = _settle(entries, keys.take(pa.array(ties)), low[ties], high[ties])
        # A key can be greater than all rows with the same word.
        inside = np.flatnonzero(low < high)
        hits, low, keys = hits[inside], low[inside], keys.take(pa.array(inside))
    if not len(hits):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    equal = np.asarray(pc.equal(entries.rows(low), keys))
    return hits[equal] + first, low[equal]


def _settle(entries: Entries, keys: pa.BinaryArray, low: Int64Array, high: Int64Array) -> Int64Array:
    """Find the first entries in `[low, high)` whose rows are not less than `keys`, by comparing whole rows.

    Each range `[low, high)` is a run of ties: its rows have equal words.
    """
    is_tied = np.zeros(len(entries) + 1, np.int64)
    np.add.at(is_tied, low, 1)
    np.add.at(is_tied, high, -1)
    tied = np.flatnonzero(np.cumsum(is_tied[:-1]) > 0)
    rows = entries.rows(tied)
    start = np.searchsorted(tied, low)
    found = lower_bounds(rows, keys, start, start + (high - low))
    # The place after the last entry of a run need not be a tie: compute the result from `low`, not from `tied`.
    return low + (found - start)


def _shared_bytes(first: bytes, last: bytes) -> int:
    """Return the length of the common prefix of two rows."""
    length = min(len(first), len(last))
    differ = np.flatnonzero(np.frombuffer(first, np.uint8)[:length] != np.frombuffer(last, np.uint8)[:length])
    return int(differ[0]) if len(differ) else length
