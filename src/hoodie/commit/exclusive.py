"""Refuse changes of a table while an exclusive service is pending: a service during which the table must not change."""

from __future__ import annotations

from hoodie.errors import UnsupportedError
from hoodie.index.record.building.plan import build_of
from hoodie.timeline import Action
from hoodie.view.statistics import built_statistics
from hoodie.view.table_view import TableView


def check_no_exclusive_service(view: TableView) -> None:
    """Refuse to write while a restore or an index build of the JVM is pending.

    Writes are allowed while this library builds an index. Raises: UnsupportedError, naming the instant.
    """
    for instant in view.timeline.pending().instants:
        is_ours = instant.action is Action.INDEXING and (
            build_of(view, instant) is not None or bool(built_statistics(view, instant))
        )
        if is_ours:
            continue
        if instant.action in (Action.RESTORE, Action.INDEXING):
            raise UnsupportedError(
                f"{view.store.uri('')} has a pending {instant.action} ({instant.requested_time}), during which nothing "
                "else can be written; complete it with the engine that started it, then try again"
            )
