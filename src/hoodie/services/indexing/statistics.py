"""Build column statistics while writers write, drop them, and complete or undo a build whose process died.

A build reads the footers of the base files and the rows of the log files of the newest file slices, without the lock,
in rounds; then, under the table's lock, the files of commits since the last round. It then writes both metadata
partitions and names them in the table's properties: `column_stats`, and `partition_stats` if the table has partitions.
Until then readers and writers do not use them. docs/operations/statistics.md.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from hoodie import config as options
from hoodie.commit.abandoned import AbandonedFiles
from hoodie.commit.commit_content import locked_table
from hoodie.commit.metadata_partitions import ensure_metadata_table
from hoodie.commit.pending import PendingInstant
from hoodie.commit.steps import Step, reached
from hoodie.engine import TaskContext
from hoodie.errors import CommitConflictError, CorruptFileError, HoodieError, LockTimeoutError, UnsupportedError
from hoodie.files.column_ranges import META_COLUMNS, typed_columns
from hoodie.files.slice_read import SliceRead
from hoodie.files.slices import BaseFile, FileSlice, LogFile
from hoodie.files.stored_ranges import base_file_ranges, log_file_ranges
from hoodie.files.table_properties import update_table_config
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.instants.service_metadata import IndexCommitMetadata, IndexPartitionInfo, IndexPlan
from hoodie.format.metadata_table.column_stats import ColumnRange, StatsRow
from hoodie.format.metadata_table.partition_names import COLUMN_STATS, PARTITION_STATS
from hoodie.format.metadata_table.stats_keys import column_stats_key, partition_stats_key
from hoodie.format.table import table_keys as keys
from hoodie.format.table.table_config import BaseFileFormat
from hoodie.metadata.build_instants import build_time
from hoodie.metadata.kinds.column_stats import ColumnStatsKind
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.kinds.partition_stats import PartitionStatsKind, folded, partition_row
from hoodie.metadata.places import INDEX_DEFINITIONS
from hoodie.metadata.stats_files import write_stats_files
from hoodie.metadata.table import MetadataTable
from hoodie.progress import PhaseTimes
from hoodie.services.indexing.build import IndexCall, foreign_write, settled
from hoodie.services.indexing.pending import beside_pending
from hoodie.services.result import ServiceResult
from hoodie.storage import StoreSpec, open_store
from hoodie.timeline import Action, State, delete_heartbeat, delete_instant_files, is_live
from hoodie.timeline.owner import Owner
from hoodie.view.statistics import OUR_BUILD, STATISTICS, built_statistics, chosen_columns, indexed_columns
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_ROUNDS_MAX = 5
_FILE_BYTES = 64 * 1024
"""Approximate bytes that are read of a base file, to choose an engine."""


@dataclass(frozen=True, slots=True)
class _RangesTask:
    """Callable for `Engine.run`: the ranges of one file. Picklable."""

    store: StoreSpec
    columns: tuple[str, ...]
    read: SliceRead

    def __call__(self, file: BaseFile | LogFile, _context: TaskContext) -> tuple[ColumnRange, ...]:
        store = open_store(self.store)
        if isinstance(file, BaseFile):
            return base_file_ranges(store, file, self.columns)
        return log_file_ranges(store, file, self.columns, self.read)


@dataclass(slots=True)
class StatisticsFiles:
    """The ranges of the files of the newest slices. Memory: those ranges, about 300 bytes for each file and column."""

    call: IndexCall
    columns: tuple[str, ...]
    ranges: dict[tuple[str, str], tuple[ColumnRange, ...]] = field(default_factory=dict)
    files_read: int = 0

    def catch_up(self, view: TableView) -> int:
        """Read the files that are new since the last call, and forget those that left; return how many were read."""
        files = {(file.partition_path, name): file for name, file in _files(view.slices())}
        new = [file for place, file in files.items() if place not in self.ranges]
        engine = self.call.engine_for(
            sum(min(file.size_bytes, _FILE_BYTES) if isinstance(file, BaseFile) else file.size_bytes for file in new)
        )
        task = _RangesTask(view.store.spec, self.columns, view.slice_read())
        found = engine.run(task, new)
        self.ranges = {place: self.ranges[place] for place in files if place in self.ranges}
        self.ranges |= {(file.partition_path, _name(file)): ranges for file, ranges in zip(new, found, strict=True)}
        self.files_read += len(new)
        return len(new)

    def rows(self, kind: PartitionKind) -> dict[str, StatsRow]:
        """Return the rows of one of the two partitions by key."""
        if kind.name == COLUMN_STATS:
            return {
                column_stats_key(one.column, path, name): StatsRow(name=name, range=one)
                for (path, name), ranges in self.ranges.items()
                for one in ranges
            }
        by_path: dict[str, list[tuple[ColumnRange, ...]]] = {}
        for (path, _), ranges in self.ranges.items():
            by_path.setdefault(path, []).append(ranges)
        return {
            partition_stats_key(one.column, path): partition_row(path, one)
            for path, files in by_path.items()
            for one in folded(files)
        }


@dataclass(slots=True)
class _SwitchOn:
    """Complete a build: write both partitions and name them in the table's properties; see `Completion`."""

    built_at: str
    files: StatisticsFiles
    kinds: tuple[PartitionKind, ...]
    stats: list[WriteStat] = field(default_factory=list)

    def check(self, now: TableView) -> None:
        """Refuse to replace statistics while a service of the metadata table is pending.

        Raises: CommitConflictError.
        """
        if {*STATISTICS} & {*now.config.metadata_partitions}:
            MetadataTable(now.store, now.config).check_no_service_pending()

    def update_metadata_table(self, now: TableView) -> None:
        """Write the partitions, complete the build's delta commit, and name the partitions in the properties."""
        now.held_lock.ensure_held()
        if {*STATISTICS} & {*now.config.metadata_partitions}:
            update_table_config(now.store, off_properties(now, STATISTICS))
        metadata_table = MetadataTable(now.store, now.config)
        for kind in self.kinds:
            groups = kind.file_groups(now.config.raw)
            rows = self.files.rows(kind)
            self.stats += write_stats_files(now.store, kind, rows, groups=groups, built_at=self.built_at)
            # The last call completes the instant with the files of both partitions.
            metadata_table.commit_build(kind, self.built_at, self.stats, locked_table(now))
        now.held_lock.ensure_held()
        update_table_config(now.store, _on_properties(now, [kind.name for kind in self.kinds]))

    def content(self, now: TableView) -> bytes:
        """The last instant whose files the statistics cover."""
        last = now.timeline.writes().completed().latest()
        infos = tuple(_info(kind.name, None if last is None else last.requested_time) for kind in self.kinds)
        return IndexCommitMetadata(index_partition_infos=infos).to_bytes()


