"""Build column statistics while writers write, drop them, and compare them with the data files.

A build reads the footers of the base files and the rows of the log files of the newest file slices, and writes
`column_stats`, and `partition_stats` if the table has partitions: `file_builds` has the steps.
docs/operations/statistics.md.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hoodie.commit.call import Call
from hoodie.config import indexes
from hoodie.engine import TaskContext
from hoodie.errors import CorruptFileError, InvalidConfigError, UnsupportedError
from hoodie.files.column_ranges import META_COLUMNS, typed_columns
from hoodie.files.slice_read import SliceRead
from hoodie.files.slices import BaseFile, FileSlice, LogFile
from hoodie.files.stored_ranges import base_file_ranges, log_file_ranges
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.metadata_table.column_stats import (
    ColumnRange,
    StatsRow,
    column_stats_key,
    order_of,
    partition_stats_key,
)
from hoodie.format.metadata_table.partition_names import COLUMN_STATS, PARTITION_STATS
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.column_stats import ColumnStatsKind, statistics_columns
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.kinds.partition_stats import PartitionStatsKind, folded, joined, partition_row
from hoodie.metadata.stats_reader import StatsReader
from hoodie.progress import PhaseTimes
from hoodie.services.indexing.file_builds import begin, check_buildable, drop_built, run, write_stats_files
from hoodie.services.results import Finding, Report, ServiceResult, few_of_each_kind
from hoodie.storage import Store, StoreSpec, open_store
from hoodie.view.slices import list_slices
from hoodie.view.statistics import STATISTICS, chosen_columns, indexed_columns
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

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

    call: Call
    columns: tuple[str, ...]
    ranges: dict[tuple[str, str], tuple[ColumnRange, ...]] = field(default_factory=dict)
    files_read: int = 0
    replaced: tuple[str, ...] = STATISTICS
    is_partitioned: bool = True

    @property
    def kinds(self) -> tuple[PartitionKind, ...]:
        """`column_stats`, and `partition_stats` if the table has partitions."""
        found: list[PartitionKind] = [ColumnStatsKind(self.columns)]
        return (*found, PartitionStatsKind()) if self.is_partitioned else tuple(found)

    def catch_up(self, view: TableView) -> int:
        """Read the files that are new since the last call, and forget those that left; return how many were read."""
        files = {(file.partition_path, name): file for name, file in _files(list_slices(view))}
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

    def prepare(self, view: TableView, built_at: str) -> None:
        """Do nothing: the rows are small."""

    def write(self, store: Store, kind: PartitionKind, *, groups: int, built_at: str) -> list[WriteStat]:
        """Write the base files of one of the two partitions."""
        return write_stats_files(store, kind, self.rows(kind), groups=groups, built_at=built_at)


def build_statistics(call: Call, *, columns: Sequence[str] | None = None) -> ServiceResult:
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
        view = TableView.load(call.state)
        _check_buildable(view)
        chosen = chosen_columns(view.schema().arrow, _asked(view, columns))
        files = StatisticsFiles(call, chosen, is_partitioned=bool(view.config.partition_fields))
        pending, notes = begin(call, files)
    stats = run(call, pending, files, times)
    return ServiceResult(
        operation="build column statistics",
        instant=pending.instant_time,
        counts={"files": len(files.ranges), "columns": len(files.columns), "files_read": files.files_read},
        bytes_written=sum(stat.total_write_bytes for stat in stats),
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
    """Drop `partition_stats`, or both partitions of statistics. Raises: as `drop_built`."""
    return drop_built(state, (PARTITION_STATS,) if name == PARTITION_STATS else STATISTICS)


def _asked(view: TableView, columns: Sequence[str] | None) -> Mapping[str, str]:
    if columns is None and not indexes.COLUMN_STATS_COLUMNS.get(view.config.raw):
        columns = built_columns(view)
    if columns is None:
        return view.config.raw
    return {**view.config.raw, indexes.COLUMN_STATS_COLUMNS.key: ",".join(columns)}


def _check_buildable(view: TableView) -> None:
    config, where = view.config, view.store.uri("")
    if not config.version.has_typed_statistics:
        raise UnsupportedError(
            f"{where} has table version {config.version.value}: this release writes column statistics of version 9 "
            "only; build them with JVM Hudi, or upgrade the table with Hudi 1.1 or later"
        )
    check_buildable(view, "statistics")


def _files(slices: Sequence[FileSlice]) -> list[tuple[str, BaseFile | LogFile]]:
    files: list[BaseFile | LogFile] = []
    for found in slices:
        files += [found.base_file] if found.base_file is not None else []
        files += found.log_files
    return [(_name(file), file) for file in files]


def _name(file: BaseFile | LogFile) -> str:
    return file.name if isinstance(file, BaseFile) else file.name.name


_TRIES = 3
_MISSING = "missing range"
_WRONG = "wrong range"
_NARROW = "range of a partition that does not cover its files"


def verify_statistics(call: Call) -> Report:
    """Compare the ranges of all files of the newest slices, and of their partitions, with the files.

    The problems are: a file or a partition that has values of a column and no range of it; a range that does not cover
    the values. A range that is wider than the values is no problem, because no query loses rows by it. Reads the
    footers of base files, their float columns, and log files. Memory: the ranges. Writers may run.

    Raises: InvalidConfigError if the table has no column statistics; CorruptFileError.
    """
    started = time.perf_counter()
    for tries in range(_TRIES):
        view = TableView.load(call.state)
        report = _compared(call, view, started)
        if report.ok or TableView.load(call.state).timeline == view.timeline or tries == _TRIES - 1:
            break
    return report


def _compared(call: Call, view: TableView, started: float) -> Report:
    columns = statistics_columns(view.store) if COLUMN_STATS in view.config.metadata_partitions else None
    if columns is None:
        raise InvalidConfigError(
            f'{view.store.uri("")} has no column statistics of version 9; build them with t.index.build("column_stats")'
        )
    files = StatisticsFiles(call, columns)
    files.catch_up(view)
    folder = MetadataFolder(view.store, view.config)
    timeline = visible_instants(folder.existing_timeline(), view.whole_timeline())
    findings = [*_of_files(files, StatsReader(view.store, ColumnStatsKind(), timeline))]
    if PARTITION_STATS in view.config.metadata_partitions:
        findings += _of_partitions(files, StatsReader(view.store, PartitionStatsKind(), timeline))
    counts = Counter(finding.kind for finding in findings)
    return Report(
        subject=f"column statistics of {view.store.uri('')}",
        checked={"files": len(files.ranges), "ranges": sum(map(len, files.ranges.values()))},
        problems={kind: counts[kind] for kind in (_MISSING, _WRONG, _NARROW)},
        findings=few_of_each_kind(findings),
        seconds=time.perf_counter() - started,
    )


def _of_files(files: StatisticsFiles, reader: StatsReader) -> Iterator[Finding]:
    rows = files.rows(ColumnStatsKind())
    found = reader.rows_at(rows)
    for key, row in rows.items():
        yield from _problems(_WRONG, row.name, row.range, found.get(key))


def _of_partitions(files: StatisticsFiles, reader: StatsReader) -> Iterator[Finding]:
    rows = files.rows(PartitionStatsKind())
    found = reader.rows_at(rows)
    for key, row in rows.items():
        yield from _problems(_NARROW, f"partition {row.name}", row.range, found.get(key))


def _problems(kind: str, name: str, expected: ColumnRange, stored: StatsRow | None) -> Iterator[Finding]:
    """Yield a finding if no range is stored though there are values, or if a query could skip some of the values.

    A file without rows needs no range: a delete that came before a new column has none of it.
    """
    where = f"{name}, column {expected.column}"
    if stored is None and expected.values:
        yield Finding(kind=_MISSING, key=where, expected=_text(expected))
    elif stored is not None and not _covers(stored.range, expected):
        yield Finding(kind=kind, key=where, expected=_text(expected), found=_text(stored.range))


def _covers(stored: ColumnRange, expected: ColumnRange) -> bool:
    """Return whether no query can skip rows of `expected` by the stored range.

    A row keeps the type that the column had when it was written; its bounds are converted to today's type, as the
    values are. Bounds that are unknown skip nothing.
    """
    has_nulls, has_values = expected.nulls > 0, expected.values > expected.nulls
    if stored.values < expected.values or (has_nulls and not stored.nulls):
        return False
    if has_values and stored.values == stored.nulls:
        return False
    if stored.low is None or stored.high is None:
        return True
    nothing = replace(expected, low=None, high=None)
    try:
        return _bounds(joined(stored, expected)) == _bounds(joined(stored, nothing))
    except TypeError:
        return False  # values of types that have no common order


def _bounds(found: ColumnRange) -> tuple[object, object]:
    """Return the bounds in a form in which NaN equals NaN."""
    return tuple(None if raw is None else _comparable(order_of(raw)) for raw in (found.low, found.high))  # type: ignore[return-value]


def _comparable(key: object) -> object:
    return (True, 0.0) if isinstance(key, tuple) and key[0] else key


def _text(found: ColumnRange) -> str:
    return f"[{str(found.low)[:60]}, {str(found.high)[:60]}] of {found.values} values with {found.nulls} nulls"
