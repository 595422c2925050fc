"""Roll back a write that did not complete: whatever it wrote goes, and the timeline says so.

Implements docs/format/table.md §5.4. Every step can be repeated, so that a rollback which dies half-way is taken up
by the next writer, ours or the JVM's.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from hoodie.commit.pending import PendingInstant, request
from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.files.markers import delete_markers, read_markers
from hoodie.format.filenames import instant_of_data_file
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

_TABLE_SERVICES = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING})


@dataclass(frozen=True, slots=True)
class RolledBack:
    """An instant that was rolled back, and how many files it had left."""

    instant_time: str
    files_deleted: int


def roll_back_dead_writes(view: TableView) -> list[RolledBack]:
    """Finish rollbacks that died, then roll back every pending write whose writer no longer lives.

    Call it under the table's lock. Writers with a live heartbeat are left alone, and so are table services: their plans
    are taken up again, not undone.
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
    """Roll back one pending write under a new rollback instant."""
    if not view.config.version.can_be_rolled_back:
        raise UnsupportedError(
            f"{view.store.uri('')} has table version {view.config.version.value} and a failed write at {instant}; "
            "hoodie writes version 9 only: let the engine that wrote it roll it back"
        )
    plan = _plan(view, instant)
    return _execute(view, request(view, Action.ROLLBACK, plan.to_bytes()), plan)


def _resume(view: TableView, pending: Instant) -> RolledBack:
    """Take up a rollback that died: its plan is in its requested file."""
    content = read_instant(view.store, view.layout, pending, State.REQUESTED)
    return _execute(view, pending, RollbackPlan.parse(content, path=str(pending)))


def _plan(view: TableView, instant: Instant) -> RollbackPlan:
    """Plan to delete the files that markers announce; without markers all partitions are searched by file name."""
    by_partition: dict[str, list[str]] = {}
    markers = read_markers(view.store, instant.requested_time)
    paths = [marker.path for marker in markers] if markers is not None else _files_of(view, instant)
    for path in paths:
        by_partition.setdefault(path.rpartition("/")[0], []).append(view.store.uri(path))
    target = InstantInfo(commit_time=instant.requested_time, action=instant.action.value)
    return rollback_plan(target, by_partition.items())


def _files_of(view: TableView, instant: Instant) -> list[str]:
    """Data files that carry the instant in their name, found by listing the table's folders."""
    if instant.state is State.REQUESTED:
        return []
    found = []
    for info in view.store.list("", recursive=True):
        if info.path.startswith(".hoodie/"):
            continue
        if instant_of_data_file(info.path) == instant.requested_time:
            found.append(info.path)
    return found


def _execute(view: TableView, rollback: Instant, plan: RollbackPlan) -> RolledBack:
    """Delete files, undo the metadata table, remove the target's instant files, complete; each step repeatable.

    We plan rollbacks of pending writes only; the JVM's may be of a completed one.
    """
    started = time.monotonic()
    target = plan.instant_to_rollback
    if target is None:
        raise CorruptFileError(
            "the rollback plan names no instant; delete the pending rollback by hand", path=rollback.requested_time
        )
    pending = PendingInstant.resume(view, rollback)
    found = view.timeline.get(target.commit_time)
    if found is not None and found.is_completed:
        # Readers must stop counting the instant before its files are deleted.
        delete_instant_files(view.store, view.layout, target.commit_time, Action(target.action), State.COMPLETED)
    for told in plan.rollback_requests:
        for file in told.files_to_be_deleted:
            view.store.delete(_relative(file, view.store.uri("")))
    completion = _Rollback(pending.instant_time, target, plan, started)
    pending.complete(view.refreshed(), completion)
    delete_markers(view.store, target.commit_time)
    return RolledBack(target.commit_time, completion.files)


@dataclass(frozen=True, slots=True)
class _Rollback:
    """What a rollback does once the data files are deleted; see `Completion`. `started` is of the monotonic clock."""

    rollback_time: str
    target: InstantInfo
    plan: RollbackPlan
    started: float

    @property
    def files(self) -> int:
        """How many files the plan names."""
        return sum(len(found.files_to_be_deleted) for found in self.plan.rollback_requests)

    def check(self, now: TableView) -> None:
        """Nothing that other writers do conflicts with a rollback."""

    def update_metadata_table(self, now: TableView) -> None:
        """Take the target's delta commit back, then the target's place on the timeline."""
        metadata_table = MetadataTable.open(now.store, now.config)
        if metadata_table is not None:
            metadata_table.rollback(self.target.commit_time, rollback_instant=self.rollback_time, clock=now.clock)
        states = (State.INFLIGHT, State.REQUESTED)
        delete_instant_files(now.store, now.layout, self.target.commit_time, Action(self.target.action), *states)

    def content(self, now: TableView) -> bytes:
        """The rollback metadata: the files that were deleted, by partition."""
        took_ms = int((time.monotonic() - self.started) * 1000)
        done = rollback_metadata(self.plan, self.target, rollback_time=self.rollback_time, time_taken_in_millis=took_ms)
        return done.to_bytes()


def _relative(file: str, base: str) -> str:
    """Path below the base path of a file that a plan names absolutely: `/t/f`, `file:/t/f`, `file:///t/f`, `s3a://b/t/f`.

    Raises: CorruptFileError if the file lies elsewhere.
    """
    path, root = _without_scheme(file), _without_scheme(base).rstrip("/") + "/"
    if not path.startswith(root):
        raise CorruptFileError(
            f"a rollback plan names a file outside the table at {base}; it was not deleted", path=file
        )
    return path[len(root) :]


def _without_scheme(uri: str) -> str:
    """The path of a URI, with bucket or host if it has one; local files are written in several ways."""
    scheme, separator, rest = uri.partition(":")
    if not separator or "/" in scheme:
        return "/" + uri.lstrip("/")
    return "/" + rest.lstrip("/")
