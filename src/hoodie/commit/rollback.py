"""Roll back a pending write: delete the files that it wrote, under a rollback instant on the timeline.

Implements docs/format/table.md §5.4. Every step can be repeated, so that the next writer, of this library or of the
JVM, can resume a rollback whose process died.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from hoodie.commit.attempt_files import files_of_instant
from hoodie.commit.commit_content import locked_table
from hoodie.commit.pending import PendingInstant, request
from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.files.markers import delete_markers, read_markers
from hoodie.files.named_paths import named_data_file
from hoodie.format.instants.rollback_content import rollback_metadata, rollback_plan
from hoodie.format.instants.service_metadata import InstantInfo, RollbackPlan
from hoodie.metadata.table import MetadataTable
from hoodie.timeline import (
    Action,
    Instant,
    State,
    delete_instant_files,
    read_instant,
)
from hoodie.timeline.heartbeat import is_live
from hoodie.view.table_view import TableView

_ACTIONS = frozenset(Action)
_TABLE_SERVICES = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING})


@dataclass(frozen=True, slots=True)
class RolledBack:
    """An instant that was rolled back, and the number of files that were deleted."""

    instant_time: str
    files_deleted: int


def roll_back_dead_writes(view: TableView) -> list[RolledBack]:
    """Complete pending rollbacks, then roll back every dead write.

    Call it under the table's lock. Writes with a live heartbeat are skipped. Table services are skipped too: their
    plans are executed again, not undone.
    """
    done = [_resume(view, found) for found in view.timeline.pending().instants if found.action is Action.ROLLBACK]
    finished = {found.instant_time for found in done}
    for instant in view.timeline.writes().pending().instants:
        if instant.action in _TABLE_SERVICES or instant.requested_time in finished:
            continue
        if not is_live(view.store, instant.requested_time):
            done.append(roll_back(view, instant))
    return done


def roll_back(view: TableView, instant: Instant) -> RolledBack:
    """Roll back one pending write under a new rollback instant.

    Raises: UnsupportedError if this library does not roll back writes of the table's version.
    """
    if not view.config.version.can_be_rolled_back:
        raise UnsupportedError(
            f"{view.store.uri('')} has table version {view.config.version.value} and a failed write at {instant}; "
            "hoodie writes version 9 only: roll the write back with the engine that wrote it"
        )
    plan = _plan(view, instant)
    return _execute(view, request(view, Action.ROLLBACK, plan.to_bytes()), plan)


def _resume(view: TableView, pending: Instant) -> RolledBack:
    """Resume a rollback whose process died: its plan is in its requested file."""
    content = read_instant(view.store, view.layout, pending, State.REQUESTED)
    return _execute(view, pending, RollbackPlan.parse(content, path=str(pending)))


def _plan(view: TableView, instant: Instant) -> RollbackPlan:
    """Plan to delete the files that markers announce; without markers, search all partitions by file name."""
    by_partition: dict[str, list[str]] = {}
    markers = read_markers(view.store, instant.requested_time)
    paths = [marker.path for marker in markers] if markers is not None else _files_of(view, instant)
    for path in paths:
        by_partition.setdefault(path.rpartition("/")[0], []).append(view.store.uri(path))
    target = InstantInfo(commit_time=instant.requested_time, action=instant.action.value)
    return rollback_plan(target, by_partition.items())


def _files_of(view: TableView, instant: Instant) -> list[str]:
    """List the table's folders, and return the data files whose names contain the instant."""
    if instant.state is State.REQUESTED:
        return []
    return files_of_instant(view.store, instant.requested_time)


def _execute(view: TableView, rollback: Instant, plan: RollbackPlan) -> RolledBack:
    """Delete the data files, roll back the metadata table, delete the target's instant files, complete the rollback.

    Each step can be repeated. This library plans rollbacks of pending writes only; a rollback that the JVM planned may
    have a completed target.
    """
    started = time.monotonic()
    target = plan.instant_to_rollback
    if target is None or not target.commit_time.isdigit() or target.action not in _ACTIONS:
        raise CorruptFileError(
            f"the rollback plan names no instant, found {target}; delete the pending rollback with `hoodie repair`",
            path=rollback.requested_time,
        )
    # Before anything is changed: a plan that names another file than one of the table is not executed in part.
    where = f"{view.store.uri('')}: the plan of the rollback {rollback.requested_time}"
    paths = [
        named_data_file(view.store, path, by=where)
        for request in plan.rollback_requests
        for path in request.files_to_be_deleted
    ]
    pending = PendingInstant.resume(view, rollback)
    found = view.timeline.get(target.commit_time)
    if found is not None and found.is_completed:
        # Readers must stop counting the instant before its files are deleted.
        delete_instant_files(view.store, view.layout, target.commit_time, Action(target.action), State.COMPLETED)
    for path in paths:
        view.store.delete(path)
    completion = _Rollback(pending.instant_time, target, plan, started)
    pending.complete(view.refreshed(), completion)
    delete_markers(view.store, target.commit_time)
    return RolledBack(target.commit_time, completion.files)


@dataclass(frozen=True, slots=True)
class _Rollback:
    """The steps of a rollback after the data files are deleted; see `Completion`. `started`: monotonic clock."""

    rollback_time: str
    target: InstantInfo
    plan: RollbackPlan
    started: float

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
            table = locked_table(now)
            metadata_table.rollback(self.target.commit_time, rollback_instant=self.rollback_time, table=table)
        states = (State.INFLIGHT, State.REQUESTED)
        delete_instant_files(now.store, now.layout, self.target.commit_time, Action(self.target.action), *states)

    def content(self, now: TableView) -> bytes:
        """Return the rollback metadata: the files that were deleted, by partition."""
        took_ms = int((time.monotonic() - self.started) * 1000)
        done = rollback_metadata(self.plan, self.target, rollback_time=self.rollback_time, time_taken_in_millis=took_ms)
        return done.to_bytes()
