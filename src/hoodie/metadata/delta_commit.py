"""Delta commits of the metadata table: the rows that one instant of the data table adds, and the bytes of its files.

docs/format/metadata.md §2, §3.4 to §3.6.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Final

import pyarrow as pa

from hoodie.files.logs.log_file import next_version
from hoodie.files.staging.staged import new_staged_file, staged_input
from hoodie.format.filenames import BaseFileName, LogFileName
from hoodie.format.hfile import hfile_to_bytes
from hoodie.format.instants.commit_metadata import CommitMetadata, RuntimeStats, WriteOperation, WriteStat
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock
from hoodie.format.metadata_table.metadata_record import metadata_schema
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.folder import MetadataFolder, base_name, commit_metadata, log_name, time_after
from hoodie.metadata.paths import partition_folder
from hoodie.metadata.slice_content import RowBlock, written_logs
from hoodie.storage import Sending, Store
from hoodie.timeline import Action, Timeline


def log_to_bytes(instant_time: str, keys: pa.Array, values: pa.Array, deleted_keys: pa.Array, partition: str) -> bytes:
    """Encode the rows and deletes of one file group in one delta commit: an HFile block, then a delete block.

    `keys` ascend strictly by their UTF-8 bytes. `keys` and `deleted_keys` may be empty; an empty block is omitted.
    """
    headers = {HeaderKey.INSTANT_TIME: instant_time, HeaderKey.SCHEMA: metadata_schema()}
    blocks: list[LogBlock] = []
    if len(keys):
        content = hfile_to_bytes(keys, values, schema_json=metadata_schema())
        blocks.append(LogBlock(block_type=BlockType.HFILE_DATA, headers=headers, content=content))
    if len(deleted_keys):
        deletes = DeleteRecords.without_ordering(deleted_keys, partition)
        blocks.append(LogBlock(block_type=BlockType.DELETE, headers=headers, content=deletes.to_bytes()))
    return b"".join(block.to_bytes() for block in blocks)


def initial_log_to_bytes(instant_time: str) -> bytes:
    """Encode the log file that creates a new file group: one delete block without deletes, 80 bytes."""
    nothing = DeleteRecords.without_ordering(pa.array([], pa.string()), "")
    return LogBlock(
        block_type=BlockType.DELETE, headers={HeaderKey.INSTANT_TIME: instant_time}, content=nothing.to_bytes()
    ).to_bytes()


def base_file_to_bytes(keys: pa.Array, values: pa.Array) -> bytes:
    """Encode a base file; `keys` ascend strictly by their UTF-8 bytes."""
    as_bytes = keys.cast(pa.binary())
    first, last = (as_bytes[0].as_py(), as_bytes[-1].as_py()) if len(keys) else (b"", b"")
    return hfile_to_bytes(
        keys,
        values,
        schema_json=metadata_schema(),
        file_info={"minRecordKey": first, "maxRecordKey": last},
    )


@dataclass(frozen=True, slots=True)
class FileGroupDelta:
    """Rows and deleted keys for one file group; `keys` ascend strictly by their UTF-8 bytes."""

    partition: str
    file_id: str
    keys: pa.Array
    values: pa.Array
    deleted_keys: pa.Array

    @property
    def is_empty(self) -> bool:
        """Whether the delta has neither rows nor deletes: such a file group gets no log file."""
        return not len(self.keys) and not len(self.deleted_keys)


_Log = tuple[WriteStat, Callable[[], None] | None]
"""A log file's write statistic, and the call that writes it; None if it is in its place."""
_NOTED_BYTES_MAX: Final = 64 * 1024
"""Bytes of the columns of a delta whose log file is noted (`written_logs`)."""
_ENCODED_MAX: Final = 64
"""Log files that are encoded before the first one is written, in an object store."""


