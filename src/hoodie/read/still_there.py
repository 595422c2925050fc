"""Check that no clean, rollback or restore took files from a view while a read of it was planned."""

from __future__ import annotations

from hoodie.errors import HistoryLostError
from hoodie.timeline import Action
from hoodie.view.cleaned import may_delete_before, oldest_readable_instant, stable_since
from hoodie.view.saved_slices import SavedSnapshot
from hoodie.view.table_view import TableView


def check_still_there(view: TableView, as_of: str | None = None) -> None:
    """Refuse a plan whose listing is newer than its view, if files may be missing in it; call it after the listing.

    It takes one listing of the timeline, unless the metadata table showed that nothing was committed since. `as_of` is
    a requested time, as in `TableView.slices`.

    Raises: HistoryLostError; a snapshot of the newest commit can be planned again.
    """
    if not view.may_be_overtaken():
        return
    now = view.refreshed()
    known = {found.requested_time for found in view.whole_timeline().completed()}
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
        took_back = found.action is Action.RESTORE or (found.action is Action.ROLLBACK and bool(gone))
        if is_clean or took_back:
            oldest = oldest_readable_instant(now)
            raise HistoryLostError(
                f"{view.store.uri('')}: {found} deleted files that this read had begun to read; read again",
                oldest_instant=oldest if as_of is not None else stable_since(now, oldest),
            )
