"""Notice that a clean, a rollback or a restore took files from a view that is in use, and plan again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from hoodie.errors import ViewOvertakenError
from hoodie.storage import forget_answers
from hoodie.timeline import Action
from hoodie.view.history import may_delete_before, oldest_to_ask_for
from hoodie.view.saved_slices import SavedSnapshot
from hoodie.view.table_view import TableView

_T = TypeVar("_T")
_View = TypeVar("_View")
_PLANS_MAX: Final = 3
"""How often a read is planned while others take files of its view."""


def planned_again(load: Callable[[], _View], plan: Callable[[_View], _T]) -> _T:
    """Return `plan(load())`; it is called again with a new view if others took files of the first one meanwhile.

    `load` returns a view, or something that has one.

    Raises: ViewOvertakenError if that happened to several views in a row; as `load` and `plan`.
    """
    for _ in range(_PLANS_MAX - 1):
        try:
            return plan(load())
        except ViewOvertakenError:
            forget_answers()
    return plan(load())


def check_still_there(view: TableView, as_of: str | None = None) -> None:
    """Refuse a plan whose listing is newer than its view, if files may be missing in it; call it after the listing.

    It takes one listing of the timeline, unless the metadata table, which has a delta commit for each commit, showed
    that nothing was committed since. `as_of` is a requested time, as in `list_slices`.

    Raises: ViewOvertakenError.
    """
    table = view.state.metadata_table
    if table is None or table.is_newer_than(view.whole_timeline()):
        check_files_stay(view, as_of)


def check_files_stay(view: TableView, as_of: str | None = None) -> None:
    """Refuse if others took files of a view since it was loaded; call it after the files were read.

    It takes one listing of the timeline. `as_of` as in `check_still_there`.

    Raises: ViewOvertakenError.
    """
    now = view.refreshed()
    known = {found.requested_time for found in view.whole_timeline().completed()}
    begun = {found.requested_time for found in view.timeline.pending()}
    new = [found for found in now.timeline if found.requested_time not in known]
    read = {
        found.requested_time
        for found in view.timeline.writes().completed()
        if as_of is None or found.requested_time <= as_of
    }
    writes = {found.requested_time for found in now.timeline.writes().completed()}
    start = now.timeline.start or ""
    gone = {time for time in read - writes if time >= start}
    # The files that a savepoint alone keeps were compared with the listing; later cleans do not delete them.
    first = min(writes - read, default=None) if SavedSnapshot.needed_by(view, as_of) is None else None
    for found in new:
        is_clean = found.action is Action.CLEAN and first is not None and may_delete_before(now, found, first)
        # A restore whose process died stays pending: what it has not rolled back is there, and can be read.
        is_new_restore = found.action is Action.RESTORE and (found.is_completed or found.requested_time not in begun)
        took_back = is_new_restore or (found.action in (Action.ROLLBACK, Action.RESTORE) and bool(gone))
        if is_clean or took_back:
            raise ViewOvertakenError(
                f"{view.store.uri('')}: {found} deleted files that this read had begun to read; read again",
                oldest_instant=oldest_to_ask_for(now, as_of),
            )