@dataclass(frozen=True, slots=True)
class _SwitchedOn:
    """Complete a build whose process died after it had named the partitions; see `Completion`."""

    names: tuple[str, ...]

    def check(self, now: TableView) -> None:
        """Check nothing: no change of another writer conflicts."""

    def update_metadata_table(self, now: TableView) -> None:
        """Do nothing: the metadata table has the statistics already."""

    def content(self, now: TableView) -> bytes:
        """The last instant whose files the statistics cover."""
        last = now.timeline.writes().completed().latest()
        upto = None if last is None else last.requested_time
        return IndexCommitMetadata(index_partition_infos=tuple(_info(name, upto) for name in self.names)).to_bytes()


def build_statistics(call: IndexCall, *, columns: Sequence[str] | None = None) -> ServiceResult:
    """Build the column statistics of a table, or build them anew; writers can run meanwhile.

    `columns`: the columns that get statistics, besides the meta columns; by default those of the table's options, those
    that an earlier build was given, or the first 32 columns. The options that make JVM writers maintain the statistics
    are stored in the table's properties.

    Memory of the driver, for each file and column: about 300 bytes while files are read, and 1.5 KB while the
    partitions are written, as their keys are sorted by hash (10,000 files with 32 columns: 0.5 GB).

    Raises:
        UnsupportedError: tables of version 6 or 8, tables without meta fields, bootstrapped tables.
        SchemaMismatchError: the table does not have one of the columns, or its type has no statistics.
        CommitConflictError: another index is being built, or a JVM write did not end in time.
    """
    times = PhaseTimes()
    with times.phase("plan"):
        pending, files, notes = _begin(call, columns)
    switch = _SwitchOn(build_time(pending.instant_time), files, _kinds(pending.view, files.columns))
    try:
        _run_or_cancel(call, pending, switch, times)
    finally:
        pending.end()
    return ServiceResult(
        operation="build column statistics",
        instant=pending.instant_time,
        counts={"files": len(files.ranges), "columns": len(files.columns), "files_read": files.files_read},
        bytes_written=sum(stat.total_write_bytes for stat in switch.stats),
        seconds=times.seconds(),
        notes=notes,
    )


