"""Delta commits of the metadata table: the rows that one instant of the data table adds.

docs/format/metadata.md §3.5, §3.6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation, WriteStat
from hoodie.metadata.delta_log import log_to_bytes
from hoodie.metadata.folder import MetadataFolder, commit_metadata, log_name, time_after
from hoodie.metadata.places import partition_folder
from hoodie.storage import Store
from hoodie.timeline import Action, CreateFile, InstantClock, Timeline


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
