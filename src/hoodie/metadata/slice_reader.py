"""Reads file slices of the metadata table: a base HFile, and the HFile and delete blocks of its log files.

docs/format/metadata.md §2, §3.7, §3.8. Files of the metadata table never change, so what was parsed is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import UnsupportedError
from hoodie.files.logs.log_scan import merge_order, replaced_instants
from hoodie.files.slices import FileSlice, latest_slices
from hoodie.format.hfile import HFileReader
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock, parse_log_blocks
from hoodie.metadata.archived_logs import with_archived_logs
from hoodie.metadata.places import partition_folder
from hoodie.storage import FileInfo, Store
from hoodie.timeline import Timeline

_SMALL_BLOCK_ROWS = 4096
"""Rows up to which a block is parsed at once and kept: seeking in it costs more, time and again."""


class RowBlock:
    """Rows that a log block adds (`values` set) or keys that it deletes (`values` None).

    Rows of a large block are given as its `reader`, and parsed once somebody asks for all of them; `find` seeks.
    """

    __slots__ = ("_entries", "_reader", "instant_time", "replaces", "schema_json")

    def __init__(
        self,
        keys: pa.Array | None,
        values: pa.BinaryArray | None,
        schema_json: str,
        instant_time: str,
        replaces: frozenset[str],
        *,
        reader: HFileReader | None = None,
    ) -> None:
        """`replaces` are instants whose blocks this one stands for (log compaction); usually none."""
        self._entries = None if keys is None else (keys, values)
        self._reader = reader
        self.schema_json = schema_json
        self.instant_time = instant_time
        self.replaces = replaces

    def __len__(self) -> int:
        return len(self._reader) if self._reader is not None else len(self.keys)

    @property
    def keys(self) -> pa.Array:
        """All keys."""
        return self._parsed()[0]

    @property
    def values(self) -> pa.BinaryArray | None:
        """The value of each key; None if the block deletes them."""
        return self._parsed()[1]

    @property
    def held_bytes(self) -> int:
        """Bytes of the columns that were parsed; the block itself is counted by who holds its file."""
        if self._entries is None:
            return 0
        return sum(column.nbytes for column in self._entries if column is not None)

    def find(self, keys: pa.BinaryArray, *, seek: bool) -> tuple[npt.NDArray[np.int64], pa.BinaryArray | None]:
        """Places of those of `keys` that the block names, and their values; None if it deletes them.

        `seek` decompresses only what may hold one of them. Nothing of it is kept.
        """
        if seek and self._reader is not None:
            values = self._reader.get_many(keys)
            return np.flatnonzero(np.asarray(values.is_valid())), values.drop_null()
        block_keys, block_values = self._parsed() if self._reader is None else self._entries or self._reader.entries()
        places = np.asarray(pc.fill_null(pc.index_in(keys, value_set=block_keys), -1))
        rows = np.flatnonzero(places >= 0)
        return rows, None if block_values is None else block_values.take(pa.array(places[rows]))

    def _parsed(self) -> tuple[pa.Array, pa.BinaryArray | None]:
        if self._entries is None:
            assert self._reader is not None
            self._entries = self._reader.entries()
        return self._entries


@dataclass(frozen=True, slots=True)
class LogContent:
    """What a log file adds and deletes, in the order of its blocks."""

    blocks: tuple[RowBlock, ...]
    block_count: int


@dataclass(frozen=True, slots=True)
class SliceContent:
    """A file slice, parsed: base file (None if there is none yet) and row blocks, oldest first."""

    file_slice: FileSlice
    base: HFileReader | None
    blocks: tuple[RowBlock, ...]
    log_block_count: int

    @property
    def base_schema_json(self) -> str:
        """Schema of the values in the base file."""
        return "" if self.base is None else self.base.file_info.get("schema", b"").decode("utf-8", errors="replace")


class SliceReader:
    """Lists and parses the files of metadata partitions; a file is read once, however often it is asked for.

    Memory: the files of the newest slice of each file group that was read. Not thread-safe.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bases: dict[FileInfo, HFileReader] = {}
        self._logs: dict[FileInfo, LogContent] = {}

    def read(self, partition: str, timeline: Timeline) -> list[SliceContent]:
        """Newest file slice of every file group with its parsed files, sorted by file id.

        Raises:
            CorruptFileError: a file does not parse.
        """
        folder = partition_folder(partition)
        infos = {info.path: info for info in self._store.list(folder)}
        sizes = {info.name: info.size_bytes for info in infos.values()}
        found = latest_slices({folder: sizes}, with_archived_logs(self._store, timeline, sizes), {})
        contents = [self._content(file_slice, infos) for file_slice in found]
        self._forget(folder, found, infos)
        return contents

    def read_once(self, file_slice: FileSlice) -> SliceContent:
        """Parse the files of one slice without keeping them."""
        base = None if file_slice.base_file is None else read_base(self._store, file_slice.base_file.path)
        return assembled(file_slice, base, [read_log(self._store, log.path) for log in file_slice.log_files])

    def _content(self, file_slice: FileSlice, infos: Mapping[str, FileInfo]) -> SliceContent:
        base: HFileReader | None = None
        if file_slice.base_file is not None:
            info = infos[file_slice.base_file.path]
            if info not in self._bases:
                self._bases[info] = read_base(self._store, info.path)
            base = self._bases[info]
        logs: list[LogContent] = []
        for log in file_slice.log_files:
            info = infos[log.path]
            if info not in self._logs:
                self._logs[info] = read_log(self._store, info.path)
            logs.append(self._logs[info])
        return assembled(file_slice, base, logs)

    def _forget(self, folder: str, slices: Sequence[FileSlice], infos: Mapping[str, FileInfo]) -> None:
        """Drop parsed files of older slices, so that a long-lived reader does not grow."""
        paths = {log.path for found in slices for log in found.log_files}
        paths |= {found.base_file.path for found in slices if found.base_file is not None}
        kept = {infos[path] for path in paths}
        prefix = f"{folder}/"
        for cache in (self._bases, self._logs):
            for info in [info for info in cache if info.path.startswith(prefix) and info not in kept]:
                del cache[info]


