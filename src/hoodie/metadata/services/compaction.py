"""Compaction of the metadata table: base and log files of every file group become one base file.

docs/format/metadata.md §3.9. It runs at the start of a commit, under the table's lock. Without compaction the cost of a
commit would grow with the number of earlier commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.compaction_operation import LOG_BYTES, operation_of, slice_of, work_bytes
from hoodie.files.slices import CountedInstants
from hoodie.format.filenames import name_of
from hoodie.format.instants.commit_metadata import NULL_COMMIT, RuntimeStats, WriteOperation, WriteStat
from hoodie.format.instants.service_metadata import CompactionOperation, CompactionPlan
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.delta_commit import base_file_to_bytes
from hoodie.metadata.folder import MetadataFolder, base_name, commit_metadata
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.paths import METADATA_VERSION, partition_folder
from hoodie.metadata.services.context import ServiceContext
from hoodie.metadata.slices import SliceReader, check_recorded_logs, slices_of
from hoodie.storage import Store, StoreSpec, ask, open_store
from hoodie.timeline import Action, Instant, State, Timeline, read_instant

_CODE = "001"
"""Version 6: what follows the last delta commit in the instant of a compaction. On disk: do not change."""


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """The compaction of one file group. Picklable; every attempt writes the same bytes to the same path."""

    store: StoreSpec
    kind: PartitionKind
    operation: CompactionOperation
    requested_time: str
    version: TableVersion = METADATA_VERSION
    counted: CountedInstants | None = None
    """As `FileSlice.counted`."""


def finish_compaction(context: ServiceContext) -> bool:
    """Finish a compaction that another process left pending. Returns whether there was one.

    A pending log compaction of a JVM writer is undone: its blocks only repeat the rows of other blocks.

    Raises: CorruptFileError if a file of the metadata table does not parse.
    """
    log_compactions = [found for found in context.metadata_timeline.pending() if found.action is Action.LOG_COMPACTION]
    for found in log_compactions:
        context.folder.undo(found.requested_time, Action.LOG_COMPACTION)
    compactions = (found for found in context.metadata_timeline.pending() if found.action is Action.COMPACTION)
    pending = next(compactions, None)
    if pending is None:
        return bool(log_compactions)
    plan = _stored_plan(context.folder, pending)
    if plan is None:
        context.folder.undo(pending.requested_time, Action.COMPACTION)
        return True
    _clear_attempt(context, plan, pending.requested_time)
    _execute(context, plan, pending.requested_time)
    return True


def compact_if_due(context: ServiceContext) -> bool:
    """Compact after ten delta commits. Returns whether it compacted.

    Nothing is compacted while a delta commit belongs to a data instant that is still pending: the instant may be rolled
    back, so its rows must not be in base files.

    Raises: CorruptFileError if a file of the metadata table does not parse.
    """
    if not is_compaction_due(context):
        return False
    plan = _plan(context.folder, context.finished_kinds, context.visible)
    if not plan.operations:
        return False
    requested_time = context.service_time(_CODE)
    context.folder.request(requested_time, Action.COMPACTION, plan.to_bytes())
    _execute(context, plan, requested_time)
    return True


def delta_commits_since_compaction(folder: MetadataFolder, metadata_timeline: Timeline) -> int:
    """Count the delta commits that completed after the last completed compaction was requested."""
    completed = metadata_timeline.completed()
    last = completed.filter(lambda instant: instant.action is Action.COMMIT).latest()
    since = "" if last is None else last.requested_time
    deltas = completed.filter(lambda instant: instant.action is Action.DELTA_COMMIT)
    return sum(folder.order_time(instant) > since for instant in deltas)


def is_compaction_due(context: ServiceContext) -> bool:
    """Return whether enough delta commits completed since the last compaction, and readers see all of them."""
    timeline = context.metadata_timeline
    if delta_commits_since_compaction(context.folder, timeline) < context.limits.delta_commits_to_compact:
        return False
    deltas = timeline.completed().filter(lambda instant: instant.action is Action.DELTA_COMMIT)
    if context.folder.names_base_instants and _is_older_pending(context, deltas):
        return False
    return len(visible_instants(deltas, context.table.timeline)) == len(deltas)


def _is_older_pending(context: ServiceContext, deltas: Timeline) -> bool:
    """Return whether a pending data instant is older than the last delta commit: the JVM waits for it in version 6.

    Its log files would be named by a compaction with a later time than its own.
    """
    last, pending = deltas.latest(), context.table.timeline.pending().instants
    return last is not None and any(found.requested_time < last.requested_time for found in pending)


def _stored_plan(folder: MetadataFolder, pending: Instant) -> CompactionPlan | None:
    """Return the plan of a pending compaction; None if its writer stopped before it stored the plan."""
    content = read_instant(folder.store, folder.layout, pending, State.REQUESTED)
    return CompactionPlan.parse(content) if content else None


def missing_files(folder: MetadataFolder) -> Iterator[tuple[Instant, str]]:
    """Yield each pending compaction and the path of a file that its plan names and that does not exist.

    Such a compaction cannot be finished. Lists the partitions of the plans.

    Raises: CorruptFileError if a plan does not parse.
    """
    for found in folder.timeline().pending():
        plan = _stored_plan(folder, found) if found.action is Action.COMPACTION else None
        operations = () if plan is None else plan.operations
        partitions = {operation.partition_path for operation in operations}
        names = {name: {info.name for info in folder.store.list(partition_folder(name))} for name in partitions}
        for operation in operations:
            for path in filter(None, (operation.data_file_path, *operation.delta_file_paths)):
                if name_of(path) not in names[operation.partition_path]:
                    yield found, f"{partition_folder(operation.partition_path)}/{name_of(path)}"


def _clear_attempt(context: ServiceContext, plan: CompactionPlan, requested_time: str) -> None:
    """Delete the files of an interrupted execution that the tasks of this one do not replace; the plan stays.

    Every execution of this library writes the same files. A process that lost the lock must not delete them: another
    one may have completed the compaction with them.
    """
    folder, kinds = context.folder, context.finished_kinds
    replaced = {
        f"{partition_folder(operation.partition_path)}/{base_name(operation.file_id, requested_time)}"
        for operation in plan.operations
        if operation.partition_path in kinds
    }
    for _, info in list(folder.files_of(requested_time)):
        if info.path not in replaced:
            folder.store.delete(info.path)
    folder.forget(requested_time, Action.COMPACTION, State.INFLIGHT)


def _plan(folder: MetadataFolder, kinds: Mapping[str, PartitionKind], timeline: Timeline) -> CompactionPlan:
    """Plan the compaction of every newest file slice that has log files.

    Lists the partitions, and reads the delta commits since the last compaction.

    Raises: as `check_recorded_logs`.
    """
    version = folder.config.version
    ask(folder.store, *(("list", partition_folder(name)) for name in kinds))
    slices = {name: slices_of(folder.store, kind, timeline, version=version) for name, kind in sorted(kinds.items())}
    if not folder.names_base_instants:
        # A compaction makes the loss of a log file final, so all of them must be there.
        check_recorded_logs(folder.store, slices, timeline)
    operations = tuple(
        operation_of(partition, file_slice)
        for partition, found in slices.items()
        for file_slice in found
        if file_slice.log_files
    )
    return CompactionPlan(operations=operations)


def _execute(context: ServiceContext, plan: CompactionPlan, requested_time: str) -> None:
    """Compact every file group of the plan, then complete the instant."""
    folder = context.folder
    folder.begin(requested_time, Action.COMPACTION)
    kinds = context.finished_kinds
    counted = CountedInstants.of(context.visible) if folder.names_base_instants else None
    # A plan of the JVM may contain partitions that were dropped since, or are being built.
    tasks = [
        CompactionTask(
            folder.store.spec,
            kinds[operation.partition_path],
            operation,
            requested_time,
            folder.config.version,
            counted,
        )
        for operation in plan.operations
        if operation.partition_path in kinds
    ]
    engine = context.table.engine_for(sum(map(work_bytes, plan.operations)))
    # Threads of this process share the store; workers of other engines open one.
    shared = folder.store if isinstance(engine, LocalEngine) else None
    stats = engine.run(partial(compact_file_group, store=shared), tasks)
    done = commit_metadata(WriteOperation.COMPACT, stats, compacted=True)
    context.complete(requested_time, Action.COMPACTION, done.to_bytes(folder.config.version))


def compact_file_group(task: CompactionTask, context: TaskContext, *, store: Store | None = None) -> WriteStat:
    """Write the next base file of one file group, even if it becomes empty. Runs on a worker.

    Memory: a few times the file slice's keys and values.
    """
    store = store or open_store(task.store)
    operation, partition = task.operation, task.operation.partition_path
    file_slice = replace(slice_of(operation, partition_folder(partition)), counted=task.counted)
    content = SliceReader(store, task.version).read_once(file_slice)
    name = base_name(operation.file_id, task.requested_time)
    keys, values = task.kind.compact(content, file_name=name)
    data = base_file_to_bytes(keys, values)
    store.replace(f"{partition_folder(partition)}/{name}", data)
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
        total_log_size_compacted=int((operation.metrics or {}).get(LOG_BYTES, 0)),
    )
