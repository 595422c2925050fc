"""The pending plans of a table: listed, and rolled back."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from hoodie.commit.metadata_table import take_back_metadata
from hoodie.commit.pending import delete_pending_files
from hoodie.commit.rollback import RolledBack, check_no_running_rollback
from hoodie.commit.writable import check_no_exclusive_service
from hoodie.display import html_rows
from hoodie.errors import CommitConflictError, InstantNotFoundError, UnsupportedError
from hoodie.services.planned.claim import PlannedService, PlanT, Runner, RunState, clear_files, runner_of
from hoodie.timeline import Action, Instant, State, delete_heartbeat, delete_instant_files, parse_instant_time
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPlan:
    """A pending plan; `instant` is its requested time."""

    instant: str


ListedT = TypeVar("ListedT", bound=PendingPlan)


@dataclass(frozen=True, slots=True, repr=False)
class PendingPlans(Generic[ListedT]):
    """The pending plans of a service, oldest first. `service` is its name."""

    service: str
    plans: tuple[ListedT, ...] = ()

    def __len__(self) -> int:
        return len(self.plans)

    def __iter__(self) -> Iterator[ListedT]:
        return iter(self.plans)

    def __getitem__(self, place: int) -> ListedT:
        return self.plans[place]

    @property
    def instants(self) -> list[str]:
        """Return the instants of the plans."""
        return [plan.instant for plan in self.plans]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return plain values, for JSON."""
        return [asdict(plan) for plan in self.plans]

    def __str__(self) -> str:
        return "\n".join(map(str, self.plans)) or f"no {self.service} is pending"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return an HTML table, for notebooks."""
        if not self.plans:
            return str(self)
        rows = self.to_dicts()
        return html_rows(list(rows[0]), [list(row.values()) for row in rows])


def age_seconds(view: TableView, instant: Instant) -> float:
    """Return the seconds since the instant was requested."""
    return max(0.0, time.time() - parse_instant_time(instant.requested_time, view.layout.zone).timestamp())


def roll_back_plan(
    service: PlannedService[PlanT],
    state: TableState,
    instant_time: str,
    *,
    remove_plan: bool = False,
) -> RolledBack:
    """Roll back a pending plan of a service that no process executes.

    The plan stays, and can be executed later. With `remove_plan` it is deleted, so that another plan can include its
    file slices.

    Raises:
        InstantNotFoundError: no plan of that instant is pending.
        CommitConflictError: a process executes the plan, or rolls it back.
        UnsupportedError: a restore is pending; or a compaction of version 6 is to be removed that later writes rely on.
    """
    with TableView.locked(state) as view:
        instant, runner = check_plan_can_go(service, view, instant_time, remove_plan=remove_plan)
        is_foreign = runner.state is RunState.INTERRUPTED and runner.owner is None
        plan = service.stored_plan(view, instant) if is_foreign else None
        partitions = () if plan is None else service.partitions_of(plan)
        states = (State.INFLIGHT, State.REQUESTED) if remove_plan else (State.INFLIGHT,)
        count = _delete(view, instant, partitions, *states)
    return RolledBack(instant_time, count)


def check_plan_can_go(
    service: PlannedService[PlanT], view: TableView, instant_time: str, *, remove_plan: bool
) -> tuple[Instant, Runner]:
    """Return a pending plan that can be rolled back, and its runner. Raises: as `roll_back_plan`."""
    check_no_exclusive_service(view)
    where = view.store.uri("")
    instant = next((found for found in service.pending_plans(view) if found.requested_time == instant_time), None)
    if instant is None:
        raise InstantNotFoundError(
            f"{where} has no pending {service.name} {instant_time}: it was completed or rolled back"
        )
    runner = runner_of(view, instant, is_asked_for=True)
    if runner.state is RunState.RUNNING:
        raise CommitConflictError(
            f"the {instant.action} {instant_time} of {where} is being executed by {runner}: stop that process first"
        )
    check_no_running_rollback(view, instant)
    if remove_plan:
        _check_removable(view, instant)
    return instant, runner


def _delete(view: TableView, instant: Instant, partitions: Collection[str], *states: State) -> int:
    """Delete what attempts at a plan wrote, then its files of these states; return the number of data files."""
    take_back_metadata(view, instant.requested_time)
    count = clear_files(view, instant.requested_time, partitions)
    delete_instant_files(view.store, view.layout, instant.requested_time, instant.action, *states)
    delete_heartbeat(view.store, instant.requested_time)
    return count


def drop_plan(view: TableView, instant: Instant) -> None:
    """Delete a pending service whose plan cannot be read, with the files that it wrote. Call it under the table's lock.

    Its partitions are not known: its data files are found by their markers, and what is left is orphaned.

    Raises: UnsupportedError for a compaction of version 6 that later writes rely on.
    """
    try:
        _check_removable(view, instant)
    except UnsupportedError as error:
        files = f"{view.store.uri(view.layout.instant_folder())}/{instant.requested_time}.{instant.action}.requested"
        raise UnsupportedError(
            f"the plan {files} is damaged, and log files of later writes belong to the file slices that it creates; "
            "restore the file from a copy"
        ) from error
    if instant.action.writes_data:
        _delete(view, instant, (), State.INFLIGHT, State.REQUESTED)
    else:
        delete_pending_files(view, instant.requested_time, instant.action)
        delete_heartbeat(view.store, instant.requested_time)


def _check_removable(view: TableView, instant: Instant) -> None:
    """Refuse to remove a compaction of version 6 after which writes began: their log files have its instant in names.

    Without the plan the order of the log files would be lost. Raises: UnsupportedError.
    """
    if not view.config.version.log_name_has_base_instant or instant.action is not Action.COMPACTION:
        return
    later = [found for found in view.timeline.writes() if found.requested_time > instant.requested_time]
    if later:
        raise UnsupportedError(
            f"{instant} of {view.store.uri('')} cannot be removed: {later[0]} began after it, and log files of version "
            "6 belong to the file slices that it creates; execute it with "
            f"t.compact(instant='{instant.requested_time}')"
        )
