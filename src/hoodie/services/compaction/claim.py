"""Who carries out a pending compaction: taken under the table's lock, alive as long as its heartbeat.

The inflight file of a compaction says who runs it. A new claim puts a new file in its place, and only who finds its own
file there may complete the compaction. So one that was taken for dead and comes back does no harm: its files go.
A JVM's inflight file is empty: then it is told from the age of the files whether it runs.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from hoodie.errors import CommitConflictError, InstantNotFoundError
from hoodie.files.markers import delete_markers, marker_folder, read_markers
from hoodie.files.slices import join_path
from hoodie.format.filenames import BaseFileName, LogFileName
from hoodie.format.instants.service_metadata import CompactionPlan
from hoodie.services.compaction.coordination import Claim, Coordinator
from hoodie.timeline import (
    Action,
    Heartbeat,
    Instant,
    State,
    TableLock,
    create_inflight,
    delete_instant_files,
    is_live,
    read_instant,
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


@dataclass(slots=True)
class ClaimedPlan:
    """A plan that this process carries out. `number` is in the names of its files, and in those of no other claim."""

    view: TableView
    instant: Instant
    plan: CompactionPlan
    heartbeat: Heartbeat
    content: bytes
    """Of the inflight file: nobody else's is the same."""
    number: int
    claim: Claim
    interrupted: Runner | None = None
    """Whose attempt it takes up."""
    is_settled: bool = False
    """Whether the metadata table was told: then it is left as it is, and done again if it did not complete."""

    @property
    def instant_time(self) -> str:
        """Requested time of the compaction."""
        return self.instant.requested_time

    def ensure_mine(self, now: TableView) -> None:
        """Refuse to go on if somebody else took the plan, or did it. Call it under the table's lock.

        Raises: CommitConflictError.
        """
        self.claim.ensure_held()
        self.heartbeat.ensure_fresh()
        found = now.timeline.get(self.instant_time)
        if found is None or found.is_completed or _inflight_content(now, found) != self.content:
            raise CommitConflictError(
                f"the compaction {self.instant_time} of {now.store.uri('')} was taken for dead and is another's now, "
                "or was rolled back; what this one wrote is not used"
            )

    def clear(self) -> None:
        """Delete what earlier attempts wrote, and their markers."""
        is_foreign = self.interrupted is not None and self.interrupted.owner is None
        clear_files(self.view, self.instant_time, self.plan if is_foreign else None)

    def give_back(self) -> None:
        """Abandon it after an error, so that it can be done again. Never fails: what remains is cleared by the next."""
        if not self.is_settled:
            with contextlib.suppress(Exception), TableLock(self.view.store):
                now = TableView.load(self.view.state)
                found = now.timeline.get(self.instant_time)
                if found is not None and not found.is_completed and _inflight_content(now, found) == self.content:
                    clear_files(now, self.instant_time, None)
                    delete_instant_files(now.store, now.layout, self.instant_time, self.instant.action, State.INFLIGHT)
        self.end()

    def end(self) -> None:
        """End heartbeat and claim. Never fails."""
        with contextlib.suppress(Exception):
            self.heartbeat.stop()
        self.claim.release()


def claim_plan(
    state: TableState,
    coordinator: Coordinator,
    *,
    instant_time: str | None = None,
    skip: Collection[str] = (),
) -> ClaimedPlan | None:
    """Take the pending plan of that time, or the oldest that nobody carries out; None if there is none.

    `skip` are times of plans to leave alone.

    A plan that is asked for by its time is taken from a JVM that shows no sign of life, however short that is.

    Raises: CommitConflictError if the plan that was asked for is carried out by another.
    """
    view = TableView.load(state)
    for instant in pending_plans(view):
        if instant_time not in (None, instant.requested_time) or instant.requested_time in skip:
            continue
        taken = _take(state, instant, coordinator, is_asked_for=instant_time is not None)
        if taken is not None:
            return taken
        if instant_time is not None:
            raise CommitConflictError(
                f"the {instant.action} {instant_time} of {state.store.uri('')} is carried out by another compactor: "
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
    content = _inflight_content(view, instant)
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


def _take(state: TableState, instant: Instant, coordinator: Coordinator, *, is_asked_for: bool) -> ClaimedPlan | None:
    claim = coordinator.claim(state.store.uri(""), instant.requested_time)
    if claim is None:
        return None
    taken: ClaimedPlan | None = None
    try:
        taken = _take_claimed(state, instant, coordinator, claim, is_asked_for=is_asked_for)
    finally:
        if taken is None:
            claim.release()
    return taken


def _take_claimed(
    state: TableState, instant: Instant, coordinator: Coordinator, claim: Claim, *, is_asked_for: bool
) -> ClaimedPlan | None:
    if _is_running(TableView.load(state), instant, coordinator, is_asked_for=is_asked_for):
        return None
    requested_time = instant.requested_time
    with TableLock(state.store):
        view = TableView.load(state)
        found = view.timeline.get(requested_time, instant.action)
        if found is None or found.is_completed:
            return None
        if _is_running(view, found, coordinator, is_asked_for=is_asked_for):
            return None
        plan = stored_plan(view, found)
        if plan is None:
            # Its scheduler died before the plan was on disk: there is nothing to carry out.
            delete_instant_files(view.store, view.layout, requested_time, found.action, State.REQUESTED)
            return None
        runner = runner_of(view, found, is_asked_for=is_asked_for)
        content = _content(coordinator)
        heartbeat = Heartbeat(view.store, requested_time)
        heartbeat.start()
        try:
            delete_instant_files(view.store, view.layout, requested_time, found.action, State.INFLIGHT)
            begun = create_inflight(view.store, view.layout, requested_time, found.action, content)
        except BaseException:
            with contextlib.suppress(Exception):
                heartbeat.stop()
            raise
    was_begun = runner.state is not RunState.WAITING
    number = secrets.randbelow(_TOKEN_NUMBERS)
    return ClaimedPlan(view, begun, plan, heartbeat, content, number, claim, runner if was_begun else None)


def _is_running(view: TableView, instant: Instant, coordinator: Coordinator, *, is_asked_for: bool) -> bool:
    """Whether somebody else is at it, whom the claim that we hold does not prove dead."""
    runner = runner_of(view, instant, is_asked_for=is_asked_for)
    if runner.state is not RunState.RUNNING:
        return False
    return not coordinator.name or runner.coordinator != coordinator.name


def _content(coordinator: Coordinator) -> bytes:
    fields = json.loads(Owner.new().to_bytes())
    return json.dumps({**fields, _COORDINATOR: coordinator.name}).encode()


def _inflight_content(view: TableView, instant: Instant) -> bytes | None:
    try:
        return read_instant(view.store, view.layout, instant, State.INFLIGHT)
    except InstantNotFoundError:
        return None


def _idle_ms(view: TableView, instant: Instant) -> int:
    """Since when a foreign compaction has neither begun nor announced a file."""
    folder = view.layout.instant_folder()
    names = view.layout.names(instant, State.INFLIGHT)
    infos = [info for name in names if (info := view.store.head(f"{folder}/{name}")) is not None]
    infos += view.store.list(marker_folder(instant.requested_time), recursive=True)
    return time.time_ns() // 1_000_000 - max((info.modified_ms for info in infos), default=0)


def _files_of(view: TableView, partition_path: str, instant_time: str) -> list[str]:
    found = []
    for info in view.store.list(partition_path):
        name = BaseFileName.parse(info.name) or LogFileName.parse(info.name)
        if name is not None and name.instant_time == instant_time:
            found.append(join_path(partition_path, info.name))
    return found
