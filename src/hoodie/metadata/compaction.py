"""Compaction of the metadata table: base and log files of every file group become one base file.

docs/format/metadata.md §3.9. It runs at the start of a commit, under the table's lock. Without it a commit would cost
more with every commit before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hoodie.errors import CorruptFileError
from hoodie.files.slices import BaseFile, FileSlice, LogFile
from hoodie.format.commit_metadata import NULL_COMMIT, RuntimeStats, WriteOperation, WriteStat
from hoodie.format.filenames import BaseFileName, LogFileName
from hoodie.format.service_metadata import CompactionOperation, CompactionPlan
from hoodie.metadata.delta_log import base_file_to_bytes
from hoodie.metadata.folder import MetadataFolder, base_name, commit_metadata, time_after
from hoodie.metadata.partition_kind import PartitionKind
from hoodie.metadata.places import METADATA_HOODIE_FOLDER, partition_folder
from hoodie.metadata.slice_reader import SliceReader, believed, slices_of
from hoodie.timeline import Action, Instant, InstantClock, State, Timeline, read_instant

DELTA_COMMITS_MAX = 10
_MIB = 1024 * 1024


def compact_if_due(
    folder: MetadataFolder,
    kinds: Mapping[str, PartitionKind],
    *,
    clock: InstantClock,
    data_timeline: Timeline,
    metadata_timeline: Timeline,
) -> bool:
    """Finish a compaction that somebody left pending, or compact after ten delta commits; says whether it did.

    Nothing is compacted while a delta commit belongs to a data instant that is still pending: its rows must stay out
    of base files, as it may be rolled back.

    Raises:
        CorruptFileError: a file of the metadata table does not parse.
    """
    pending = _pending_compaction(metadata_timeline)
    if pending is not None:
        plan = _stored_plan(folder, pending)
        if plan is None:
            folder.undo(pending.requested_time, Action.COMPACTION)
            return True
        _clear_attempt(folder, pending.requested_time)
    else:
        if not _is_due(metadata_timeline, data_timeline):
            return False
        requested_time = time_after(clock, data_timeline, metadata_timeline)
        plan = _plan(folder, kinds, believed(metadata_timeline, data_timeline))
        folder.request(requested_time, Action.COMPACTION, plan.to_bytes())
        pending = Instant(requested_time=requested_time, action=Action.COMPACTION, state=State.REQUESTED)
    folder.begin(pending.requested_time, Action.COMPACTION)
    # A plan of the JVM may name partitions that were dropped since.
    operations = [operation for operation in plan.operations if operation.partition_path in kinds]
    stats = [_execute(folder, kinds, operation, pending.requested_time) for operation in operations]
    done = commit_metadata(WriteOperation.COMPACT, stats, compacted=True)
    folder.complete(
        pending.requested_time,
        Action.COMPACTION,
        done.to_bytes(folder.config.version),
        completion_time=time_after(clock, data_timeline, metadata_timeline),
    )
    return True


def _pending_compaction(metadata_timeline: Timeline) -> Instant | None:
    pending = metadata_timeline.filter(lambda instant: instant.action is Action.COMPACTION and not instant.is_completed)
    return pending.instants[0] if pending.instants else None


def _is_due(metadata_timeline: Timeline, data_timeline: Timeline) -> bool:
    completed = metadata_timeline.completed()
    last = completed.filter(lambda instant: instant.action is Action.COMMIT).latest()
    since = "" if last is None else last.requested_time
    deltas = [instant for instant in completed if instant.action is Action.DELTA_COMMIT]
    if sum((instant.completion_time or "") > since for instant in deltas) < DELTA_COMMITS_MAX:
        return False
    visible = believed(metadata_timeline, data_timeline)
    return all(visible.get(instant.requested_time) is not None for instant in deltas)


def _stored_plan(folder: MetadataFolder, pending: Instant) -> CompactionPlan | None:
    """The plan of a pending compaction; None if its writer died before it was on disk."""
    content = read_instant(folder.store, folder.layout, pending, State.REQUESTED, folder=METADATA_HOODIE_FOLDER)
    return CompactionPlan.parse(content) if content else None


def _clear_attempt(folder: MetadataFolder, requested_time: str) -> None:
    """Delete what an interrupted execution wrote; its plan stays."""
    for _, info in list(folder.files_of(requested_time)):
        folder.store.delete(info.path)
    folder.forget(requested_time, Action.COMPACTION, State.INFLIGHT)


def _plan(folder: MetadataFolder, kinds: Mapping[str, PartitionKind], timeline: Timeline) -> CompactionPlan:
    """Every newest file slice that has log files. Pure but for the listing of the partitions."""
    operations = tuple(
        _operation(partition, file_slice)
        for partition in sorted(kinds)
        for file_slice in slices_of(folder.store, partition, timeline)
        if file_slice.log_files
    )
    return CompactionPlan(operations=operations)


def _operation(partition: str, file_slice: FileSlice) -> CompactionOperation:
    base = file_slice.base_file
    logs_bytes = sum(log.size_bytes for log in file_slice.log_files)
    read_mb = float((logs_bytes + (base.size_bytes if base else 0)) // _MIB)
    write_mb = float((base.size_bytes if base else 0) // _MIB)
    return CompactionOperation(
        base_instant_time=file_slice.base_instant_time,
        delta_file_paths=tuple(log.name.name for log in file_slice.log_files),
        data_file_path=base.name if base else None,
        file_id=file_slice.file_id,
        partition_path=partition,
        metrics={
            "TOTAL_LOG_FILES": float(len(file_slice.log_files)),
            "TOTAL_LOG_FILES_SIZE": float(logs_bytes),
            "TOTAL_IO_READ_MB": read_mb,
            "TOTAL_IO_WRITE_MB": write_mb,
            "TOTAL_IO_MB": read_mb + write_mb,
        },
    )


def _execute(
    folder: MetadataFolder, kinds: Mapping[str, PartitionKind], operation: CompactionOperation, requested_time: str
) -> WriteStat:
    """Write the next base file of one file group, even if it becomes empty."""
    partition = operation.partition_path
    content = SliceReader(folder.store).read_once(_slice_of(operation))
    name = base_name(operation.file_id, requested_time)
    keys, values = kinds[partition].compact(content, file_name=name)
    data = base_file_to_bytes(keys, values)
    folder.store.create(f"{partition_folder(partition)}/{name}", data)
    rows_before = 0 if content.base is None else len(content.base)
    return WriteStat(
        file_id=operation.file_id,
        path=f"{partition}/{name}",
        prev_commit=operation.base_instant_time if operation.data_file_path else NULL_COMMIT,
        num_writes=len(keys),
        num_inserts=max(0, len(keys) - rows_before),
        num_update_writes=min(len(keys), rows_before),
        total_write_bytes=len(data),
        file_size_bytes=len(data),
        partition_path=partition,
        prev_base_file=operation.data_file_path,
        runtime_stats=RuntimeStats(),
        total_log_records=sum(len(block.keys) for block in content.blocks),
        total_log_blocks=content.log_block_count,
        total_updated_records_compacted=len(keys),
        total_log_files_compacted=len(operation.delta_file_paths),
        total_log_size_compacted=int((operation.metrics or {}).get("TOTAL_LOG_FILES_SIZE", 0)),
    )


def _slice_of(operation: CompactionOperation) -> FileSlice:
    """The file slice that a plan names; sizes are not in a plan and stay 0."""
    folder = partition_folder(operation.partition_path)
    base: BaseFile | None = None
    if operation.data_file_path:
        parsed = BaseFileName.parse(operation.data_file_path)
        if parsed is None:
            raise CorruptFileError("a compaction plan names no base file", path=operation.data_file_path)
        base = BaseFile(folder, operation.data_file_path, parsed.file_id, parsed.instant_time, 0)
    return FileSlice(folder, operation.file_id, operation.base_instant_time, base, tuple(_logs(operation, folder)))


def _logs(operation: CompactionOperation, folder: str) -> Sequence[LogFile]:
    parsed = [LogFileName.parse(name) for name in operation.delta_file_paths]
    logs = [LogFile(folder, name, 0) for name in parsed if name is not None]
    if len(logs) != len(operation.delta_file_paths):
        raise CorruptFileError("a compaction plan names files that are no log files", path=operation.file_id)
    return sorted(logs, key=lambda log: log.name.sort_key)
