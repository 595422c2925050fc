"""Delta commits of the metadata table: the rows that one instant of the data table adds, and the bytes of its files.

docs/format/metadata.md §2, §3.4 to §3.6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from hoodie.format.hfile import hfile_to_bytes
from hoodie.format.instants.commit_metadata import CommitMetadata, RuntimeStats, WriteOperation, WriteStat
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock
from hoodie.format.metadata_table.metadata_record import metadata_schema
from hoodie.metadata.folder import MetadataFolder, base_name, commit_metadata, log_name, time_after
from hoodie.metadata.paths import partition_folder
from hoodie.storage import Store
from hoodie.timeline import Action, CreateFile, InstantClock, Timeline


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


def write_delta_commit(
    folder: MetadataFolder,
    requested_time: str,
    deltas: Iterable[FileGroupDelta],
    *,
    written: Collection[WriteStat] = (),
    clock: InstantClock,
    create_last: CreateFile,
    data_timeline: Timeline,
    metadata_timeline: Timeline,
) -> None:
    """Write a delta commit: requested, inflight, a log file for each delta with rows or deletes, completed.

    `deltas` may be an iterator: one delta is in memory at a time. `written` are the write statistics of log files that
    `write_log` wrote for this instant before.

    Raises:
        CommitConflictError: another process writes the same instant.
    """
    folder.request(requested_time, Action.DELTA_COMMIT)
    planned = CommitMetadata(operation_type=WriteOperation.UPSERT_PREPPED.value)
    folder.begin(requested_time, Action.DELTA_COMMIT, planned.to_bytes(folder.config.version))
    versions: Counter[tuple[str, str]] = Counter()
    stats = []
    for delta in deltas:
        if not delta.is_empty:
            versions[delta.partition, delta.file_id] += 1
            version = versions[delta.partition, delta.file_id]
            stats.append(write_log(folder.store, requested_time, delta, version=version))
    done = commit_metadata(WriteOperation.UPSERT_PREPPED, [*stats, *written])
    folder.complete(
        requested_time,
        Action.DELTA_COMMIT,
        done.to_bytes(folder.config.version),
        completion_time=time_after(clock, data_timeline, metadata_timeline),
        create_last=create_last,
    )


def write_base(
    store: Store,
    partition: str,
    file_id: str,
    keys: pa.Array,
    values: pa.Array,
    instant_time: str,
    *,
    again: bool = False,
) -> WriteStat:
    """Write the base file of one file group; `keys` ascend. `again`: an older file of this name is replaced."""
    data = base_file_to_bytes(keys, values)
    name = base_name(file_id, instant_time)
    write = store.replace if again else store.create
    write(f"{partition_folder(partition)}/{name}", data)
    return WriteStat(
        file_id=file_id,
        path=f"{partition}/{name}",
        num_writes=len(keys),
        num_inserts=len(keys),
        total_write_bytes=len(data),
        file_size_bytes=len(data),
        partition_path=partition,
        runtime_stats=RuntimeStats(),
    )


def write_log(
    store: Store, requested_time: str, delta: FileGroupDelta, *, version: int = 1, overwrite: bool = False
) -> WriteStat:
    """Write the log file of one file group, before or within its delta commit.

    Readers do not see the file until a delta commit of that instant completes. `version` orders several log files of
    one file group. `overwrite` replaces an existing file: a task that is retried writes the same bytes again.
    """
    name = log_name(delta.file_id, requested_time, version)
    content = log_to_bytes(requested_time, delta.keys, delta.values, delta.deleted_keys, delta.partition)
    write = store.replace if overwrite else store.create
    write(f"{partition_folder(delta.partition)}/{name}", content)
    stat = WriteStat.of_log(f"{delta.partition}/{name}", delta.partition, len(content), prev_commit=requested_time)
    rows = len(delta.keys)
    return replace(stat, num_writes=rows, num_update_writes=rows, num_deletes=len(delta.deleted_keys))
