"""Reads file slices of the metadata table: a base HFile, and the HFile and delete blocks of its log files.

docs/format/metadata.md §2, §3.7, §3.8. Files of the metadata table never change, so parsed files are cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from hoodie.errors import UnsupportedError
from hoodie.files.damage import damaged_file
from hoodie.files.logs.log_scan import problem_of_blocks, replaced_instants
from hoodie.files.slices import FileSlice, latest_slices
from hoodie.format.filenames import LogFileName, name_of
from hoodie.format.hfile import HFileReader
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock, parse_log_blocks
from hoodie.format.metadata_table.partition_names import FILES
from hoodie.metadata.archived_logs import with_archived_fills, with_archived_logs
from hoodie.metadata.damage import expected_metadata_file
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.places import METADATA_COMMITS, partition_folder
from hoodie.metadata.recorded_logs import check_recorded_logs, unlogged_instants
from hoodie.metadata.slice_content import LogContent, RowBlock, SliceContent, assembled
from hoodie.metadata.stored_file import StoredFile
from hoodie.storage import FileInfo, Store
from hoodie.timeline import Timeline

_SMALL_BLOCK_ROWS = 4096
"""A block of up to this many rows is parsed whole and kept. Seeking in such a block costs more than parsing it once."""

WHOLE_BYTES_MAX = 8 * 1024 * 1024
"""Size up to which a base file is read whole: one more request to an object store costs more than these bytes."""


class SliceReader:
    """Lists and parses the files of metadata partitions. Each file is opened once.

    Memory: the files of the newest slice of each file group that was read, without large base files. Not thread-safe.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bases: dict[FileInfo, HFileReader] = {}
        self._logs: dict[FileInfo, LogContent] = {}
        self._compared: set[str] = set()

    def read(self, kind: PartitionKind, timeline: Timeline) -> list[SliceContent]:
        """Read the newest file slice of every file group of a partition, sorted by file id.

        `timeline` holds the visible instants of the metadata table.

        Nearly every delta commit has a log file in the partition `files`. Those that have none are read, once.

        Raises:
            CorruptFileError: a file does not parse; or a log file of the partition `files` does not exist.
        """
        folder = partition_folder(kind.name)
        infos = {info.path: info for info in self._store.list(folder)}
        sizes = {info.name: info.size_bytes for info in infos.values()}
        found = latest_slices({folder: sizes}, with_archived_logs(self._store, timeline, sizes, kind), {})
        if kind.name == FILES:
            self._check_none_missing(found, timeline)
        contents = [self._content(file_slice, infos) for file_slice in found]
        self._forget(folder, found, infos)
        return contents

    def _check_none_missing(self, slices: Sequence[FileSlice], timeline: Timeline) -> None:
        timeline = with_archived_fills(self._store, timeline, slices)
        unlogged = {time for found in slices for time in unlogged_instants(timeline, found)} - self._compared
        if unlogged:
            check_recorded_logs(self._store, {FILES: slices}, timeline, times=unlogged)
            self._compared |= unlogged

    def read_once(self, file_slice: FileSlice) -> SliceContent:
        """Parse the files of one slice without keeping them."""
        base = None if file_slice.base_file is None else read_base(self._store, file_slice.base_file.path)
        return assembled(file_slice, base, [read_log(self._store, log.path) for log in file_slice.log_files])

    def _content(self, file_slice: FileSlice, infos: Mapping[str, FileInfo]) -> SliceContent:
        base: HFileReader | None = None
        if file_slice.base_file is not None:
            info = infos[file_slice.base_file.path]
            if info not in self._bases:
                self._bases[info] = open_base(self._store, info)
            base = self._bases[info]
        logs: list[LogContent] = []
        for log in file_slice.log_files:
            info = infos[log.path]
            if info not in self._logs:
                self._logs[info] = read_log(self._store, info.path)
            logs.append(self._logs[info])
        return assembled(file_slice, base, logs)

    def _forget(self, folder: str, slices: Sequence[FileSlice], infos: Mapping[str, FileInfo]) -> None:
        """Drop parsed files of older slices, so that the memory of a reader stays bounded."""
        paths = {log.path for found in slices for log in found.log_files}
        paths |= {found.base_file.path for found in slices if found.base_file is not None}
        kept = {infos[path] for path in paths}
        prefix = f"{folder}/"
        for cache in (self._bases, self._logs):
            for info in [info for info in cache if info.path.startswith(prefix) and info not in kept]:
                del cache[info]


def slices_of(store: Store, kind: PartitionKind, timeline: Timeline) -> list[FileSlice]:
    """List the newest file slice of every file group of a partition, sorted by file id.

    Files of instants that are not completed in `timeline` are left out.
    """
    return slices_among(store, kind, timeline, store.list(partition_folder(kind.name)))


def slices_among(store: Store, kind: PartitionKind, timeline: Timeline, files: Iterable[FileInfo]) -> list[FileSlice]:
    """Return the slices as `slices_of` does, of the partition's files that the caller has listed."""
    sizes = {info.name: info.size_bytes for info in files}
    timeline = with_archived_logs(store, timeline, sizes, kind)
    return latest_slices({partition_folder(kind.name): sizes}, timeline, {})


def read_base(store: Store, path: str) -> HFileReader:
    """Open a base file.

    Raises:
        CorruptFileError: the file does not parse, or does not exist.
    """
    with expected_metadata_file(store, path):
        return HFileReader(store.read(path), path=store.uri(path))


def open_base(store: Store, info: FileInfo) -> HFileReader:
    """Open a base file. A small file is kept whole; of a large file each look-up reads the blocks that it needs.

    Raises:
        CorruptFileError: the file does not parse, or does not exist.
    """
    if info.size_bytes <= WHOLE_BYTES_MAX:
        return read_base(store, info.path)
    return HFileReader(StoredFile(store, info.path, info.size_bytes), path=store.uri(info.path))


def read_log(store: Store, path: str) -> LogContent:
    """Parse a log file of a completed instant.

    Raises:
        CorruptFileError: the file does not parse or does not exist; or it has a torn block or no block, and its delta
            commit recorded rows in it.
    """
    where = store.uri(path)
    with expected_metadata_file(store, path):
        blocks = parse_log_blocks(store.read(path), path=where)
        problem = problem_of_blocks(blocks)
        if problem:
            _check_leftover(store, path, problem)
        parsed = [rows for block in blocks if (rows := _row_block(block, where)) is not None]
    return LogContent(tuple(parsed), len(blocks))


def _check_leftover(store: Store, path: str, problem: str) -> None:
    name = LogFileName.parse(name_of(path))
    if name is None or METADATA_COMMITS.expect_content(store, name):
        raise damaged_file(store, path, problem)


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
