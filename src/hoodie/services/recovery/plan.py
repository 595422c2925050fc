"""Plan which instants a rollback of a completed commit or a restore takes back (docs/format/table.md §9.5).

The functions of this module change nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hoodie.errors import CommitConflictError, InstantNotFoundError, UnsupportedError
from hoodie.format.filenames import instant_of_data_file
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.table.table_config import TableType
from hoodie.services.indexing.pending import how_to_end
from hoodie.services.planned.claim import RunState, runner_of
from hoodie.services.recovery.saved_state import check_saved_state
from hoodie.timeline import Action, Instant, TimelineArchive
from hoodie.timeline.heartbeat import is_live
from hoodie.view.cleaned import oldest_readable_instant
from hoodie.view.savepoints import savepointed_instants, savepoints
from hoodie.view.table_view import TableView

_PLANNED = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING})
_NAMED_MAX = 10


def plan_chain(view: TableView, target: Instant, *, chain: bool) -> tuple[Instant, ...]:
    """Return the instants to roll back with a completed write: the target and all later ones, the newest first.

    Later are the write instants that were requested or completed after the target. A compaction that was requested
    before the target is not later: its plan does not have the target's files.

    Raises:
        UnsupportedError: there are later instants and `chain` is false; a savepoint keeps one of the instants; a clean
            deleted files that the table needs without them; instants that stay are archived, beyond a savepoint.
        CommitConflictError: a writer or a service is running.
    """
    later = [found for found in view.timeline.writes() if _is_later(view, found, target)]
    if later and not chain:
        named = ", ".join(map(str, later[:_NAMED_MAX]))
        more = f" and {len(later) - _NAMED_MAX} more" if len(later) > _NAMED_MAX else ""
        raise UnsupportedError(
            f"{target} of {view.store.uri('')} is not the newest: later instants may depend on it, and would be rolled "
            f"back too: {named}{more}. Roll them back first, or all at once with "
            f"t.rollback('{target.requested_time}', chain=True)"
        )
    instants = _newest_first(view, [target, *later])
    _check_none_running(view)
    _check_no_savepoint(view, instants)
    newest = _newest_that_stays(view, instants)
    _check_readable(view, newest)
    _check_not_archived(view, newest or target)
    return instants


def plan_restore(view: TableView, target: Instant) -> tuple[Instant, ...]:
    """Return the instants to roll back, so that `target` is the newest write: pending clusterings, then the newest.

    As in the JVM, that are the writes that completed after the target, and pending ones. On merge-on-read tables
    compactions are compared by their requested times.

    Raises: UnsupportedError, CommitConflictError as `plan_chain`; UnsupportedError if later instants are archived, or
        files of the savepoint are missing, or the table would not end with the files that the savepoint names.
    """
    instants = _newest_first(view, (found for found in view.timeline.writes() if _completes_after(view, found, target)))
    if not instants:
        return ()
    _check_none_running(view)
    _check_no_savepoint(view, instants)
    _check_not_archived(view, target)
    saved = next((found for found in savepoints(view) if found.instant == target.requested_time), None)
    if saved is None:
        _check_readable(view, target)
    else:
        _check_present(view, saved.files.items(), instants, target)
        check_saved_state(view, saved.files, instants, target)
    return instants


def commit_to_restore(view: TableView, instant: str) -> Instant:
    """Return the completed write of a requested time. Raises: InstantNotFoundError."""
    found = view.timeline.writes().completed().get(instant)
    if found is None:
        raise InstantNotFoundError(
            f"{view.store.uri('')} has no completed commit {instant} on its active timeline to restore to; the "
            f"savepoints are: {', '.join(savepointed_instants(view)) or 'none'}"
        )
    return found


def _is_later(view: TableView, found: Instant, target: Instant) -> bool:
    if found.requested_time == target.requested_time:
        return False
    if found.requested_time > target.requested_time:
        return found.is_completed or found.action in _PLANNED
    # The metadata of few instants is read: only of those that completed after the target.
    return found.is_completed and _order(view, found) > _order(view, target) and not _is_compaction(view, found)


def _completes_after(view: TableView, found: Instant, target: Instant) -> bool:
    if not found.is_completed or (found.action is Action.COMMIT and _is_compaction(view, found)):
        return found.requested_time > target.requested_time
    return _order(view, found) > _order(view, target)


def _is_compaction(view: TableView, found: Instant) -> bool:
    """Return whether a completed instant is a compaction; only a merge-on-read table is asked for its metadata."""
    if view.config.table_type is not TableType.MERGE_ON_READ:
        return False
    return view.commit_metadata(found).operation_type in (WriteOperation.COMPACT, WriteOperation.LOG_COMPACT)


def _order(view: TableView, found: Instant) -> tuple[str, str]:
    return view.order_time(found), found.requested_time


def _newest_first(view: TableView, instants: Iterable[Instant]) -> tuple[Instant, ...]:
    """Sort: pending clusterings, other pending instants, completed instants by completion time; each newest first."""

    def key(found: Instant) -> tuple[bool, bool, tuple[str, str]]:
        return (
            not found.is_completed and found.action is Action.CLUSTERING,
            not found.is_completed,
            _order(view, found),
        )

    return tuple(sorted(instants, key=key, reverse=True))


def _newest_that_stays(view: TableView, gone: Collection[Instant]) -> Instant | None:
    times = {found.requested_time for found in gone}
    stay = [found for found in view.completed_writes() if found.requested_time not in times]
    return max(stay, key=lambda found: found.requested_time, default=None)


def _check_none_running(view: TableView) -> None:
    """Refuse while a write, a compaction or an index build runs: it reads files that would be deleted."""
    for found in view.timeline.pending():
        if found.action is Action.INDEXING:
            runs = True
        elif found.action in _PLANNED:
            runs = runner_of(view, found).state is RunState.RUNNING
        else:
            is_changing = found.action.writes_data or found.action is Action.ROLLBACK
            runs = is_changing and is_live(view.store, found.requested_time)
        if runs:
            raise CommitConflictError(
                f"{found} of {view.store.uri('')} is running or waits for its process, and uses files that would be "
                "deleted: stop the writers and services first, or wait until they end, then try again"
                f"{how_to_end(view, found) if found.action is Action.INDEXING else ''}"
            )


def _check_no_savepoint(view: TableView, instants: Collection[Instant]) -> None:
    saved = sorted({found.requested_time for found in instants} & set(savepointed_instants(view)))
    if saved:
        raise UnsupportedError(
            f"{view.store.uri('')}: a savepoint keeps {', '.join(saved)}, which would be rolled back; delete the "
            f"savepoint first, with t.delete_savepoint('{saved[-1]}')"
        )


def _check_readable(view: TableView, newest: Instant | None) -> None:
    """Refuse if the table without the instants needs files that a clean deleted, or would end in the archive."""
    oldest = oldest_readable_instant(view)
    if newest is None:
        if view.has_archived_instants():
            raise UnsupportedError(
                f"{view.store.uri('')}: the commits before are archived, and the table cannot go back to an archived "
                "commit; roll back fewer commits"
            )
        return
    if newest.requested_time < oldest and newest.requested_time not in savepointed_instants(view):
        raise UnsupportedError(
            f"{view.store.uri('')} cannot go back to {newest.requested_time}: a clean deleted files that it needs, and "
            f"kept what instants from {oldest} on need"
        )


def _check_not_archived(view: TableView, target: Instant) -> None:
    """Refuse if an instant after the target is archived: its files cannot be told from committed ones."""
    start = view.timeline.start
    archive = TimelineArchive.of(view.store, view.layout, history_path=view.config.history_path)
    if (start is not None and start <= target.requested_time) or archive.newest_time() <= target.requested_time:
        return
    for found in archive.instants():
        if Action(found.action).writes_data and found.requested_time > target.requested_time:
            raise UnsupportedError(
                f"{view.store.uri('')} cannot go back to {target.requested_time}: later instants, such as "
                f"{found.requested_time}, are archived (hoodie.archive.beyond.savepoint), and archived instants cannot "
                "be rolled back"
            )


def _check_present(
    view: TableView, saved: Iterable[tuple[str, Collection[str]]], gone: Collection[Instant], target: Instant
) -> None:
    """Refuse if a file that the savepoint names is missing."""
    times = {found.requested_time for found in gone}
    named = dict(saved)
    listing = view.listing(sorted(named))
    for path, names in named.items():
        lost = [name for name in names if name not in listing[path] and instant_of_data_file(name) not in times]
        if lost:
            raise UnsupportedError(
                f"{view.store.uri('')} cannot go back to {target.requested_time}: files that its savepoint names are "
                f"missing in partition {path!r}: {lost[:3]}"
            )
