"""Roll back a pending compaction: delete the files of its attempts, and optionally its plan.

Implements docs/format/table.md §9.2. The files are uncommitted, so no rows are lost: the rows are in the older base
files and in the log files. Every step can be repeated.
"""

from __future__ import annotations

from hoodie.commit.rollback import RolledBack
from hoodie.errors import CommitConflictError, InstantNotFoundError
from hoodie.metadata.table import MetadataTable
from hoodie.services.compaction.claim import RunState, clear_files, pending_plans, runner_of
from hoodie.timeline import State, delete_heartbeat, delete_instant_files
from hoodie.view.busy_groups import stored_plan
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


def roll_back_compaction(
    state: TableState,
    instant_time: str,
    *,
    remove_plan: bool = False,
) -> RolledBack:
    """Roll back a pending compaction or log compaction that no process executes.

    The plan stays, and can be executed later. With `remove_plan` it is deleted, so that another plan can include its
    file slices.

    Raises:
        InstantNotFoundError: no compaction of that instant is pending.
        CommitConflictError: a process executes the compaction.
    """
    with state.table_lock() as lock:
        view = TableView.load(state, lock)
        instant = next((found for found in pending_plans(view) if found.requested_time == instant_time), None)
        if instant is None:
            raise InstantNotFoundError(
                f"{state.store.uri('')} has no pending compaction {instant_time}: it was completed or rolled back"
            )
        runner = runner_of(view, instant, is_asked_for=True)
        if runner.state is RunState.RUNNING:
            raise CommitConflictError(
                f"the {instant.action} {instant_time} of {state.store.uri('')} is being executed by {runner}: stop "
                "that process first"
            )
        is_foreign = runner.state is RunState.INTERRUPTED and runner.owner is None
        metadata_table = MetadataTable.open(view.store, view.config)
        if metadata_table is not None:
            metadata_table.take_back(instant_time)
        count = clear_files(view, instant_time, stored_plan(view, instant) if is_foreign else None)
        states = (State.INFLIGHT, State.REQUESTED) if remove_plan else (State.INFLIGHT,)
        delete_instant_files(view.store, view.layout, instant_time, instant.action, *states)
        delete_heartbeat(view.store, instant_time)
    return RolledBack(instant_time, count)
