"""The codec of HFile blocks: a payload is one gzip member, or stored uncompressed (docs/format/metadata.md §1.10).

ISA-L makes gzip members and CRC32, or zlib in a worker of Spark that has only what `hoodie.ship` sends. ISA-L's deflate
is about five times as fast as zlib's when writing and twice as fast when reading (docs/decisions/0008-isal.md).
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, cast

from hoodie.errors import CorruptFileError

if TYPE_CHECKING:
    from isal import igzip_lib, isal_zlib
else:
    try:
        from isal import igzip_lib, isal_zlib
    except ImportError:
        igzip_lib = isal_zlib = None

_LEVEL: Final = 1
_GZIP_WBITS: Final = 31

_ISAL_ERRORS: tuple[type[Exception], ...] = ()
if igzip_lib is not None:
    # The stub file of isal declares its exception as a value.
    _ISAL_ERRORS = (cast("type[Exception]", igzip_lib.IsalError),)
DEFLATE_ERRORS: Final = (zlib.error, EOFError, *_ISAL_ERRORS)
"""The errors of a decompressor for bytes that are not a gzip member."""
_HEADER_BYTES = 10
_FLAGS_OFFSET = 3
_HAS_COMMENT = 0x10


def gzip_bytes(payload: Any) -> bytes:
    """Return the payload as one gzip member whose header has ten bytes."""
    if igzip_lib is not None:
        return bytes(igzip_lib.compress(payload, _LEVEL, igzip_lib.COMP_GZIP))
    deflater = zlib.compressobj(_LEVEL, wbits=_GZIP_WBITS)
    return deflater.compress(payload) + deflater.flush()


def decompressor() -> Any:
    """Return a new decompressor of a gzip member: `decompress(data, max_length)`, `eof` and `unused_data`."""
    if igzip_lib is not None:
        return igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP)
    return zlib.decompressobj(wbits=_GZIP_WBITS)


def crc32(data: Any) -> int:
    """Return the CRC32 of the bytes."""
    return int((zlib if isal_zlib is None else isal_zlib).crc32(data))


class Compression(IntEnum):
    """Codec of every block of a file. On disk: do not change."""

    GZIP = 1
    NONE = 2


def with_comment(member: bytes, length: int) -> bytes:
    """Return a gzip member that is longer: its header has a comment of this length, which every reader skips."""
    head, body = bytearray(member[:_HEADER_BYTES]), member[_HEADER_BYTES:]
    head[_FLAGS_OFFSET] |= _HAS_COMMENT
    return bytes(head) + b" " * length + b"\0" + body


def gunzip(stored: memoryview, payload_bytes: int, *, path: str, offset: int) -> bytes | memoryview:
    """Decompress one gzip member and verify its checksum.

    An empty payload may be stored as no bytes at all. The output never exceeds `payload_bytes` + 1 bytes, whatever the
    full size of the decompressed member.

    Raises: CorruptFileError if the bytes are not a gzip member, the member holds more or fewer bytes than
        `payload_bytes`, or other bytes follow it.
    """
    if payload_bytes == 0 and not stored:
        return stored
    inflater = decompressor()
    try:
        payload: bytes = inflater.decompress(stored, payload_bytes + 1)
    except DEFLATE_ERRORS as error:
        raise CorruptFileError(f"the block does not decompress: {error}", path=path, offset=offset) from error
    if len(payload) > payload_bytes:
        raise CorruptFileError(
            f"expected {payload_bytes} payload bytes, found more than {payload_bytes} bytes", path=path, offset=offset
        )
    if not inflater.eof or inflater.unused_data:
        raise CorruptFileError("the gzip member does not end at the end of its block", path=path, offset=offset)
    if len(payload) != payload_bytes:
        raise CorruptFileError(
            f"expected {payload_bytes} payload bytes, found {len(payload)}", path=path, offset=offset
        )
    return payload
