"""The 64-bit xxHash of short texts: ids that the JVM derives from names and paths."""

from __future__ import annotations

from typing import Final

HASH_ID_SEED: Final = 0xFFFFFFFF_DABADABA
"""The seed of the JVM's ids: the 32-bit number 0xdabadaba, extended by its sign."""

_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5
_MASK: Final = 0xFFFFFFFF_FFFFFFFF


def xxh64(data: bytes, seed: int) -> int:
    """Return the unsigned 64-bit hash of `data`. Meant for names: it takes about a microsecond a byte.

    >>> f"{xxh64(b'', 0):016x}"
    'ef46db3751d8e999'
    """
    length, position = len(data), 0
    if length >= 32:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while position + 32 <= length:
            for lane in range(4):
                start = position + 8 * lane
                lanes[lane] = _round(lanes[lane], int.from_bytes(data[start : start + 8], "little"))
            position += 32
        value = sum(_rotated(lane & _MASK, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        value = seed + _P5
    value = (value + length) & _MASK
    while position + 8 <= length:
        value ^= _round(0, int.from_bytes(data[position : position + 8], "little"))
        value = (_rotated(value, 27) * _P1 + _P4) & _MASK
        position += 8
    if position + 4 <= length:
        value ^= int.from_bytes(data[position : position + 4], "little") * _P1 & _MASK
        value = (_rotated(value, 23) * _P2 + _P3) & _MASK
        position += 4
    for byte in data[position:]:
        value = _rotated(value ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    value = (value ^ value >> 33) * _P2 & _MASK
    value = (value ^ value >> 29) * _P3 & _MASK
    return value ^ value >> 32


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK
