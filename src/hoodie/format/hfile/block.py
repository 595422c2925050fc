"""HFile blocks: the 33-byte header, the payload as its codec stores it, and the checksums after the payload.

docs/format/metadata.md §1.2, §1.3, §1.9.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.format.hfile.checksum import CHECKSUM_BYTES, ChecksumType, checksums
from hoodie.format.hfile.compression import Compression, gunzip, gzip_member

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


def read_block(view: memoryview, *, start: int, magics: tuple[bytes, ...], codec: Compression, path: str) -> Block:
    """Read the block at the beginning of `view`, which is at offset `start` of the file.

    The lengths must agree with each other and with the payload. Checksums, if the block has any, must be correct.

    Raises:
        CorruptFileError: a length, a checksum or the magic is wrong, or the payload does not decompress.
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
    if payload_bytes > _SEVERAL_ENTRIES_BYTES_MAX and magic == DATA and not _is_one_entry(payload):
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
        stored = gzip_member(
            payload,
            length_before=HEADER_BYTES,
            chunk_bytes=_CHECKSUM_CHUNK_BYTES,
            checksum_bytes=CHECKSUM_BYTES,
        )
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


def block_to_bytes(magic: bytes, payload: bytes | memoryview, *, codec: Compression) -> bytes:
    """Encode a block that is not a data block."""
    return b"".join(block_parts(magic, payload, codec=codec))
