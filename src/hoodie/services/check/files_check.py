"""Compare the data files of a table with its commits and with the listing in the metadata table.

Only names and lengths are compared; `data_check` reads the files. docs/format/table.md §5.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from hoodie.errors import HoodieError
from hoodie.files.slices import FileSlice, join_path, latest_slices
from hoodie.format.filenames import PARTITION_METADATA_NAME, LogFileName
from hoodie.format.instants.service_metadata import CleanerPlan
from hoodie.services.check import kinds
from hoodie.services.check.survey import Problem, Survey
from hoodie.services.cleaning.execution import files_to_delete
from hoodie.services.cleaning.pending import pending_cleans
from hoodie.timeline import Action, State, TimelineArchive, read_instant

Listing = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class KnownFiles:
    """What the table says of its files: `listing` of the metadata table (None: it has none, or it is damaged).

    `archived` are instants of data files that the archive has, by requested time (of version 6, which is not looked up,
    all that the timeline has not), with their completion times; `in_metadata_table` are the completed delta commits of
    the metadata table. `slices` are the newest file slices; some of their files may not exist. `leaving` are the files
    that a pending clean deletes: they may be gone, and are listed until it completes.
    """

    listing: Listing | None
    archived: Mapping[str, str]
    in_metadata_table: frozenset[str]
    slices: tuple[FileSlice, ...] = ()
    leaving: frozenset[str] = frozenset()

    @classmethod
    def of(cls, survey: Survey, listing: Listing | None, in_metadata_table: frozenset[str]) -> KnownFiles:
        """Look up the instants of the files in the archive, and find the newest file slices.

        Raises: CorruptFileError if the archive is damaged.
        """
        before = {
            parsed.instant_time
            for _, _, parsed in survey.data_files.values()
            if survey.timeline.get(parsed.instant_time) is None
        }
        view = survey.view
        archived = dict.fromkeys(before, "")
        if view.config.version.has_completion_time_in_name:
            archive = TimelineArchive.of(view.store, view.layout, history_path=view.config.history_path)
            archived = archive.completion_times(before)
        found = cls(listing, archived, in_metadata_table, leaving=frozenset(_leaving(survey)))
        return replace(found, slices=tuple(_newest_slices(survey, found)))

    @cached_property
    def needed(self) -> frozenset[str]:
        """The files of the newest file slices."""
        return frozenset(path for found in self.slices for path in found.paths)

    def lists(self, path: str) -> bool:
        """Return whether the metadata table lists the file."""
        partition_path, _, name = path.rpartition("/")
        return self.listing is not None and name in self.listing.get(partition_path, {})


def file_problems(survey: Survey, known: KnownFiles) -> Iterator[Problem]:
    """Check that needed files exist with their length, that no file is orphaned, and the listing."""
    for path in sorted(known.needed - survey.data_files.keys() - known.leaving):
        yield Problem(kinds.FILE_MISSING, path, "a file", "none")
    for path, size_bytes in survey.recorded.items():
        found = survey.data_files.get(path)
        # A commit may have appended to a log file of version 6 after this one.
        if found is not None and size_bytes and _has_other_length(found[1].size_bytes, size_bytes, found[2]):
            yield Problem(kinds.FILE_LENGTH, path, f"{size_bytes} bytes", f"{found[1].size_bytes} bytes")
    orphans = set()
    for path in sorted(survey.data_files):
        kind = _doubt(survey, known, path)
        if kind is not None:
            orphans.add(path)
            yield Problem(kind, path, found=f"{survey.data_files[path][1].size_bytes} bytes")
    if known.listing is not None:
        yield from _listing_problems(survey, known, known.listing, orphans)
    yield from _partition_problems(survey, orphans)


def _has_other_length(found_bytes: int, recorded_bytes: int, name: object) -> bool:
    return found_bytes < recorded_bytes if isinstance(name, LogFileName) else found_bytes != recorded_bytes


def _is_before_start(survey: Survey, instant_time: str) -> bool:
    start = survey.timeline.start
    return start is not None and instant_time < start and survey.timeline.get(instant_time) is None


def _doubt(survey: Survey, known: KnownFiles, path: str) -> kinds.FindingKind | None:
    """Return why the file may not be one of the table; None if a completed or pending instant names it."""
    _, _, parsed = survey.data_files[path]
    is_log = isinstance(parsed, LogFileName)
    if path in survey.recorded or (is_log and survey.view.config.version.log_name_has_base_instant):
        return None
    instant = survey.timeline.get(parsed.instant_time)
    if instant is not None:
        is_checked = instant.is_completed and instant not in survey.damaged and instant.action.writes_data
        return kinds.FILE_ORPHANED if is_checked and not known.lists(path) else None
    if parsed.instant_time in known.archived:
        return None
    if _is_before_start(survey, parsed.instant_time) or not survey.timeline.instants:
        if known.lists(path):
            return None
        # Without a listing nothing but the archive tells, and the archive may be incomplete: a copy without history.
        is_sure = known.listing is not None and bool(survey.timeline.instants)
        return kinds.FILE_ORPHANED if is_sure else kinds.FILE_UNKNOWN
    is_lost = parsed.instant_time in known.in_metadata_table or parsed.instant_time in survey.bases
    return kinds.INSTANT_LOST if is_lost else kinds.FILE_ORPHANED


def _leaving(survey: Survey) -> Iterator[str]:
    """Yield the files of the plans of inflight cleans; the timeline's check reports a plan that does not parse."""
    view = survey.view
    for clean in pending_cleans(view):
        if clean.state is State.INFLIGHT:
            with suppress(HoodieError):
                content = read_instant(view.store, view.layout, clean, State.REQUESTED)
                plan = CleanerPlan.parse(content, path=view.path_of(clean))
                for partition_path, names in files_to_delete(view, plan, by=str(clean)).items():
                    yield from (join_path(partition_path, name) for name in names)