def built_columns(view: TableView) -> tuple[str, ...] | None:
    """Return the columns of the table's statistics that an earlier build was given; None if they are the default.

    The default of an earlier schema is the beginning of today's. Columns that the table does not have now are left out.
    """
    try:
        stored = indexed_columns(view)
    except CorruptFileError:
        return None
    default = chosen_columns(view.schema().arrow, view.config.raw)
    if stored is None or default[: len(stored)] == stored:
        return None
    known = typed_columns(stored, view.schema().arrow)
    return tuple(name for name in stored if name in known and name not in META_COLUMNS) or None


def drop_statistics(state: TableState, name: str) -> ServiceResult:
    """Drop `partition_stats`, or both partitions of statistics; undo a build whose process died. Safe to repeat.

    Raises: CommitConflictError if a build is running; UnsupportedError for table version 6.
    """
    times = PhaseTimes()
    gone = (PARTITION_STATS,) if name == PARTITION_STATS else STATISTICS
    with state.table_lock() as lock, times.phase("drop"):
        view = TableView.load(state, lock)
        if not view.config.version.has_known_metadata_table:
            raise UnsupportedError(
                f"{state.store.uri('')} has table version 6: this release does not write its metadata table; drop the "
                "statistics with JVM Hudi"
            )
        notes = _end_builds(view)
        view = TableView.load(state, lock)
        had = [found for found in gone if found in view.config.metadata_partitions]
        update_table_config(state.store, off_properties(view, gone))
        lock.ensure_held()
        MetadataTable(state.store, view.config).drop_partitions(gone)
        state.metadata_table = None
    return ServiceResult(
        operation=f"drop {' and '.join(gone)}", counts={"partitions": len(had)}, seconds=times.seconds(), notes=notes
    )


def off_properties(view: TableView, gone: Sequence[str]) -> dict[str, str | None]:
    """Return the properties of a table after these partitions were dropped."""
    named = {*view.config.metadata_partitions} - {*gone}
    found: dict[str, str | None] = {keys.METADATA_PARTITIONS: ",".join(sorted(named))}
    switches = {COLUMN_STATS: options.COLUMN_STATS_ENABLE, PARTITION_STATS: options.PARTITION_STATS_ENABLE}
    return {**found, **{switches[name].key: "false" for name in gone}}


