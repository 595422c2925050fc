"""The record index in a view of its table: its kind, and the visible files, now, in the past, and between two times.

The base file of a file group has the entries of all commits that were compacted into it. A view that does not contain
one of those commits needs an older file slice. After the cleaner deleted that slice, the past state cannot be read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hoodie.config.indexes import INDEX_TYPE_KEY
from hoodie.errors import (
    CommitConflictError,
    CorruptFileError,
    InvalidConfigError,
    MetadataTableMissingError,
    UnsupportedError,
)
from hoodie.files.slices import FileSlice
from hoodie.format.filenames import BaseFileName, LogFileName, parse_data_file
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.index.record.file_groups import RecordIndexState, has_first_file, partitioned_state
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import fills_a_partition, indexing_time, is_build, visible_instants, with_archived_logs
from hoodie.metadata.kinds.record_index import RecordIndexKind, is_partitioned_record_index
from hoodie.metadata.services.archiving import never_archived_from
from hoodie.metadata.slice_content import RowBlock
from hoodie.metadata.slices import read_log
from hoodie.storage import FileInfo
from hoodie.timeline import Action, Instant, Timeline
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_TRIES = 3


class _FoldedError(UnsupportedError):
    """The files of the record index do not show the state of the view any more."""


@dataclass(frozen=True, slots=True)
class IndexHistory:
    """The record index in one view of its table. `later`: requested times of instants that are not in the view."""

    folder: MetadataFolder
    data_timeline: Timeline
    later: frozenset[str] = frozenset()

    def state(self, *, as_of: str | None = None) -> RecordIndexState:
        """Return the file groups as of a requested time (inclusive), or with all instants of the view.

        Raises: UnsupportedError if compaction and cleaning deleted files of that state; MetadataTableMissingError; as
        `RecordIndexState.of`.
        """
        timeline = self.folder.existing_timeline()
        done = self.data_timeline.completed()
        newest = max(map(self._written, done), default="")
        unseen = [instant for instant in timeline.completed() if self._is_unseen(instant, as_of, newest)]
        times = {instant.requested_time for instant in unseen}
        seen = visible_instants(timeline, self.data_timeline).filter(
            lambda instant: instant.requested_time not in times
        )
        infos, version = self.folder.files(RECORD_INDEX), self.folder.config.version
        if not unseen and as_of is None and not self.later:
            return infos.made_once(
                seen, lambda: RecordIndexState.of(infos, self._with_archived(infos, seen), version=version)
            )
        seen = self._with_archived(infos, seen)
        # A base file has the entries of all instants that had completed when its compaction was requested.
        bound = min((self._written(instant) for instant in unseen), default=None)
        sure = never_archived_from(timeline)
        doubtful = [time for time in (*self.later, *([] if as_of is None else [as_of])) if time < sure]
        doubtful += self._writes_in_builds(timeline, as_of)
        if doubtful:
            # Archived delta commits may be among the unseen instants; their completion times are not looked up.
            bound = min(doubtful) if bound is None else min(bound, *doubtful)
        if bound is None:
            return RecordIndexState.of(infos, seen, version=version)
        if self._may_be_built_later(timeline, as_of):
            raise self._folded()
        kept = self._files_until(infos, timeline, bound, as_of)
        try:
            found = RecordIndexState.of(kept, seen, version=version)
        except CorruptFileError as error:
            raise self._folded() from error
        dropped = [base for path, info in infos.items() if path not in kept and (base := BaseFileName.parse(info.name))]
        if dropped:
            self._check_whole(found, dropped, infos, timeline)
        return found

    def _with_archived(self, infos: Mapping[str, FileInfo], seen: Timeline) -> Timeline:
        """Return the timeline with the completion times of archived instants that log files need."""
        if self.folder.names_base_instants:
            return seen
        return with_archived_logs(self.folder.store, seen, [info.name for info in infos.values()], RecordIndexKind())

    def _writes_in_builds(self, timeline: Timeline, as_of: str | None) -> list[str]:
        """Return the times of unseen writes without a delta commit: a build of the index has their entries.

        An archived instant counts as a write.
        """
        known = {found.requested_time: found for found in self.data_timeline}
        of_view = (time for time in self.later if time not in known or known[time].action.writes_data)
        requested = (found.requested_time for found in self.data_timeline.completed().writes())
        since = () if as_of is None else (time for time in requested if time > as_of)
        return [time for time in (*of_view, *since) if timeline.get(time) is None]

    def changes(self, instants: Collection[Instant]) -> Iterator[tuple[Instant, RowBlock]]:
        """Yield the row blocks that these completed data instants added, in the order in which they completed.

        Raises: UnsupportedError if entries of one of the instants may be missing, or were added by an index build.
        """
        timeline = self.folder.existing_timeline()
        infos = self.folder.files(RECORD_INDEX)
        ordered = sorted(instants, key=lambda instant: (instant.completion_time or "", instant.requested_time))
        if ordered:
            self._check_since(ordered[0], infos, timeline)
        if self.folder.names_base_instants:
            yield from self._named_changes(ordered, infos)
            return
        logs: dict[str, list[FileInfo]] = {}
        for info in sorted(infos.values(), key=lambda info: info.path):
            parsed = LogFileName.parse(info.name)
            if parsed is not None:
                logs.setdefault(parsed.instant_time, []).append(info)
        for instant in ordered:
            for info in logs.get(instant.requested_time, ()):
                for block in read_log(self.folder.store, info.path).blocks:
                    yield instant, block

    def _named_changes(
        self, instants: Sequence[Instant], infos: Mapping[str, FileInfo]
    ) -> Iterator[tuple[Instant, RowBlock]]:
        """Yield the same in version 6, where only the blocks of log files have their instants. Memory: these blocks."""
        found: dict[str, list[RowBlock]] = {instant.requested_time: [] for instant in instants}
        for path in sorted(infos):
            if LogFileName.parse(infos[path].name) is not None:
                for block in read_log(self.folder.store, path, version=self.folder.config.version).blocks:
                    found.get(block.instant_time, []).append(block)
        for instant in instants:
            for block in found[instant.requested_time]:
                yield instant, block

    def _may_be_built_later(self, timeline: Timeline, as_of: str | None) -> bool:
        """Return whether a build may have entries of instants that are not in the view, in version 6.

        A build has the entries of all instants that completed before its end, and version 6 stores no completion times.
        """
        builds = [instant.requested_time for instant in timeline.completed() if is_build(instant.requested_time)]
        if not builds or not self.folder.names_base_instants:
            return False
        done = self.data_timeline.completed()
        is_past = as_of is not None or bool(self.later)
        return is_past or not all(done.contains_or_before_start(indexing_time(time)) for time in builds)

    def _is_unseen(self, instant: Instant, as_of: str | None, newest: str) -> bool:
        """Return whether the view does not contain a completed delta commit; `newest` is its newest completion time."""
        time = instant.requested_time
        if instant.action is not Action.DELTA_COMMIT or fills_a_partition(time):
            return False
        if (as_of is not None and time > as_of) or time in self.later:
            return True
        known = self.data_timeline.get(time)
        if known is not None:
            return not known.is_completed
        # The instant was archived, or began after the view was loaded. Commits complete in sequence, under the lock.
        return self._written(instant) > newest

    def _written(self, instant: Instant) -> str:
        """Return the time by which delta commits are ordered."""
        return self.folder.order_time(instant) or instant.requested_time

    def _files_until(
        self, infos: Mapping[str, FileInfo], timeline: Timeline, bound: str, as_of: str | None
    ) -> dict[str, FileInfo]:
        """Return the files, except base files with a later time than `bound`, and log files after `as_of`."""
        started = self._start_times(infos, timeline)
        kept: dict[str, FileInfo] = {}
        for path, info in infos.items():
            base, log = BaseFileName.parse(info.name), LogFileName.parse(info.name)
            if base is not None and started.get(base.instant_time, base.instant_time) > bound:
                continue
            if log is not None and as_of is not None and log.instant_time > as_of:
                continue
            if log is not None and log.instant_time > bound and self.data_timeline.get(log.instant_time) is None:
                # A log compaction, which also has the entries of several commits.
                continue
            kept[path] = info
        return kept

    def _start_times(self, infos: Mapping[str, FileInfo], timeline: Timeline) -> dict[str, str]:
        """Return completion times of the instants that filled the index; an unknown time counts as the latest.

        In version 6 their requested times are those that count.
        """
        if self.folder.names_base_instants:
            return {}
        parsed = [parse_data_file(path) for path in infos]
        times = {found.instant_time for found in parsed if found is not None}
        initial = {time for time in times if fills_a_partition(time)}
        known = {time: timeline.completion_time_of(time) for time in initial}
        archived = self.folder.archive().completion_times([time for time, found in known.items() if found is None])
        return {time: found or archived.get(time, "9") for time, found in known.items()}

    def _check_whole(
        self,
        state: RecordIndexState,
        dropped: Collection[BaseFileName],
        infos: Mapping[str, FileInfo],
        timeline: Timeline,
    ) -> None:
        """Refuse slices that may lack files: each must have its base file, or a log file of an index build."""
        was_built_later = any(fills_a_partition(base.instant_time) for base in dropped)
        of_all = {found.file_id for path in infos if (found := parse_data_file(path))}
        is_whole = all(has_first_file(file_group.file_slice) for file_group in state.file_groups)
        is_being_cleaned = any(instant.action is Action.CLEAN for instant in timeline.pending())
        if was_built_later or not is_whole or is_being_cleaned or len(of_all) != len(state.file_groups):
            raise self._folded()

    def _folded(self) -> UnsupportedError:
        return _FoldedError(
            f"{self.folder.store.uri('')}: the state of the record index at that time cannot be read, as the index was "
            "built, or compacted and cleaned, since; pass a later time, or read the rows with as_of"
        )

    def _check_since(self, first: Instant, infos: Mapping[str, FileInfo], timeline: Timeline) -> None:
        """Refuse instants that completed before the start of the oldest slice of any file group."""
        started = self._start_times(infos, timeline)
        oldest: dict[str, str] = {}
        for info in infos.values():
            base, log = BaseFileName.parse(info.name), LogFileName.parse(info.name)
            if base is not None:
                start = started.get(base.instant_time, base.instant_time)
                oldest[base.file_id] = min(start, oldest.get(base.file_id, start))
            elif log is not None and fills_a_partition(log.instant_time):
                start = started.get(log.instant_time, log.instant_time)
                oldest[log.file_id] = min(start, oldest.get(log.file_id, start))
        floor = max(oldest.values(), default="")
        completed = self._written(first)
        is_being_cleaned = any(instant.action is Action.CLEAN for instant in timeline.pending())
        if completed < floor or is_being_cleaned or self._may_be_built_later(timeline, first.requested_time):
            raise UnsupportedError(
                f"{self.folder.store.uri('')}: the entries that {first} changed in the record index cannot be read: "
                f"the index was built, or compacted and cleaned, at {floor}; read the changes since then"
            )


GLOBAL_TYPE: Final = "RECORD_INDEX"
"""`hoodie.index.type` of a table whose record index covers the whole table."""
PARTITIONED_TYPE: Final = "RECORD_LEVEL_INDEX"
"""`hoodie.index.type` of a table whose record index has index file groups for each data partition."""


def has_record_index(view: TableView) -> bool:
    """Return whether the table has a record index, global or partitioned."""
    return RECORD_INDEX in view.config.metadata_partitions


def record_index(view: TableView, *, as_of: str | None = None) -> RecordIndexState | None:
    """Return the index file groups of the global record index; None if the table has no global record index.

    `as_of` is a requested time (inclusive); without it, the state of the view is returned.

    Raises: UnsupportedError if the files of that state do not exist any more.
    """
    found = index_history(view)
    return None if found is None else found.state(as_of=as_of)


def partitioned_index(view: TableView) -> Mapping[str, RecordIndexState] | None:
    """Return the index file groups of each data partition; None if the table has no partitioned record index."""
    if not has_partitioned_index(view):
        return None
    return partitioned_state(view.state.metadata_folder(view.config), view.whole_timeline())


def record_index_of_write(view: TableView) -> RecordIndexState | None:
    """Return the same as `record_index`, for a write or table service that began with the view.

    Raises: CommitConflictError if the index was built, or compacted and cleaned, since the view was loaded.
    """
    try:
        return record_index(view)
    except _FoldedError as error:
        cause = f"the record index of {view.store.uri('')} was built anew, or compacted and cleaned, since this began"
        raise CommitConflictError(f"{cause}; nothing was committed, try again", retry_cause=cause) from error


def record_index_if_there(view: TableView) -> RecordIndexState | None:
    """Return the same as `record_index_of_write`, but None if the whole metadata table is missing.

    A write that began without it goes on: its commit builds the metadata table anew.
    """
    try:
        return record_index_of_write(view)
    except MetadataTableMissingError:
        return None


def partitioned_index_if_there(view: TableView) -> Mapping[str, RecordIndexState] | None:
    """Return the same as `partitioned_index`, but None if the whole metadata table is missing."""
    try:
        return partitioned_index(view)
    except MetadataTableMissingError:
        return None


def has_partitioned_index(view: TableView) -> bool:
    """Return whether the record index is partitioned. Reads the index definitions only if no type is stored."""
    if not has_record_index(view):
        return False
    stored = view.config.raw.get(INDEX_TYPE_KEY, "").upper()
    if stored in (GLOBAL_TYPE, PARTITIONED_TYPE):
        return stored == PARTITIONED_TYPE
    return view.fact(_is_defined_partitioned)


def _is_defined_partitioned(view: TableView) -> bool:
    return is_partitioned_record_index(view.store)


def index_history(view: TableView) -> IndexHistory | None:
    """Return the history of the global record index in this view; None if the table has no such index."""
    if not has_record_index(view) or has_partitioned_index(view):
        return None
    # A savepoint has the time of its commit, which the view may contain, and no delta commit of its own.
    later = frozenset(found.requested_time for found in view.completed_later if found.action is not Action.SAVEPOINT)
    return IndexHistory(view.state.metadata_folder(view.config), view.whole_timeline(), later)


@dataclass(frozen=True, slots=True)
class IndexedState:
    """A table and its record index as of the same instant."""

    view: TableView
    index: RecordIndexState
    slices: Sequence[FileSlice] = field(repr=False)


def consistent_state(state: TableState) -> IndexedState:
    """Load the table and its index as of the same instant.

    If writers commit during each of three attempts, the last attempt holds the table's lock.

    Raises: InvalidConfigError if there is no record index; UnsupportedError if the index is partitioned.
    """
    for _ in range(_TRIES):
        found = _indexed(state)
        again = found.view.refreshed()
        if (
            again.timeline == found.view.timeline
            and again.config.metadata_partitions == found.view.config.metadata_partitions
        ):
            return found
    with state.table_lock():
        return _indexed(state)


def _indexed(state: TableState) -> IndexedState:
    view = TableView.load(state)
    index = record_index(view)
    if index is None and has_partitioned_index(view):
        raise UnsupportedError(
            f"{state.store.uri('')} has a partitioned record index: this release compares only a global record index "
            "with the data"
        )
    if index is None:
        raise InvalidConfigError(f'{state.store.uri("")} has no record index; build it with t.index.build("record")')
    return IndexedState(view, index, list_slices(view))
