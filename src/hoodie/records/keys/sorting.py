"""Hash record keys, to distribute them evenly over tasks; look them up in a set of known keys; sort them."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.format.hashes.java_hash import java_hash
from hoodie.format.schema.arrow_types import offsets_of

HASH_END: Final = 1 << 32
"""One past the greatest hash."""
_SMALL: Final = 32 * 1024
"""Up to this number of known keys, Arrow's hash table (built for each call) is faster than sorted hashes."""
_SLOTS_OF_A_KEY: Final = 16
"""The share of other keys that must be searched is at most one in so many."""
_SLOT_BITS_MAX: Final = 25
_WORD_BYTES = 8

Rows = npt.NDArray[np.int64]


def spread(keys: pa.StringArray) -> npt.NDArray[np.uint32]:
    """Return a 32-bit hash per key, made from all its characters; equal keys have equal hashes on every machine.

    The hash is never stored. Java's hashes of similar keys differ only in their low bits, and do not depend on leading
    NULs. The length and the final mixing step of MurmurHash3 spread the difference over all bits. Keys must not be
    null. Memory: about 20 MiB, and eight bytes per key.
    """
    lengths = pc.binary_length(keys).to_numpy(zero_copy_only=False).astype(np.uint32)
    mixed = java_hash(keys).view(np.uint32) ^ lengths * np.uint32(0x9E3779B9)
    mixed = (mixed ^ mixed >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ mixed >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    hashes: npt.NDArray[np.uint32] = mixed ^ mixed >> np.uint32(16)
    return hashes


class KeyLookup:
    """Known distinct keys, in which batches of keys are looked up.

    Memory: the known keys, and above 32 Ki keys 12 bytes for each, and 32 more, but at most 32 MiB in all of these.
    """

    def __init__(self, keys: pa.StringArray) -> None:
        self._keys = keys
        self._hashes: npt.NDArray[np.uint32] | None = None
        if len(keys) > _SMALL:
            hashes = spread(keys)
            self._order = np.argsort(hashes, kind="stable")
            self._hashes = hashes[self._order]
            bits = min((len(keys) * _SLOTS_OF_A_KEY).bit_length(), _SLOT_BITS_MAX)
            self._shift = np.uint32(32 - bits)
            self._may_be_known = np.zeros(1 << bits, np.bool_)
            self._may_be_known[hashes >> self._shift] = True

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
        # A search costs ten times as much as a look at a table of flags, and most keys are not known.
        rows = np.flatnonzero(self._may_be_known[wanted >> self._shift])
        at = np.searchsorted(hashes, wanted[rows])
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


def key_order(keys: pa.StringArray) -> npt.NDArray[np.int64]:
    """Return the positions of the keys in ascending order of their UTF-8 bytes; equal keys are in any order.

    Eight bytes of each key, after the bytes that all share, are sorted as numbers. Only keys with equal numbers are
    compared as texts. Keys must not be null. Memory: a copy of the keys, and a few numbers for each key.

    >>> key_order(pa.array(["b", "c", "a"])).tolist()
    [2, 0, 1]
    """
    if len(keys) < 2:
        return np.arange(len(keys))
    words = _words(keys)
    order = np.argsort(words)
    ordered = words[order]
    is_tied = np.zeros(len(keys), np.bool_)
    np.equal(ordered[1:], ordered[:-1], out=is_tied[1:])
    is_tied[:-1] |= is_tied[1:]
    tied = np.flatnonzero(is_tied)
    if len(tied):
        # Texts sort as their numbers, so that the tied keys of all numbers are sorted together.
        rows = order[tied]
        order[tied] = rows[np.asarray(pc.sort_indices(keys.take(pa.array(rows))))]
    return order


def _words(keys: pa.StringArray) -> npt.NDArray[np.uint64]:
    """Return eight bytes of each key as a number, after the bytes that all keys share; missing bytes are zeros."""
    offsets = offsets_of(keys)
    shared = _shared_bytes(pc.min_max(keys.cast(pa.binary())).as_py())
    starts, lengths = offsets[:-1] - offsets[0] + shared, np.diff(offsets) - shared
    data = np.zeros(int(offsets[-1] - offsets[0]) + _WORD_BYTES, np.uint8)
    data[:-_WORD_BYTES] = np.frombuffer(keys.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    view = np.ndarray((len(data) - _WORD_BYTES + 1,), ">u8", data.data, strides=(1,))
    words: npt.NDArray[np.uint64] = view[starts].astype(np.uint64)
    if int(lengths.min()) < _WORD_BYTES:
        missing = (8 * (_WORD_BYTES - np.clip(lengths, 1, _WORD_BYTES))).astype(np.uint64)
        words = np.where(lengths > 0, words >> missing << missing, np.uint64(0))
    return words


def _shared_bytes(bounds: dict[str, bytes]) -> int:
    """Return the number of bytes that the least and the greatest key, and so all keys, begin with."""
    least, greatest = bounds["min"], bounds["max"]
    pairs = enumerate(zip(least, greatest, strict=False))
    return next((place for place, (low, high) in pairs if low != high), min(len(least), len(greatest)))
