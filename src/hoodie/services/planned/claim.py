"""Claim pending plans: the right of one process to execute the plan of a table service.

A process claims a plan under the table's lock; the claim is valid as long as its heartbeat is fresh. The inflight file
of the instant names the process that executes it. A new claim replaces the inflight file, and a process completes the
instant only if it finds its own inflight file. So a process that lost its claim cannot complete the instant, and its
files are deleted. The JVM writes an empty inflight file; whether the JVM executes the plan is derived from the age of
the files.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from hoodie.commit.call import Call
from hoodie.commit.idle import JVM_IDLE_MS, idle_ms
from hoodie.commit.metadata_table import ensure_metadata_partitions
from hoodie.commit.pending import PendingInstant, executor_content, executor_text, inflight_content
from hoodie.commit.rollback import check_no_running_rollback, roll_back_dead_writes
from hoodie.commit.writable import check_no_exclusive_service
from hoodie.errors import CommitConflictError
from hoodie.files.markers import delete_markers, files_of_instant, is_file_of, read_markers
from hoodie.format.filenames import parse_data_file
from hoodie.format.instants.service_metadata import ClusteringPlan, CompactionPlan
from hoodie.progress import PhaseTimes
from hoodie.results import ServiceResult
from hoodie.services.planned.coordination import Claim, Coordinator
from hoodie.timeline import Action, Instant, State, delete_instant_files, is_live
from hoodie.timeline.owner import Owner, fields_of
from hoodie.view.lost_instants import check_no_write_is_lost
from hoodie.view.pending_plans import pending_rollbacks
from hoodie.view.table_view import TableView

_COORDINATOR = "coordinator"
_TOKEN_NUMBERS = 1_000_000_000
_TOKEN_PARTS = 3


PlanT = TypeVar("PlanT", bound=ClusteringPlan | CompactionPlan)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedService(Generic[PlanT]):
    """One planned service: compaction (with log compaction), or clustering.

    `check` refuses tables. `stored_plan` returns the plan of a pending instant; None if its scheduler stopped before it
    stored the plan, or if the instant was deleted meanwhile. `partitions_of` returns the partitions in which the
    execution writes files. `run` is one attempt at a claimed plan (`executor.PlanExecution`).
    """

    name: str
    actions: frozenset[Action]
    check: Callable[[TableView], None]
    stored_plan: Callable[[TableView, Instant], PlanT | None]
    partitions_of: Callable[[PlanT], Collection[str]]
    run: Callable[[Call, ClaimedPlan[PlanT], PhaseTimes], ServiceResult]

    def pending_plans(self, view: TableView) -> list[Instant]:
        """Return the pending instants of the service, oldest first."""
        return [found for found in view.timeline.pending() if found.action in self.actions]


class RunState(Enum):
    """The state of execution of a pending plan."""

    WAITING = "waiting"
    """Planned; no process has started it."""
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    """A process started it and does not run any more: the plan must be executed again."""


@dataclass(frozen=True, slots=True)
class Runner:
    """The process that executes, or executed, a pending plan; `owner` is None for the JVM."""

    state: RunState
    owner: Owner | None = None
    coordinator: str = ""

    def __str__(self) -> str:
        if self.state is RunState.WAITING:
            return ""
        return str(self.owner) if self.owner is not None else "a JVM"


@dataclass(slots=True, kw_only=True)
class ClaimedPlan(Generic[PlanT]):
    """A plan that this process has claimed. `number` is in the names of this attempt's files and of no other attempt's.

    `claim` was granted by the coordinator. `interrupted`: the dead process that executed the plan before, if any.
    """

    service: PlannedService[PlanT]
    pending: PendingInstant
    plan: PlanT
    number: int
    claim: Claim
    interrupted: Runner | None = None

    @property
    def view(self) -> TableView:
        """Return the table as it was when the plan was claimed."""
        return self.pending.view

    @property
    def instant(self) -> Instant:
        """Return the claimed instant."""
        return self.pending.instant

    @property
    def instant_time(self) -> str:
        """Return the requested time of the instant."""
        return self.pending.instant_time

    def clear(self) -> None:
        """Delete the files that earlier attempts wrote, and their markers."""
        is_foreign = self.interrupted is not None and self.interrupted.owner is None
        partitions = self.service.partitions_of(self.plan) if is_foreign else ()
        clear_files(self.view, self.instant_time, partitions)

    def give_back(self) -> None:
        """Undo the attempt after an error; the plan stays for the next executor. Never raises an error."""
        self.pending.undo()
        with contextlib.suppress(Exception):
            self._clear_own()
        self.claim.release()

    def _clear_own(self) -> None:
        """Delete the files of this attempt if another process took the plan over: their instant may be completed."""
        with self.view.state.table_lock(self.pending.properties) as lock:
            now = self.view.refreshed(lock)
            found = now.timeline.get(self.instant_time, self.instant.action)
            if found is None or not found.is_completed:
                return  # the next process that executes the plan deletes them
            committed = {stat.path for stat in now.commit_metadata(found).write_stats()}
            # By name: the process that completed the plan deleted the markers.
            with_logs = not now.config.version.log_name_has_base_instant
            for path in files_of_instant(now.store, self.instant_time, with_logs=with_logs):
                if _attempt_number(path) == self.number and path not in committed:
                    now.store.delete(path)

    def end(self) -> None:
        """End the heartbeat and the claim. Never raises an error."""
        self.pending.end()
        self.claim.release()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a caller will execute: the plan of `instant_time`, or any plan but those of `skip` (requested times).

    `properties` are the options of the call.
    """

    instant_time: str | None = None
    skip: Collection[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_named(self) -> bool:
        """Whether the caller named the instant."""
        return self.instant_time is not None


def claim_plan(
    service: PlannedService[PlanT], view: TableView, coordinator: Coordinator, wanted: Wanted | None = None
) -> ClaimedPlan[PlanT] | None:
    """Claim the wanted plan, by default the oldest plan that no process executes; None if there is none.

    `view` may be slightly older than the table.

    A plan of the JVM that the caller named is claimed if it has no live heartbeat, even if the JVM wrote files a short
    time ago.

    Raises: CommitConflictError if another process executes, or rolled back, the plan that the caller named.
    """
    wanted = wanted or Wanted()
    for instant in service.pending_plans(view):
        if wanted.instant_time not in (None, instant.requested_time) or instant.requested_time in wanted.skip:
            continue
        taken = _take(service, view, instant, coordinator, wanted)
        if taken is not None:
            return taken
        if wanted.is_named:
            raise _not_taken(view.refreshed(), instant)
    return None


def _not_taken(now: TableView, instant: Instant) -> CommitConflictError:
    """Return the error of a plan that the caller named and this process could not claim.

    Raises: CommitConflictError if another process rolls the plan back.
    """
    check_no_running_rollback(now, instant)
    what = f"the {instant.action} {instant.requested_time} of {now.store.uri('')}"
    if now.timeline.get(instant.requested_time) is None:
        return CommitConflictError(
            f"{what} was rolled back: a rollback of it had begun, or its process had died before it stored the plan. "
            "It was not executed: schedule a new one"
        )
    return CommitConflictError(f"{what} is being executed by another process: wait until it completes")


def runner_of(view: TableView, instant: Instant, *, is_asked_for: bool = False) -> Runner:
    """Return the process that executes the pending instant, and its state according to the heartbeat.

    `is_asked_for`: the caller named the instant. Then a plan of the JVM counts as running only with a live heartbeat,
    and the age of its files is ignored.
    """
    if instant.state is not State.INFLIGHT:
        return Runner(RunState.WAITING)
    found = inflight_content(view, instant)
    content = None if found is None else executor_text(found)
    owner = None if content is None else Owner.parse(content)
    named = None if content is None or owner is None else fields_of(content).get(_COORDINATOR)
    coordinator = named if isinstance(named, str) else ""
    runs = is_live(view.store, instant.requested_time)
    if not runs and owner is None and not is_asked_for:
        runs = idle_ms(view, instant, State.INFLIGHT) < JVM_IDLE_MS
    return Runner(RunState.RUNNING if runs else RunState.INTERRUPTED, owner, coordinator)


def clear_files(view: TableView, instant_time: str, partitions: Collection[str]) -> int:
    """Delete the files that attempts at a pending plan wrote, then their markers; return the number of files.

    If there are no markers, `partitions` are searched: the JVM may write no markers.
    """
    markers = read_markers(view.store, instant_time)
    paths = [marker.path for marker in markers or ()]
    with_logs = not view.config.version.log_name_has_base_instant
    for partition in sorted(set(partitions)) if markers is None else ():
        files = view.store.list(partition)
        paths += [info.path for info in files if is_file_of(info.name, instant_time, with_logs=with_logs)]
    for path in paths:
        view.store.delete(path)
    delete_markers(view.store, instant_time)
    return len(paths)


def _take(
    service: PlannedService[PlanT], view: TableView, instant: Instant, coordinator: Coordinator, wanted: Wanted
) -> ClaimedPlan[PlanT] | None:
    """Claim an instant; None if it is completed or another process executes it."""
    claim = coordinator.claim(view.store.uri(""), instant.requested_time)
    if claim is None:
        return None
    taken: tuple[PendingInstant, PlanT, Runner] | None = None
    try:
        if not _is_running(view, instant, coordinator, wanted):
            with TableView.locked(view.state, wanted.properties, finishes_update=True) as now:
                taken = _take_locked(service, now, instant, coordinator, wanted)
    finally:
        if taken is None:
            claim.release()
    if taken is None:
        return None
    pending, plan, runner = taken
    return ClaimedPlan(
        service=service,
        pending=pending,
        plan=plan,
        number=secrets.randbelow(_TOKEN_NUMBERS),
        claim=claim,
        interrupted=None if runner.state is RunState.WAITING else runner,
    )


def _take_locked(
    service: PlannedService[PlanT], view: TableView, instant: Instant, coordinator: Coordinator, wanted: Wanted
) -> tuple[PendingInstant, PlanT, Runner] | None:
    """Claim the instant under the table's lock; return also its plan, and who executed it before. None as `_take`."""
    check_no_exclusive_service(view)
    if any(pending_rollbacks(view, instant.requested_time)):
        roll_back_dead_writes(view)
        view = view.refreshed()
        if any(pending_rollbacks(view, instant.requested_time)):
            return None  # a process executes the rollback
    found = view.timeline.get(instant.requested_time, instant.action)
    if found is None or found.is_completed or _is_running(view, found, coordinator, wanted):
        return None
    plan = service.stored_plan(view, found)
    if plan is None:
        # The scheduling process died before it stored the plan: there is nothing to execute.
        delete_instant_files(view.store, view.layout, found.requested_time, found.action, State.REQUESTED)
        return None
    if found.state is State.INFLIGHT:
        check_no_write_is_lost(view, [found])
    runner = runner_of(view, found, is_asked_for=wanted.is_named)
    view = ensure_metadata_partitions(view)
    # The inflight file names the process that executes the plan.
    owner = json.dumps({**json.loads(Owner.new().to_bytes()), _COORDINATOR: coordinator.name}).encode()
    token = executor_content(found.action, owner, view.config.version)
    return PendingInstant.claim(view, found, token, wanted.properties), plan, runner


def _is_running(view: TableView, instant: Instant, coordinator: Coordinator, wanted: Wanted) -> bool:
    """Return whether another process executes the plan.

    If that process used the same coordinator, it is dead: the coordinator has granted its claim to this process.
    """
    runner = runner_of(view, instant, is_asked_for=wanted.is_named)
    if runner.state is not RunState.RUNNING:
        return False
    return not coordinator.name or runner.coordinator != coordinator.name


def _attempt_number(path: str) -> int | None:
    """Return the number of the attempt that wrote a file."""
    parsed = parse_data_file(path)
    parts = [] if parsed is None else parsed.write_token.split("-")
    return int(parts[1]) if len(parts) == _TOKEN_PARTS and parts[1].isdigit() else None
