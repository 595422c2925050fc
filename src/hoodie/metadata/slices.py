"""Read file slices of the metadata table: a base HFile, and the HFile and delete blocks of its log files.

docs/format/metadata.md §2, §3.7, §3.8. Files of the metadata table never change, so parsed files are cached. A missing
file is in no listing: only the commits name it, so the log files are compared with the commits.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from hoodie.errors import InstantNotFoundError, UnsupportedError
from hoodie.files.damage import check_length, damaged_file
from hoodie.files.logs.log_scan import problem_of_blocks, replaced_instants
from hoodie.files.slices import CountedInstants, FileSlice, latest_slices
from hoodie.format.filenames import LogFileName, name_of
from hoodie.format.hfile import KEPT_BYTES_MAX, HFileReader
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock, parse_log_blocks
from hoodie.format.metadata_table.partition_names import FILES
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.instants import fills_a_partition, with_archived_fills, with_archived_logs
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.paths import METADATA_COMMITS, METADATA_VERSION, expected_metadata_file, partition_folder
from hoodie.metadata.slice_content import LogContent, RowBlock, SliceContent, assembled, written_logs
from hoodie.storage import FileInfo, Store, together
from hoodie.storage.waves import forget_answers, taking_unordered
from hoodie.timeline import Action, Instant, Timeline, read_instant


@dataclass(frozen=True, slots=True)
class StoredFile:
    """The `size` bytes of a file from the byte `start` on: a `ByteSource`."""

    store: Store
    path: str
    size: int
    start: int = 0

    def read(self, offset: int, length: int) -> bytes:
        """Return the bytes `[offset, offset + length)`; fewer if the file ends before."""
        with expected_metadata_file(self.store, self.path):
            return self.store.read_range(self.path, self.start + offset, length)


def check_recorded_logs(
    store: Store,
    slices: Mapping[str, Sequence[FileSlice]],
    timeline: Timeline,
    *,
    times: Collection[str] | None = None,
) -> None:
    """Check that each log file that a delta commit recorded exists and has its length.

    `slices` are the newest slices of metadata partitions, by partition. `times` limits the check to delta commits with
    these requested times. One read for each delta commit since the last compaction; if the instant that filled a
    partition is archived, three requests more, once for each process.

    Raises:
        MissingFileError: a log file does not exist.
        CorruptFileError: a log file has another length, or a commit does not parse.
    """
    timeline = with_archived_fills(store, timeline, [found for group in slices.values() for found in group])
    checked = [
        instant
        for instant in timeline
        if _is_delta(instant)
        and (times is None or instant.requested_time in times)
        and any(_belongs(instant, found, timeline) for group in slices.values() for found in group)
    ]
    contents = together(store, *(partial(_content_of_instant, store, instant) for instant in checked))
    for instant, content in zip(checked, contents, strict=True):
        if content is None:
            continue
        recorded = CommitMetadata.parse(content, path=str(instant)).partition_to_write_stats
        for partition, group in slices.items():
            stats = {stat.path or "": stat.file_size_bytes for stat in recorded.get(partition, ())}
            current = [found for found in group if _belongs(instant, found, timeline)]
            _check_partition(store, partition, current, stats)


def _content_of_instant(store: Store, instant: Instant) -> bytes | None:
    """Return the content; None if it was archived since the timeline was loaded: a compaction has its rows."""
    try:
        return read_instant(store, METADATA_COMMITS.layout, instant)
    except InstantNotFoundError:
        return None


def unlogged_instants(timeline: Timeline, found: FileSlice) -> Iterator[str]:
    """Yield the requested times of delta commits that should have a log file in the slice and have none.

    `timeline` has the completion time of the instant that filled the partition: see `with_archived_fills`.
    """
    logged = {log.name.instant_time for log in found.log_files}
    for instant in timeline:
        time = instant.requested_time
        if (
            _is_delta(instant)
            and time not in logged
            and not fills_a_partition(time)
            and _belongs(instant, found, timeline)
        ):
            yield time


def _check_partition(store: Store, partition: str, group: Sequence[FileSlice], recorded: Mapping[str, int]) -> None:
    by_id = {found.file_id: found for found in group}
    for path, size_bytes in recorded.items():
        name = LogFileName.parse(name_of(path))
        found = None if name is None else by_id.get(name.file_id)
        if name is None or found is None:
            continue
        stored = {log.name.name: log.size_bytes for log in found.log_files}
        full = f"{partition_folder(partition)}/{name.name}"
        with expected_metadata_file(store, full):
            if name.name not in stored:
                raise FileNotFoundError(full)
            check_length(store, full, listed_bytes=size_bytes, found_bytes=stored[name.name])


def _is_delta(instant: Instant) -> bool:
    return instant.is_completed and instant.action is Action.DELTA_COMMIT


def _belongs(instant: Instant, found: FileSlice, timeline: Timeline) -> bool:
    """Return whether log files of a delta commit belong to the slice.

    Commits before the first log file of a slice without a base file may have written to a partition that was dropped.
    A build that fills a partition deletes the log files of all commits that completed before it, and has their entries.
    If it is not known when the build completed, only the commits whose log files are in the slice belong to it.
    """
    base_time = found.base_instant_time
    if fills_a_partition(base_time) and instant.requested_time != base_time:
        filled_at = timeline.completion_time_of(base_time)
        if filled_at is not None:
            return (instant.completion_time or instant.requested_time) > filled_at
        if timeline.get(base_time) is None:
            return any(log.name.instant_time == instant.requested_time for log in found.log_files)
    if found.base_file is None:
        return instant.requested_time >= base_time
    return (instant.completion_time or instant.requested_time) >= base_time


_SMALL_BLOCK_ROWS = 4096
"""A block of up to this many rows is parsed whole and kept. Seeking in such a block costs more than parsing it once."""

_ENTRIES_BYTES_MAX = (1 << 31) - 1
"""Bytes of the entries of a base file. Bloom filters of few keys compress a thousandfold; Arrow's arrays end here."""
WHOLE_BYTES_MAX = 8 * 1024 * 1024
"""Size up to which a base file is read whole: one more request to an object store costs more than these bytes."""


