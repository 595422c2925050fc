"""Roll back a write: delete the files that it wrote, under a rollback instant on the timeline.

Implements docs/format/table.md §5.4. Every step can be repeated, so that the next writer, of this library or of the
JVM, can resume a rollback whose process died.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hoodie.commit.column_ids import delete_column_history
from hoodie.commit.metadata_table import drop_metadata_table
from hoodie.commit.pending import PendingInstant, request_last
from hoodie.commit.rolled_back_logs import append_rollback_blocks, logs_of_write, slices_of_plan
from hoodie.errors import CommitConflictError, CorruptFileError
from hoodie.files.markers import delete_markers, files_of_instant, read_markers
from hoodie.files.named_paths import named_data_file
from hoodie.format.filenames import IoType, LogFileName, instant_of_data_file, name_of
from hoodie.format.instants.service_metadata import (
    InstantInfo,
    RollbackMetadata,
    RollbackPlan,
    may_have_completed,
    pending_rollback_plan,
    rollback_metadata,
    rollback_plan,
)
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.table import MetadataTable
from hoodie.timeline import (
    Action,
    Instant,
    State,
    delete_heartbeat,
    delete_instant_files,
)
from hoodie.timeline.heartbeat import INTERVAL_MS, TOLERABLE_MISSES, is_live
from hoodie.view.lost_instants import check_no_write_is_lost
from hoodie.view.pending_plans import pending_rollbacks, stored_rollback_plan
from hoodie.view.slices import data_table
from hoodie.view.table_view import TableView

_ACTIONS = frozenset(Action)


@dataclass(frozen=True, slots=True)
class RolledBack:
    """An instant that was rolled back, and the number of files that were deleted.

    `dropped_metadata_table`: the metadata table held rows of the instant that no rollback can remove, and was dropped.
    The caller builds it anew, or the next write does.
    """

    instant_time: str
    files_deleted: int
    dropped_metadata_table: bool = False

    @property
    def note(self) -> str:
        """Return the sentence that a result has about a dead write that was rolled back."""
        return f"rolled back {self.instant_time}, whose writer had died ({self.files_deleted} files)"


def dead_writes(view: TableView) -> list[Instant]:
    """Return the pending writes without a live heartbeat. Table services are left out: see `roll_back_dead_writes`."""
    return [
        found
        for found in view.timeline.writes().pending()
        if not found.action.is_planned and not is_live(view.store, found.requested_time)
    ]


def roll_back_dead_writes(view: TableView) -> list[RolledBack]:
    """Complete pending rollbacks whose process died, then roll back every dead write.

    Call it under the table's lock. Writes with a live heartbeat are skipped, and so are rollbacks with one, together
    with their targets: a JVM with concurrency control executes them without the lock. Table services are skipped too:
    their plans are executed again, not undone. A rollback that must not be executed is deleted: it has no plan, or its
    target completed (`_is_refused`).

    Raises: CorruptFileError if a write completed that looks dead, because its completed file is lost.
    """
    done: list[RolledBack] = []
    settled: set[str] = set()
    for found in view.timeline.pending().instants:
        if found.action is not Action.ROLLBACK:
            continue
        plan = stored_rollback_plan(view, found)
        if plan is not None and is_live(view.store, found.requested_time):
            settled.add(_target(plan, found.requested_time).commit_time)
            continue
        if plan is None or _is_refused(view, plan, _target(plan, found.requested_time)):
            states = (State.INFLIGHT, State.REQUESTED)
            delete_instant_files(view.store, view.layout, found.requested_time, Action.ROLLBACK, *states)
            continue
        settled.add(_target(plan, found.requested_time).commit_time)
        done.append(_execute(view, found, plan))
    dead = [found for found in dead_writes(view) if found.requested_time not in settled]
    check_no_write_is_lost(view, [*dead, *_dead_services(view)])
    return [*done, *(roll_back(view, found) for found in dead)]


def _dead_services(view: TableView) -> list[Instant]:
    """Return the table services that were begun and have no live heartbeat: they are executed again."""
    return [
        found
        for found in view.timeline.writes().pending()
        if found.action.is_planned and found.state is State.INFLIGHT and not is_live(view.store, found.requested_time)
    ]


def check_no_running_rollback(view: TableView, instant: Instant) -> None:
    """Refuse to roll back an instant that another process is rolling back now, as the heartbeat of its rollback shows.

    Raises: CommitConflictError.
    """
    for rollback, _ in pending_rollbacks(view, instant.requested_time):
        if is_live(view.store, rollback.requested_time):
            raise CommitConflictError(
                f"{instant} of {view.store.uri('')} is being rolled back by another process, as {rollback}: wait until "
                "that rollback completes. If its process has died, try again when its heartbeat has expired, "
                f"{INTERVAL_MS * TOLERABLE_MISSES // 1000} s after its last sign of life by default"
            )


def _is_refused(view: TableView, plan: RollbackPlan, target: InstantInfo) -> bool:
    """Return whether a pending rollback must not be executed, because its target is completed.

    Either it was planned for a pending write, which then completed: its rows are acknowledged. Or other commits may use
    the files of its target: the JVM refuses to roll back a completed commit that is not the newest, and leaves the
    rollback on the timeline. A rollback of a completed write that has begun has first deleted the completed file.
    """
    found = view.timeline.get(target.commit_time, Action(target.action))
    if found is None or not found.is_completed:
        return False
    if not may_have_completed(plan):
        return True
    return any(later.requested_time > target.commit_time for later in view.timeline.writes().completed())


def roll_back(view: TableView, instant: Instant) -> RolledBack:
    """Roll back one write, pending or completed, under a new rollback instant.

    The caller has checked that no later instant depends on the files of a completed write. The plan of a table service
    is deleted too.
    """
    plan = plan_rollback(view, instant)
    return _execute(view, request_last(view, Action.ROLLBACK, plan.to_bytes()), plan)


def roll_back_pending(view: TableView, instant: Instant) -> RolledBack:
    """Roll back one pending write by the rollback that was begun for it, else as `roll_back`.

    The caller has checked that no process executes a rollback of it.
    """
    begun = next(pending_rollbacks(view, instant.requested_time), None)
    return roll_back(view, instant) if begun is None else _execute(view, *begun)


def roll_back_unpublished(view: TableView, instant: Instant) -> RolledBack:
    """Roll back one write as a part of a restore: the rollback instant stays inflight, for the restore to delete.

    Arguments and errors as `roll_back`.
    """
    plan = plan_rollback(view, instant)
    return resume_unpublished(view, request_last(view, Action.ROLLBACK, plan.to_bytes()), plan)


def resume_unpublished(view: TableView, rollback: Instant, plan: RollbackPlan) -> RolledBack:
    """Execute the plan of a pending rollback that is a part of a restore, from its first step on."""
    started = time.monotonic()
    target, pending, is_dropped, appended = _delete_files(view, rollback, plan)
    completion = _Rollback(pending.instant_time, target, plan, started, appended)
    now = view.refreshed()
    now.held_lock.ensure_held()
    completion.update_metadata_table(now)
    _delete_traces(now, target)
    return RolledBack(target.commit_time, completion.files, is_dropped)


def metadata_of(rollback_time: str, plan: RollbackPlan) -> RollbackMetadata:
    """Return the metadata of a rollback that deleted all files of its plan."""
    return rollback_metadata(plan, _target(plan, rollback_time), rollback_time=rollback_time)


def plan_rollback(view: TableView, instant: Instant) -> RollbackPlan:
    """Plan to delete the files of an instant, absolute paths by partition.

    The files of a completed instant are in its metadata. Those of a pending instant are in its markers; without
    markers, all partitions are searched by file name. In version 6 the plan also appends rollback blocks to log files.
    """
    by_partition: dict[str, list[str]] = {}
    markers = read_markers(view.store, instant.requested_time)
    own_logs, appending = logs_of_write(view, instant, markers)
    names_files = view.config.version.log_name_has_base_instant
    paths = [found.path for found in markers or () if not (names_files and found.io_type is IoType.APPEND)]
    if instant.is_completed:
        paths = sorted({*paths, *committed_files(view, instant)})
    elif markers is None:
        paths = _files_of(view, instant)
    for path in (*paths, *(path for path in own_logs if path not in paths)):
        by_partition.setdefault(path.rpartition("/")[0], []).append(view.store.uri(path))
    target = InstantInfo(commit_time=instant.requested_time, action=instant.action.value)
    plan = (rollback_plan if instant.is_completed else pending_rollback_plan)(target, by_partition.items())
    return replace(plan, rollback_requests=(*plan.rollback_requests, *appending))


def committed_files(view: TableView, instant: Instant) -> dict[str, int]:
    """Return the files that a completed write created, and their sizes in bytes, by path."""
    sizes: dict[str, int] = {}
    for stat in view.commit_metadata(instant).write_stats():
        # A statistic may name a file of another instant, to which the write appended nothing.
        sizes |= {
            path: size for path, size in stat.sizes.items() if instant_of_data_file(path) == instant.requested_time
        }
    return sizes


def _files_of(view: TableView, instant: Instant) -> list[str]:
    """List the table's folders, and return the data files whose names contain the instant."""
    if instant.state is State.REQUESTED:
        return []
    is_of_others = view.config.version.log_name_has_base_instant and instant.action.is_planned
    return files_of_instant(view.store, instant.requested_time, with_logs=not is_of_others)


