"""Archives old instants of the metadata table's active timeline, because every commit lists that timeline.

docs/format/table.md §9.6, §2.7. It runs at the start of a commit, under the table's lock.

The JVM keeps every instant that the active timeline of the data table still has, so that a data instant can be rolled
back. This library archives instants before the second last compaction, the oldest pending instant and the oldest
savepoint. An instant older than the last compaction cannot be rolled back in either implementation, and a restore needs
only the instants since its savepoint.

An instant stays on the active timeline as long as any of its files exists. Then the visibility of a file never depends
on the first instant of the active timeline. A JVM writer that adds an index makes the active timeline begin at zero
again. If the instant of a base file were archived, that base file would become invisible; this can happen to a file
group that no commit has changed since its last compaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hoodie.format.filenames import instant_of_data_file
from hoodie.metadata.paths import partition_folder
from hoodie.metadata.services.context import ServiceContext, ServiceLimits
from hoodie.storage import FileInfo
from hoodie.timeline import Action, Instant, Timeline, archive_instants

_COMPACTIONS_KEPT = 2
_COMMITS_AFTER_CLEAN = 3
_ARCHIVED_BESIDE = frozenset({Action.CLEAN, Action.ROLLBACK})
"""Actions whose instants are archived together with the commits around them."""


def archive_if_due(context: ServiceContext) -> bool:
    """Move the oldest instants to the archive if there are too many. Returns whether it archived.

    Files of instants that were never committed are deleted first: after the active timeline begins later than these
    instants, their files cannot be distinguished from files of archived instants.

    Raises: CorruptFileError if the archive does not parse.
    """
    commits = context.completed_commits()
    if not _is_due(context, commits):
        return False
    folder = context.folder
    files = [info for partition in context.kinds for info in folder.store.list(partition_folder(partition))]
    to_archive = instants_to_archive(
        context, commits, {time for info in files if (time := instant_of_data_file(info.path))}
    )
    if not to_archive:
        return False
    beside = [
        instant
        for instant in context.metadata_timeline.completed()
        if instant.action in _ARCHIVED_BESIDE and instant.requested_time < to_archive[-1].requested_time
    ]
    instants = sorted((*to_archive, *beside), key=lambda instant: (instant.requested_time, instant.action))
    _delete_orphans(context, files, to_archive)
    archive_instants(
        folder.store,
        folder.layout,
        instants,
        archive_name=folder.archive_name,
        fence=context.table,
    )
    return True


def instants_to_archive(
    context: ServiceContext, commits: Sequence[Instant], with_files: Collection[str]
) -> list[Instant]:
    """Return the commits that are not needed on the active timeline any more; never all commits. Pure.

    `with_files` holds the requested times of the instants that still have files.
    """
    compactions = [instant for instant in commits if instant.action is Action.COMMIT]
    if len(compactions) < _COMPACTIONS_KEPT:
        return []
    bound = min(compactions[-_COMPACTIONS_KEPT].requested_time, *_data_bounds(context, commits))
    return [
        instant
        for instant in commits[: len(commits) - context.limits.commits_kept_min]
        if instant.requested_time < bound and instant.requested_time not in with_files
    ]


def never_archived_from(metadata_timeline: Timeline) -> str:
    """Return a requested time from which on no instant of the metadata table was archived.

    Instants with files stay on the active timeline. So archived instants may be older than its first instant, or
    between its older instants.
    """
    commits = metadata_timeline.writes().completed().instants
    newest = commits[-ServiceLimits().commits_kept_min :]
    return newest[0].requested_time if newest else ""


def _is_due(context: ServiceContext, commits: Sequence[Instant]) -> bool:
    """Return whether there are too many commits, and a clean has just deleted files of some of them."""
    if len(commits) <= context.limits.commits_kept_max:
        return False
    cleans = context.metadata_timeline.completed().filter(lambda instant: instant.action is Action.CLEAN)
    last = cleans.latest()
    if last is None:
        return False
    since = sum(instant.requested_time > last.requested_time for instant in commits)
    return since <= _COMMITS_AFTER_CLEAN


def _data_bounds(context: ServiceContext, commits: Sequence[Instant]) -> list[str]:
    """Return requested times from which on the data table needs the instants; at least one time."""
    savepoints = context.table.timeline.filter(lambda instant: instant.action is Action.SAVEPOINT)
    bounds = [instant.requested_time for instant in savepoints]
    pending_time = context.first_pending_time()
    # The active timeline must begin before a pending instant, or its files would count as files of an archived instant.
    before = [found.requested_time for found in commits if pending_time is None or found.requested_time < pending_time]
    return [*bounds, max(before, default="")]


def _delete_orphans(context: ServiceContext, files: Sequence[FileInfo], archived: Sequence[Instant]) -> None:
    """Delete files of instants that are on no timeline and older than the next start of the active timeline.

    A dead write, or a task that ran on after it, left these files. Running writers are pending on the data timeline,
    and newer than every archived instant.
    """
    commits, gone = context.completed_commits(), set(archived)
    start = next(instant.requested_time for instant in commits if instant not in gone)
    known = {instant.requested_time for instant in context.metadata_timeline}
    for info in files:
        time = instant_of_data_file(info.path)
        if time is not None and commits[0].requested_time < time < start and time not in known:
            context.folder.store.delete(info.path)
