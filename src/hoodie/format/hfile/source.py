"""Where the bytes of an HFile come from: a buffer in memory, or ranges of something larger (an object).

A reader asks for the trailer, the index and the data blocks that it needs, and for nothing else.
"""

from __future__ import annotations

from typing import Any, Protocol

from hoodie.errors import CorruptFileError


class ByteSource(Protocol):
    """Bytes that can be read in ranges, such as one file of a store. Its content must not change."""

    @property
    def size(self) -> int:
        """Number of bytes."""
        ...

    def read(self, offset: int, length: int) -> bytes | memoryview:
        """Bytes `[offset, offset + length)`; the range lies inside the source."""
        ...


class BufferSource:
    """A buffer as a source; ranges are views, never copies."""

    def __init__(self, buffer: Any) -> None:
        self._view = memoryview(buffer).cast("B")

    @property
    def size(self) -> int:
        """Number of bytes."""
        return len(self._view)

    def read(self, offset: int, length: int) -> memoryview:
        """Bytes `[offset, offset + length)`."""
        return self._view[offset : offset + length]


def open_source(content: Any) -> ByteSource:
    """`content` itself if it is a source, else a source over its buffer (bytes, memoryview, mmap, Arrow buffer)."""
    try:
        return BufferSource(content)
    except TypeError:
        source: ByteSource = content
        return source


def read_exactly(source: ByteSource, offset: int, length: int, *, path: str) -> memoryview:
    """Read a range that the file's own structure asks for.

    Raises:
        CorruptFileError: the range is not inside the source, or the source gave other than `length` bytes.
    """
    if offset < 0 or length < 0 or offset + length > source.size:
        raise CorruptFileError(
            f"bytes [{offset}, {offset + length}) lie outside the file's {source.size}", path=path, offset=offset
        )
    found = memoryview(source.read(offset, length)).cast("B")
    if len(found) != length:
        raise CorruptFileError(f"expected {length} bytes, got {len(found)}", path=path, offset=offset)
    return found
