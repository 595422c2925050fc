"""Begin a write: put the table in order under its lock, then put the new instant on the timeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hoodie.commit.abandoned import AbandonedFiles
from hoodie.commit.exclusive import check_no_exclusive_service
from hoodie.commit.metadata_partitions import ensure_metadata_partitions
from hoodie.commit.pending import PendingInstant
from hoodie.commit.rollback import RolledBack, roll_back_dead_writes
from hoodie.commit.steps import Step, reached
from hoodie.timeline import Action, TableLock
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True)
class StartedWrite:
    """A write that is inflight, and the dead writes that were rolled back before it."""

    pending: PendingInstant
    rolled_back: tuple[RolledBack, ...]


def begin_write(
    state: TableState, action: Action, *, plan: bytes = b"", inflight: Callable[[TableView], bytes]
) -> StartedWrite:
    """Roll back dead writes, then create the requested file (`plan`), the heartbeat and the inflight file.

    One hold of the table's lock. If it fails, the timeline has no trace of the new instant.

    Raises: CommitConflictError; UnsupportedError if a service that excludes all others is pending; LockTimeoutError.
    """
    reached(Step.PREPARED)
    pending: PendingInstant | None = None
    try:
        with TableLock(state.store):
            view, rolled_back = put_in_order(state)
            pending = PendingInstant.start(view, action, plan, inflight(view))
        reached(Step.BEGUN)
    except BaseException:
        if pending is not None:
            pending.undo()
        raise
    return StartedWrite(pending, rolled_back)


def put_in_order(state: TableState) -> tuple[TableView, tuple[RolledBack, ...]]:
    """Remove what dead writers left, and make the metadata table fit to be written. Call it under the table's lock.

    Returns the table as it is then, and the writes that were rolled back.
    """
    abandoned = AbandonedFiles.find(state.store)
    view = TableView.load(state)
    check_no_exclusive_service(view)
    rolled_back = tuple(roll_back_dead_writes(view))
    view = view.refreshed() if rolled_back else view
    abandoned.remove(state.store, view.timeline)
    return ensure_metadata_partitions(view), rolled_back
