"""The chained 32-bit Murmur hash of bloom filters, computed for whole Arrow columns.

On-disk format: docs/format/table.md §7 (hash, seeds).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

U32 = npt.NDArray[np.uint32]

_M: Final = np.uint32(0x5BD1E995)
# Small enough that a chunk's running hashes stay in the processor's cache.
_CHUNK_KEYS: Final = 16_384


def chained_hashes(keys: pa.Array, hash_count: int) -> Iterator[tuple[int, U32, Iterator[U32]]]:
    """Hash UTF-8 keys chunk by chunk.

    Yields per chunk the index of its first key, the order in which its keys are hashed (indices relative to the
    chunk), and an iterator over `hash_count` arrays of hashes in that order. The first hash has seed 0; each further
    hash has the previous hash as its seed. The next step overwrites the arrays, so the caller must use them at once.
    Keys must not be null. Memory: one chunk of 16,384 keys, and its bytes twice.
    """
    for start in range(0, len(keys), _CHUNK_KEYS):
        chunk = _Chunk(keys.slice(start, _CHUNK_KEYS))
        yield start, chunk.order, chunk.hashes(hash_count)


class _Chunk:
    """Keys sorted by their number of whole words, longest first: the keys that have word i are the first keys."""

    __slots__ = ("_lengths", "_tail_factors", "_tails", "_words", "order")

    def __init__(self, keys: pa.Array) -> None:
        offsets, content = _buffers(keys)
        lengths = np.diff(offsets)
        self.order: U32 = np.argsort(-(lengths >> 2), kind="stable").astype(np.uint32)
        starts, lengths = offsets[:-1][self.order], lengths[self.order]
        self._lengths = lengths.astype(np.uint32)
        self._words = _mixed_words(content, starts, lengths >> 2)
        self._tails = _tails(content, starts + lengths, lengths & 3)
        self._tail_factors = np.where(lengths & 3, _M, np.uint32(1))

    def hashes(self, hash_count: int) -> Iterator[U32]:
        running = np.zeros(len(self._lengths), dtype=np.uint32)
        shifted = np.empty_like(running)
        for _ in range(hash_count):
            running ^= self._lengths
            for words in self._words:
                prefix = running[: len(words)]
                prefix *= _M
                prefix ^= words
            running ^= self._tails
            running *= self._tail_factors
            running ^= np.right_shift(running, 13, out=shifted)
            running *= _M
            running ^= np.right_shift(running, 15, out=shifted)
            yield running


def _buffers(keys: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return the offsets (one more than keys) and the content of a string or binary array, with three padding bytes."""
    plain = keys.cast(pa.large_binary()) if keys.type != pa.large_binary() else keys
    _, offsets, content = plain.buffers()
    begin, count = plain.offset, len(plain)
    starts = np.frombuffer(offsets, dtype=np.int64, count=begin + count + 1)[begin:]
    first, end = int(starts[0]), int(starts[-1])
    padded = np.zeros(end - first + 3, dtype=np.uint8)
    if content is not None:
        padded[: end - first] = np.frombuffer(content, dtype=np.uint8)[first:end]
    return starts - first, padded


def _mixed_words(content: npt.NDArray[np.uint8], starts: Any, word_counts: Any) -> list[U32]:
    """Return the words of all keys after the steps that do not need the seed.

    Array i holds word i of the keys that have this word.
    """
    # An unaligned little-endian word at every byte.
    all_words: Any = np.ndarray((len(content) - 3,), dtype="<u4", buffer=content, strides=(1,))
    # Word counts do not increase, so the keys that have word i are the first keys.
    reach = np.searchsorted(-word_counts, -np.arange(int(word_counts[0]) if len(word_counts) else 0), side="left")
    mixed = []
    for index, count in enumerate(reach):
        words = all_words[starts[:count] + 4 * index].astype(np.uint32)
        words *= _M
        words ^= words >> 24
        words *= _M
        mixed.append(words)
    return mixed


def _tails(content: npt.NDArray[np.uint8], ends: Any, tail_sizes: Any) -> U32:
    """Return the last one to three bytes of each key; each byte is sign-extended to 32 bits before its shift."""
    signed = content.view(np.int8).astype(np.int32)
    tails = np.zeros(len(ends), dtype=np.int32)
    for place in range(3):
        has = tail_sizes > place
        # A tail is read from its end: its last byte becomes the lowest byte.
        tails[has] ^= signed[ends[has] - place - 1] << (8 * place)
    return tails.view(np.uint32)