def _execute(view: TableView, rollback: Instant, plan: RollbackPlan) -> RolledBack:
    """Delete the data files, roll back the metadata table, delete the target's instant files, complete the rollback.

    Each step can be repeated.
    """
    started = time.monotonic()
    target, pending, is_dropped, appended = _delete_files(view, rollback, plan)
    completion = _Rollback(pending.instant_time, target, plan, started, appended)
    now = view.refreshed()
    pending.complete(now, completion)
    _delete_traces(now, target)
    return RolledBack(target.commit_time, completion.files, is_dropped)


_Appended = Mapping[str, Mapping[str, int]]
"""Log files with rollback blocks, and their sizes, by partition path."""


def _delete_files(
    view: TableView, rollback: Instant, plan: RollbackPlan
) -> tuple[InstantInfo, PendingInstant, bool, _Appended]:
    """Begin the rollback, delete the data files of its plan, and append its rollback blocks.

    Returns also whether the metadata table was dropped.
    """
    target = _target(plan, rollback.requested_time)
    # Before anything is changed: a plan that names another file than one of the table is not executed in part.
    where = f"{view.store.uri('')}: the plan of the rollback {rollback.requested_time}"
    paths = [
        named_data_file(view.store, path, by=where)
        for request in plan.rollback_requests
        for path in request.files_to_be_deleted
    ]
    slices = slices_of_plan(view.store, plan, by=where)
    pending = PendingInstant.resume(view, rollback)
    action = Action(target.action)
    found = view.timeline.get(target.commit_time, action)
    was_completed = found is not None and found.is_completed
    metadata_table = MetadataTable.open(view.store, view.config)
    is_dropped = metadata_table is not None and not metadata_table.can_roll_back(
        target.commit_time, was_completed=was_completed
    )
    if is_dropped:
        # Before the completed file is deleted: a process that resumes the rollback would not know of it.
        drop_metadata_table(view)
    if was_completed:
        view.held_lock.ensure_held_now()
        # Readers must stop counting the instant before its files are deleted.
        delete_instant_files(view.store, view.layout, target.commit_time, action, State.COMPLETED)
    for path in paths:
        view.store.delete(path)
    appended = append_rollback_blocks(view.store, slices, rollback.requested_time, target=target.commit_time)
    return target, pending, is_dropped, appended


