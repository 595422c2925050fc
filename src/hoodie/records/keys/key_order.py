"""Sort record keys by their UTF-8 bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_WORD_BYTES = 8


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
    offsets = np.frombuffer(keys.buffers()[1], np.int32, len(keys) + 1, keys.offset * 4).astype(np.int64)
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