def slices_of(store: Store, partition: str, timeline: Timeline) -> list[FileSlice]:
    """Newest file slice of every file group, sorted by file id, as the completed instants of `timeline` made them."""
    folder = partition_folder(partition)
    sizes = {info.name: info.size_bytes for info in store.list(folder)}
    return latest_slices({folder: sizes}, with_archived_logs(store, timeline, sizes), {})


def believed(metadata_timeline: Timeline, data_timeline: Timeline) -> Timeline:
    """The instants of the metadata table that readers believe: completed, and not pending on the data timeline.

    A delta commit completes before the data instant of the same time does; until then it must not be seen.
    """

    def is_believed(requested_time: str) -> bool:
        data_instant = data_timeline.get(requested_time)
        return data_instant is None or data_instant.is_completed

    return metadata_timeline.filter(lambda instant: instant.is_completed and is_believed(instant.requested_time))


def read_base(store: Store, path: str) -> HFileReader:
    """Open a base file."""
    return HFileReader(store.read(path), path=store.uri(path))


def read_log(store: Store, path: str) -> LogContent:
    """Parse a log file."""
    where = store.uri(path)
    blocks = parse_log_blocks(store.read(path), path=where)
    parsed = [rows for block in blocks if (rows := _row_block(block, where)) is not None]
    return LogContent(tuple(parsed), len(blocks))


def assembled(file_slice: FileSlice, base: HFileReader | None, logs: Sequence[LogContent]) -> SliceContent:
    """A slice's content from its parsed files; `logs` oldest first."""
    blocks = merge_order(block for log in logs for block in log.blocks)
    return SliceContent(file_slice, base, tuple(blocks), sum(log.block_count for log in logs))


def _row_block(block: LogBlock, path: str) -> RowBlock | None:
    """Parse a block's content; None for blocks without rows (torn ones, commands)."""
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
    raise UnsupportedError(f"{path}: a {block.block_type.name} block in the metadata table")