def write_delta_commit(
    folder: MetadataFolder,
    requested_time: str,
    deltas: Iterable[FileGroupDelta],
    table: DataTable,
    *,
    written: Collection[WriteStat] = (),
    metadata_timeline: Timeline,
) -> None:
    """Write a delta commit: requested, inflight, a log file for each delta with rows or deletes, completed.

    `deltas` may be an iterator: one delta is in memory at a time, and up to `_ENCODED_MAX` for an object store.
    `written` are the write statistics of log files that `write_log` or `stage_log` wrote for this instant before.

    Raises: CommitConflictError if another process writes the same instant.
    """
    version = folder.config.version
    folder.request(requested_time, Action.DELTA_COMMIT)
    planned = CommitMetadata(operation_type=WriteOperation.UPSERT_PREPPED.value)
    logs = _logs(folder, deltas, written, _LogNames(folder, requested_time, metadata_timeline))
    encoded = list(islice(logs, _ENCODED_MAX)) if folder.store.spec.is_remote else []
    is_all = 0 < len(encoded) < _ENCODED_MAX
    stats = [stat for stat, _ in encoded]
    content = commit_metadata(WriteOperation.UPSERT_PREPPED, stats).to_bytes(version)
    if is_all:
        table.prepare(content)
    folder.begin(requested_time, Action.DELTA_COMMIT, planned.to_bytes(version))
    if is_all:
        table.ask_if_held(content)  # beside the log files
    with Sending(folder.store) as sending:
        for _, write in encoded:
            if write is not None:
                sending.send(write)
        for stat, write in logs:
            stats.append(stat)
            if write is not None:
                sending.send(write)
        if not is_all:
            content = commit_metadata(WriteOperation.UPSERT_PREPPED, stats).to_bytes(version)
            table.prepare(content)
    if is_all:
        table.ask_next()  # after the look at the lock that the next line takes
    folder.complete(
        requested_time,
        Action.DELTA_COMMIT,
        content,
        completion_time=time_after(table.clock, table.timeline, metadata_timeline),
        create_last=table.create_last,
    )


def _logs(
    folder: MetadataFolder, deltas: Iterable[FileGroupDelta], written: Iterable[WriteStat], names: _LogNames
) -> Iterator[_Log]:
    """Yield the log files of a delta commit; a delta is encoded when it is yielded."""
    for delta in deltas:
        if not delta.is_empty:
            name = names.next_name(delta.partition, delta.file_id)
            content = _content(delta, names.requested_time)
            path = f"{partition_folder(delta.partition)}/{name}"
            stat = _stat(delta, f"{delta.partition}/{name}", name, len(content))
            yield stat, partial(written_logs.create, folder.store, path, content)
    for stat in written:
        if is_staged_log(stat):
            name = names.next_name(stat.partition_path or "", stat.file_id)
            yield _taken_up(stat, name), partial(_take_up, folder.store, stat, name)
        else:
            yield stat, None


@dataclass(slots=True)
class _LogNames:
    """The names of the log files of one delta commit, several of a file group in their order."""

    folder: MetadataFolder
    requested_time: str
    timeline: Timeline
    """The instants of the metadata table."""
    _last: dict[tuple[str, str], LogFileName] = field(default_factory=dict)
    _listed: dict[str, list[str]] = field(default_factory=dict)

    def next_name(self, partition: str, file_id: str) -> LogFileName:
        """Return the name of the next log file of a file group."""
        last = self._last.get((partition, file_id))
        if last is not None:
            name = replace(last, version=last.version + 1)
        elif self.folder.names_base_instants:
            name = self._after_newest(partition, file_id)
        else:
            name = log_name(file_id, self.requested_time)
        self._last[partition, file_id] = name
        return name

    def _after_newest(self, partition: str, file_id: str) -> LogFileName:
        """Version 6: return the name that follows the files of the newest slice, also those of dead writers."""
        if partition not in self._listed:
            self._listed[partition] = self.folder.store.names(partition_folder(partition))
        names = self._listed[partition]
        bases = [base.instant_time for base in map(BaseFileName.parse, names) if base and base.file_id == file_id]
        logs = [log for log in map(LogFileName.parse, names) if log and log.file_id == file_id]
        known = filter(self.timeline.contains_or_before_start, bases)
        base_time = max(known, default=min((log.instant_time for log in logs), default=self.requested_time))
        return log_name(file_id, base_time, next_version(logs, base_time))


def write_base(
    store: Store, partition: str, file_id: str, keys: pa.Array, values: pa.Array, instant_time: str
) -> WriteStat:
    """Write the base file of one file group; `keys` ascend. An older file of this name is replaced."""
    stat, write = base_to_write(store, partition, file_id, keys, values, instant_time, again=True)
    write()
    return stat


