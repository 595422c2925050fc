"""Blocks of a log file: framing, headers, torn blocks (docs/format/table.md §4.2, §4.3).

The content of blocks has modules of its own: `data_block` and `delete_block`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from hoodie.errors import CorruptFileError, UnsupportedError

_MAGIC = b"#HUDI#"
_SIZE_FIELD_BYTES = 8
_PREFIX_BYTES = len(_MAGIC) + _SIZE_FIELD_BYTES
_FIXED = struct.Struct(">iii")  # format version, block type, header count
_FORMAT_VERSION = 1
_FORMAT_VERSION_ANCIENT = 0
# Fixed fields, content length, footer count, trailing length: no block of version 1 is smaller.
_BLOCK_BYTES_MIN = _FIXED.size + 8 + 4 + 8
_ROLLBACK_COMMAND = "0"
_SEARCH_BYTES = 1 << 20
"""What is copied at once while the next block is searched behind a torn one."""


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
        """Whether the content is records."""
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

    `content` is a view into the buffer that was parsed (bytes or a memory-mapped file): nothing is decoded, copied or,
    of a mapped file, read before somebody asks. `offset` is the block's first byte in its file, `content_offset` the
    first byte of the content. A CORRUPT block has no headers; its content is the bytes that could not be read.
    """

    block_type: BlockType
    headers: Mapping[HeaderKey, str] = field(default_factory=dict)
    content: memoryview | bytes = b""
    offset: int = 0
    content_offset: int = 0

    @property
    def instant_time(self) -> str | None:
        """The instant that wrote the block (of a command: that ordered it)."""
        return self.headers.get(HeaderKey.INSTANT_TIME)

    @property
    def is_rollback(self) -> bool:
        """Whether the block takes back the earlier blocks of `TARGET_INSTANT_TIME`."""
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


_BLOCK_TYPES = frozenset(BlockType)
_HEADER_KEYS = frozenset(HeaderKey)


def rollback_block(*, instant_time: str, target_instant_time: str) -> LogBlock:
    """Make the command that takes back the earlier blocks of an instant (table version 6)."""
    return LogBlock(
        block_type=BlockType.COMMAND,
        headers={
            HeaderKey.INSTANT_TIME: instant_time,
            HeaderKey.TARGET_INSTANT_TIME: target_instant_time,
            HeaderKey.COMMAND_BLOCK_TYPE: _ROLLBACK_COMMAND,
        },
    )


def parse_log_blocks(buf: bytes | memoryview, *, path: str) -> list[LogBlock]:
    """Split a whole log file into its blocks, in file order.

    A block that is torn (its lengths disagree, or it runs past the end of the file) becomes one CORRUPT block that
    reaches to the next magic or the end of the file; fewer than six bytes at the end are ignored, as the JVM does.
    Contents are views, not copies.

    Raises:
        CorruptFileError: the frame of a block is whole but its headers are not, or its type is unknown.
        UnsupportedError: blocks of log format version 0 (before Hudi 0.4).
    """
    view = memoryview(buf)
    blocks: list[LogBlock] = []
    position = 0
    while position + len(_MAGIC) <= len(view):
        end = _end_of_whole_block(view, position)
        if end is None:
            following = _find_magic(view, position + 1)
            blocks.append(
                LogBlock(
                    block_type=BlockType.CORRUPT,
                    content=view[position:following],
                    offset=position,
                    content_offset=position,
                )
            )
            position = following
        else:
            blocks.append(_parse_block(view, position, end, path=path))
            position = end
    return blocks


def _end_of_whole_block(view: memoryview, start: int) -> int | None:
    """Offset behind the block at `start`, or None if it is torn."""
    if view[start : start + len(_MAGIC)] != _MAGIC or start + _PREFIX_BYTES > len(view):
        return None
    size = int.from_bytes(view[start + len(_MAGIC) : start + _PREFIX_BYTES], "big", signed=True)
    end = start + _PREFIX_BYTES + size
    if size < _BLOCK_BYTES_MIN or end > len(view):
        return None
    trailing = int.from_bytes(view[end - 8 : end], "big", signed=True)
    follows = view[end : end + len(_MAGIC)]
    is_followed = len(follows) < len(_MAGIC) or follows == _MAGIC
    return end if trailing - len(_MAGIC) == size and is_followed else None


def _find_magic(view: memoryview, start: int) -> int:
    """Offset of the next magic at or behind `start`, or the end of the file."""
    for first in range(start, len(view), _SEARCH_BYTES):
        found = bytes(view[first : first + _SEARCH_BYTES + len(_MAGIC) - 1]).find(_MAGIC)
        if found >= 0:
            return first + found
    return len(view)


def _parse_block(view: memoryview, start: int, end: int, *, path: str) -> LogBlock:
    version, type_number, header_count = _FIXED.unpack_from(view, start + _PREFIX_BYTES)
    if version == _FORMAT_VERSION_ANCIENT:
        raise UnsupportedError(f"{path} at byte {start}: log format version 0; compact the table with Hudi first")
    if version != _FORMAT_VERSION:
        raise CorruptFileError(f"expected log format version 1, found {version}", path=path, offset=start)
    if type_number not in _BLOCK_TYPES:
        raise CorruptFileError(f"unknown block type {type_number}", path=path, offset=start)
    limit = end - 8
    headers, position = _parse_headers(view, start + _PREFIX_BYTES + _FIXED.size, header_count, limit, path=path)
    content_bytes = int.from_bytes(view[position : position + 8], "big", signed=True)
    position += 8
    if not 0 <= content_bytes <= limit - position - 4:
        raise CorruptFileError(f"a content of {content_bytes} bytes does not fit the block", path=path, offset=position)
    return LogBlock(
        block_type=BlockType(type_number),
        headers=headers,
        content=view[position : position + content_bytes],
        offset=start,
        content_offset=position,
    )


def _parse_headers(
    view: memoryview, position: int, count: int, limit: int, *, path: str
) -> tuple[dict[HeaderKey, str], int]:
    """The headers at `position`, and the position behind them; keys that nobody defined are left out."""
    headers: dict[HeaderKey, str] = {}
    for _ in range(count):
        if position + 8 > limit:
            raise CorruptFileError("the headers run past the block", path=path, offset=position)
        key, length = struct.unpack_from(">ii", view, position)
        position += 8
        if not 0 <= length <= limit - position:
            raise CorruptFileError(f"a header of {length} bytes does not fit the block", path=path, offset=position)
        if key in _HEADER_KEYS:
            try:
                headers[HeaderKey(key)] = str(view[position : position + length], "utf-8")
            except UnicodeDecodeError as error:
                raise CorruptFileError(f"a header is no text: {error}", path=path, offset=position) from error
        position += length
    if count < 0 or position + 8 > limit:
        raise CorruptFileError("the headers leave no room for content", path=path, offset=position)
    return headers, position
