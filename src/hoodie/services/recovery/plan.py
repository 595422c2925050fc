"""Plan which instants a rollback of a completed commit or a restore takes back (docs/format/table.md §9.5).

A savepoint names files; a restore takes back the instants that completed after its commit. Where writers overlapped,
the two can disagree: JVM Hudi names the files of the writes that were requested before the commit. A clean then may
have deleted what the restored table needs, so the plan of a restore checks that the table ends with the named files.
The functions of this module change nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from hoodie.commit.call import Call
from hoodie.display import counted
from hoodie.errors import CommitConflictError, InstantNotFoundError, UnsupportedError
from hoodie.files.slices import FileSlice, join_path
from hoodie.format.filenames import instant_of_data_file, name_of, parse_data_file
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.instants.planned_replacement import accepted_losses
from hoodie.format.table.table_config import TableType
from hoodie.index import index_of_view, obeys_index
from hoodie.services.indexing.key_check import check_past_state
from hoodie.services.indexing.life import how_to_end
from hoodie.services.planned.claim import RunState, runner_of
from hoodie.storage import together
from hoodie.timeline import Action, Instant
from hoodie.timeline.heartbeat import is_live
from hoodie.view.history import oldest_readable_instant, savepointed_instants, savepoints
from hoodie.view.listing import list_files
from hoodie.view.saved_slices import has_named_files, named_groups
from hoodie.view.slices import list_existing_slices
from hoodie.view.superseded import lost_before
from hoodie.view.table_view import TableView

_NAMED_MAX = 10
_BRING_BACK = "Nothing was changed; bring them back from a copy of the storage (object stores keep versions)"


def plan_chain(view: TableView, target: Instant, *, chain: bool) -> tuple[Instant, ...]:
    """Return the instants to roll back with a completed write: the target and all later ones, the newest first.

    Later are the write instants that were requested or completed after the target. A compaction that was requested
    before the target is not later: its plan does not have the target's files.

    Raises:
        UnsupportedError: there are later instants and `chain` is false; a savepoint keeps one of the instants; a clean
            deleted files that the table needs without them, or they are missing; instants that stay are archived,
            beyond a savepoint.
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
    _check_files_exist(view, instants, "" if newest is None else newest.requested_time)
    return instants


def plan_restore(view: TableView, commit: str) -> tuple[Instant, ...]:
    """Return the instants to roll back, so that `commit` is the newest write: pending clusterings, then the newest.

    As in the JVM, that are the writes that completed after the commit, and pending ones. On merge-on-read tables
    compactions are compared by their requested times.

    Raises: UnsupportedError, CommitConflictError as `plan_chain`; UnsupportedError if later instants are archived, or
        files are missing, or the table would not end with the files that the savepoint names; InstantNotFoundError if
        no completed write has this requested time.
    """
    target = view.timeline.writes().completed().get(commit)
    if target is None:
        raise InstantNotFoundError(
            f"{view.store.uri('')} has no completed commit {commit} on its active timeline to restore to; the "
            f"savepoints are: {', '.join(savepointed_instants(view)) or 'none'}"
        )
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
        _check_present(view, saved.files, instants, target)
        _check_saved_state(view, saved.files, instants, target)
    _check_files_exist(view, instants, target.requested_time)
    return instants


def check_index_without(call: Call, view: TableView, gone: Collection[Instant]) -> None:
    """Refuse to go back to a state from before a switch of the index, if the index would not find all its rows.

    Reads the keys of that state only if it is from before a switch. Raises: UnsupportedError.
    """
    stays = _without(view, gone)
    if obeys_index(stays):
        return
    newest = max(stays.completed_writes(), key=lambda found: _order(view, found), default=None)
    if newest is None:
        return
    remedy = (
        f"the table cannot go back to {newest.requested_time}, from before the switch to the index "
        f"{index_of_view(view).name!r}, which would not find these. Nothing was changed; write the rows of that state "
        f"instead: t.insert_overwrite_table(t.to_arrow(as_of='{newest.requested_time}'))"
    )
    check_past_state(stays.as_completed_by(view.order_time(newest)), call.engine_for, remedy=remedy)


def _is_later(view: TableView, found: Instant, target: Instant) -> bool:
    if found.requested_time == target.requested_time:
        return False
    if found.requested_time > target.requested_time:
        return found.is_completed or found.action.is_planned
    # The metadata of few instants is read: only of those that completed after the target.
    return found.is_completed and _order(view, found) > _order(view, target) and not _is_compaction(view, found)


