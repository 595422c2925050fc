"""Take back a pending compaction: what its attempts wrote goes, and its plan too if that is asked for.

docs/format/table.md §9.2. Nobody ever believed its files, so nothing is lost: the rows are in the older base files and
in the logs. Every step can be repeated.
"""

from __future__ import annotations

from hoodie.commit.rollback import RolledBack
from hoodie.errors import CommitConflictError, InstantNotFoundError
from hoodie.metadata.table import MetadataTable
from hoodie.services.compaction.claim import RunState, clear_files, pending_plans, runner_of
from hoodie.timeline import State, TableLock, delete_heartbeat, delete_instant_files
from hoodie.view.busy_groups import stored_plan
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


def roll_back_compaction(
    state: TableState,
    instant_time: str,
    *,
    remove_plan: bool = False,
) -> RolledBack:
    """Take back a pending compaction (or log compaction) that nobody carries out.

    Its plan stays, to be carried out later, unless `remove_plan`: then its file slices are free for another plan.

    Raises:
        InstantNotFoundError: no compaction of that instant is pending.
        CommitConflictError: it is being carried out.
    """
    with TableLock(state.store):
        view = TableView.load(state)
        instant = next((found for found in pending_plans(view) if found.requested_time == instant_time), None)
        if instant is None:
            raise InstantNotFoundError(
                f"{state.store.uri('')} has no pending compaction {instant_time}: it was completed or rolled back"
            )
        runner = runner_of(view, instant, is_asked_for=True)
        if runner.state is RunState.RUNNING:
            raise CommitConflictError(
                f"the {instant.action} {instant_time} of {state.store.uri('')} is being carried out by {runner}: stop "
                "it first"
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
