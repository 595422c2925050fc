"""Compute Java's `String.hashCode` of whole columns, and the file group of a metadata partition for each key.

docs/format/metadata.md §5.1. The hash is computed over UTF-16 code units, modulo 2^32.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.format.schema.arrow_types import offsets_of, ranges_of

_INVERSE_OF_31 = np.uint32(pow(31, -1, 1 << 32))
_CHUNK_BYTES = 1024 * 1024

Words = npt.NDArray[np.uint32]


def java_hash(keys: pa.StringArray, *, chunk_bytes: int = _CHUNK_BYTES) -> npt.NDArray[np.int32]:
    """Hash every key as Java does. Keys must not be null. Memory: some 20 MiB, and four bytes per key.

    `chunk_bytes`: bytes of keys that are hashed together.

    >>> java_hash(pa.array(["key-000000", ""])).tolist()
    [1413236014, 0]
    """
    result = np.zeros(len(keys), np.int32)
    for rows, text, offsets in text_chunks(keys, chunk_bytes):
        result[rows] = _hash_chunk(text, offsets)
    return result


def text_chunks(
    keys: pa.StringArray, chunk_bytes: int = _CHUNK_BYTES
) -> Iterator[tuple[slice, memoryview, npt.NDArray[np.int64]]]:
    """Yield the rows, the bytes and the offsets of keys: as many keys as fit `chunk_bytes`, at least one."""
    offsets = offsets_of(keys)
    for first, stop in ranges_of(offsets, chunk_bytes):
        text = memoryview(keys.buffers()[2] or b"")[offsets[first] : offsets[stop]]
        yield slice(first, stop), text, offsets[first : stop + 1] - offsets[first]


def file_group_index(keys: pa.StringArray, count: int) -> npt.NDArray[np.int32]:
    """Return the index of each key's file group among the `count` file groups of a metadata partition.

    Every Hudi version uses this rule.

    >>> file_group_index(pa.array(["key-000000", "key-000349", "TXN-001"]), 10).tolist()
    [4, 0, 8]
    """
    hashes = java_hash(keys).astype(np.int64)
    # abs(Integer.MIN_VALUE) is negative in Java, and so is its remainder. Hudi takes the abs of the remainder too.
    remainder = np.abs(hashes) % count
    negative = hashes == -(1 << 31)
    if negative.any():
        remainder[negative] = (1 << 31) % count
    return remainder.astype(np.int32)


def file_group_masks(keys: pa.StringArray, count: int) -> list[pa.BooleanArray]:
    """Return for each of the `count` file groups of a metadata partition which of the keys it has."""
    numbers = file_group_index(keys, count) if len(keys) else np.zeros(0, np.int32)
    return [pa.array(numbers == number) for number in range(count)]


def hash_ranges(text: memoryview, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Hash ranges `[start, end)` of the bytes of UTF-8 text as Java does; the bounds are at first bytes of characters.

    Memory: some 20 bytes for each byte of text.

    >>> hash_ranges(memoryview(b"id:key-000000"), np.array([3]), np.array([13])).tolist()
    [1413236014]
    """
    if not len(text):
        return np.zeros(len(starts), np.int32)
    units, bounds = _utf16_units(text, np.concatenate([starts, ends]))
    return _hash_ranges(units, bounds[: len(starts)], bounds[len(starts) :])


def _hash_chunk(text: memoryview, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Hash the texts between the offsets.

    The hash of units u[s:e] is the sum of u[i] * 31^(e-1-i). 31 has an inverse modulo 2^32. The hash is therefore
    31^(e-1) times the difference of two values of one running sum of u[i] * 31^-i. This needs no loop over texts,
    whatever their lengths.
    """
    units, bounds = _utf16_units(text, offsets)
    if not len(units):
        return np.zeros(len(offsets) - 1, np.int32)
    starts, ends = bounds[:-1], bounds[1:]
    length = int(ends[0])
    if length and bool(np.all(ends - starts == length)):
        # Texts of one length (uuids, digests, padded numbers): one sum of products for each text.
        factors = _powers(np.uint32(31), length)[::-1]
        hashes: Words = np.einsum("ij,j->i", units.reshape(-1, length), factors)
        return hashes.view(np.int32)
    return _hash_ranges(units, starts, ends)


def _hash_ranges(units: Words, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Hash the units in each range `[start, end)`."""
    falling, rising = _powers(_INVERSE_OF_31, len(units)), _powers(np.uint32(31), len(units))
    running = np.zeros(len(units) + 1, np.uint32)
    np.cumsum(units * falling, dtype=np.uint32, out=running[1:])
    hashes: Words = (running[ends] - running[starts]) * rising[np.maximum(ends - 1, 0)]
    return hashes.view(np.int32)


def _powers(base: np.uint32, count: int) -> Words:
    """Return base^0, base^1, … modulo 2^32."""
    return _known_powers(int(base), max(count, _CHUNK_BYTES))[:count]


@lru_cache(maxsize=4)
def _known_powers(base: int, count: int) -> Words:
    factors = np.full(count, base, np.uint32)
    factors[0] = 1
    return np.cumprod(factors, dtype=np.uint32)


def _utf16_units(text: memoryview, offsets: npt.NDArray[np.int64]) -> tuple[Words, npt.NDArray[np.int64]]:
    """Return the UTF-16 code units of UTF-8 text, and the offsets of the texts in these units."""
    data = np.frombuffer(text, np.uint8)
    if not len(data) or data.max() < 0x80:
        return data.astype(np.uint32), offsets
    # A character is one unit, counted at its first byte; a four-byte character is two units (a surrogate pair).
    units_at = ((data & 0xC0) != 0x80).astype(np.int64) + (data >= 0xF0)
    before = np.zeros(len(data) + 1, np.int64)
    np.cumsum(units_at, out=before[1:])
    units = np.frombuffer(bytes(text).decode("utf-8").encode("utf-16-le"), "<u2")
    return units.astype(np.uint32), before[offsets]
