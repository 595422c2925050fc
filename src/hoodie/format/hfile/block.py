"""HFile blocks: the 33-byte header, the codec, and the (unused) checksums behind the payload.

docs/format/metadata.md §1.2, §1.3, §1.9, §1.10.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum

from hoodie.errors import CorruptFileError

_HEADER = struct.Struct(">8siiqBii")
HEADER_BYTES = _HEADER.size
_CHECKSUM_CHUNK_BYTES = 16384
_CHECKSUM_BYTES = 4
_CHECKSUM_TYPE_NONE = 0
_NO_PREVIOUS_BLOCK = -1
_GZIP_WINDOW = 31  # zlib: 15-bit window inside a gzip member
_GZIP_LEVEL = 3
_GZIP_HEADER_BYTES = 10
_GZIP_FLAGS_OFFSET = 3
_GZIP_HAS_COMMENT = 0x10

# A block's uncompressed payload stays below this, so that a damaged length cannot ask for all the memory there is.
_PAYLOAD_BYTES_MAX = 1 << 30

DATA = b"DATABLK*"
META = b"METABLKc"
INDEX = b"IDXROOT2"
FILE_INFO = b"FILEINF2"
LEAF_INDEX = b"IDXLEAF2"
INTERMEDIATE_INDEX = b"IDXINTE2"


class Compression(IntEnum):
    """Codec of every block of a file. On disk: do not change."""

    GZIP = 1
    NONE = 2


@dataclass(frozen=True, slots=True)
class Block:
    """One block, decompressed. `end` is the file offset behind its checksums, where the next block starts."""

    payload: memoryview
    start: int
    end: int


def read_block(
    buf: memoryview, start: int, *, limit: int, magics: tuple[bytes, ...], codec: Compression, path: str
) -> Block:
    """Read the block at `start`; it must carry one of `magics` and end at or before `limit`.

    Checksums are skipped: Hudi writes none and no Hudi reader verifies those of HBase.

    Raises:
        CorruptFileError: lengths that contradict each other, a wrong magic, or a payload that does not decompress.
    """
    if start < 0 or start + HEADER_BYTES > limit:
        raise CorruptFileError("no room for a block header", path=path, offset=start)
    magic, stored_bytes, payload_bytes, _, _, _, header_and_payload = _HEADER.unpack_from(buf, start)
    if magic not in magics:
        expected = " or ".join(repr(m) for m in magics)
        raise CorruptFileError(f"expected block magic {expected}, found {magic!r}", path=path, offset=start)
    end = start + HEADER_BYTES + stored_bytes
    stop = start + header_and_payload
    if stored_bytes < 0 or end > limit or not start + HEADER_BYTES <= stop <= end:
        raise CorruptFileError("the block's lengths contradict each other", path=path, offset=start)
    if not 0 <= payload_bytes <= _PAYLOAD_BYTES_MAX:
        raise CorruptFileError(f"impossible payload size {payload_bytes}", path=path, offset=start)
    stored = buf[start + HEADER_BYTES : stop]
    payload = stored if codec is Compression.NONE else _gunzip(stored, payload_bytes, path=path, offset=start)
    if len(payload) != payload_bytes:
        raise CorruptFileError(f"expected {payload_bytes} payload bytes, found {len(payload)}", path=path, offset=start)
    return Block(payload, start, end)


def _gunzip(stored: memoryview, payload_bytes: int, *, path: str, offset: int) -> memoryview:
    """Decompress one gzip member (an empty payload may be stored as no bytes at all)."""
    if payload_bytes == 0 and not stored:
        return stored
    inflater = zlib.decompressobj(_GZIP_WINDOW)
    try:
        payload = inflater.decompress(stored, payload_bytes + 1)
        # The member's own checksum is verified only once its end has been read.
        payload += inflater.decompress(inflater.unconsumed_tail, 1) if not inflater.eof else b""
    except zlib.error as error:
        raise CorruptFileError(f"the block does not decompress: {error}", path=path, offset=offset) from error
    if not inflater.eof:
        raise CorruptFileError("the compressed block has no end", path=path, offset=offset)
    return memoryview(payload)


def block_to_bytes(
    magic: bytes, payload: bytes | memoryview, *, codec: Compression, previous_offset: int = _NO_PREVIOUS_BLOCK
) -> bytes:
    """Encode one block: header, stored payload, and zeros where checksums would stand."""
    stored = payload if codec is Compression.NONE else _gzip(payload)
    header_and_payload = HEADER_BYTES + len(stored)
    checksums = bytes(_CHECKSUM_BYTES * -(-header_and_payload // _CHECKSUM_CHUNK_BYTES))
    header = _HEADER.pack(
        magic,
        len(stored) + len(checksums),
        len(payload),
        previous_offset,
        _CHECKSUM_TYPE_NONE,
        _CHECKSUM_CHUNK_BYTES,
        header_and_payload,
    )
    return b"".join((header, stored, checksums))


def _gzip(payload: bytes | memoryview) -> bytes:
    """Compress to one gzip member whose stored length hudi-rs reads right.

    hudi-rs counts the checksum chunks of the length that already holds the checksums, and so cuts the end off a
    block whose length falls just below a multiple of the chunk (docs/format/metadata.md §1.14). A comment in the
    member's header, which every reader skips, makes such a block longer.
    """
    deflater = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    stored = deflater.compress(payload) + deflater.flush()
    length = HEADER_BYTES + len(stored)
    chunks = -(-length // _CHECKSUM_CHUNK_BYTES)
    missing = chunks * _CHECKSUM_CHUNK_BYTES - length
    if missing >= _CHECKSUM_BYTES * chunks:
        return stored
    head, body = bytearray(stored[:_GZIP_HEADER_BYTES]), stored[_GZIP_HEADER_BYTES:]
    head[_GZIP_FLAGS_OFFSET] |= _GZIP_HAS_COMMENT
    return bytes(head) + b" " * missing + b"\0" + body