def _completes_after(view: TableView, found: Instant, target: Instant) -> bool:
    if not found.is_completed or (found.action is Action.COMMIT and _is_compaction(view, found)):
        return found.requested_time > target.requested_time
    return _order(view, found) > _order(view, target)


def _is_compaction(view: TableView, found: Instant) -> bool:
    """Return whether a completed instant is a compaction; reads its metadata only in a merge-on-read table."""
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
        elif found.action.is_planned:
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
    """Refuse if a savepoint, finished or not, keeps one of the instants. Raises: UnsupportedError."""
    times = {found.requested_time for found in instants}
    unfinished = {found.requested_time for found in view.timeline.pending() if found.action is Action.SAVEPOINT}
    saved = sorted(times & {*savepointed_instants(view), *unfinished})
    if saved:
        one = "an unfinished savepoint keeps" if saved[0] in unfinished else "a savepoint keeps"
        what, it = ("savepoints keep", "them") if len(saved) > 1 else (one, "it")
        calls = " and ".join(f"t.delete_savepoint('{found}')" for found in reversed(saved))
        raise UnsupportedError(
            f"{view.store.uri('')}: {what} {', '.join(saved)}, which would be rolled back; delete {it} first, with "
            f"{calls}"
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
            f"kept what instants from {oldest} on need. Go back to one of these; savepoints keep the files of a commit"
        )


def _check_not_archived(view: TableView, target: Instant) -> None:
    """Refuse if an instant after the target is archived: its files look like committed ones."""
    start = view.timeline.start
    archive = view.archive()
    if (start is not None and start <= target.requested_time) or archive.newest_time() <= target.requested_time:
        return
    times = (found.requested_time for found in archive.completed() if found.action.writes_data)
    newest = max(times, default="")
    if newest > target.requested_time:
        raise UnsupportedError(
            f"{view.store.uri('')} cannot go back to {target.requested_time}: later instants, up to {newest}, are "
            "archived (hoodie.archive.beyond.savepoint), and archived instants cannot be rolled back. Go back to a "
            "later commit than these; t.to_arrow(as_of=…) reads the table as of an earlier one"
        )


def _check_present(
    view: TableView, saved: Mapping[str, Collection[str]], gone: Collection[Instant], target: Instant
) -> None:
    """Refuse if a file that the savepoint names is missing."""
    times = {found.requested_time for found in gone}
    listing = list_files(view, sorted(saved))
    lost = [
        join_path(path, name)
        for path, names in saved.items()
        for name in names
        if name not in listing[path] and instant_of_data_file(name) not in times
    ]
    if lost:
        raise UnsupportedError(
            f"{view.store.uri('')} cannot go back to {target.requested_time}: files that its savepoint names are "
            f"missing: {_few(lost)}. {_BRING_BACK}, or choose another savepoint"
        )


def _check_files_exist(view: TableView, gone: Collection[Instant], target: str) -> None:
    """Refuse if a file does not exist that the table would need again in a file group that `gone` changed.

    Takes one more request for each changed partition, or for each file of it if these are fewer, all together; none in
    a table without a metadata table, which is listed from the storage.
    """
    undone = [found for found in gone if found.is_completed]
    commits = [view.commit_metadata(found) for found in undone]
    stats = [stat for commit in commits for stat in commit.write_stats()]
    changed = {stat.group for stat in stats}.union(*(commit.replaced_groups() for commit in commits))
    stays, paths = _without(view, gone), sorted({path for path, _ in changed})
    again = [one for one in list_existing_slices(stays, paths) if one.group in changed]
    lost = {*lost_before(stays, again, undone, partitions=paths), *_not_stored(view, again)}
    lost -= {*accepted_losses(commits)}  # the file groups of these have no newer file
    if lost:
        groups = {(path.rpartition("/")[0], name.file_id) for path in lost if (name := parse_data_file(path))}
        newest: dict[tuple[str, str], int] = {}
        for stat in stats:
            newest.setdefault(stat.group, stat.num_writes)
        rows = sum(written for group, written in newest.items() if group in groups)
        to = f"to {target}" if target else "to before its first commit"
        raise UnsupportedError(
            f"{view.store.uri('')} cannot go back {to}: the table would need files again that do not exist: "
            f"{_few(sorted(lost))}. The newest files of their file groups, to which the commits that would be rolled "
            f"back wrote {counted(rows, 'rows')}, would be deleted, and these rows lost. {_BRING_BACK}, or go back to "
            "another commit. If the newest rows need a file too, as t.verify() then reports, "
            "t.repair(accept_loss=[FILE]) gives it up"
        )


