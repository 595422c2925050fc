"""Who carries out a pending compaction: taken under the table's lock, alive as long as its heartbeat.

The inflight file of a compaction says who runs it. A new claim puts a new file in its place, and only who finds its own
file there may complete the compaction. So one that was taken for dead and comes back does no harm: its files go.
A JVM's inflight file is empty: then it is told from the age of the files whether it runs.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from hoodie.commit.exclusive import check_no_exclusive_service
from hoodie.commit.metadata_partitions import ensure_metadata_partitions
from hoodie.commit.pending import PendingInstant, inflight_content
from hoodie.errors import CommitConflictError
from hoodie.files.markers import delete_markers, marker_folder, read_markers
from hoodie.files.slices import join_path
from hoodie.files.table_properties import finish_update
from hoodie.format.filenames import instant_of_data_file
from hoodie.format.instants.service_metadata import CompactionPlan
from hoodie.services.compaction.coordination import Claim, Coordinator
from hoodie.timeline import (
    Action,
    Instant,
    State,
    TableLock,
    delete_instant_files,
    is_live,
)
from hoodie.timeline.owner import Owner
from hoodie.view.busy_groups import stored_plan
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_FOREIGN_IDLE_MS = 30 * 60_000
"""A compaction of the JVM has no heartbeat: one that announced no file for so long is taken for dead."""
_COORDINATOR = "coordinator"
_TOKEN_NUMBERS = 1_000_000_000


class RunState(Enum):
    """What becomes of a pending compaction at the moment."""

    WAITING = "waiting"
    """Planned; nobody works on it."""
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    """Somebody began, and is gone: it has to be done again."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Who works on a pending compaction, or did; `owner` is None for the JVM."""

    state: RunState
    owner: Owner | None = None
    coordinator: str = ""

    def __str__(self) -> str:
        if self.state is RunState.WAITING:
            return ""
        return str(self.owner) if self.owner is not None else "a JVM"


@dataclass(slots=True, kw_only=True)
class ClaimedPlan:
    """A plan that this process carries out. `number` is in the names of its files, and in those of no other attempt.

    `claim` is the coordinator's. `interrupted`: who carried the plan out before, and is dead.
    """

    pending: PendingInstant
    plan: CompactionPlan
    number: int
    claim: Claim
    interrupted: Runner | None = None

    @property
    def view(self) -> TableView:
        """The table as it was when the plan was claimed."""
        return self.pending.view

    @property
    def instant(self) -> Instant:
        """The compaction or log compaction."""
        return self.pending.instant

    @property
    def instant_time(self) -> str:
        """Requested time of the compaction."""
        return self.pending.instant_time

    def clear(self) -> None:
        """Delete what earlier attempts wrote, and their markers."""
        is_foreign = self.interrupted is not None and self.interrupted.owner is None
        clear_files(self.view, self.instant_time, self.plan if is_foreign else None)

    def give_back(self) -> None:
        """Abandon the attempt after an error; the plan stays, for the next compactor. Never fails."""
        self.pending.undo()
        self.claim.release()

    def end(self) -> None:
        """End heartbeat and claim. Never fails."""
        self.pending.end()
        self.claim.release()


def claim_plan(
    view: TableView,
    coordinator: Coordinator,
    *,
    instant_time: str | None = None,
    skip: Collection[str] = (),
) -> ClaimedPlan | None:
    """Take the pending plan of that time, or the oldest that nobody carries out; None if there is none.

    `view` is the table as it was a moment ago. `skip` are times of plans to leave alone.

    A plan that is asked for by its time is taken from a JVM that shows no sign of life, however short that is.

    Raises: CommitConflictError if the plan that was asked for is carried out by another.
    """
    for instant in pending_plans(view):
        if instant_time not in (None, instant.requested_time) or instant.requested_time in skip:
            continue
        taken = _take(view, instant, coordinator, is_asked_for=instant_time is not None)
        if taken is not None:
            return taken
        if instant_time is not None:
            raise CommitConflictError(
                f"the {instant.action} {instant_time} of {view.store.uri('')} is carried out by another compactor: "
                "leave it to that one"
            )
    return None


def pending_plans(view: TableView) -> list[Instant]:
    """Pending compactions and log compactions, oldest first."""
    return [found for found in view.timeline.pending() if found.action in (Action.COMPACTION, Action.LOG_COMPACTION)]


