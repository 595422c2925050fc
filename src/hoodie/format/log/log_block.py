"""Blocks of a log file: framing, headers, torn blocks (docs/format/table.md §4.2, §4.3).

The modules `data_block` and `delete_block` read and write the content of blocks.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.format.hfile.source import BufferSource, ByteSource, read_exactly

_MAGIC = b"#HUDI#"
_SIZE_FIELD_BYTES = 8
_PREFIX_BYTES = len(_MAGIC) + _SIZE_FIELD_BYTES
_FIXED = struct.Struct(">iii")  # format version, block type, header count
_FORMAT_VERSION = 1
_FORMAT_VERSION_ANCIENT = 0
# Fixed fields, content length, footer count, trailing length: no block of version 1 is smaller.
_BLOCK_BYTES_MIN = _FIXED.size + 8 + 4 + 8
_ROLLBACK_COMMAND = "0"
_HEAD_BYTES = 64 * 1024
"""Number of bytes of a block that are read first. If its head is longer, up to `_HEAD_BYTES_MAX` are read."""
_HEAD_BYTES_MAX = 64 * 1024 * 1024
"""Maximum length of the headers of one block; the longest ones are a schema and the positions of records."""
_HEADERS_MAX = 1024
_TORN_MAX = 10_000
"""Maximum number of places in a file that begin like a block and are none. Each dead writer leaves one of them."""
_SEARCH_BYTES = 4 * 1024 * 1024


class BlockType(IntEnum):
    """Kind of a log block. On disk: do not change."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6

    @property
    def holds_data(self) -> bool:
        """Whether the content of the block is records."""
        return self in (BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA, BlockType.CDC_DATA)


