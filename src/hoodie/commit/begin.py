"""Begin a write: clean up after dead writers under the table's lock, then create the new instant on the timeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hoodie.commit.abandoned import AbandonedFiles
from hoodie.commit.exclusive import check_no_exclusive_service
from hoodie.commit.metadata_partitions import ensure_metadata_partitions
from hoodie.commit.pending import PendingInstant
from hoodie.commit.rollback import RolledBack, roll_back_dead_writes
from hoodie.commit.steps import Step, reached
from hoodie.timeline import Action, TableLock
from hoodie.view.archived import with_archived_between
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True)
class StartedWrite:
    """A write that is inflight, and the dead writes that were rolled back before it."""

    pending: PendingInstant
    rolled_back: tuple[RolledBack, ...]


def begin_write(
    state: TableState,
    action: Action,
    *,
    plan: bytes = b"",
    inflight: Callable[[TableView], bytes],
    properties: Mapping[str, str] | None = None,
) -> StartedWrite:
    """Roll back dead writes, then create the requested file (`plan`), the heartbeat and the inflight file.

    The table's lock is acquired once; `properties` are the options of the call. If an error is raised, the new instant
    is undone.

    Raises: CommitConflictError; UnsupportedError if an exclusive service is pending; LockTimeoutError.
    """
    reached(Step.PREPARED)
    pending: PendingInstant | None = None
    try:
        with state.table_lock(properties) as lock:
            view, rolled_back = put_in_order(state, lock, properties)
            pending = PendingInstant.start(view, action, plan, inflight(view), properties=properties)
        reached(Step.BEGUN)
    except BaseException:
        if pending is not None:
            pending.undo()
        raise
    return StartedWrite(pending, rolled_back)


def put_in_order(
    state: TableState, lock: TableLock, properties: Mapping[str, str] | None = None
) -> tuple[TableView, tuple[RolledBack, ...]]:
    """Clean up after dead writers, and prepare the metadata table for a write. Call it under the table's lock.

    Dead writes are rolled back and abandoned files are removed. `properties` are the options of the call. Returns the
    view after these changes, and the writes that were rolled back.
    """
    abandoned = AbandonedFiles.find(state.store)
    view = TableView.load(state, lock)
    check_no_exclusive_service(view)
    rolled_back = tuple(roll_back_dead_writes(view))
    view = view.refreshed() if rolled_back else view
    abandoned.remove(state.store, with_archived_between(view, view.timeline, abandoned.instants))
    return ensure_metadata_partitions(view, properties), rolled_back
