"""Gzip members and CRC32 by ISA-L, or by zlib in a worker of Spark that has only what `hoodie.ship` sends.

ISA-L's deflate is about five times as fast as zlib's when writing and twice as fast when reading
(docs/decisions/0008-isal.md).
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final, cast

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
