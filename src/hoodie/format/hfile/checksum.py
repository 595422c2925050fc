"""Checksums after the payload of HFile blocks: CRC32 and CRC32C over chunks of the header and the stored payload.

docs/format/metadata.md §1.9. Hudi's own writer stores zeros and the type NONE; HBase's writer stores CRC32C.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache

import numpy as np
import numpy.typing as npt

from hoodie.format.hfile.compression import crc32

CHECKSUM_BYTES = 4

_POLYNOMIAL = 0x82F63B78  # Castagnoli, reflected
_ROW_BYTES = 64
_ALL_ONES = 0xFFFFFFFF

UInt32Array = npt.NDArray[np.uint32]


class ChecksumType(IntEnum):
    """Algorithm of the checksums of a block. On disk: do not change."""

    NONE = 0
    CRC32 = 1
    CRC32C = 2


def checksums(data: bytes | memoryview, kind: ChecksumType, chunk_bytes: int) -> bytes:
    """Compute a four-byte checksum of each `chunk_bytes` of `data` (the last chunk may be shorter); zeros for NONE."""
    if kind is ChecksumType.NONE:
        return bytes(CHECKSUM_BYTES * -(-len(data) // chunk_bytes))
    if kind is ChecksumType.CRC32:
        starts = range(0, len(data), chunk_bytes)
        return b"".join(crc32(data[start : start + chunk_bytes]).to_bytes(4, "big") for start in starts)
    return _crc32c(np.frombuffer(data, np.uint8), chunk_bytes).astype(">u4").tobytes()


def _crc32c(data: npt.NDArray[np.uint8], chunk_bytes: int) -> UInt32Array:
    """Compute the CRC32C of each chunk, for all chunks in parallel.

    Leading zeros do not change a CRC that has no start value. Each chunk is therefore put at the end of a slot whose
    number of rows is a power of two. The CRCs of the rows come from tables by position and are combined in pairs.
    """
    if not len(data):
        return np.zeros(0, np.uint32)
    chunk_bytes = min(chunk_bytes, len(data))
    count = -(-len(data) // chunk_bytes)
    rows = 1 << max(0, (-(-chunk_bytes // _ROW_BYTES) - 1).bit_length())
    slots = np.zeros((count, rows * _ROW_BYTES), np.uint8)
    whole = len(data) // chunk_bytes
    slots[:whole, slots.shape[1] - chunk_bytes :] = data[: whole * chunk_bytes].reshape(whole, chunk_bytes)
    lengths = np.full(count, chunk_bytes, np.int64)
    if whole < count:
        lengths[-1] = len(data) - whole * chunk_bytes
        slots[-1, slots.shape[1] - int(lengths[-1]) :] = data[whole * chunk_bytes :]
    by_position, _ = _tables()
    # One index into the flattened table takes a tenth of the time that two indices take.
    crcs = by_position.ravel()[slots.reshape(-1, _ROW_BYTES) + 256 * np.arange(_ROW_BYTES)]
    folded: UInt32Array = np.bitwise_xor.reduce(crcs, axis=1).reshape(count, rows)
    power = _ROW_BYTES.bit_length() - 1
    while folded.shape[1] > 1:
        folded = _advanced(folded[:, 0::2], power) ^ folded[:, 1::2]
        power += 1
    starts = np.array([_start_value(int(length)) for length in lengths], np.uint32)
    result: UInt32Array = folded[:, 0] ^ starts ^ np.uint32(_ALL_ONES)
    return result


def _advanced(crcs: UInt32Array, power: int) -> UInt32Array:
    """Return the CRCs after `2**power` further zero bytes."""
    table = _tables()[1][power]
    parts = [table[place][crcs >> np.uint32(8 * place) & np.uint32(0xFF)] for place in range(4)]
    result: UInt32Array = parts[0] ^ parts[1] ^ parts[2] ^ parts[3]
    return result


@cache
def _start_value(length: int) -> int:
    """Return the effect of the start value (all ones) on a CRC after `length` bytes."""
    value = np.array([_ALL_ONES], np.uint32)
    for power in range(length.bit_length()):
        if length >> power & 1:
            value = _advanced(value, power)
    return int(value[0])


@cache
def _tables() -> tuple[UInt32Array, tuple[UInt32Array, ...]]:
    """Return the CRCs of a byte at each position of a row, and for each power of two the effect of that many zeros."""
    single = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        single = np.where(
            single & np.uint32(1), single >> np.uint32(1) ^ np.uint32(_POLYNOMIAL), single >> np.uint32(1)
        )
    by_position = np.empty((_ROW_BYTES, 256), np.uint32)
    by_position[-1] = single
    for place in range(_ROW_BYTES - 2, -1, -1):
        behind = by_position[place + 1]
        by_position[place] = behind >> np.uint32(8) ^ single[behind & np.uint32(0xFF)]
    values = np.arange(256, dtype=np.uint32)[None, :] << (8 * np.arange(4, dtype=np.uint32))[:, None]
    steps: list[UInt32Array] = [values >> np.uint32(8) ^ single[values & np.uint32(0xFF)]]
    for _ in range(31):
        table = steps[-1]
        steps.append(
            np.bitwise_xor.reduce([table[place][table >> np.uint32(8 * place) & np.uint32(0xFF)] for place in range(4)])
        )
    return by_position, tuple(steps)
