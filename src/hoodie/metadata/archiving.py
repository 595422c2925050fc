"""Archiving of the metadata table's timeline: old instants move from the active timeline, which every commit lists.

docs/format/table.md §9.6, §2.7. It runs at the start of a commit, under the table's lock.

The JVM keeps every instant that the active timeline of the data table still has, so that the data instant can be rolled
back. Here the last compaction but one and the oldest pending instant bound it instead: what is older than the last
compaction cannot be rolled back anyhow (both implementations refuse), and a restore that goes further back builds the
metadata table anew. Instants whose log files are still there stay too: their completion times tell to which file slice
those belong.
"""

from __future__ import annotations

from collections.abc import Sequence

from hoodie.format.filenames import BaseFileName, LogFileName
from hoodie.metadata.places import METADATA_HOODIE_FOLDER, partition_folder
from hoodie.metadata.service_context import ServiceContext
from hoodie.storage import FileInfo
from hoodie.timeline import Action, Instant, archive_instants

_COMPACTIONS_KEPT = 2
_COMMITS_AFTER_CLEAN = 3
_ARCHIVED_BESIDE = frozenset({Action.CLEAN, Action.ROLLBACK})
"""Actions whose instants go when the commits around them do."""


def archive_if_due(context: ServiceContext) -> bool:
    """Move the oldest instants to the archive if there are too many; says whether it did.

    Files of instants that were never committed go first: as soon as the active timeline begins after them nobody could
    tell them from files of archived ones.

    Raises:
        CorruptFileError: the archive does not parse.
    """
    commits = context.completed_commits()
    if not _is_due(context, commits):
        return False
    folder = context.folder
    files = [info for partition in context.kinds for info in folder.store.list(partition_folder(partition))]
    commits_to_archive = _oldest(context, commits, _first_log_time(files, commits))
    if not commits_to_archive:
        return False
    last_time = commits_to_archive[-1].requested_time
    beside = [
        instant
        for instant in context.metadata_timeline.completed()
        if instant.action in _ARCHIVED_BESIDE and instant.requested_time < last_time
    ]
    instants = sorted((*commits_to_archive, *beside), key=lambda instant: (instant.requested_time, instant.action))
    _delete_orphans(context, files, commits[0].requested_time, commits[len(commits_to_archive)].requested_time)
    archive_instants(folder.store, folder.layout, instants, folder=METADATA_HOODIE_FOLDER)
    return True


def _is_due(context: ServiceContext, commits: Sequence[Instant]) -> bool:
    """Whether there are too many, and a clean just made some of them dispensable."""
    if len(commits) <= context.limits.commits_kept_max:
        return False
    cleans = context.metadata_timeline.completed().filter(lambda instant: instant.action is Action.CLEAN)
    last = cleans.latest()
    if last is None:
        return False
    since = sum(instant.requested_time > last.requested_time for instant in commits)
    return since <= _COMMITS_AFTER_CLEAN or len(commits) > 2 * context.limits.commits_kept_max


def _oldest(context: ServiceContext, commits: Sequence[Instant], first_log_time: str | None) -> list[Instant]:
    """The oldest commits that nothing needs on the active timeline any more; never all. Pure."""
    compactions = [instant for instant in commits if instant.action is Action.COMMIT]
    if len(compactions) < _COMPACTIONS_KEPT:
        return []
    bounds = [compactions[-_COMPACTIONS_KEPT].requested_time]
    if first_log_time is not None:
        bounds.append(first_log_time)
    pending_time = context.first_pending_time()
    if pending_time is not None:
        # The active timeline must begin before a pending instant, or its files would count as archived ones.
        bounds.append(
            max((found.requested_time for found in commits if found.requested_time < pending_time), default="")
        )
    found: list[Instant] = []
    for instant in commits[: len(commits) - context.limits.commits_kept_min]:
        # One that completed after the last compaction was requested is in no base file yet.
        is_compacted = (instant.completion_time or "") < compactions[-1].requested_time
        if instant.requested_time >= min(bounds) or not is_compacted:
            break
        found.append(instant)
    return found


def _first_log_time(files: Sequence[FileInfo], commits: Sequence[Instant]) -> str | None:
    """Requested time of the oldest of the commits that still has a log file."""
    active = {instant.requested_time for instant in commits}
    logs = (LogFileName.parse(info.name) for info in files)
    return min((log.instant_time for log in logs if log is not None and log.instant_time in active), default=None)


def _delete_orphans(context: ServiceContext, files: Sequence[FileInfo], first_time: str, start: str) -> None:
    """Delete files of instants that are on no timeline and older than `start`, where the active one will begin.

    A writer that died, or a task of it that went on, left them. Writers at work are pending on the data timeline, and
    younger than everything that is archived.
    """
    known = {instant.requested_time for instant in context.metadata_timeline}
    for info in files:
        parsed = BaseFileName.parse(info.name) or LogFileName.parse(info.name)
        if parsed is not None and first_time < parsed.instant_time < start and parsed.instant_time not in known:
            context.folder.store.delete(info.path)
