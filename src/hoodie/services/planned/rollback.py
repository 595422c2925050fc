"""Roll back a pending plan: delete the files of its attempts, and optionally the plan.

Implements docs/format/table.md §9.2 and §9.3. The files are uncommitted, so no rows are lost: the rows are in the file
slices of the plan. Every step can be repeated.
"""

from __future__ import annotations

from hoodie.commit.exclusive import check_no_exclusive_service
from hoodie.commit.rollback import RolledBack, check_no_running_rollback
from hoodie.errors import CommitConflictError, InstantNotFoundError
from hoodie.metadata.table import MetadataTable
from hoodie.services.planned.claim import RunState, clear_files, runner_of
from hoodie.services.planned.service import PlannedService, PlanT
from hoodie.timeline import State, delete_heartbeat, delete_instant_files
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


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
        UnsupportedError: a restore is pending.
    """
    with state.table_lock() as lock:
        view = TableView.load(state, lock)
        check_no_exclusive_service(view)
        instant = next((found for found in service.pending_plans(view) if found.requested_time == instant_time), None)
        if instant is None:
            raise InstantNotFoundError(
                f"{state.store.uri('')} has no pending {service.name} {instant_time}: it was completed or rolled back"
            )
        runner = runner_of(view, instant, is_asked_for=True)
        if runner.state is RunState.RUNNING:
            raise CommitConflictError(
                f"the {instant.action} {instant_time} of {state.store.uri('')} is being executed by {runner}: stop "
                "that process first"
            )
        check_no_running_rollback(view, instant)
        take_back_metadata(view, instant_time)
        is_foreign = runner.state is RunState.INTERRUPTED and runner.owner is None
        plan = service.stored_plan(view, instant) if is_foreign else None
        count = clear_files(view, instant_time, () if plan is None else service.partitions_of(plan))
        states = (State.INFLIGHT, State.REQUESTED) if remove_plan else (State.INFLIGHT,)
        delete_instant_files(view.store, view.layout, instant_time, instant.action, *states)
        delete_heartbeat(view.store, instant_time)
    return RolledBack(instant_time, count)


def take_back_metadata(view: TableView, instant_time: str) -> None:
    """Delete what attempts at a pending plan wrote to the metadata table. Call it under the table's lock.

    An attempt writes the log files of the record index before its delta commit, and they would count when a later
    attempt completes. Costs a listing of the metadata table.
    """
    metadata_table = MetadataTable.open(view.store, view.config)
    if metadata_table is not None:
        metadata_table.take_back(instant_time)
        metadata_table.discard(instant_time)
