"""Roll back a pending instant that somebody names: a write whose writer died, or a compaction that is not wanted."""

from __future__ import annotations

from hoodie.commit.rollback import roll_back
from hoodie.errors import CommitConflictError, InstantNotFoundError, UnsupportedError
from hoodie.progress import PhaseTimes
from hoodie.services.compaction.rollback import roll_back_compaction
from hoodie.services.result import ServiceResult
from hoodie.timeline import Action, Instant, TableLock
from hoodie.timeline.heartbeat import is_live
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

OPERATION = "rollback"


def roll_back_pending(state: TableState, instant_time: str) -> ServiceResult:
    """Take back an instant that did not complete: its files, and its place on the timeline.

    Of a compaction the plan goes too, so that its file slices are free for another one.

    Raises:
        InstantNotFoundError: the timeline has no such instant.
        CommitConflictError: whoever began it is still at work.
        UnsupportedError: it completed, or it is a service that this release does not roll back.
    """
    times = PhaseTimes()
    view = TableView.load(state)
    instant = _pending(view, instant_time)
    if instant.action in (Action.COMPACTION, Action.LOG_COMPACTION):
        with times.phase("rollback"):
            done = roll_back_compaction(state, instant_time, remove_plan=True)
    else:
        with times.phase("rollback"), TableLock(state.store):
            view = TableView.load(state)
            instant = _pending(view, instant_time)
            if is_live(state.store, instant_time):
                raise CommitConflictError(f"the writer of {instant} is at work: stop it first, or wait for its end")
            done = roll_back(view, instant)
    counts = {"files_deleted": done.files_deleted}
    return ServiceResult(operation=OPERATION, instant=done.instant_time, counts=counts, seconds=times.seconds())


def _pending(view: TableView, instant_time: str) -> Instant:
    instant = view.timeline.get(instant_time)
    where = view.store.uri("")
    if instant is None:
        raise InstantNotFoundError(f"{where} has no instant {instant_time}; t.timeline.pending() shows those that wait")
    if instant.is_completed:
        raise UnsupportedError(
            f"{instant} of {where} completed: this release rolls back what did not; read an earlier state with as_of="
        )
    is_service = instant.action in (Action.COMPACTION, Action.LOG_COMPACTION)
    if not (is_service or (instant.action.writes_data and instant.action is not Action.CLUSTERING)):
        raise UnsupportedError(f"{instant} of {where}: this release rolls back writes and compactions only")
    return instant
