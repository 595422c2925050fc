"""The forms of automatic record keys that RFC-76 compares, each made from numbers by array operations."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.keys import Numbers, texts_of, uuid_texts

COMMIT_TIME = "20230822185245820"
_COMMIT_MILLISECONDS = 1_692_730_365_820
_TICKS_TO_1970 = 0x01B21DD213814000
"""Intervals of 100 nanoseconds from 15 October 1582 to 1970 (RFC 9562)."""
_KEYS_PER_MILLISECOND = 1_000

Bytes = npt.NDArray[np.uint8]
_BASE64 = np.frombuffer(f"{string.ascii_uppercase}{string.ascii_lowercase}{string.digits}+/".encode(), np.uint8)
_BITS_OF_SEVEN = (1 << np.arange(6, -1, -1)).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class Share:
    """The rows of one Spark partition: their keys have the row ids `[start, start + rows)`."""

    partition: int
    start: int
    rows: int

    @property
    def row_ids(self) -> Numbers:
        """The row ids."""
        return np.arange(self.start, self.start + self.rows)


def uuid_4(share: Share) -> pa.StringArray:
    """Return random UUIDs."""
    return _uuids(_random(share, 16), version=4)


def uuid_6(share: Share) -> pa.StringArray:
    """Return UUIDs of time and node: each key is one tick of 100 nanoseconds later."""
    ticks = _TICKS_TO_1970 + _COMMIT_MILLISECONDS * 10_000 + share.row_ids
    found = np.empty((share.rows, 16), np.uint8)
    found[:, :6] = _big_endian(ticks >> 12, 6)
    found[:, 6:8] = _big_endian(ticks & 0xFFF, 2)
    found[:, 8:] = np.random.default_rng(share.partition).integers(0, 256, 8, np.uint8)
    return _uuids(found, version=6)


def uuid_7(share: Share) -> pa.StringArray:
    """Return UUIDs of milliseconds and random bits: a thousand keys have the same millisecond."""
    found = _random(share, 16)
    found[:, :6] = _big_endian(_COMMIT_MILLISECONDS + share.row_ids // _KEYS_PER_MILLISECOND, 6)
    return _uuids(found, version=7)


def base64(share: Share) -> pa.StringArray:
    """Return 13 bytes of commit time, partition and row id in Base64: 20 characters."""
    padded = np.zeros((share.rows, 15), np.uint8)
    padded[:, :13] = _thirteen_bytes(share)
    first, second, third = (padded[:, place::3].astype(np.uint16) for place in range(3))
    found = np.empty((share.rows, 20), np.uint8)
    found[:, 0::4] = _BASE64[first >> 2]
    found[:, 1::4] = _BASE64[(first & 3) << 4 | second >> 4]
    found[:, 2::4] = _BASE64[(second & 15) << 2 | third >> 6]
    found[:, 3::4] = _BASE64[third & 63]
    found[:, 18:] = ord("=")
    return texts_of(found)


def ascii_7(share: Share) -> pa.StringArray:
    """Return the bits of the same 13 bytes, seven for each of 15 ASCII characters."""
    bits = np.zeros((share.rows, 105), np.uint8)
    bits[:, :104] = np.unpackbits(_thirteen_bytes(share), axis=1)
    return texts_of((bits.reshape(share.rows, 15, 7) * _BITS_OF_SEVEN).sum(axis=2, dtype=np.uint8))


def _thirteen_bytes(share: Share) -> Bytes:
    """Return the least five bytes of the commit time, three of the partition and five of the row id."""
    found = np.empty((share.rows, 13), np.uint8)
    found[:, :5] = _big_endian(np.full(1, _COMMIT_MILLISECONDS), 5)
    found[:, 5:8] = _big_endian(np.full(1, share.partition), 3)
    found[:, 8:] = _big_endian(share.row_ids, 5)
    return found


def _big_endian(numbers: Numbers, count: int) -> Bytes:
    """Return the least `count` bytes of each number, the most significant one first."""
    return numbers.astype(">u8").view(np.uint8).reshape(len(numbers), 8)[:, 8 - count :]


def _random(share: Share, count: int) -> Bytes:
    return np.random.default_rng(share.partition).integers(0, 256, (share.rows, count), np.uint8)


def _uuids(found: Bytes, *, version: int) -> pa.StringArray:
    """Set the version and the variant, and return the texts."""
    found[:, 6] = found[:, 6] & 0x0F | version << 4
    found[:, 8] = found[:, 8] & 0x3F | 0x80
    return uuid_texts(found)


OTHER_FORMS: dict[str, Callable[[Share], pa.StringArray]] = {
    "UUID v4": uuid_4,
    "UUID v6": uuid_6,
    "UUID v7": uuid_7,
    "Base64": base64,
    "ASCII": ascii_7,
}
