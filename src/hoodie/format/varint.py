"""Integers in groups of seven bits, lowest group first, as in protobuf, Avro and Kryo: single numbers and columns.

Every byte except the last has its high bit set. Avro stores ints and longs as zigzag numbers: 0, -1, 1, -2 … are stored
as 0, 1, 2, 3.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

BYTES_MAX = 10
"""Number of bytes of the longest 64-bit number."""

_BITS = 7
_HIGH_BITS = np.uint64(0x8080808080808080)
_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_ONES = np.uint64(0x0101010101010101)
_ONE = np.uint64(1)
# Steps that join two neighbouring groups of 7, then 14, then 28 bits. Each step has the shift of the second group, and
# the masks of the first group and of the shifted second group.
_CLOSING = tuple(
    (np.uint64(shift), np.uint64(low), np.uint64(high))
    for shift, low, high in (
        (1, 0x007F007F007F007F, 0x3F803F803F803F80),
        (2, 0x00003FFF00003FFF, 0x0FFFC0000FFFC000),
        (4, 0x000000000FFFFFFF, 0x00FFFFFFF0000000),
    )
)


@lru_cache(maxsize=1 << 10)
def varint_to_bytes(value: int) -> bytes:
    """Encode an unsigned number; `value` must be in `[0, 2**64)`. Cached: most numbers are small and come again."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= _BITS
    out.append(value)
    return bytes(out)


@lru_cache(maxsize=1 << 10)
def zigzag_to_bytes(value: int) -> bytes:
    """Encode a signed number of 64 bits, such as an Avro int or long."""
    return varint_to_bytes((value << 1) ^ (value >> 63))


def varint_at(data: bytes | memoryview, position: int, *, bytes_max: int = BYTES_MAX) -> tuple[int, int]:
    """Decode the unsigned number at a position; return the number and the position after it.

    If `bytes_max` is 9, the ninth byte has eight bits, as Kryo writes longs.

    Raises: ValueError if the number has more than `bytes_max` bytes, or the data ends inside it.
    """
    try:
        number = data[position]
        if number < 0x80:
            return number, position + 1
        number &= 0x7F
        for place in range(1, bytes_max):
            part = data[position + place]
            if part < 0x80 or (place == 8 and bytes_max == 9):
                return number | part << _BITS * place, position + place + 1
            number |= (part & 0x7F) << _BITS * place
    except IndexError as error:
        raise ValueError("the data ends inside a number") from error
    raise ValueError(f"a number has more than {bytes_max} bytes")


def zigzag_at(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Decode the signed number at a position; return the number and the position after it. Raises: as `varint_at`."""
    number, position = varint_at(data, position)
    return (number >> 1) ^ -(number & 1), position


def zigzag_cells(
    numbers: npt.NDArray[np.int64], present: npt.NDArray[np.bool_] | None
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_] | None]:
    """Encode signed numbers as a matrix of bytes, and a mask of the used bytes (None: all bytes).

    The matrix has as many columns as the longest number needs. Numbers that are not `present` (None: all are) have no
    used bytes.
    """
    zigzag = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    if present is not None:
        zigzag = np.where(present, zigzag, np.uint64(0))
    greatest = int(zigzag.max()) if len(zigzag) else 0
    width = max(1, -(-greatest.bit_length() // _BITS))
    if width == 1:
        return zigzag.astype(np.uint8)[:, None], None if present is None else present[:, None]
    cells = np.empty((len(zigzag), width), np.uint8)
    is_used = np.empty((len(zigzag), width), np.bool_)
    is_used[:, 0] = True if present is None else present
    for place in range(width):
        cells[:, place] = zigzag & np.uint64(0x7F)
        zigzag = zigzag >> np.uint64(_BITS)
        if place + 1 < width:
            is_used[:, place + 1] = zigzag > 0
            cells[:, place] |= is_used[:, place + 1].view(np.uint8) << 7
    return cells, is_used


def varints_of_words(
    words: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Decode the unsigned number at the beginning of each little-endian word; `words` is overwritten.

    Returns the numbers, their lengths in bytes, and a mask of the numbers that have more than eight bytes. Of these
    numbers only the lowest 56 bits are returned.
    """
    stops = ~words & _HIGH_BITS
    # All bits up to and including the last byte of the number; all bits of the word if the number is longer.
    kept = stops ^ (stops - _ONE)
    lengths = ((kept & _ONES) * _ONES >> np.uint64(56)).astype(np.int64)
    words &= kept
    words &= _LOW_BITS
    for shift, low, high in _CLOSING:
        words = (words & low) | (words >> shift & high)
    return words, lengths, stops == 0


def signed_of_zigzag(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Convert zigzag numbers to signed numbers."""
    signed = numbers.view(np.int64)
    return (numbers >> _ONE).view(np.int64) ^ -(signed & 1)
