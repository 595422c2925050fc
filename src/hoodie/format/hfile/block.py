"""HFile blocks: the 33-byte header, the payload as its codec stores it, and the checksums after the payload.

docs/format/metadata.md §1.2, §1.3, §1.9. The checksums are CRC32 or CRC32C over chunks of the header and the stored
payload. Hudi's own writer stores zeros and the type NONE; HBase's writer stores CRC32C.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

import numpy as np
import numpy.typing as npt

from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.format.hfile.compression import Compression, crc32, gunzip, gzip_bytes, with_comment

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


_HEADER = struct.Struct(">8siiqBii")
HEADER_BYTES = _HEADER.size
_CHECKSUM_CHUNK_BYTES = 16384
_NO_PREVIOUS_BLOCK = -1
_CHECKSUM_TYPES = frozenset(ChecksumType)

# Limits of a block's uncompressed payload. Without them, a damaged length could allocate a lot of memory. Writers end a
# block at 64 KiB to 1 MiB, so a larger block has one large entry: the file list of a partition with many files.
_PAYLOAD_BYTES_MAX = 128 << 20
_SEVERAL_ENTRIES_BYTES_MAX = 32 << 20
_INDEX_BYTES_MAX = 16 << 20
_ENTRY_LENGTHS = struct.Struct(">II")
_ENTRY_BYTES_BESIDE_KEY_AND_VALUE = 9
# Deflate expands at most 1032 times.
_EXPANSION_MAX = 1040

DATA = b"DATABLK*"
INDEX = b"IDXROOT2"
FILE_INFO = b"FILEINF2"
LEAF_INDEX = b"IDXLEAF2"
INTERMEDIATE_INDEX = b"IDXINTE2"


@dataclass(frozen=True, slots=True)
class Block:
    """One decompressed block. With its header and checksums it fills `[start, end)` of the file."""

    payload: bytes | memoryview
    start: int
    end: int


def read_block(
    view: memoryview,
    *,
    start: int,
    magics: tuple[bytes, ...],
    codec: Compression,
    path: str,
    several_entries_bytes_max: int = _SEVERAL_ENTRIES_BYTES_MAX,
) -> Block:
    """Read the block at the beginning of `view`, which is at offset `start` of the file.

    The lengths must agree with each other and with the payload. Checksums, if the block has any, must be correct. A
    data block whose payload is larger than `several_entries_bytes_max` must have one entry.

    Raises: CorruptFileError if a length, a checksum or the magic is wrong, or the payload does not decompress.
    """
    if len(view) < HEADER_BYTES:
        raise CorruptFileError(
            f"expected a block header of {HEADER_BYTES} bytes, found {len(view)} bytes", path=path, offset=start
        )
    magic, stored_bytes, payload_bytes, previous, kind, chunk_bytes, checked_bytes = _HEADER.unpack_from(view)
    if magic not in magics:
        expected = " or ".join(repr(m) for m in magics)
        raise CorruptFileError(f"expected block magic {expected}, found {magic!r}", path=path, offset=start)
    length = HEADER_BYTES + stored_bytes
    if not HEADER_BYTES <= checked_bytes <= length <= len(view) or chunk_bytes <= 0 or not -1 <= previous <= start:
        raise CorruptFileError("the block's lengths contradict each other", path=path, offset=start)
    limit = _PAYLOAD_BYTES_MAX if magic == DATA else _INDEX_BYTES_MAX
    if not 0 <= payload_bytes <= min(limit, _EXPANSION_MAX * length):
        message = f"expected a payload of up to {limit} bytes that {stored_bytes} stored bytes can hold"
        raise CorruptFileError(f"{message}, found the impossible payload size {payload_bytes}", path=path, offset=start)
    if length - checked_bytes != CHECKSUM_BYTES * -(-checked_bytes // chunk_bytes) or kind not in _CHECKSUM_TYPES:
        raise CorruptFileError("the block's checksums have an unknown form", path=path, offset=start)
    if checksums(view[:checked_bytes], ChecksumType(kind), chunk_bytes) != view[checked_bytes:length]:
        raise CorruptFileError("a checksum of the block is wrong", path=path, offset=start)
    payload: bytes | memoryview = view[HEADER_BYTES:checked_bytes]
    if codec is Compression.GZIP:
        payload = gunzip(view[HEADER_BYTES:checked_bytes], payload_bytes, path=path, offset=start)
    elif len(payload) != payload_bytes:
        raise CorruptFileError(f"expected {payload_bytes} payload bytes, found {len(payload)}", path=path, offset=start)
    if payload_bytes > several_entries_bytes_max and magic == DATA and not _is_one_entry(payload):
        message = f"expected one entry in a block of {payload_bytes} bytes, found several"
        raise CorruptFileError(message, path=path, offset=start)
    return Block(payload, start, start + length)


def _is_one_entry(payload: bytes | memoryview) -> bool:
    """Return whether the first entry of a data block fills it."""
    key_bytes, value_bytes = _ENTRY_LENGTHS.unpack_from(payload)
    return bool(key_bytes + value_bytes + _ENTRY_BYTES_BESIDE_KEY_AND_VALUE == len(payload))


def block_parts(
    magic: bytes, payload: bytes | memoryview, *, codec: Compression, previous_offset: int = _NO_PREVIOUS_BLOCK
) -> tuple[bytes, bytes | memoryview, bytes]:
    """Encode one block as header, stored payload (not copied without a codec), and zeros in place of checksums.

    Raises: UnsupportedError for a payload that readers refuse: a single value of more than 128 MiB.
    """
    if len(payload) > _PAYLOAD_BYTES_MAX:
        raise UnsupportedError(f"a block of {len(payload)} bytes is larger than {_PAYLOAD_BYTES_MAX}, the maximum")
    stored = payload
    if codec is Compression.GZIP:
        stored = _gzip_member(payload)
    checked_bytes = HEADER_BYTES + len(stored)
    zeros = bytes(CHECKSUM_BYTES * -(-checked_bytes // _CHECKSUM_CHUNK_BYTES))
    header = _HEADER.pack(
        magic,
        len(stored) + len(zeros),
        len(payload),
        previous_offset,
        ChecksumType.NONE,
        _CHECKSUM_CHUNK_BYTES,
        checked_bytes,
    )
    return header, stored, zeros


def _gzip_member(payload: bytes | memoryview) -> bytes:
    """Compress a payload to one gzip member of a length that hudi-rs reads correctly.

    hudi-rs computes the number of checksum chunks from a length that already includes the checksums. It therefore cuts
    off the end of a block whose length is just below a multiple of the chunks' (docs/format/metadata.md §1.14). The
    same payload gives the same bytes on machines of one kind.
    """
    stored = gzip_bytes(payload)
    length = HEADER_BYTES + len(stored)
    chunks = -(-length // _CHECKSUM_CHUNK_BYTES)
    missing = chunks * _CHECKSUM_CHUNK_BYTES - length
    return stored if missing >= CHECKSUM_BYTES * chunks else with_comment(stored, missing)


def block_to_bytes(magic: bytes, payload: bytes | memoryview, *, codec: Compression) -> bytes:
    """Encode a block that is not a data block."""
    return b"".join(block_parts(magic, payload, codec=codec))
