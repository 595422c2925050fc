"""Find the log blocks of a file slice that count, in the order in which they are merged (docs/format/table.md §4.6).

Of large files only lengths and headers are read; a block's content is read later, when it is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from hoodie.errors import CorruptFileError
from hoodie.files.slices import LogFile
from hoodie.format.hfile.source import BufferSource, ByteSource
from hoodie.format.log.log_block import BlockPlace, BlockType, HeaderKey, LogBlock, find_log_blocks
from hoodie.storage import Store
from hoodie.timeline import Timeline

_WHOLE_BYTES: Final = 4 * 1024 * 1024
"""Files up to this size are read whole."""
_KEPT_BYTES: Final = 64 * 1024 * 1024
"""Bytes of small files that are kept until their blocks are needed; blocks of other files are read again."""
_WINDOW_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRule:
    """The rule that decides which blocks count.

    `latest_instant` (inclusive): blocks of later instants do not count. `timeline`: only blocks of instants that it
    contains as completed, or that are archived, count; None if the log files were already selected by the instant in
    their names (version 8 and later).
    """

    latest_instant: str | None = None
    timeline: Timeline | None = None

    def accepts(self, instant_time: str) -> bool:
        """Return whether blocks of this instant count."""
        if self.latest_instant is not None and instant_time > self.latest_instant:
            return False
        return self.timeline is None or self.timeline.contains_or_before_start(instant_time)


@dataclass(frozen=True, slots=True)
class FoundBlock:
    """A block that counts. `content` holds its bytes if they were read along with the headers."""

    path: str
    place: BlockPlace
    content: memoryview | None = field(default=None, repr=False)

    @property
    def block_type(self) -> BlockType:
        """The type of the block."""
        return self.place.block_type

    @property
    def instant_time(self) -> str:
        """The instant that wrote the block."""
        return self.place.headers.get(HeaderKey.INSTANT_TIME, "")

    @property
    def replaces(self) -> frozenset[str]:
        """Instants whose blocks this block replaces (log compaction); usually none."""
        return replaced_instants(self.place.headers.get(HeaderKey.COMPACTED_BLOCK_TIMES))

    @property
    def is_partial(self) -> bool:
        """Whether the rows of the block have only some of the columns."""
        return self.place.headers.get(HeaderKey.IS_PARTIAL, "").lower() == "true"

    def read(self, store: Store) -> LogBlock:
        """Return the block with its content.

        Raises:
            CorruptFileError: the file is shorter than when it was scanned.
        """
        if self.content is not None:
            return self.place.block(self.content)
        content = store.read_range(self.path, self.place.content_offset, self.place.content_bytes)
        if len(content) != self.place.content_bytes:
            message = f"expected a block of {self.place.content_bytes} bytes, got {len(content)}"
            raise CorruptFileError(message, path=store.uri(self.path), offset=self.place.content_offset)
        return self.place.block(content)


class Replacing(Protocol):
    """The properties of a block that `merge_order` reads."""

    @property
    def instant_time(self) -> str:
        """The instant that wrote the block."""
        ...

    @property
    def replaces(self) -> frozenset[str]:
        """Instants whose blocks the block replaces."""
        ...


B = TypeVar("B", bound=Replacing)


def scan_blocks(store: Store, log_files: Sequence[LogFile], rule: ScanRule) -> list[FoundBlock]:
    """Return the data and delete blocks of a slice that count, in the order in which they are merged.

    `log_files` are the log files of the slice, in its order. Torn blocks, change data (CDC) files and blocks, and
    blocks that a later command block rolled back are skipped. Memory: the headers of all blocks, and 64 MiB.

    Raises:
        CorruptFileError, UnsupportedError: a log file does not parse.
    """
    found: list[FoundBlock] = []
    kept_bytes = 0
    texts: dict[str, str] = {}
    for log in log_files:
        if log.name.is_cdc:
            continue
        data, source = _open(store, log)
        keeps = data is not None and kept_bytes + len(data) <= _KEPT_BYTES
        kept_bytes += len(data) if keeps and data is not None else 0
        for place in find_log_blocks(source, path=store.uri(log.path)):
            if place.block_type is BlockType.CORRUPT or place.block_type is BlockType.CDC_DATA:
                continue
            shared = BlockPlace(
                block_type=place.block_type,
                headers={key: texts.setdefault(text, sys.intern(text)) for key, text in place.headers.items()},
                offset=place.offset,
                content_offset=place.content_offset,
                content_bytes=place.content_bytes,
            )
            content = None
            if keeps and data is not None:
                content = data[place.content_offset : place.content_offset + place.content_bytes]
            _take_up(found, FoundBlock(log.path, shared, content), rule)
    return merge_order(found)


def _take_up(found: list[FoundBlock], block: FoundBlock, rule: ScanRule) -> None:
    """Append a block that counts; a rollback command removes the earlier blocks of its target instant."""
    if block.block_type is BlockType.COMMAND:
        if block.place.block(b"").is_rollback:
            target = block.place.headers.get(HeaderKey.TARGET_INSTANT_TIME)
            found[:] = [other for other in found if other.instant_time != target]
    elif rule.accepts(block.instant_time):
        found.append(block)


def merge_order(blocks: Iterable[B]) -> list[B]:
    """Group blocks by instant, oldest first, and put log-compacted blocks in the place of the blocks that they replace.

    Instants have the order of their first blocks. Log-compacted blocks take the position of the newest block that they
    replace, also after several log compactions; they count only if one of the blocks that they replace is present.
    """
    by_instant: dict[str, list[B]] = {}
    for block in blocks:
        by_instant.setdefault(block.instant_time, []).append(block)
    if not any(found[0].replaces for found in by_instant.values()):
        return [block for found in by_instant.values() for block in found]
    stands_for: dict[str, str] = {}
    taken: list[str] = []
    for instant_time in reversed(by_instant):
        replaced = by_instant[instant_time][0].replaces
        final = stands_for.get(instant_time, instant_time)
        if replaced:
            stands_for |= dict.fromkeys(replaced, final)
        elif final not in taken:
            taken.append(final)
    return [block for instant_time in reversed(taken) for block in by_instant[instant_time]]


def replaced_instants(header: str | None) -> frozenset[str]:
    """Return the instants in a COMPACTED_BLOCK_TIMES header; empty if the block has no such header."""
    return frozenset(filter(None, (header or "").split(",")))


def _open(store: Store, log: LogFile) -> tuple[memoryview | None, ByteSource]:
    """Open a log file: a small file is read whole, a large file is read in windows."""
    if log.size_bytes > _WHOLE_BYTES:
        return None, _StoredFile(store, log.path, log.size_bytes)
    data = memoryview(store.read(log.path))
    return data, BufferSource(data)


class _StoredFile:
    """A file of a store, read in windows; the last two are kept, because they contain the start and end of a block."""

    def __init__(self, store: Store, path: str, size_bytes: int) -> None:
        self._store = store
        self._path = path
        self._size = size_bytes
        self._windows: list[tuple[int, memoryview]] = []

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self._size

    def read(self, offset: int, length: int) -> memoryview:
        """Return the bytes `[offset, offset + length)`."""
        for start, window in self._windows:
            if start <= offset and offset + length <= start + len(window):
                return window[offset - start : offset - start + length]
        wanted = min(max(length, _WINDOW_BYTES), self._size - offset)
        window = memoryview(self._store.read_range(self._path, offset, wanted))
        self._windows = [*self._windows[-1:], (offset, window)]
        return window[:length]