def _delete_traces(view: TableView, target: InstantInfo) -> None:
    delete_column_history(view, target.commit_time)
    delete_markers(view.store, target.commit_time)
    delete_heartbeat(view.store, target.commit_time)


def _target(plan: RollbackPlan, rollback_time: str) -> InstantInfo:
    """Return the instant that a plan rolls back. Raises: CorruptFileError if the plan names none."""
    target = plan.instant_to_rollback
    if target is None or not target.commit_time.isdigit() or target.action not in _ACTIONS:
        raise CorruptFileError(
            f"the rollback plan names no instant, found {target}; delete the pending rollback: t.repair(dry_run=False)",
            path=rollback_time,
        )
    return target


@dataclass(frozen=True, slots=True)
class _Rollback:
    """The steps of a rollback after the data files are deleted; see `Completion`. `started`: monotonic clock."""

    rollback_time: str
    target: InstantInfo
    plan: RollbackPlan
    started: float
    appended: _Appended

    @property
    def files(self) -> int:
        """Return how many files the plan names."""
        return sum(len(found.files_to_be_deleted) for found in self.plan.rollback_requests)

    def check(self, now: TableView) -> None:
        """Check nothing: no change of another writer conflicts with a rollback."""

    def update_metadata_table(self, now: TableView) -> None:
        """Roll back the target's delta commit in the metadata table, then delete the target's pending instant files."""
        metadata_table = MetadataTable.open(now.store, now.config)
        if metadata_table is not None:
            table = data_table(now)
            metadata_table.rollback(self.target.commit_time, rollback_instant=self.rollback_time, table=table)
            logs, gone = self._logs(), self._deleted_logs() if now.config.may_have_slice_logs else {}
            if logs or gone:
                changes = MetadataChanges(files_added=logs, files_deleted=gone)
                metadata_table.commit(self.rollback_time, changes, table)
        states = (State.INFLIGHT, State.REQUESTED)
        delete_instant_files(now.store, now.layout, self.target.commit_time, Action(self.target.action), *states)

    def _deleted_logs(self) -> dict[str, set[str]]:
        """Return the log files that are deleted, by partition path: those of a slice may be of several writes."""
        found: dict[str, set[str]] = {}
        for asked in self.plan.rollback_requests:
            names = {name for path in asked.files_to_be_deleted if LogFileName.parse(name := name_of(path))}
            if names:
                found.setdefault(asked.partition_path, set()).update(names)
        return found

    def _logs(self) -> dict[str, dict[str, int]]:
        """Return the log files with rollback blocks, and those whose blocks these undo: the listing has them again.

        Sizes by partition path and file name; empty in later versions than 6.
        """
        found: dict[str, dict[str, int]] = {}
        for asked in self.plan.rollback_requests:
            for path, size_bytes in (asked.log_blocks_to_be_deleted or {}).items():
                found.setdefault(asked.partition_path, {})[name_of(path)] = size_bytes
        for partition, sizes in self.appended.items():
            found.setdefault(partition, {}).update({name_of(path): size for path, size in sizes.items()})
        return found

    def content(self, now: TableView) -> bytes:
        """Return the rollback metadata: the files that were deleted, by partition."""
        took_ms = int((time.monotonic() - self.started) * 1000)
        done = rollback_metadata(
            self.plan,
            self.target,
            rollback_time=self.rollback_time,
            time_taken_in_millis=took_ms,
            appended=self.appended,
        )
        return done.to_bytes()
