"""Roll back a pending instant that the caller names: a dead write, or the plan of a compaction or clustering."""

from __future__ import annotations

from hoodie.commit.exclusive import check_no_exclusive_service
from hoodie.commit.rollback import check_no_running_rollback, plan_rollback, roll_back
from hoodie.errors import CommitConflictError, InstantNotFoundError, UnsupportedError
from hoodie.progress import PhaseTimes
from hoodie.services.clustering.planned import CLUSTERING
from hoodie.services.compaction.planned import COMPACTION
from hoodie.services.planned.rollback import roll_back_plan
from hoodie.services.result import ServiceResult
from hoodie.timeline import Instant
from hoodie.timeline.heartbeat import is_live
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

OPERATION = "rollback"


def roll_back_pending(state: TableState, instant_time: str, *, dry_run: bool = False) -> ServiceResult:
    """Roll back a pending instant: delete its data files and its instant files.

    The plan of a compaction or clustering is deleted too, so that another plan can include its file slices. With
    `dry_run` nothing is changed, and the result says what would go.

    Raises:
        InstantNotFoundError: the timeline has no such instant.
        CommitConflictError: the process that started the instant is still running, or another process rolls it back.
        UnsupportedError: the instant is a service that cannot be rolled back; a restore is pending.
    """
    times = PhaseTimes()
    view = TableView.load(state)
    instant = _pending(view, instant_time)
    check_no_exclusive_service(view)
    if dry_run:
        requests = plan_rollback(view, instant).rollback_requests
        files = sum(len(request.files_to_be_deleted) for request in requests)
        notes = (f"{instant} would be rolled back",)
        return ServiceResult(operation=OPERATION, counts={"files_deleted": files}, dry_run=True, notes=notes)
    if instant.action in COMPACTION.actions:
        with times.phase("rollback"):
            done = roll_back_plan(COMPACTION, state, instant_time, remove_plan=True)
    elif instant.action in CLUSTERING.actions:
        with times.phase("rollback"):
            done = roll_back_plan(CLUSTERING, state, instant_time, remove_plan=True)
    else:
        with times.phase("rollback"), state.table_lock() as lock:
            view = TableView.load(state, lock)
            instant = _pending(view, instant_time)
            check_no_exclusive_service(view)
            if is_live(state.store, instant_time):
                raise CommitConflictError(f"the writer of {instant} is running: stop it first, or wait until it ends")
            check_no_running_rollback(view, instant)
            done = roll_back(view, instant)
    counts = {"files_deleted": done.files_deleted}
    return ServiceResult(operation=OPERATION, instant=done.instant_time, counts=counts, seconds=times.seconds())


def _pending(view: TableView, instant_time: str) -> Instant:
    instant = view.timeline.get(instant_time)
    where = view.store.uri("")
    if instant is None:
        raise InstantNotFoundError(
            f"{where} has no instant {instant_time}; t.timeline.pending() returns the pending instants"
        )
    if instant.is_completed:
        raise CommitConflictError(f"{instant} of {where} completed meanwhile; call t.rollback again")
    if not instant.action.writes_data:
        raise UnsupportedError(f"{instant} of {where}: writes, compactions and clusterings can be rolled back")
    return instant
