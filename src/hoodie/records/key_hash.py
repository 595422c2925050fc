"""A cheap, stable hash of record keys to spread them over tasks. Never stored."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_Bytes = npt.NDArray[np.uint8]
_Places = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]
_MIX = np.uint64(0x9E3779B97F4A7C15)


def spread(keys: pa.StringArray) -> npt.NDArray[np.uint32]:
    """32 well-spread bits per key, from its length, its first eight and its last sixteen bytes.

    Equal keys give equal bits on every machine. Keys that differ only in the middle of more than 24 bytes share theirs,
    which costs balance, never correctness. No null keys. Memory: about 64 bytes per key.
    """
    offsets = np.frombuffer(keys.buffers()[1], np.int32, len(keys) + 1, keys.offset * 4).astype(np.int64)
    if len(keys) == 0 or offsets[-1] == offsets[0]:
        return np.zeros(len(keys), np.uint32)
    data = np.frombuffer(keys.buffers()[2], np.uint8)
    starts, ends = offsets[:-1], offsets[1:]
    mixed = (ends - starts).astype(np.uint64) * _MIX
    for word in _words(data, starts, ends):
        mixed = (mixed ^ word) * _MIX
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(32)).astype(np.uint32)


def _words(data: _Bytes, starts: _Places, ends: _Places) -> Iterator[_Words]:
    """The first eight bytes of each key, the last eight, and the last sixteen's first eight."""
    length = int(ends[0] - starts[0])
    if length >= 16 and bool(np.all(ends - starts == length)):
        # Keys of one length (uuids, digests, padded numbers) lie in the buffer as rows of a matrix.
        rows = data[starts[0] : ends[-1]].reshape(-1, length)
        for first in (0, length - 8, length - 16):
            yield np.ascontiguousarray(rows[:, first : first + 8]).view(np.uint64).reshape(-1)
        return
    for places in (starts, np.maximum(ends - 8, starts), np.maximum(ends - 16, starts)):
        yield _eight_bytes(data, places, ends)


def _eight_bytes(data: _Bytes, starts: _Places, ends: _Places) -> _Words:
    """The up to eight bytes from each start as one number; bytes past the end of the key count as zero."""
    places = starts[:, None] + np.arange(8)
    inside = places < ends[:, None]
    taken = data[np.minimum(places, len(data) - 1)]
    words: _Words = np.where(inside, taken, 0).astype(np.uint8).view(np.uint64).reshape(-1)
    return words
