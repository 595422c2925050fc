"""The codec of HFile blocks: each payload is one gzip member, or stands as it is (docs/format/metadata.md §1.10).

ISA-L's deflate is used: about five times the speed of zlib's when writing and twice when reading
(docs/decisions/0008-isal.md).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, cast

from isal import igzip_lib

from hoodie.errors import CorruptFileError

_LEVEL = 1
_HEADER_BYTES = 10
_FLAGS_OFFSET = 3
_HAS_COMMENT = 0x10
# The library's stub file declares its exception as a value.
_ISAL_ERROR = cast("type[Exception]", igzip_lib.IsalError)


class Compression(IntEnum):
    """Codec of every block of a file. On disk: do not change."""

    GZIP = 1
    NONE = 2


def gzip_member(payload: Any, *, length_before: int, chunk_bytes: int, checksum_bytes: int) -> bytes:
    """Compress to one gzip member whose stored length hudi-rs reads right.

    hudi-rs counts the checksum chunks of the length that already holds the checksums, and so cuts the end off a
    block whose length falls just below a multiple of the chunk (docs/format/metadata.md §1.14). A comment in the
    member's header, which every reader skips, makes such a block longer. `length_before` bytes (the block's header)
    count too. The same payload gives the same bytes on machines of one kind.
    """
    stored: bytes = igzip_lib.compress(payload, _LEVEL, igzip_lib.COMP_GZIP)
    length = length_before + len(stored)
    chunks = -(-length // chunk_bytes)
    missing = chunks * chunk_bytes - length
    if missing >= checksum_bytes * chunks:
        return stored
    head, body = bytearray(stored[:_HEADER_BYTES]), stored[_HEADER_BYTES:]
    head[_FLAGS_OFFSET] |= _HAS_COMMENT
    return bytes(head) + b" " * missing + b"\0" + body


def gunzip(stored: memoryview, payload_bytes: int, *, path: str, offset: int) -> bytes | memoryview:
    """Decompress one gzip member, checksum verified (an empty payload may be stored as no bytes at all).

    Never makes more than `payload_bytes` and one byte, however much the member would expand to.

    Raises:
        CorruptFileError: the bytes are no member, hold more or less than `payload_bytes`, or something follows.
    """
    if payload_bytes == 0 and not stored:
        return stored
    inflater = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
    try:
        payload: bytes = inflater.decompress(stored, payload_bytes + 1)
    except (_ISAL_ERROR, EOFError) as error:
        raise CorruptFileError(f"the block does not decompress: {error}", path=path, offset=offset) from error
    if len(payload) > payload_bytes:
        raise CorruptFileError(f"the block holds more than {payload_bytes} bytes", path=path, offset=offset)
    if not inflater.eof or inflater.unused_data:
        raise CorruptFileError("the compressed block does not end where it should", path=path, offset=offset)
    if len(payload) != payload_bytes:
        raise CorruptFileError(
            f"expected {payload_bytes} payload bytes, found {len(payload)}", path=path, offset=offset
        )
    return payload
