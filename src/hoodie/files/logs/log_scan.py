"""Find the log blocks of a file slice that count, in the order in which they are merged (docs/format/table.md §4.6).

Of large files only lengths and headers are read; a block's content is read later, when it is needed.

Damaged log files of completed instants are errors; files that failed attempts at a write left behind are skipped
(docs/format/table.md §4.7).
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from hoodie.errors import CorruptFileError, InstantNotFoundError
from hoodie.files.damage import damaged_file, expected_file, missing_file
from hoodie.files.slices import LogFile
from hoodie.format.filenames import LogFileName, name_of
from hoodie.format.hfile.source import BufferSource, ByteSource
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.format.log.log_block import BlockPlace, BlockType, HeaderKey, LogBlock, find_log_blocks
from hoodie.storage import Store, StoreSpec
from hoodie.timeline import (
    Action,
    Instant,
    Layout,
    State,
    Timeline,
    TimelineArchive,
    load_timeline,
    read_instant,
)

_known: dict[tuple[StoreSpec, str, str], bool] = {}
"""Answers of earlier calls by table, folder of the timeline and log file; completed instants do not change."""
_lacking: dict[tuple[StoreSpec, str, str], tuple[Hashable, str | None]] = {}
"""The last answer of `commit_without_block` for each file, with the instants that it was made for."""


@dataclass(frozen=True, slots=True)
class CommitRecords:
    """Where the commits of a table record which rows each log file has (table versions 8 and 9). Picklable.

    `layout` is the layout of the timeline; `history_path` is the folder of its archive. The timeline is read only for
    files that look damaged, once for each such file of a completed instant.
    """

    layout: Layout
    history_path: str = "history"

    def expect_content(self, store: Store, name: LogFileName) -> bool:
        """Return whether the log file must be whole: its instant recorded rows or deletes in it.

        A task that fails or is stopped may leave a log file with the instant in its name and torn or no blocks. The
        commit does not list such a file, or lists it without rows. If the commit is not found, the result is True.

        Raises: CorruptFileError if the commit does not parse.
        """
        file = (store.spec, self.layout.folder, name.name)
        if file not in _known:
            content = self._commit(store, name.instant_time)
            if content is None:
                return True
            stats = _with_records(content, name.instant_time)
            _known[file] = any(name_of(stat.path or "") == name.name for stat in stats)
        return _known[file]

    def commit_without_block(
        self, store: Store, log: LogFile, found: Collection[str], timeline: Timeline
    ) -> str | None:
        """Return a completed instant that recorded rows in a log file of version 6 and that is not in `found`.

        `found` are the instants of the blocks that the file has. Of the instants of the timeline from the slice's on
        the commits are read, once for each file and newest instant; archived ones are not looked for.

        Raises: CorruptFileError: a commit does not parse.
        """
        writes = timeline.writes().completed()
        file, asked = (store.spec, self.layout.folder, log.path), (writes.latest(), frozenset(found))
        known = _lacking.get(file)
        if known is None or known[0] != asked:
            since = (i for i in writes if i.requested_time >= log.name.instant_time and i.requested_time not in found)
            lacking = (i.requested_time for i in since if self._has_rows_in(store, i, log.path))
            known = _lacking[file] = asked, next(lacking, None)
        return known[1]

    def _has_rows_in(self, store: Store, instant: Instant, path: str) -> bool:
        try:
            content = read_instant(store, self.layout, instant)
        except InstantNotFoundError:
            return False
        stats = _with_records(content, instant.requested_time) if content else ()
        return any(stat.path == path for stat in stats)

    def _commit(self, store: Store, requested_time: str) -> bytes | None:
        instant = load_timeline(store, self.layout).get(requested_time)
        if instant is not None:
            return read_instant(store, self.layout, instant) if instant.is_completed else None
        archive = TimelineArchive.of(store, self.layout, history_path=self.history_path, names_are_ranges=False)
        return next((found.metadata for found in archive.instants(requested_time) if found.metadata), None)


def _with_records(content: bytes, requested_time: str) -> Iterator[WriteStat]:
    """Yield the statistics of a commit that have rows or deletes."""
    for stat in CommitMetadata.parse(content, path=requested_time).write_stats():
        if stat.num_writes or stat.num_deletes or stat.num_inserts or stat.num_update_writes or stat.total_log_records:
            yield stat


WHOLE_BYTES_MAX = 4 * 1024 * 1024
"""Files up to this size are read whole."""
KEPT_BYTES_MAX = 64 * 1024 * 1024
"""Bytes of small files that are kept until their blocks are needed; blocks of other files are read again."""
WINDOW_BYTES = 64 * 1024
"""Bytes that one read of a file without kept bytes returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRule:
    """The rule that decides which blocks count.

    `latest_instant` (inclusive): blocks of later instants do not count. `timeline`: only blocks of instants that it
    contains as completed, or that are archived, count; None if the log files were already selected by the instant in
    their names (version 8 and later). Then each file belongs to one completed instant and must be whole, unless
    `commits` shows that a failed attempt left it; without `commits`, every file must be whole.

    `older`: as `timeline`, for the log files that an upgraded table has from version 6. Their blocks have other
    instants than their names.
    """

    latest_instant: str | None = None
    timeline: Timeline | None = None
    commits: CommitRecords | None = None
    older: Timeline | None = None

    def accepts(self, instant_time: str, log: LogFileName | None = None) -> bool:
        """Return whether blocks of this instant count, in the log file `log`."""
        if self.latest_instant is not None and instant_time > self.latest_instant:
            return False
        is_older = self.older is not None and log is not None and log.instant_time != instant_time
        timeline = self.older if is_older else self.timeline
        return timeline is None or timeline.contains_or_before_start(instant_time)

    def requires_whole(self, store: Store, log: LogFile) -> bool:
        """Return whether the file must be whole. Reads the file's commit: call it only if the file looks damaged."""
        if self.timeline is not None:
            return False
        return self.commits is None or self.commits.expect_content(store, log.name)


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

        Raises: CorruptFileError if the file is shorter than when it was scanned, or does not exist any more.
        """
        if self.content is not None:
            return self.place.block(self.content)
        with expected_file(store, self.path):
            content = store.read_range(self.path, self.place.content_offset, self.place.content_bytes)
        if len(content) != self.place.content_bytes:
            message = f"expected a block of {self.place.content_bytes} bytes, got {len(content)}"
            raise CorruptFileError(message, path=store.uri(self.path), offset=self.place.content_offset)
        return self.place.block(content)


class Replacing(Protocol):
    """The properties of a block that `merge_order` reads, as those of `FoundBlock`."""

    @property
    def instant_time(self) -> str: ...
    @property
    def replaces(self) -> frozenset[str]: ...


B = TypeVar("B", bound=Replacing)


def scan_blocks(store: Store, log_files: Sequence[LogFile], rule: ScanRule) -> list[FoundBlock]:
    """Return the data and delete blocks of a slice that count, in the order in which they are merged.

    `log_files` are the log files of the slice, in its order. As `stored_blocks`, without the blocks that a log
    compaction replaced.
    """
    return merge_order(stored_blocks(store, log_files, rule))


def stored_blocks(store: Store, log_files: Sequence[LogFile], rule: ScanRule) -> list[FoundBlock]:
    """Return the data and delete blocks of log files, in the order of the files.

    Torn blocks of failed attempts, change data (CDC) files and blocks, and blocks that a later command block rolled
    back are skipped. Memory: the headers of all blocks, and 64 MiB.

    Raises:
        CorruptFileError: a log file does not parse, or a file that must be whole has a torn block, no block, or not the
            length that is listed.
        MissingFileError: a log file does not exist.
        UnsupportedError: a block has log format version 0.
    """
    found: list[FoundBlock] = []
    kept_bytes = 0
    texts: dict[str, str] = {}
    for log in log_files:
        if log.name.is_cdc:
            continue
        with expected_file(store, log.path):
            data, places = _places(store, log, rule)
        keeps = data is not None and kept_bytes + len(data) <= KEPT_BYTES_MAX
        kept_bytes += len(data) if keeps and data is not None else 0
        for place in places:
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
            _take_up(found, FoundBlock(log.path, shared, content), log.name, rule)
    return found


def logs_of_instant(store: Store, log_files: Iterable[LogFile], instant_time: str) -> list[LogFile]:
    """Return the log files of version 6 that have a block of the instant. The headers of all blocks are read."""
    written = Timeline.of([Instant(requested_time=instant_time, action=Action.DELTA_COMMIT, state=State.COMPLETED)])
    rule = ScanRule(latest_instant=instant_time, timeline=written)
    logs = [log for log in log_files if log.name.instant_time <= instant_time]
    blocks = stored_blocks(store, logs, rule)
    paths = {block.path for block in blocks if block.instant_time == instant_time}
    return [log for log in logs if log.path in paths]


def _take_up(found: list[FoundBlock], block: FoundBlock, name: LogFileName, rule: ScanRule) -> None:
    """Append a block that counts; a rollback command removes the earlier blocks of its target instant."""
    if block.block_type is BlockType.COMMAND:
        if block.place.block(b"").is_rollback:
            target = block.place.headers.get(HeaderKey.TARGET_INSTANT_TIME)
            found[:] = [other for other in found if other.instant_time != target]
    elif rule.accepts(block.instant_time, name):
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


def _places(store: Store, log: LogFile, rule: ScanRule) -> tuple[memoryview | None, list[BlockPlace]]:
    """Return the content of a log file if it is small, and the places of its blocks."""
    listed_bytes = log.size_bytes
    if not listed_bytes:
        info = store.head(log.path)
        if info is None:
            raise missing_file(store, log.path)
        listed_bytes = info.size_bytes
    data: memoryview | None = None
    if listed_bytes > WHOLE_BYTES_MAX:
        source: ByteSource = (stored := _StoredFile(store, log.path, listed_bytes))
        places = list(find_log_blocks(source, path=store.uri(log.path)))
        found_bytes = stored.found_bytes
    else:
        # One byte more than is listed: a longer file is noticed, and its other bytes are not read.
        whole = rule.timeline is not None
        data = memoryview(store.read(log.path) if whole else store.read_range(log.path, 0, listed_bytes + 1))
        places = list(find_log_blocks(BufferSource(data), path=store.uri(log.path)))
        found_bytes = len(data)
    problem = _problem(places, listed_bytes, found_bytes)
    if problem and rule.requires_whole(store, log):
        raise damaged_file(store, log.path, problem)
    if problem and rule.timeline is not None and rule.commits is not None:
        sound = (place for place in places if place.block_type is not BlockType.CORRUPT)
        instants = {place.headers.get(HeaderKey.INSTANT_TIME, "") for place in sound}
        lacking = rule.commits.commit_without_block(store, log, instants, rule.timeline)
        if lacking is not None and (rule.latest_instant is None or lacking <= rule.latest_instant):
            raise damaged_file(store, log.path, f"{problem}; the commit {lacking} recorded rows in it")
    return data, places


def _problem(places: Sequence[BlockPlace], listed_bytes: int, found_bytes: int) -> str:
    """Return what shows that a log file is damaged, or was left by a failed attempt; empty for a whole file."""
    if found_bytes != listed_bytes:
        found = f"{found_bytes} bytes" if found_bytes < listed_bytes else "a longer file"
        return f"expected {listed_bytes} bytes as the table's listing states, found {found}"
    return problem_of_blocks(places)


def problem_of_blocks(blocks: Sequence[BlockPlace | LogBlock]) -> str:
    """Return what shows that not all blocks of a log file are there; empty if no block is torn or missing."""
    torn = next((block.offset for block in blocks if block.block_type is BlockType.CORRUPT), None)
    if torn is not None:
        return f"expected whole log blocks, found a torn block at byte {torn}"
    return "" if blocks else "expected a log file with blocks, found an empty file"


class _StoredFile:
    """A file of a store, read in windows; the last two are kept, because they contain the start and end of a block.

    Reads at the end of the file ask for one byte more than is listed, so that a longer file is noticed.
    """

    def __init__(self, store: Store, path: str, size_bytes: int) -> None:
        self._store = store
        self._path = path
        self._windows: list[tuple[int, memoryview]] = []
        self._is_longer = False
        self.size = size_bytes
        """Size of the file in bytes: as it is listed, or less if a read found its end earlier."""

    @property
    def found_bytes(self) -> int:
        """The size that reads found: one byte more than listed for every longer file."""
        return self.size + self._is_longer

    def read(self, offset: int, length: int) -> memoryview:
        """Return the bytes `[offset, offset + length)`; fewer if the file ends before."""
        for start, window in self._windows:
            if start <= offset and offset + length <= start + len(window):
                return window[offset - start : offset - start + length]
        wanted = max(length, WINDOW_BYTES)
        wanted = self.size + 1 - offset if offset + wanted >= self.size else wanted
        window = memoryview(self._store.read_range(self._path, offset, wanted))
        end = offset + len(window)
        self._is_longer = self._is_longer or end > self.size
        self.size = min(self.size, end if len(window) < wanted else self.size)
        self._windows = [*self._windows[-1:], (offset, window)]
        return window[:length]
