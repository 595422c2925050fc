"""Cleaning of the metadata table: deletes the files of old file slices that no retained commit needs.

docs/format/table.md §9.4 with the policy KEEP_LATEST_COMMITS. It runs at the start of a commit, under the table's lock.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping

from hoodie.format.filenames import BaseFileName, LogFileName, name_of
from hoodie.format.instants.service_metadata import (
    ActionInstant,
    CleanerPlan,
    CleanFileInfo,
    CleanMetadata,
    CleanPartitionMetadata,
)
from hoodie.metadata.paths import partition_folder
from hoodie.metadata.services.context import ServiceContext
from hoodie.timeline import Action, Instant, State, Timeline, read_instant

_POLICY = "KEEP_LATEST_COMMITS"
_CODE = "002"
"""Version 6: what follows the last delta commit in the instant of a clean. On disk: do not change."""


def finish_clean(context: ServiceContext) -> bool:
    """Finish a clean that another process left pending. Returns whether there was one.

    Raises: CorruptFileError if its plan does not parse.
    """
    folder = context.folder
    pending = context.metadata_timeline.pending().filter(lambda instant: instant.action is Action.CLEAN)
    for instant in pending:
        content = read_instant(folder.store, folder.layout, instant, State.REQUESTED)
        if not content:
            folder.forget(instant.requested_time, Action.CLEAN, State.INFLIGHT, State.REQUESTED)
            continue
        if instant.state is State.REQUESTED:
            _begin(context, instant.requested_time, content)
        _execute(context, instant.requested_time, CleanerPlan.parse(content))
    return bool(pending)


def clean_if_due(context: ServiceContext) -> bool:
    """Delete the files of old file slices if 20 commits completed after a compaction. Returns whether it cleaned.

    In each file group it keeps the newest slice, the slices that readers as of the last 20 commits read, and the newest
    slice before those.

    Raises: CorruptFileError if the archived timeline does not parse.
    """
    earliest = earliest_to_retain(context)
    if earliest is None or not _is_due(context, earliest):
        return False
    plan = _plan(context, earliest)
    if plan is None:
        return False
    requested_time = context.service_time(_CODE)
    content = plan.to_bytes()
    context.folder.request(requested_time, Action.CLEAN, content)
    _begin(context, requested_time, content)
    _execute(context, requested_time, plan)
    return True


def _begin(context: ServiceContext, requested_time: str, plan: bytes) -> None:
    """Create the inflight file; in version 6 JVM writers read the plan there."""
    has_plan = context.folder.config.version.inflight_clean_has_plan
    context.folder.begin(requested_time, Action.CLEAN, plan if has_plan else b"")


def earliest_to_retain(context: ServiceContext) -> Instant | None:
    """Return the oldest commit as of which the metadata table stays readable; None if every commit stays readable.

    The commit is never later than a pending instant of either timeline.
    """
    commits = context.completed_commits()
    place = len(commits) - context.limits.commits_retained
    if place <= 0:
        return None
    pending_time = context.first_pending_time()
    if pending_time is not None:
        before = sum(instant.requested_time < pending_time for instant in commits)
        place = min(place, before - 1)
    return commits[place] if place > 0 else None


def obsolete_files(
    names: Collection[str],
    timeline: Timeline,
    archived: Mapping[str, str],
    earliest: str,
    *,
    names_base_instants: bool = False,
) -> list[str]:
    """Return the names of a partition's files that no reader as of `earliest` or a later commit reads. Pure.

    `archived` holds completion times of instants that the active timeline no longer has. A log file is kept if neither
    has its instant: its file slice is unknown. `names_base_instants`: the names of log files name their slice.
    """
    bases, logs = _parsed(names, timeline)
    obsolete: list[str] = []
    for file_id in bases.keys() | logs.keys():
        slices: dict[str, list[str]] = {base.instant_time: [base.name] for base in bases.get(file_id, ())}
        starts = sorted(slices)
        first_log = min((log.instant_time for log in logs.get(file_id, ())), default="")
        for log in logs.get(file_id, ()):
            completed = timeline.completion_time_of(log.instant_time) or archived.get(log.instant_time)
            if names_base_instants:
                slices.setdefault(log.instant_time, []).append(log.name)
            elif completed is not None:
                start = max((found for found in starts if found <= completed), default=first_log)
                slices.setdefault(start, []).append(log.name)
        older = sorted(start for start in slices if start < earliest)
        # The newest slice of the file group is always kept: it is the last of `older`, or not in `older`.
        obsolete += [name for start in older[:-1] for name in slices[start]]
    return sorted(obsolete)


def _parsed(
    names: Collection[str], timeline: Timeline
) -> tuple[dict[str, list[BaseFileName]], dict[str, list[LogFileName]]]:
    """Return the base and log files of completed instants, by file id."""
    bases: dict[str, list[BaseFileName]] = {}
    logs: dict[str, list[LogFileName]] = {}
    for name in names:
        base, log = BaseFileName.parse(name), LogFileName.parse(name)
        if base is not None and timeline.contains_or_before_start(base.instant_time):
            bases.setdefault(base.file_id, []).append(base)
        elif log is not None and timeline.contains_or_before_start(log.instant_time):
            logs.setdefault(log.file_id, []).append(log)
    return bases, logs


def _is_due(context: ServiceContext, earliest: Instant) -> bool:
    """Return whether a compaction became older than the retained commits since the last clean. Reads only timelines."""
    commits = context.completed_commits()
    passed = [
        place
        for place, instant in enumerate(commits)
        if instant.action is Action.COMMIT and instant.requested_time < earliest.requested_time
    ]
    if not passed:
        return False
    completed = context.metadata_timeline.completed()
    # From this commit on the newest such compaction is not retained: a clean after it deleted the replaced slices.
    place = min(passed[-1] + context.limits.commits_retained, len(commits) - 1)
    since = commits[place].requested_time
    return not any(instant.action is Action.CLEAN and instant.requested_time > since for instant in completed)


def _plan(context: ServiceContext, earliest: Instant) -> CleanerPlan | None:
    """Plan the files to delete; None if there are no such files."""
    folder, timeline = context.folder, context.metadata_timeline
    listed = {name: folder.store.names(partition_folder(name)) for name in sorted(context.finished_kinds)}
    logs = (LogFileName.parse(name) for names in listed.values() for name in names)
    start = timeline.start or ""
    old = {log.instant_time for log in logs if log is not None and log.instant_time < start}
    archived = folder.archive().completion_times(old)
    paths: dict[str, tuple[CleanFileInfo, ...]] = {}
    for partition, names in listed.items():
        obsolete = obsolete_files(
            names,
            timeline,
            archived,
            earliest.requested_time,
            names_base_instants=folder.names_base_instants,
        )
        if obsolete:
            where = partition_folder(partition)
            paths[partition] = tuple(
                CleanFileInfo(file_path=folder.store.uri(f"{where}/{name}"), is_bootstrap_base_file=False)
                for name in obsolete
            )
    if not paths:
        return None
    return CleanerPlan(
        earliest_instant_to_retain=ActionInstant(
            timestamp=earliest.requested_time, action=earliest.action.value, state=State.COMPLETED.name
        ),
        last_completed_commit_timestamp=context.completed_commits()[-1].requested_time,
        policy=_POLICY,
        files_to_be_deleted_per_partition={},
        file_paths_to_be_deleted_per_partition=paths,
    )


def _execute(context: ServiceContext, requested_time: str, plan: CleanerPlan) -> None:
    """Delete the files, then complete the instant. Files that do not exist any more are skipped."""
    started = time.monotonic()
    deleted: dict[str, tuple[str, ...]] = {}
    for partition, name in _files_of(plan):
        context.folder.store.delete(f"{partition_folder(partition)}/{name}")
        deleted[partition] = (*deleted.get(partition, ()), name)
    earliest = plan.earliest_instant_to_retain
    done = CleanMetadata(
        start_clean_time=requested_time,
        time_taken_in_millis=int((time.monotonic() - started) * 1000),
        total_files_deleted=sum(map(len, deleted.values())),
        earliest_commit_to_retain="" if earliest is None else earliest.timestamp,
        last_completed_commit_timestamp=plan.last_completed_commit_timestamp,
        partition_metadata={
            partition: CleanPartitionMetadata(
                partition_path=partition,
                policy=plan.policy,
                delete_path_patterns=names,
                success_delete_files=names,
            )
            for partition, names in deleted.items()
        },
        extra_metadata=plan.extra_metadata,
    )
    context.complete(requested_time, Action.CLEAN, done.to_bytes())


def _files_of(plan: CleanerPlan) -> Iterator[tuple[str, str]]:
    """Yield the partition and the name of each file in a plan of this library or of the JVM."""
    for partition, infos in (plan.file_paths_to_be_deleted_per_partition or {}).items():
        for info in infos:
            yield partition, name_of(info.file_path)
    for partition, names in (plan.files_to_be_deleted_per_partition or {}).items():
        for name in names:
            yield partition, name_of(name)
