"""XXH64, the 64-bit xxHash, of short texts: keys of metadata partitions, and ids that the JVM derives from paths.

docs/format/metadata.md §4.4.
"""

from __future__ import annotations

import struct
from typing import Final

_MASK: Final = (1 << 64) - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5
_STRIPE: Final = struct.Struct("<4Q")
_HASH_ID_SEED: Final = 0xFFFFFFFF_DABADABA
"""The JVM's seed 0xdabadaba is an int: it is extended with its sign. On disk: do not change."""


def hash_id(text: str) -> int:
    """Return the id that the JVM derives from a name or path, as an unsigned number of 64 bits."""
    return xxh64(text.encode(), _HASH_ID_SEED)


def xxh64(data: bytes, seed: int) -> int:
    """Return the hash of a short text as an unsigned number of 64 bits; `seed` is unsigned too.

    >>> hex(xxh64(b"", 0))
    '0xef46db3751d8e999'
    """
    start, size = 0, len(data)
    if size >= _STRIPE.size:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        while start + _STRIPE.size <= size:
            words = _STRIPE.unpack_from(data, start)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            start += _STRIPE.size
        turns = zip(lanes, (1, 7, 12, 18), strict=True)
        value = sum(_rotated(lane, bits) for lane, bits in turns) & _MASK
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        value = (seed + _P5) & _MASK
    return _finished(_tail(data, start, (value + size) & _MASK))


def _tail(data: bytes, start: int, value: int) -> int:
    """Mix in the bytes after the last whole stripe."""
    size = len(data)
    while start + 8 <= size:
        word = int.from_bytes(data[start : start + 8], "little")
        value = (_rotated(value ^ _round(0, word), 27) * _P1 + _P4) & _MASK
        start += 8
    if start + 4 <= size:
        word = int.from_bytes(data[start : start + 4], "little")
        value = (_rotated(value ^ (word * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        start += 4
    for byte in data[start:]:
        value = _rotated(value ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    return value


def _finished(value: int) -> int:
    value = (value ^ value >> 33) * _P2 & _MASK
    value = (value ^ value >> 29) * _P3 & _MASK
    return value ^ value >> 32


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK
