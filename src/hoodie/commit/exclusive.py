"""Services that take the table's state for theirs: while one is pending, nobody else may change it."""

from __future__ import annotations

from hoodie.errors import UnsupportedError
from hoodie.index.record.building.plan import build_of
from hoodie.timeline import Action
from hoodie.view.table_view import TableView


def check_no_exclusive_service(view: TableView) -> None:
    """Refuse to write while a restore runs, or the JVM builds an index: both take the table's state for theirs.

    A build of ours lets writers go on. Raises: UnsupportedError, naming the instant.
    """
    for instant in view.timeline.pending().instants:
        if instant.action is Action.INDEXING and build_of(view, instant) is not None:
            continue
        if instant.action in (Action.RESTORE, Action.INDEXING):
            raise UnsupportedError(
                f"{view.store.uri('')} has a pending {instant.action} ({instant.requested_time}): writes wait until it "
                "is done; let the engine that began it finish it"
            )