def base_to_write(
    store: Store,
    partition: str,
    file_id: str,
    keys: pa.Array,
    values: pa.Array,
    instant_time: str,
    *,
    again: bool = False,
) -> tuple[WriteStat, Callable[[], None]]:
    """Encode the base file of one file group; return its write statistic, and the call that writes it."""
    data = base_file_to_bytes(keys, values)
    name = base_name(file_id, instant_time)
    write = partial(store.replace if again else store.create, f"{partition_folder(partition)}/{name}", data)
    stat = WriteStat(
        file_id=file_id,
        path=f"{partition}/{name}",
        num_writes=len(keys),
        num_inserts=len(keys),
        total_write_bytes=len(data),
        file_size_bytes=len(data),
        partition_path=partition,
        runtime_stats=RuntimeStats(),
    )
    return stat, write


def write_log(store: Store, requested_time: str, delta: FileGroupDelta, *, version: int = 1) -> WriteStat:
    """Write the log file of one file group, before its delta commit.

    Readers do not see the file until a delta commit of that instant completes. `version` orders several log files of
    one file group. An existing file is replaced: a task that is retried writes the same bytes again.
    """
    name = log_name(delta.file_id, requested_time, version)
    content = _content(delta, requested_time)
    store.replace(f"{partition_folder(delta.partition)}/{name}", content)
    return _stat(delta, f"{delta.partition}/{name}", name, len(content))


def stage_log(store: Store, requested_time: str, delta: FileGroupDelta, folder: str) -> WriteStat:
    """Write the log file of one file group to a folder of staged files: version 6 names it when the commit is written.

    Its name has the base instant of the newest file slice then. A task that is retried writes the same bytes again.
    """
    name = log_name(delta.file_id, requested_time)
    content = _content(delta, requested_time)
    path = f"{folder}/{delta.partition}/{name}"
    with new_staged_file(store, path) as output:
        output.write(content)
    return _stat(delta, path, name, len(content))


def is_staged_log(stat: WriteStat) -> bool:
    """Return whether `stage_log` wrote the log file."""
    return not (stat.path or "").startswith(f"{stat.partition_path}/")


def read_staged_log(store: Store, stat: WriteStat) -> bytes:
    """Return the content of a log file that `stage_log` wrote."""
    with staged_input(store, stat.path or "") as source:
        return bytes(source.read())


def _take_up(store: Store, stat: WriteStat, name: LogFileName) -> None:
    """Write a staged log file to its place."""
    store.create(f"{partition_folder(stat.partition_path or '')}/{name}", read_staged_log(store, stat))


def _taken_up(stat: WriteStat, name: LogFileName) -> WriteStat:
    path = f"{stat.partition_path}/{name}"
    return replace(stat, path=path, prev_commit=name.instant_time, log_version=name.version, log_files=(name.name,))


def _content(delta: FileGroupDelta, requested_time: str) -> bytes:
    content = log_to_bytes(requested_time, delta.keys, delta.values, delta.deleted_keys, delta.partition)
    columns = (delta.keys, delta.values, delta.deleted_keys)
    # A slice of a large column would keep all of it.
    if sum(column.get_total_buffer_size() for column in columns) <= _NOTED_BYTES_MAX:
        written_logs.note(content, _row_blocks(delta, requested_time))
    return content


def _row_blocks(delta: FileGroupDelta, requested_time: str) -> Iterator[RowBlock]:
    """Yield the blocks of the log file, as a reader of the file gets them."""
    if len(delta.keys):
        keys = delta.keys.cast(pa.binary())
        yield RowBlock(keys, delta.values, metadata_schema(), requested_time, frozenset())
    if len(delta.deleted_keys):
        yield RowBlock(delta.deleted_keys.cast(pa.binary()), None, "", requested_time, frozenset())


def _stat(delta: FileGroupDelta, path: str, name: LogFileName, size_bytes: int) -> WriteStat:
    stat = WriteStat.of_log(path, delta.partition, size_bytes, prev_commit=name.instant_time)
    rows = len(delta.keys)
    return replace(stat, num_writes=rows, num_update_writes=rows, num_deletes=len(delta.deleted_keys))
