"""Plan a clean: the files that it deletes, and the empty partitions that it drops (docs/format/table.md §9.4).

A plan is a function of a view: the timeline decides the earliest commit to retain, and that commit the file slices of
each partition that go. It costs what changed since the last clean: the metadata of the commits that left the retained
window, and the listings of the partitions that they changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain

from hoodie.files.slices import FileSlice, join_path, logs_in_doubt, slice_histories
from hoodie.format.filenames import PARTITION_METADATA_NAME, name_of
from hoodie.format.instants.service_metadata import ActionInstant, CleanerPlan, CleanFileInfo
from hoodie.services.cleaning.partitions import CleanOptions, Examined, Policy, extra_metadata, partitions_to_examine
from hoodie.timeline import Action, Instant, State, Timeline, is_live, to_instant_time
from hoodie.view.commit_cache import CleanFacts
from hoodie.view.history import savepoints
from hoodie.view.listing import list_files
from hoodie.view.pending_plans import FileGroup, groups_being_clustered, stored_plan
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What the table needs besides its newest file slices.

    `savepointed` are names of files by partition path. `compacting` are the base instants of the file slices in pending
    compactions and log compactions. `clustering` are the file groups in pending clusterings. `replaced` are the
    requested times of the replace commits that replaced a file group.
    """

    savepointed: Mapping[str, Collection[str]] = field(default_factory=dict, hash=False)
    compacting: Mapping[FileGroup, str] = field(default_factory=dict, hash=False)
    clustering: Collection[FileGroup] = frozenset()
    replaced: Mapping[FileGroup, str] = field(default_factory=dict, hash=False)

    def keeps(self, found: FileSlice) -> bool:
        """Return whether a savepoint or a pending plan needs the file slice."""
        if self.is_compacted(found):
            return True
        names = self.savepointed.get(found.partition_path, ())
        return bool(names) and any(name_of(path) in names for path in found.paths)

    def is_compacted(self, found: FileSlice) -> bool:
        """Return whether a pending (log) compaction reads the file slice, or a newer one of its file group."""
        base = self.compacting.get(found.group)
        return base is not None and found.base_instant_time >= base


def obsolete_slices(
    histories: Sequence[Sequence[FileSlice]], options: CleanOptions, earliest: str, needed: Needed
) -> list[FileSlice]:
    """Return the file slices of a partition to delete.

    `histories` are all slices of each file group, newest first. `earliest` is the requested time of the earliest commit
    to retain; it is not used by KEEP_LATEST_FILE_VERSIONS.
    """
    return [
        found
        for history in histories
        for found in _candidates(history, options, earliest, needed)
        if not needed.keeps(found)
    ]


def _candidates(
    slices: Sequence[FileSlice], options: CleanOptions, earliest: str, needed: Needed
) -> Sequence[FileSlice]:
    newest = slices[0]
    replaced_at = needed.replaced.get(newest.group)
    keeps_versions = options.policy is Policy.VERSIONS
    if replaced_at is not None:
        return slices if keeps_versions or replaced_at < earliest else ()
    if keeps_versions and newest.group in needed.clustering:
        return ()
    if keeps_versions:
        free = [found for found in slices if not needed.is_compacted(found)]
        # The slice of a pending compaction counts as one.
        return free[options.retained - (newest.group in needed.compacting) :]
    # The snapshots from `earliest` on read the others, and so does the newest snapshot before it.
    older = [found for found in slices[1:] if found.base_instant_time < earliest]
    return older if newest.base_instant_time < earliest else older[1:]


