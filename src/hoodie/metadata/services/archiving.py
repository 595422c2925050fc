"""Archiving of the metadata table's timeline: old instants move from the active timeline, which every commit lists.

docs/format/table.md §9.6, §2.7. It runs at the start of a commit, under the table's lock.

The JVM keeps every instant that the active timeline of the data table still has, so that a data instant can be rolled
back. Here the last compaction but one, the oldest pending instant and the oldest savepoint bound it instead: what is
older than the last compaction cannot be rolled back anyhow (both implementations refuse), and a restore needs no more
than its savepoint.

An instant stays on the active timeline as long as any of its files exists. So whether readers see a file never depends
on where the active timeline begins: a JVM writer that adds an index makes it begin at zero again, and would lose the
base file of a bucket that nothing was written to since the compaction that made it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hoodie.format.filenames import instant_of_data_file
from hoodie.metadata.places import METADATA_HOODIE_FOLDER, partition_folder
from hoodie.metadata.services.context import ServiceContext
from hoodie.metadata.services.limits import ServiceLimits
from hoodie.storage import FileInfo
from hoodie.timeline import Action, Instant, Timeline, archive_instants

_COMPACTIONS_KEPT = 2
_COMMITS_AFTER_CLEAN = 3
_ARCHIVED_BESIDE = frozenset({Action.CLEAN, Action.ROLLBACK})
"""Actions whose instants go when the commits around them do."""


def archive_if_due(context: ServiceContext) -> bool:
    """Move the oldest instants to the archive if there are too many. Returns whether it archived.

    Files of instants that were never committed are deleted first: once the active timeline begins after them, they
    could not be distinguished from files of archived instants.

    Raises:
        CorruptFileError: the archive does not parse.
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
    archive_instants(folder.store, folder.layout, instants, folder=METADATA_HOODIE_FOLDER)
    return True


def instants_to_archive(
    context: ServiceContext, commits: Sequence[Instant], with_files: Collection[str]
) -> list[Instant]:
    """The commits that nothing needs on the active timeline any more; never all. Pure.

    `with_files` are the requested times of the instants that still have files.
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
    """A requested time from which on no instant of the metadata table was archived.

    Archived ones may be older than the first or, as those with files stay, between older ones of the active timeline.
    """
    commits = metadata_timeline.writes().completed().instants
    newest = commits[-ServiceLimits().commits_kept_min :]
    return newest[0].requested_time if newest else ""


def _is_due(context: ServiceContext, commits: Sequence[Instant]) -> bool:
    """Whether there are too many, and a clean just took the files of some of them."""
    if len(commits) <= context.limits.commits_kept_max:
        return False
    cleans = context.metadata_timeline.completed().filter(lambda instant: instant.action is Action.CLEAN)
    last = cleans.latest()
    if last is None:
        return False
    since = sum(instant.requested_time > last.requested_time for instant in commits)
    return since <= _COMMITS_AFTER_CLEAN


def _data_bounds(context: ServiceContext, commits: Sequence[Instant]) -> list[str]:
    """Requested times that nothing is archived from on, for the sake of the data table; at least one."""
    savepoints = context.data_timeline.filter(lambda instant: instant.action is Action.SAVEPOINT)
    bounds = [instant.requested_time for instant in savepoints]
    pending_time = context.first_pending_time()
    # The active timeline must begin before a pending instant, or its files would count as those of an archived one.
    before = [found.requested_time for found in commits if pending_time is None or found.requested_time < pending_time]
    return [*bounds, max(before, default="")]


def _delete_orphans(context: ServiceContext, files: Sequence[FileInfo], archived: Sequence[Instant]) -> None:
    """Delete files of instants that are on no timeline and older than what the active one will begin with.

    A writer that died, or a task of it that went on, left them. Writers at work are pending on the data timeline, and
    younger than everything that is archived.
    """
    commits, gone = context.completed_commits(), set(archived)
    start = next(instant.requested_time for instant in commits if instant not in gone)
    known = {instant.requested_time for instant in context.metadata_timeline}
    for info in files:
        time = instant_of_data_file(info.path)
        if time is not None and commits[0].requested_time < time < start and time not in known:
            context.folder.store.delete(info.path)