def _on_properties(view: TableView, names: Sequence[str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {
        keys.METADATA_PARTITIONS: ",".join(sorted({*view.config.metadata_partitions, *names})),
        options.COLUMN_STATS_ENABLE.key: "true",
        options.PARTITION_STATS_ENABLE.key: str(PARTITION_STATS in names).lower(),
    }
    if view.config.index_definitions_path is None:
        found[keys.INDEX_DEFINITIONS_PATH] = INDEX_DEFINITIONS
    return found


def _begin(call: IndexCall, columns: Sequence[str] | None) -> tuple[PendingInstant, StatisticsFiles, tuple[str, ...]]:
    """Create a build on the timeline; a build whose process died is completed or undone first."""
    view = TableView.load(call.state)
    _check_buildable(view)
    chosen = chosen_columns(view.schema().arrow, _asked(view, columns))
    with call.state.table_lock() as lock:
        abandoned = AbandonedFiles.find(call.state.store)
        view = TableView.load(call.state, lock)
        abandoned.remove(call.state.store, view.timeline)
        notes = _end_builds(view)
        view = ensure_metadata_table(TableView.load(call.state, lock))
        last = view.timeline.writes().completed().latest()
        infos = tuple(_info(kind.name, None if last is None else last.requested_time) for kind in _kinds(view, chosen))
        plan = IndexPlan(index_partition_infos=infos).to_bytes()
        pending = PendingInstant.start(view, Action.INDEXING, plan, Owner.new().to_bytes(), is_token=True)
    return pending, StatisticsFiles(call, chosen), notes


def _asked(view: TableView, columns: Sequence[str] | None) -> Mapping[str, str]:
    if columns is None and not options.COLUMN_STATS_COLUMNS.get(view.config.raw):
        columns = built_columns(view)
    if columns is None:
        return view.config.raw
    return {**view.config.raw, options.COLUMN_STATS_COLUMNS.key: ",".join(columns)}


def _kinds(view: TableView, columns: tuple[str, ...]) -> tuple[PartitionKind, ...]:
    found: list[PartitionKind] = [ColumnStatsKind(columns)]
    return tuple(found) if not view.config.partition_fields else (*found, PartitionStatsKind())


def _run_or_cancel(call: IndexCall, pending: PendingInstant, switch: _SwitchOn, times: PhaseTimes) -> None:
    """Run the build; undo it after an error with which a second call would fail too."""
    try:
        _run(call, pending, switch, times)
    except HoodieError as error:
        if not isinstance(error, LockTimeoutError):
            with suppress(Exception), call.state.table_lock() as lock:
                view = TableView.load(call.state, lock)
                pending.ensure_mine(view)
                if not _is_switched_on(view, pending.instant_time):
                    _cancel(view, pending.instant_time)
        raise


def _run(call: IndexCall, pending: PendingInstant, switch: _SwitchOn, times: PhaseTimes) -> None:
    reached(Step.BEGUN)
    with times.phase("build"):
        for _ in range(_ROUNDS_MAX):
            if not switch.files.catch_up(TableView.load(call.state)):
                break
    reached(Step.WRITTEN)
    deadline = time.monotonic() + call.wait_seconds
    while True:
        with times.phase("switch"), call.state.table_lock() as lock:
            view = settled(call.state, lock)
            pending.ensure_mine(view)
            waits_for = foreign_write(view)
            if waits_for is None:
                switch.files.catch_up(view)
                pending.complete(view, switch)
                call.state.metadata_table = None
                return
        if time.monotonic() >= deadline:
            raise CommitConflictError(
                f"{waits_for} of another engine did not end within {call.wait_seconds:.0f} s; the statistics would "
                "lack its files, because that write does not update them: run the build again after the write ends"
            )
        call.sleep(call.retry_seconds)


def _check_buildable(view: TableView) -> None:
    config, where = view.config, view.store.uri("")
    if not config.version.has_typed_statistics:
        raise UnsupportedError(
            f"{where} has table version {config.version.value}: this release writes column statistics of version 9 "
            "only; build them with JVM Hudi, or upgrade the table with Hudi 1.1 or later"
        )
    is_plain = config.bootstrap_base_path is None and config.base_file_format is BaseFileFormat.PARQUET
    if not (is_plain and config.populates_meta_fields):
        raise UnsupportedError(
            f"{where}: this release builds the statistics of tables with meta fields and Parquet base files, not of "
            "bootstrapped tables; build them with JVM Hudi"
        )


def end_dead_statistics(view: TableView) -> tuple[str, ...]:
    """Complete or undo a pending build of statistics whose process died; return notes. Takes the lock for one only."""
    state = view.state
    pending = [found for found in view.timeline.pending() if found.action is Action.INDEXING]
    if not pending or any(
        not built_statistics(view, found) or is_live(state.store, found.requested_time) for found in pending
    ):
        return ()
    with state.table_lock() as lock:
        return _end_builds(TableView.load(state, lock))


def _end_builds(view: TableView) -> tuple[str, ...]:
    """Complete or undo builds of statistics whose process died; return notes. Call it under the table's lock.

    Raises: CommitConflictError if an index is being built; UnsupportedError if the JVM builds one.
    """
    notes = []
    for instant in [found for found in view.timeline.pending() if found.action is Action.INDEXING]:
        names = built_statistics(view, instant)
        if not names or is_live(view.store, instant.requested_time):
            raise beside_pending(view, instant)
        if _is_switched_on(view, instant.requested_time):
            PendingInstant.resume(view, instant).complete(view, _SwitchedOn(names))
            delete_heartbeat(view.store, instant.requested_time)
            notes.append(f"completed the build at {instant.requested_time}, whose process had died")
        else:
            _cancel(view, instant.requested_time)
            notes.append(f"rolled back the build at {instant.requested_time}, whose process had died")
    return tuple(notes)


def _is_switched_on(view: TableView, requested_time: str) -> bool:
    if COLUMN_STATS not in view.config.metadata_partitions:
        return False
    return MetadataTable(view.store, view.config).has_build(build_time(requested_time))


def _cancel(view: TableView, requested_time: str) -> None:
    """Undo a build that is not switched on: delete its files and its instants. Call it under the table's lock."""
    metadata_table = MetadataTable(view.store, view.config)
    for kind in (ColumnStatsKind(), PartitionStatsKind()):
        metadata_table.undo_build(kind, build_time(requested_time), locked_table(view))
    states = (State.INFLIGHT, State.REQUESTED)
    delete_instant_files(view.store, view.layout, requested_time, Action.INDEXING, *states)
    delete_heartbeat(view.store, requested_time)


def _info(name: str, upto: str | None) -> IndexPartitionInfo:
    return IndexPartitionInfo(metadata_partition_path=name, index_upto_instant=upto, extra_metadata={OUR_BUILD: "true"})


def _files(slices: Sequence[FileSlice]) -> list[tuple[str, BaseFile | LogFile]]:
    files: list[BaseFile | LogFile] = []
    for found in slices:
        files += [found.base_file] if found.base_file is not None else []
        files += found.log_files
    return [(_name(file), file) for file in files]


def _name(file: BaseFile | LogFile) -> str:
    return file.name if isinstance(file, BaseFile) else file.name.name