def earliest_to_retain(
    view: TableView, options: CleanOptions, last: CleanFacts | None, now: datetime
) -> Instant | None:
    """Return the earliest commit whose snapshot must stay whole; None if a clean would retain all, or keeps versions.

    It is never later than the oldest pending write or table service, nor than a commit that completed after that began
    or after the earliest commit's own completion: what these read must stay. `last` is the last clean, from which
    `commits_max` counts. `now` has a time zone.
    """
    if options.policy is Policy.VERSIONS:
        return None
    writes = view.timeline.writes()
    commits = writes.completed().instants
    pending = _pending(view)
    if options.policy is Policy.COMMITS:
        chosen = commits[-options.retained] if 0 < options.retained < len(commits) else None
    else:
        since = to_instant_time(now - timedelta(hours=options.retained), view.layout.zone)
        chosen = next((instant for instant in commits if instant.requested_time >= since), None)
    if chosen is not None and pending and pending[0].requested_time < chosen.requested_time:
        earlier = [instant for instant in commits if instant.requested_time < pending[0].requested_time]
        chosen = earlier[-1] if earlier else None
    if chosen is None:
        return None
    if last is not None and last.earliest:
        cleaned = [found for found in commits if last.earliest <= found.requested_time < chosen.requested_time]
        chosen = cleaned[options.commits_max] if len(cleaned) > options.commits_max else chosen
    return _with_overlapping(commits, pending, chosen)


def _with_overlapping(commits: Sequence[Instant], pending: Sequence[Instant], chosen: Instant) -> Instant:
    """Return `chosen`, or the first commit requested before it that completed later than its snapshot began.

    A file slice is superseded when the newer slice is completed, not when it was requested: the snapshot of `chosen`,
    and a write that was pending then, still read what such a commit replaced.
    """
    horizon = min([chosen.completion_time or "", *(found.requested_time for found in pending[:1])])
    before = (found for found in commits if found.requested_time < chosen.requested_time)
    return next((found for found in before if (found.completion_time or "") > horizon), chosen)


def _pending(view: TableView) -> list[Instant]:
    """Return the pending writes and table services, and the index builds of this library that run.

    A build compares itself with the writes that completed while it ran. Builds of a JVM have no heartbeat, and do not
    hold a clean, as in the JVM.
    """
    return [
        found
        for found in view.timeline.pending()
        if found.action.writes_data or (found.action is Action.INDEXING and is_live(view.store, found.requested_time))
    ]


def commits_since(view: TableView, last: CleanFacts | None) -> int:
    """Return the number of commits that completed after the last clean was planned."""
    commits = view.timeline.writes().completed()
    return len(commits) if last is None else sum(found.requested_time > last.last_completed for found in commits)


_PARTITIONS_AT_ONCE = 1000
"""Partitions whose listings are in memory at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedClean:
    """A plan and what it amounts to.

    `commits`: number of commits that were looked at to plan it. `is_full`: all partitions were looked at instead.
    """

    plan: CleanerPlan
    files: int
    bytes: int
    commits: int
    is_full: bool

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to delete and no partition to drop."""
        return not self.files and not self.plan.partitions_to_be_deleted


def examine(view: TableView, options: CleanOptions, last: CleanFacts | None) -> Examined:
    """Return the partitions that a clean looks at; lists no file. `last`: the last clean, if any."""
    return partitions_to_examine(view, options, last, earliest_to_retain(view, options, last, datetime.now(UTC)))


def plan_clean(view: TableView, options: CleanOptions, examined: Examined) -> PlannedClean:
    """Plan a clean of the table; the plan is empty if there is nothing to delete.

    Raises: CorruptFileError if a savepoint, a plan or a commit of the timeline does not parse.
    """
    earliest, newest = examined.earliest, view.timeline.writes().completed().latest()
    doomed: dict[str, dict[str, int]] = {}
    emptied: list[str] = []
    retained: ActionInstant | None = None
    if earliest is not None:
        state = State.COMPLETED.name
        retained = ActionInstant(timestamp=earliest.requested_time, action=earliest.action.value, state=state)
    if earliest is not None or options.policy is Policy.VERSIONS:
        needed = _needed(view)
        since = "" if earliest is None else earliest.requested_time
        for listing in _listings(view, options, examined.partitions):
            gone, left_empty = _doomed(view, listing, options, since, needed)
            doomed |= gone
            emptied += left_empty
    # A writer that began may be filling the partition: no file of it is listed before it commits.
    is_quiet = not view.timeline.writes().pending().instants
    paths = {
        path: tuple(
            CleanFileInfo(file_path=view.store.uri(join_path(path, name)), is_bootstrap_base_file=False)
            for name in files
        )
        for path, files in doomed.items()
        if files or is_quiet
    }
    plan = CleanerPlan(
        earliest_instant_to_retain=retained,
        last_completed_commit_timestamp="" if newest is None else newest.requested_time,
        policy=options.policy.value,
        files_to_be_deleted_per_partition={},
        file_paths_to_be_deleted_per_partition=paths,
        partitions_to_be_deleted=tuple(emptied) if is_quiet else (),
        extra_metadata=extra_metadata(view, options, () if is_quiet else emptied),
    )
    return PlannedClean(
        plan=plan,
        files=sum(map(len, doomed.values())),
        bytes=sum(sum(files.values()) for files in doomed.values()),
        commits=examined.commits,
        is_full=examined.partitions is None,
    )