class SliceReader:
    """Lists and parses the files of metadata partitions; files in the cache of this process are not read again.

    Memory: as `read_slice`. Not thread-safe.
    """

    def __init__(
        self,
        store: Store,
        version: TableVersion = METADATA_VERSION,
        *,
        files: Callable[[str], Mapping[str, FileInfo]] | None = None,
    ) -> None:
        """Create a reader; nothing is read. `files` returns the files of a partition; by default it is listed."""
        self._store = store
        self._version = version
        self._files = files or self._listing
        # Times in seconds: without a tag, a file of a table that was built anew may look like the old one.
        self._scope = object() if store.spec.is_remote else None
        self._compared: set[str] = set()

    def read(self, kind: PartitionKind, timeline: Timeline) -> list[SliceContent]:
        """Read the newest file slice of every file group of a partition, sorted by file id.

        `timeline` holds the visible instants of the metadata table.

        Nearly every delta commit has a log file in the partition `files`. Those that have none are read, once.

        Raises:
            CorruptFileError: a file does not parse; or a log file of the partition `files` does not exist.
        """
        if kind.name == FILES and not self._version.log_name_has_base_instant:
            with taking_unordered() as taken:
                infos, found = self._listed(kind, timeline)
            unlogged = self._unlogged(found, timeline)
            if unlogged and taken:
                # An answer that came ahead may be older than the timeline.
                forget_answers()
                infos, found = self._listed(kind, timeline)
                unlogged = self._unlogged(found, timeline)
            if unlogged:
                check_recorded_logs(self._store, {FILES: found}, timeline, times=unlogged)
                self._compared |= unlogged
        else:
            infos, found = self._listed(kind, timeline)
        return [self._content(file_slice, infos) for file_slice in found]

    def _listed(self, kind: PartitionKind, timeline: Timeline) -> tuple[Mapping[str, FileInfo], list[FileSlice]]:
        infos = self._files(kind.name)
        return infos, slices_among(self._store, kind, timeline, infos.values(), version=self._version)

    def _listing(self, partition: str) -> Mapping[str, FileInfo]:
        return {info.path: info for info in self._store.list(partition_folder(partition))}

    def _unlogged(self, slices: Sequence[FileSlice], timeline: Timeline) -> set[str]:
        """Return the delta commits without a log file in the slices that were not compared before."""
        timeline = with_archived_fills(self._store, timeline, slices)
        return {time for found in slices for time in unlogged_instants(timeline, found)} - self._compared

    def read_once(self, file_slice: FileSlice) -> SliceContent:
        """Parse the files of one slice without keeping them."""
        base = file_slice.base_file
        reads = [partial(read_log, self._store, log.path, version=self._version) for log in file_slice.log_files]
        first = [] if base is None else [partial(read_base, self._store, base.path)]
        found = together(self._store, *first, *reads)
        return assembled(file_slice, found[0] if first else None, found[len(first) :])

    def _content(self, file_slice: FileSlice, infos: Mapping[str, FileInfo]) -> SliceContent:
        files = [infos[path] for path in file_slice.paths]
        return read_slice(self._store, file_slice, files, version=self._version, scope=self._scope)


