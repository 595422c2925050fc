"""Sources of the bytes of an HFile: a buffer in memory, or ranges of a larger object in a store.

A reader reads only the trailer, the index and the data blocks that it needs.
"""

from __future__ import annotations

from typing import Any, Protocol

from hoodie.errors import CorruptFileError


class ByteSource(Protocol):
    """Bytes that can be read in ranges, such as one file of a store. The bytes must not change."""

    @property
    def size(self) -> int:
        """Number of bytes."""

    def read(self, offset: int, length: int) -> bytes | memoryview:
        """Return the bytes `[offset, offset + length)`; the range must be inside the source."""


class BufferSource:
    """A source over a buffer; ranges are views, never copies."""

    def __init__(self, buffer: Any) -> None:
        self._view = memoryview(buffer).cast("B")

    @property
    def size(self) -> int:
        """Number of bytes."""
        return len(self._view)

    def read(self, offset: int, length: int) -> memoryview:
        """Return the bytes `[offset, offset + length)`."""
        return self._view[offset : offset + length]


def open_source(content: Any) -> ByteSource:
    """Return `content` if it is a source, else a source over its buffer (bytes, memoryview, mmap, Arrow buffer)."""
    try:
        return BufferSource(content)
    except TypeError:
        source: ByteSource = content
        return source


def read_exactly(source: ByteSource, offset: int, length: int, *, path: str) -> memoryview:
    """Read a range whose bounds come from the file's own fields.

    Raises: CorruptFileError if the range is not inside the source, or the source did not return `length` bytes.
    """
    if offset < 0 or length < 0 or offset + length > source.size:
        raise CorruptFileError(
            f"bytes [{offset}, {offset + length}) are outside the file of {source.size} bytes", path=path, offset=offset
        )
    found = memoryview(source.read(offset, length)).cast("B")
    if len(found) != length:
        raise CorruptFileError(f"expected {length} bytes, found {len(found)}", path=path, offset=offset)
    return found