def _listings(
    view: TableView, options: CleanOptions, partitions: frozenset[str] | None
) -> Iterator[Mapping[str, Mapping[str, int]]]:
    """Yield the files of the partitions to look at, some partitions at a time."""
    if partitions is None:
        yield {path: files for path, files in list_files(view).items() if options.selects(path)}
        return
    paths = sorted(partitions)
    for start in range(0, len(paths), _PARTITIONS_AT_ONCE):
        yield list_files(view, paths[start : start + _PARTITIONS_AT_ONCE])


def _doomed(
    view: TableView, listing: Mapping[str, Mapping[str, int]], options: CleanOptions, earliest: str, needed: Needed
) -> tuple[dict[str, dict[str, int]], list[str]]:
    """Return the names and sizes of the files that go, by partition path, and the partitions that are left empty."""
    timeline = _with_archived(view, listing.values())
    found: dict[str, dict[str, int]] = {}
    emptied: list[str] = []
    for path, listed in listing.items():
        histories = slice_histories(path, listed, timeline, version=view.config.version)
        slices = obsolete_slices(histories, options, earliest, needed)
        names = [name_of(file) for slice_ in slices for file in slice_.paths]
        is_emptied = len(names) == len(listed)
        # A listing does not show whether a partition without files exists.
        if names or (is_emptied and view.store.head(join_path(path, PARTITION_METADATA_NAME)) is not None):
            found[path] = {name: listed[name] for name in names}
            emptied += [path] if is_emptied and path else []
    return found, emptied


def _with_archived(view: TableView, listings: Iterable[Mapping[str, int]]) -> Timeline:
    """Add the completion times of archived instants that decide to which slice a log file belongs."""
    timeline = view.whole_timeline()
    if view.config.version.log_name_has_base_instant:
        return timeline
    in_doubt = chain.from_iterable(logs_in_doubt(listed, timeline.start) for listed in listings)
    times = {time for time in in_doubt if timeline.completion_time_of(time) is None}
    if not times:
        return timeline
    archive = view.stored_archive()
    return replace(timeline, archived={**timeline.archived, **archive.completion_times(times)})


def _needed(view: TableView) -> Needed:
    compacting: dict[FileGroup, str] = {}
    replaced: dict[FileGroup, str] = {}
    for instant in view.timeline:
        if not instant.is_completed and instant.action in (Action.COMPACTION, Action.LOG_COMPACTION):
            plan = stored_plan(view, instant)
            for found in () if plan is None else plan.operations:
                group = (found.partition_path, found.file_id)
                compacting[group] = min(found.base_instant_time, compacting.get(group, found.base_instant_time))
        elif instant.is_completed and instant.action is Action.REPLACE_COMMIT:
            for path, file_ids in view.commit_facts(instant).replaced.items():
                replaced |= {(path, file_id): instant.requested_time for file_id in file_ids}
    names: dict[str, set[str]] = {}
    for saved in savepoints(view):
        for path, files in saved.files.items():
            names.setdefault(path, set()).update(map(name_of, files))
    clustering = groups_being_clustered(view)
    return Needed(savepointed=names, compacting=compacting, clustering=clustering, replaced=replaced)
