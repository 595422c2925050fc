"""Rollback of a delta commit of the metadata table (docs/format/metadata.md §3.10)."""

from __future__ import annotations

from hoodie.errors import UnsupportedError
from hoodie.format.instants.service_metadata import InstantInfo, RollbackPlan, rollback_metadata, rollback_plan
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.folder import MetadataFolder, time_after
from hoodie.metadata.instants import fills_a_partition, is_build
from hoodie.metadata.paths import REBUILD_ADVICE
from hoodie.timeline import Action, Instant, State, Timeline, read_instant

_LOG_COMPACTION = ".logcompaction.requested"
_ROLLBACK_CODE = "006"
"""Version 6: what follows the time of the data table's rollback. On disk: do not change."""


def can_roll_back(folder: MetadataFolder, target_time: str, *, was_completed: bool) -> bool:
    """Return whether no base file or folded log file holds rows of a data instant: see `MetadataTable.can_roll_back`.

    If a completed data instant has no delta commit, the delta commit is archived, or a partition was filled later, from
    the files of the data table.
    """
    timeline = folder.timeline()
    target = timeline.get(target_time, Action.DELTA_COMMIT)
    if target is None:
        return not was_completed
    if not target.is_completed:
        return True
    written = folder.order_time(target)
    names = folder.store.names(folder.layout.instant_folder())
    if any(name.endswith(_LOG_COMPACTION) and name.partition(".")[0] > written for name in names):
        return False
    return not any(_may_hold(folder, instant, written) for instant in timeline.completed())


def _may_hold(folder: MetadataFolder, instant: Instant, written: str) -> bool:
    """Return whether a completed instant wrote base files with the rows of delta commits completed at `written`."""
    if instant.action is Action.COMMIT:
        return instant.requested_time > written
    if folder.names_base_instants and is_build(instant.requested_time):
        # It has the rows of all instants that completed before its end, and version 6 stores no completion times.
        return True
    return fills_a_partition(instant.requested_time) and folder.order_time(instant) > written


def roll_back(folder: MetadataFolder, target_time: str, *, rollback_time: str, table: DataTable) -> None:
    """Roll back the delta commit `target_time` with the rollback instant `rollback_time`: see `MetadataTable.rollback`.

    Safe to repeat with the same rollback instant or with a later one, as the JVM does.
    """
    timeline = folder.timeline()
    if folder.names_base_instants:
        rollback_time = f"{rollback_time}{_ROLLBACK_CODE}"
    begun = timeline.get(rollback_time, Action.ROLLBACK)
    if begun is not None and begun.is_completed:
        return
    target = timeline.get(target_time, Action.DELTA_COMMIT)
    if target is None and begun is None:
        _check_not_archived(folder, timeline, target_time)
        discard(folder, target_time)
        return
    if target is not None:
        _check_not_compacted(folder, timeline, target)
    plan = _begin(folder, target_time, rollback_time, begun)
    # Plans of later compactions may name the target's log files. The rows stay there, and a later commit plans anew.
    for found in timeline.pending():
        if found.action is Action.COMPACTION and found.requested_time > target_time:
            folder.undo(found.requested_time, Action.COMPACTION)
    # After this step readers do not see the target.
    folder.forget(target_time, Action.DELTA_COMMIT, State.COMPLETED)
    for _, info in list(folder.files_of(target_time)):
        folder.store.delete(info.path)
    folder.forget(target_time, Action.DELTA_COMMIT, State.INFLIGHT, State.REQUESTED)
    folder.complete(
        rollback_time,
        Action.ROLLBACK,
        rollback_metadata(plan, _target(target_time), rollback_time=rollback_time).to_bytes(),
        completion_time=time_after(table.clock, folder.timeline()),
        create_last=table.create_last,
    )


def discard(folder: MetadataFolder, target_time: str) -> None:
    """Delete the files of an instant that is not on the metadata table's timeline."""
    for _, info in list(folder.files_of(target_time)):
        folder.store.delete(info.path)


def _check_not_archived(folder: MetadataFolder, timeline: Timeline, target_time: str) -> None:
    """Refuse an archived target. Only an instant older than the last compaction needs a read of the archive."""
    last = _last_compaction(timeline)
    if last is not None and target_time < last.requested_time and folder.archive().completion_times({target_time}):
        raise UnsupportedError(
            f"instant {target_time} is on the metadata table's archived timeline and cannot be rolled back: "
            f"{REBUILD_ADVICE}"
        )


def _check_not_compacted(folder: MetadataFolder, timeline: Timeline, target: Instant) -> None:
    last = _last_compaction(timeline) if target.is_completed else None
    if last is not None and folder.order_time(target) < last.requested_time:
        raise UnsupportedError(
            f"instant {target.requested_time} is part of the metadata table's compaction {last.requested_time} and "
            f"cannot be rolled back: {REBUILD_ADVICE}"
        )


def _last_compaction(timeline: Timeline) -> Instant | None:
    return timeline.filter(lambda instant: instant.is_completed and instant.action is Action.COMMIT).latest()


def _begin(folder: MetadataFolder, target_time: str, rollback_time: str, begun: Instant | None) -> RollbackPlan:
    """Create the requested and inflight files if they are missing; an interrupted rollback keeps its plan."""
    if begun is not None:
        content = read_instant(folder.store, folder.layout, begun, State.REQUESTED)
        plan = RollbackPlan.parse(content) if content else _plan(folder, target_time)
    else:
        plan = _plan(folder, target_time)
        folder.request(rollback_time, Action.ROLLBACK, plan.to_bytes())
    if begun is None or begun.state is State.REQUESTED:
        folder.begin(rollback_time, Action.ROLLBACK)
    return plan


def _plan(folder: MetadataFolder, target_time: str) -> RollbackPlan:
    files = ((partition, (folder.store.uri(info.path),)) for partition, info in folder.files_of(target_time))
    return rollback_plan(_target(target_time), files)


def _target(target_time: str) -> InstantInfo:
    return InstantInfo(commit_time=target_time, action=Action.DELTA_COMMIT.value)