def _not_stored(view: TableView, slices: Collection[FileSlice]) -> set[str]:
    """Return the files of the slices that the storage does not have."""
    if not view.config.has_metadata_table:
        return set()
    needed: dict[str, set[str]] = {}
    for found in slices:
        needed.setdefault(found.partition_path, set()).update(found.paths)

    def missing(path: str, files: set[str]) -> set[str]:
        if len(files) == 1:
            return {file for file in files if view.store.head(file) is None}
        return files - {info.path for info in view.store.list(path)}

    return set().union(*together(view.store, *(partial(missing, path, files) for path, files in needed.items())))


def _without(view: TableView, gone: Collection[Instant]) -> TableView:
    """Return the view as it is when the instants are rolled back."""
    times = {found.requested_time for found in gone}
    timeline = view.timeline.filter(lambda found: found.requested_time not in times)
    later = tuple(found for found in gone if found.is_completed)
    hidden = timeline.never_completed | {found.requested_time for found in later}
    return replace(
        view,
        timeline=replace(timeline, never_completed=hidden),
        completed_later=(*view.completed_later, *later),
    )


def _few(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED_MAX:,} more" if len(paths) > _NAMED_MAX else ""
    return ", ".join(paths[:_NAMED_MAX]) + more


def _check_saved_state(
    view: TableView, saved: Mapping[str, Collection[str]], gone: Collection[Instant], target: Instant
) -> None:
    """Raise unless removing `gone` leaves exactly the slices of the savepoint of `target`.

    A file group may have a newer base file, of a compaction that a restore keeps: it has the rows of the named files.
    """
    named, stays = named_groups(saved), _without(view, gone)
    after = {found.group: found for found in list_existing_slices(stays, sorted(saved))}
    for group in sorted({*named, *after}):
        found = after.get(group)
        if found is None or not _is_same(stays, found, named.get(group, set()), target):
            raise _refused(view, target, group, found)
    replaced = _replaced(stays, target)
    for group, written in sorted(_written_before(stays, target).items()):
        found = after.get(group)
        if group in replaced:
            continue
        times = [] if found is None else [found.base_instant_time, *(log.name.instant_time for log in found.log_files)]
        if max(times, default="") < written:
            # A clean deleted the file, as the savepoint does not name it.
            raise _refused(view, target, group, found)


def _is_same(stays: TableView, found: FileSlice, named: set[str], target: Instant) -> bool:
    names = {name_of(path) for path in found.paths}
    if has_named_files(found, named, stays.config.version):
        # Log files of later writes in version 6 stay, with rollback blocks behind them.
        return True
    base = found.base_file
    wrote = None if base is None else stays.timeline.get(base.instant_time)
    if base is None or wrote is None or not named or not wrote.is_completed:
        return False
    is_kept_compaction = (
        wrote.requested_time < target.requested_time
        and stays.order_time(wrote) > stays.order_time(target)
        and stays.commit_metadata(wrote).operation_type == WriteOperation.COMPACT
    )
    return is_kept_compaction and names - {base.name} <= set(named)


def _written_before(stays: TableView, target: Instant) -> dict[tuple[str, str], str]:
    """Return the file groups of writes that were requested after the target and completed before it.

    The value is the requested time of the last such write.
    """
    return {
        stat.group: found.requested_time
        for found in stays.timeline.writes().completed()
        if found.requested_time > target.requested_time and stays.order_time(found) <= stays.order_time(target)
        for stat in stays.commit_metadata(found).write_stats()
    }


def _replaced(stays: TableView, target: Instant) -> set[tuple[str, str]]:
    commits = (found for found in stays.completed_writes() if stays.order_time(found) <= stays.order_time(target))
    facts = map(stays.commit_facts, commits)
    return {(path, file_id) for found in facts for path, file_ids in found.replaced.items() for file_id in file_ids}


def _refused(view: TableView, target: Instant, group: tuple[str, str], found: FileSlice | None) -> UnsupportedError:
    path, file_id = group
    left = "no file" if found is None else ", ".join(name_of(name) for name in found.paths)
    return UnsupportedError(
        f"{view.store.uri('')} cannot go back to {target.requested_time}: without the instants that completed later, "
        f"file group {file_id} of partition {path!r} would have {left}, and not the files that the savepoint names. "
        "Writers overlapped when the commit was made, and its savepoint has the files of another one; nothing was "
        "changed. Restore to another savepoint or commit"
    )