def slices_of(
    store: Store, kind: PartitionKind, timeline: Timeline, *, version: TableVersion = METADATA_VERSION
) -> list[FileSlice]:
    """List the newest file slice of every file group of a partition, sorted by file id.

    Files of instants that are not completed in `timeline` are left out.
    """
    return slices_among(store, kind, timeline, store.list(partition_folder(kind.name)), version=version)


def slices_among(
    store: Store,
    kind: PartitionKind,
    timeline: Timeline,
    files: Iterable[FileInfo],
    *,
    version: TableVersion = METADATA_VERSION,
) -> list[FileSlice]:
    """Return the slices as `slices_of` does, of the partition's files that the caller has listed."""
    sizes = {info.name: info.size_bytes for info in files}
    if not version.log_name_has_base_instant:
        timeline = with_archived_logs(store, timeline, sizes, kind)
    return newest_slices(kind.name, sizes, timeline, version=version)


def newest_slices(
    partition: str, sizes: Mapping[str, int], timeline: Timeline, *, version: TableVersion
) -> list[FileSlice]:
    """Return the slices of files, given by name, of a partition of a metadata table of this version."""
    found = latest_slices({partition_folder(partition): sizes}, timeline, {}, version=version)
    if not version.log_name_has_base_instant:
        return found
    counted = CountedInstants.of(timeline)
    return [replace(file_slice, counted=counted) for file_slice in found]


def read_base(store: Store, path: str) -> HFileReader:
    """Open a base file.

    Raises: CorruptFileError if the file does not parse, or does not exist.
    """
    with expected_metadata_file(store, path):
        return HFileReader(store.read(path), path=store.uri(path), entries_bytes_max=_ENTRIES_BYTES_MAX)


def open_base(store: Store, info: FileInfo) -> HFileReader:
    """Open a base file. A small file is kept whole; of a large file each look-up reads the blocks that it needs.

    Raises: CorruptFileError if the file does not parse, or does not exist.
    """
    if info.size_bytes <= WHOLE_BYTES_MAX:
        return read_base(store, info.path)
    source = StoredFile(store, info.path, info.size_bytes)
    return HFileReader(source, path=store.uri(info.path), entries_bytes_max=_ENTRIES_BYTES_MAX)


def read_log(store: Store, path: str, *, version: TableVersion = METADATA_VERSION) -> LogContent:
    """Parse a log file of a completed instant; in version 6 of any instants, whose torn blocks are left out.

    Raises:
        CorruptFileError: the file does not parse or does not exist; or it has a torn block or no block, and its delta
            commit recorded rows in it.
    """
    where = store.uri(path)
    with expected_metadata_file(store, path):
        data = store.read(path)
        known = written_logs.find(data)
        if known is not None:
            return known
        blocks = parse_log_blocks(data, path=where)
        problem = problem_of_blocks(blocks)
        if problem and not version.validates_log_blocks:
            name = LogFileName.parse(name_of(path))
            if name is None or METADATA_COMMITS.expect_content(store, name):
                raise damaged_file(store, path, problem)
        return _content_of(blocks, where)


def log_content(data: bytes, *, path: str) -> LogContent:
    """Parse the content of a log file; `path` is for errors. Raises: CorruptFileError."""
    return _content_of(parse_log_blocks(data, path=path), path)


def _content_of(blocks: Sequence[LogBlock], where: str) -> LogContent:
    parsed: list[RowBlock] = []
    undone: list[tuple[int, str]] = []
    for block in blocks:
        rows = _row_block(block, where)
        if rows is not None:
            parsed.append(rows)
        elif block.is_rollback:
            undone.append((len(parsed), block.headers.get(HeaderKey.TARGET_INSTANT_TIME, "")))
    return LogContent(tuple(parsed), len(blocks), tuple(undone))


def _row_block(block: LogBlock, path: str) -> RowBlock | None:
    """Parse a block's content; None for blocks without rows (corrupt blocks and commands)."""
    replaces = replaced_instants(block.headers.get(HeaderKey.COMPACTED_BLOCK_TIMES))
    instant_time = block.instant_time or ""
    if block.block_type is BlockType.HFILE_DATA:
        reader = HFileReader(memoryview(block.content), path=path)
        schema = block.headers.get(HeaderKey.SCHEMA) or reader.file_info.get("schema", b"").decode()
        if len(reader) <= _SMALL_BLOCK_ROWS:
            return RowBlock(*reader.entries(), schema, instant_time, replaces)
        return RowBlock(None, None, schema, instant_time, replaces, reader=reader)
    if block.block_type is BlockType.DELETE:
        deletes = DeleteRecords.parse(block.content, path=path, offset=block.content_offset)
        return RowBlock(deletes.record_keys.cast(pa.binary()), None, "", instant_time, replaces)
    if block.block_type in (BlockType.CORRUPT, BlockType.COMMAND):
        return None
    raise UnsupportedError(f"{path}: this release cannot read a {block.block_type.name} block in the metadata table")


