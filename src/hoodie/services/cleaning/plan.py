"""Plan a clean: the files that it deletes, and the empty partitions that it drops (docs/format/table.md §9.4).

A plan is a function of a view. It costs what changed since the last clean: the metadata of the commits that left the
retained window, and the listings of the partitions that they changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain

from hoodie.files.slices import join_path, logs_in_doubt, slice_histories
from hoodie.format.filenames import PARTITION_METADATA_NAME, name_of
from hoodie.format.instants.service_metadata import ActionInstant, CleanerPlan, CleanFileInfo
from hoodie.services.cleaning.obsolete import FileGroup, Needed, obsolete_slices
from hoodie.services.cleaning.options import CleanOptions
from hoodie.services.cleaning.partitions import extra_metadata, partitions_to_examine
from hoodie.services.cleaning.window import earliest_to_retain, newest_commit
from hoodie.timeline import Action, Instant, State, Timeline, TimelineArchive
from hoodie.view.busy_groups import groups_being_clustered, stored_plan
from hoodie.view.commit_cache import CleanFacts
from hoodie.view.savepoints import savepoints
from hoodie.view.table_view import TableView

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

    def facts(self, planned_at: str) -> CleanFacts:
        """Return the facts from which the next clean plans, as if this plan were executed."""
        plan, earliest = self.plan, self.plan.earliest_instant_to_retain
        since = "" if earliest is None else earliest.timestamp
        return CleanFacts(
            planned_at, since, plan.last_completed_commit_timestamp, plan.policy, plan.extra_metadata or {}
        )


@dataclass(frozen=True, slots=True)
class _Doomed:
    """What goes in one partition: file names and sizes, and whether nothing is left in it."""

    files: Mapping[str, int]
    is_emptied: bool


def plan_clean(
    view: TableView, options: CleanOptions, last: CleanFacts | None, *, now: datetime | None = None
) -> PlannedClean:
    """Plan a clean of the table; the plan is empty if there is nothing to delete. `last`: the last clean, if any.

    Raises: CorruptFileError if a savepoint, a plan or a commit of the timeline does not parse.
    """
    earliest = earliest_to_retain(view, options, last, now or datetime.now(UTC))
    examined = partitions_to_examine(view, options, last, earliest)
    doomed: dict[str, _Doomed] = {}
    if earliest is not None or options.policy.counts_versions:
        needed = _needed(view)
        since = "" if earliest is None else earliest.requested_time
        for listing in _listings(view, options, examined.partitions):
            doomed |= _doomed(view, listing, options, since, needed)
    emptied = [path for path, found in doomed.items() if found.is_emptied and path]
    # A writer that began may be filling the partition: no file of it is listed before it commits.
    is_quiet = not view.timeline.writes().pending().instants
    plan = CleanerPlan(
        earliest_instant_to_retain=None if earliest is None else _action_instant(earliest),
        last_completed_commit_timestamp=newest_commit(view),
        policy=options.policy.value,
        files_to_be_deleted_per_partition={},
        file_paths_to_be_deleted_per_partition={
            path: _paths(view, path, found.files)
            for path, found in doomed.items()
            if found.files or (found.is_emptied and is_quiet)
        },
        partitions_to_be_deleted=tuple(emptied) if is_quiet else (),
        extra_metadata=extra_metadata(view, options, () if is_quiet else emptied),
    )
    files = sum(len(found.files) for found in doomed.values())
    size = sum(sum(found.files.values()) for found in doomed.values())
    is_full = examined.partitions is None
    return PlannedClean(plan=plan, files=files, bytes=size, commits=examined.commits, is_full=is_full)


def _action_instant(instant: Instant) -> ActionInstant:
    return ActionInstant(timestamp=instant.requested_time, action=instant.action.value, state=State.COMPLETED.name)


def _paths(view: TableView, partition_path: str, names: Iterable[str]) -> tuple[CleanFileInfo, ...]:
    return tuple(
        CleanFileInfo(file_path=view.store.uri(join_path(partition_path, name)), is_bootstrap_base_file=False)
        for name in names
    )


def _listings(
    view: TableView, options: CleanOptions, partitions: frozenset[str] | None
) -> Iterator[Mapping[str, Mapping[str, int]]]:
    """Yield the files of the partitions to look at, some partitions at a time."""
    if partitions is None:
        yield {path: files for path, files in view.listing().items() if options.selects(path)}
        return
    paths = sorted(partitions)
    for start in range(0, len(paths), _PARTITIONS_AT_ONCE):
        yield view.listing(paths[start : start + _PARTITIONS_AT_ONCE])


def _doomed(
    view: TableView, listing: Mapping[str, Mapping[str, int]], options: CleanOptions, earliest: str, needed: Needed
) -> dict[str, _Doomed]:
    timeline = _with_archived(view, listing.values())
    found: dict[str, _Doomed] = {}
    for path, listed in listing.items():
        slices = obsolete_slices(slice_histories(path, listed, timeline), options, earliest, needed)
        names = [name_of(file) for slice_ in slices for file in slice_.paths]
        is_emptied = len(names) == len(listed)
        if names or (is_emptied and _is_partition(view, path)):
            found[path] = _Doomed({name: listed[name] for name in names}, is_emptied)
    return found


def _is_partition(view: TableView, path: str) -> bool:
    """Return whether a partition without files still exists: a listing does not tell."""
    return view.store.head(join_path(path, PARTITION_METADATA_NAME)) is not None


def _with_archived(view: TableView, listings: Iterable[Mapping[str, int]]) -> Timeline:
    """Add the completion times of archived instants that decide to which slice a log file belongs."""
    timeline = view.whole_timeline()
    in_doubt = chain.from_iterable(logs_in_doubt(listed, timeline.start) for listed in listings)
    times = {time for time in in_doubt if timeline.completion_time_of(time) is None}
    if not times:
        return timeline
    archive = TimelineArchive.of(view.store, view.layout, history_path=view.config.history_path)
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
    return Needed(
        savepointed=_savepointed(view),
        compacting=compacting,
        clustering=groups_being_clustered(view),
        replaced=replaced,
    )


def _savepointed(view: TableView) -> dict[str, set[str]]:
    """Return the names of the files that savepoints keep, by partition path."""
    names: dict[str, set[str]] = {}
    for saved in savepoints(view):
        for path, files in saved.files.items():
            names.setdefault(path, set()).update(name_of(file) for file in files)
    return names