class HeaderKey(IntEnum):
    """Key of a block header. On disk: do not change."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBlock:
    """One block of a log file.

    `content` is a view of the parsed buffer (bytes or a memory-mapped file). Parsing does not decode or copy it; the
    content of a mapped file is read on first use. `offset` is the offset of the block's first byte in its file,
    `content_offset` is the offset of the content's first byte. A CORRUPT block has no headers; its content is the bytes
    that could not be read.
    """

    block_type: BlockType
    headers: Mapping[HeaderKey, str] = field(default_factory=dict)
    content: memoryview | bytes = b""
    offset: int = 0
    content_offset: int = 0

    @property
    def instant_time(self) -> str | None:
        """The instant that wrote the block; for a command block, the instant that issued the command."""
        return self.headers.get(HeaderKey.INSTANT_TIME)

    @property
    def is_rollback(self) -> bool:
        """Whether the block rolls back the earlier blocks of the instant `TARGET_INSTANT_TIME`."""
        return (
            self.block_type is BlockType.COMMAND and self.headers.get(HeaderKey.COMMAND_BLOCK_TYPE) == _ROLLBACK_COMMAND
        )

    def to_bytes(self) -> bytes:
        """Encode the block; `offset` and `content_offset` are not part of it."""
        parts: list[bytes | memoryview] = [_FIXED.pack(_FORMAT_VERSION, self.block_type, len(self.headers))]
        for key, text in self.headers.items():
            value = text.encode()
            parts.append(struct.pack(">ii", key, len(value)) + value)
        parts += (struct.pack(">q", len(self.content)), self.content, struct.pack(">i", 0))
        size = sum(map(len, parts)) + 8
        return b"".join((_MAGIC, struct.pack(">q", size), *parts, struct.pack(">q", size + len(_MAGIC))))


def rollback_block(instant_time: str, target: str) -> LogBlock:
    """Return the command block by which the rollback `instant_time` undoes the earlier blocks of `target`."""
    headers = {
        HeaderKey.INSTANT_TIME: instant_time,
        HeaderKey.TARGET_INSTANT_TIME: target,
        HeaderKey.COMMAND_BLOCK_TYPE: _ROLLBACK_COMMAND,
    }
    return LogBlock(block_type=BlockType.COMMAND, headers=headers)


_BLOCK_TYPES = frozenset(BlockType)
_HEADER_KEYS = frozenset(HeaderKey)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPlace:
    """The place and the headers of a block whose content was not read. The fields are as in `LogBlock`."""

    block_type: BlockType
    headers: Mapping[HeaderKey, str] = field(default_factory=dict)
    offset: int
    content_offset: int
    content_bytes: int

    def block(self, content: memoryview | bytes) -> LogBlock:
        """Return the block with its content."""
        return LogBlock(
            block_type=self.block_type,
            headers=self.headers,
            content=content,
            offset=self.offset,
            content_offset=self.content_offset,
        )


def parse_log_blocks(buf: bytes | memoryview, *, path: str) -> list[LogBlock]:
    """Split a whole log file into its blocks, in file order. Contents are views, not copies.

    Raises: as `find_log_blocks`.
    """
    source = BufferSource(buf)
    found = find_log_blocks(source, path=path)
    return [place.block(source.read(place.content_offset, place.content_bytes)) for place in found]


def find_log_blocks(
    source: ByteSource,
    *,
    path: str,
    search_bytes: int = _SEARCH_BYTES,
    head_bytes: tuple[int, int] = (_HEAD_BYTES, _HEAD_BYTES_MAX),
) -> Iterator[BlockPlace]:
    """Find the blocks of a log file, in file order; only lengths and headers are read.

    A block is torn if its lengths disagree or if it extends past the end of the file. A torn block becomes one CORRUPT
    block that extends to the next whole block or to the end of the file. Time: linear in the size of the file.

    `search_bytes`: bytes that are read together to find the next whole block. `head_bytes`: bytes that are read to
    parse the head of a block, first and at most.

    Raises:
        CorruptFileError: a block is not torn, but its headers are damaged or its type is unknown; or more than 10,000
            torn blocks.
        UnsupportedError: a block has log format version 0 (before Hudi 0.4).
    """
    position = 0
    search = _MagicSearch(source, search_bytes)
    while position < source.size:
        end = _end_of_whole_block(source, position)
        if end is not None:
            yield _parse_head(source, position, end, head_bytes, path=path)
            position = end
            continue
        start = position
        while end is None and position < source.size:
            position = search.next_after(position, path=path)
            end = _end_of_whole_block(source, position)
        yield BlockPlace(
            block_type=BlockType.CORRUPT, offset=start, content_offset=start, content_bytes=position - start
        )


def _end_of_whole_block(source: ByteSource, start: int) -> int | None:
    """Return the offset of the end of the block at `start`, or None if the block is torn."""
    if start + _PREFIX_BYTES > source.size:
        return None
    prefix = source.read(start, _PREFIX_BYTES)
    if prefix[: len(_MAGIC)] != _MAGIC:
        return None
    size = int.from_bytes(prefix[len(_MAGIC) :], "big", signed=True)
    end = start + _PREFIX_BYTES + size
    if size < _BLOCK_BYTES_MIN or end > source.size:
        return None
    rest = source.read(end - 8, min(8 + len(_MAGIC), source.size - end + 8))
    trailing = int.from_bytes(rest[:8], "big", signed=True)
    is_followed = len(rest) < 8 + len(_MAGIC) or rest[8:] == _MAGIC
    return end if trailing - len(_MAGIC) == size and is_followed else None


class _MagicSearch:
    """Finds the magics of a file in ascending order; each byte is read once."""

    def __init__(self, source: ByteSource, search_bytes: int) -> None:
        self._source = source
        self._search_bytes = search_bytes
        self._window = b""
        self._start = 0
        self._found = 0

    def next_after(self, position: int, *, path: str) -> int:
        """Return the offset of the first magic after `position`, or the end of the file.

        Raises: CorruptFileError if it is called too often.
        """
        self._found += 1
        if self._found > _TORN_MAX:
            raise CorruptFileError(
                f"expected at most {_TORN_MAX} torn blocks in a log file, found more; restore the file from a copy",
                path=path,
                offset=position,
            )
        position += 1
        while position < self._source.size:
            if not self._start <= position <= self._start + len(self._window) - len(_MAGIC):
                self._start = position
                length = min(self._search_bytes, self._source.size - position)
                self._window = bytes(self._source.read(position, length))
            found = self._window.find(_MAGIC, position - self._start)
            if found >= 0:
                return self._start + found
            if self._start + len(self._window) >= self._source.size:
                break
            position = self._start + len(self._window) - len(_MAGIC) + 1
        return self._source.size


def _parse_head(source: ByteSource, start: int, end: int, head_bytes: tuple[int, int], *, path: str) -> BlockPlace:
    """Read the headers and the content length of a block that is not torn."""
    for limit in head_bytes:
        view = read_exactly(source, start, min(limit, end - start), path=path)
        with contextlib.suppress(_HeadTooLongError):
            return _parse_block(view, start, end, path=path)
    message = f"expected headers of up to {head_bytes[-1]} bytes, found longer ones"
    raise CorruptFileError(message, path=path, offset=start)


class _HeadTooLongError(Exception):
    """The headers of a block extend past the bytes that were read."""


def _parse_block(view: memoryview, start: int, end: int, *, path: str) -> BlockPlace:
    """Parse the head of the block in `[start, end)`, whose first bytes are in `view`."""
    version, type_number, header_count = _FIXED.unpack_from(view, _PREFIX_BYTES)
    if version == _FORMAT_VERSION_ANCIENT:
        raise UnsupportedError(
            f"{path} at byte {start}: expected log format version 1, found version 0; compact the table with Hudi first"
        )
    if version != _FORMAT_VERSION:
        raise CorruptFileError(f"expected log format version 1, found {version}", path=path, offset=start)
    if type_number not in _BLOCK_TYPES:
        raise CorruptFileError(f"unknown block type {type_number}", path=path, offset=start)
    limit = end - start - 8
    headers, position = _parse_headers(view, _PREFIX_BYTES + _FIXED.size, header_count, limit, path=path, start=start)
    content_bytes = int.from_bytes(view[position : position + 8], "big", signed=True)
    position += 8
    if not 0 <= content_bytes <= limit - position - 4:
        message = f"a content of {content_bytes} bytes does not fit the block"
        raise CorruptFileError(message, path=path, offset=start + position)
    return BlockPlace(
        block_type=BlockType(type_number),
        headers=headers,
        offset=start,
        content_offset=start + position,
        content_bytes=content_bytes,
    )


def _parse_headers(
    view: memoryview, position: int, count: int, limit: int, *, path: str, start: int
) -> tuple[dict[HeaderKey, str], int]:
    """Return the headers at `position`, and the position after them; headers with unknown keys are left out.

    Positions count from the block's first byte, which is at offset `start`. The headers must end before `limit`.
    """
    headers: dict[HeaderKey, str] = {}
    if count > _HEADERS_MAX:
        message = f"expected up to {_HEADERS_MAX} headers, found {count}"
        raise CorruptFileError(message, path=path, offset=start + position)
    for _ in range(count):
        if position + 8 > limit:
            raise CorruptFileError("the headers extend past the block", path=path, offset=start + position)
        _check_read(view, position + 8)
        key, length = struct.unpack_from(">ii", view, position)
        position += 8
        if not 0 <= length <= limit - position:
            message = f"a header of {length} bytes does not fit the block"
            raise CorruptFileError(message, path=path, offset=start + position)
        _check_read(view, position + length)
        if key in _HEADER_KEYS:
            try:
                headers[HeaderKey(key)] = str(view[position : position + length], "utf-8")
            except UnicodeDecodeError as error:
                message = f"a header is not UTF-8 text: {error}"
                raise CorruptFileError(message, path=path, offset=start + position) from error
        position += length
    if count < 0 or position + 8 > limit:
        raise CorruptFileError("a block has no content length after its headers", path=path, offset=start + position)
    _check_read(view, position + 8)
    return headers, position


def _check_read(view: memoryview, end: int) -> None:
    if end > len(view):
        raise _HeadTooLongError