CACHE_BYTES_MAX = 256 * 1024 * 1024
"""Maximum bytes of parsed files that a process keeps."""


def read_slice(
    store: Store,
    file_slice: FileSlice,
    files: Sequence[FileInfo],
    *,
    version: TableVersion | None = None,
    scope: object = None,
) -> SliceContent:
    """Parse the files of a slice; files in the cache of this process are not read again.

    `files` are the listed files of the slice, the base file first. `version` is the table's, by default the one whose
    log files the slice has. `scope`: who shares the parsed files. Memory: the files. Up to `CACHE_BYTES_MAX` of
    them stay in the cache.

    Raises: CorruptFileError if a file does not parse.
    """
    if version is None:
        version = METADATA_VERSION if file_slice.counted is None else TableVersion.SIX
    reads: list[Callable[[], Any]] = [partial(_parse_log, store, info, version) for info in files]
    if file_slice.base_file is not None:
        reads[0] = partial(open_base, store, files[0])
    keys = [_key(store, info, version, scope) for info in files]
    found = _kept.get_all(store, files, keys, reads)
    base: HFileReader | None = found.pop(0) if file_slice.base_file is not None else None
    return assembled(file_slice, base, found)


def _parse_log(store: Store, info: FileInfo, version: TableVersion) -> LogContent:
    return written_logs.find_file(store, info) or read_log(store, info.path, version=version)


_FileKey = tuple[str, tuple[tuple[str, str], ...], str, int, int, bool, object]
"""URI and options of a store; path, size and change time of a file; may a log file have torn blocks; tag or scope."""


def _key(store: Store, info: FileInfo, version: TableVersion, scope: object) -> _FileKey:
    # A tuple of plain values: hashing and comparing it runs no Python.
    spec = store.spec
    may_be_torn = version.validates_log_blocks
    return spec.uri, spec.options, info.path, info.size_bytes, info.modified_ms, may_be_torn, info.tag or scope


class _ParsedFiles:
    """A cache of the parsed files that this process used last. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parsed: OrderedDict[_FileKey, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    def get_all(
        self, store: Store, infos: Sequence[FileInfo], keys: Sequence[_FileKey], reads: Sequence[Callable[[], Any]]
    ) -> list[Any]:
        """Return the parsed files, from the cache or by their read; those that are read are read together."""
        with self._lock:
            known = [self._parsed.get(key) for key in keys]
            for key, found in zip(keys, known, strict=True):
                if found is not None:
                    self._parsed.move_to_end(key)
        missing = [place for place, found in enumerate(known) if found is None]
        read = together(store, *(reads[place] for place in missing))
        for place, parsed in zip(missing, read, strict=True):
            self.put(keys[place], parsed, infos[place])
            known[place] = parsed, 0
        return [found[0] for found in known if found is not None]

    def put(self, key: _FileKey, parsed: Any, info: FileInfo) -> None:
        """Keep a parsed file."""
        with self._lock:
            if key not in self._parsed:
                self._parsed[key] = parsed, _held_bytes(parsed, info)
                self._bytes += self._parsed[key][1]
            while self._bytes > CACHE_BYTES_MAX and len(self._parsed) > 1:
                _, (_, dropped_bytes) = self._parsed.popitem(last=False)
                self._bytes -= dropped_bytes


_ROW_BYTES = 128
"""What a row of a log block takes once it is parsed, about; a large block is parsed when it is used."""


def _held_bytes(parsed: HFileReader | LogContent, info: FileInfo) -> int:
    """Return the bytes that a file takes in memory.

    Of a base file at most 8 MiB, and the entries that the reader keeps; a log file and its parsed columns.
    """
    if isinstance(parsed, HFileReader):
        return min(info.size_bytes, WHOLE_BYTES_MAX) + min(4 * info.size_bytes, KEPT_BYTES_MAX)
    return info.size_bytes + sum(max(block.held_bytes, _ROW_BYTES * len(block)) for block in parsed.blocks)


_kept = _ParsedFiles()