def _newest_slices(survey: Survey, known: KnownFiles) -> list[FileSlice]:
    """Return the newest slices of all files that exist, are recorded or are listed."""
    together: dict[str, dict[str, int]] = {}
    for path, (partition_path, info, parsed) in survey.data_files.items():
        is_old = _is_before_start(survey, parsed.instant_time) and parsed.instant_time not in known.archived
        if not is_old and _doubt(survey, known, path) is None:
            together.setdefault(partition_path, {})[info.name] = info.size_bytes
    for path, size_bytes in survey.recorded.items():
        partition_path, _, name = path.rpartition("/")
        together.setdefault(partition_path, {}).setdefault(name, size_bytes)
    for partition_path, names in (known.listing or {}).items():
        for name, size_bytes in names.items():
            together.setdefault(partition_path, {}).setdefault(name, size_bytes)
    replaced: dict[str, set[str]] = {}
    for instant, commit in survey.commits.items():
        if instant.action is Action.REPLACE_COMMIT:
            for partition_path, file_ids in (commit.partition_to_replace_file_ids or {}).items():
                replaced.setdefault(partition_path, set()).update(file_ids)
    version = survey.view.config.version
    timeline = survey.timeline
    if version.has_completion_time_in_name:
        timeline = replace(timeline, archived={**timeline.archived, **known.archived})
    return latest_slices(together, timeline, replaced, version=version)


def _listing_problems(survey: Survey, known: KnownFiles, listing: Listing, orphans: set[str]) -> Iterator[Problem]:
    listed = {join_path(path, name): size for path, names in listing.items() for name, size in names.items()}
    for path, size_bytes in sorted(listed.items()):
        found = survey.data_files.get(path)
        if found is None:
            if path not in known.needed and path not in known.leaving:
                yield Problem(kinds.LISTING_STALE, path, "a file", "none")
        elif size_bytes and found[1].size_bytes != size_bytes:
            is_right = survey.recorded.get(path) == found[1].size_bytes
            kind = kinds.LISTING_LENGTH if is_right or path not in survey.recorded else None
            if kind is not None:
                yield Problem(kind, path, f"{size_bytes} bytes", f"{found[1].size_bytes} bytes")
    for path in sorted(survey.data_files.keys() - listed.keys() - orphans):
        _, _, parsed = survey.data_files[path]
        instant = survey.timeline.get(parsed.instant_time)
        is_committed = parsed.instant_time in known.archived or (instant is not None and instant.is_completed)
        if is_committed and not (isinstance(parsed, LogFileName) and parsed.is_cdc):
            yield Problem(kinds.LISTING_LACKS, path, "an entry", "none")


def _partition_problems(survey: Survey, orphans: set[str]) -> Iterator[Problem]:
    folders = {found[0] for path, found in survey.data_files.items() if path not in orphans}
    marked = {path.rpartition("/")[0] for path, info in survey.files.items() if _is_partition_metadata(info.name)}
    for folder in sorted(folders - marked):
        yield Problem(kinds.PARTITION_FILE_MISSING, join_path(folder, PARTITION_METADATA_NAME), "a file", "none")


def _is_partition_metadata(name: str) -> bool:
    return name == PARTITION_METADATA_NAME or name.startswith(f"{PARTITION_METADATA_NAME}.")
