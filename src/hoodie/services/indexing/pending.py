"""Tell what a pending index build builds, and how it is completed if its process died."""

from __future__ import annotations

from hoodie.errors import CommitConflictError, HoodieError, UnsupportedError
from hoodie.index.record.building.plan import build_of
from hoodie.timeline import Instant
from hoodie.view.statistics import built_of_files
from hoodie.view.table_view import TableView


def beside_pending(view: TableView, found: Instant) -> HoodieError:
    """Return the error of a call that a pending index build refuses: CommitConflictError, UnsupportedError of a JVM's.

    Raises: CorruptFileError if the plan of the build does not parse.
    """
    where = f"{view.store.uri('')} has a pending {found}"
    if _built_by_us(view, found) is None:
        return UnsupportedError(f"{where} of the JVM: wait until it completes{how_to_end(view, found)}")
    return CommitConflictError(f"{where}, which builds an index: wait until it completes{how_to_end(view, found)}")


def how_to_end(view: TableView, found: Instant) -> str:
    """Return the part of a message that says how a pending index build that died is completed.

    Raises: CorruptFileError if its plan does not parse.
    """
    name = _built_by_us(view, found)
    return f"; if the build died, complete it with {'the engine that started it' if name is None else _call(name)}"


def _call(name: str) -> str:
    return f't.index.build("{name}")'


def _built_by_us(view: TableView, found: Instant) -> str | None:
    names = built_of_files(view, found)
    if names:
        return names[0]
    return None if build_of(view, found) is None else "record"