def runner_of(view: TableView, instant: Instant, *, is_asked_for: bool = False) -> Runner:
    """Who carries the pending instant out, as far as heartbeats tell."""
    if instant.state is not State.INFLIGHT:
        return Runner(RunState.WAITING)
    content = inflight_content(view, instant)
    owner = None if content is None else Owner.parse(content)
    coordinator = "" if content is None or owner is None else str(json.loads(content).get(_COORDINATOR, ""))
    runs = is_live(view.store, instant.requested_time)
    if not runs and owner is None and not is_asked_for:
        runs = _idle_ms(view, instant) < _FOREIGN_IDLE_MS
    return Runner(RunState.RUNNING if runs else RunState.INTERRUPTED, owner, coordinator)


def clear_files(view: TableView, instant_time: str, plan: CompactionPlan | None) -> int:
    """Delete the files that attempts at a pending compaction wrote, then their markers; how many there were.

    With a `plan`, and without markers, its partitions are searched: a JVM may write none.
    """
    markers = read_markers(view.store, instant_time)
    if markers is not None:
        paths = [marker.path for marker in markers]
    else:
        partitions = {operation.partition_path for operation in (() if plan is None else plan.operations)}
        paths = [path for partition in sorted(partitions) for path in _files_of(view, partition, instant_time)]
    for path in paths:
        view.store.delete(path)
    delete_markers(view.store, instant_time)
    return len(paths)


def _take(view: TableView, instant: Instant, coordinator: Coordinator, *, is_asked_for: bool) -> ClaimedPlan | None:
    claim = coordinator.claim(view.store.uri(""), instant.requested_time)
    if claim is None:
        return None
    taken: ClaimedPlan | None = None
    try:
        if not _is_running(view, instant, coordinator, is_asked_for=is_asked_for):
            taken = _take_claimed(view.state, instant, coordinator, claim, is_asked_for=is_asked_for)
    finally:
        if taken is None:
            claim.release()
    return taken


def _take_claimed(
    state: TableState, instant: Instant, coordinator: Coordinator, claim: Claim, *, is_asked_for: bool
) -> ClaimedPlan | None:
    with TableLock(state.store):
        finish_update(state.store)
        view = TableView.load(state)
        check_no_exclusive_service(view)
        found = view.timeline.get(instant.requested_time, instant.action)
        if found is None or found.is_completed:
            return None
        if _is_running(view, found, coordinator, is_asked_for=is_asked_for):
            return None
        plan = stored_plan(view, found)
        if plan is None:
            # Its scheduler died before the plan was on disk: there is nothing to carry out.
            delete_instant_files(view.store, view.layout, found.requested_time, found.action, State.REQUESTED)
            return None
        runner = runner_of(view, found, is_asked_for=is_asked_for)
        pending = PendingInstant.claim(ensure_metadata_partitions(view), found, _token(coordinator))
    return ClaimedPlan(
        pending=pending,
        plan=plan,
        number=secrets.randbelow(_TOKEN_NUMBERS),
        claim=claim,
        interrupted=None if runner.state is RunState.WAITING else runner,
    )


def _is_running(view: TableView, instant: Instant, coordinator: Coordinator, *, is_asked_for: bool) -> bool:
    """Whether somebody else is at it, whom the claim that we hold does not prove dead."""
    runner = runner_of(view, instant, is_asked_for=is_asked_for)
    if runner.state is not RunState.RUNNING:
        return False
    return not coordinator.name or runner.coordinator != coordinator.name


def _token(coordinator: Coordinator) -> bytes:
    """Content of the inflight file: who carries the plan out."""
    fields = json.loads(Owner.new().to_bytes())
    return json.dumps({**fields, _COORDINATOR: coordinator.name}).encode()


def _idle_ms(view: TableView, instant: Instant) -> int:
    """Since when a foreign compaction has neither begun nor announced a file."""
    folder = view.layout.instant_folder()
    names = view.layout.names(instant, State.INFLIGHT)
    infos = [info for name in names if (info := view.store.head(f"{folder}/{name}")) is not None]
    infos += view.store.list(marker_folder(instant.requested_time), recursive=True)
    return time.time_ns() // 1_000_000 - max((info.modified_ms for info in infos), default=0)


def _files_of(view: TableView, partition_path: str, instant_time: str) -> list[str]:
    names = (info.name for info in view.store.list(partition_path))
    return [join_path(partition_path, name) for name in names if instant_of_data_file(name) == instant_time]
