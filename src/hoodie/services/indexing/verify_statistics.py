"""Compare the column statistics of a table with its data files."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from hoodie.errors import InvalidConfigError
from hoodie.format.metadata_table.column_stats import ColumnRange, order_of
from hoodie.format.metadata_table.partition_names import COLUMN_STATS, PARTITION_STATS
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.kinds.column_stats import ColumnStatsKind, statistics_columns
from hoodie.metadata.kinds.partition_stats import PartitionStatsKind, joined
from hoodie.metadata.stats_reader import StatsReader
from hoodie.metadata.visible_instants import visible_instants
from hoodie.services.indexing.build import IndexCall
from hoodie.services.indexing.statistics import StatisticsFiles
from hoodie.services.report import Finding, Report, few_of_each_kind
from hoodie.view.table_view import TableView

_TRIES = 3
_MISSING = "missing range"
_WRONG = "wrong range"
_NARROW = "range of a partition that does not cover its files"


def verify_statistics(call: IndexCall) -> Report:
    """Compare the ranges of all files of the newest slices, and of their partitions, with the files.

    The problems are: a file without a range of a column; a wrong range; a range of a partition that does not cover its
    files. Reads the footers of base files, their float columns, and log files. Memory: the ranges. Writers may run.

    Raises: InvalidConfigError if the table has no column statistics; CorruptFileError.
    """
    started = time.perf_counter()
    for tries in range(_TRIES):
        view = TableView.load(call.state)
        report = _compared(call, view, started)
        if report.ok or TableView.load(call.state).timeline == view.timeline or tries == _TRIES - 1:
            break
    return report


def _compared(call: IndexCall, view: TableView, started: float) -> Report:
    columns = statistics_columns(view.store) if COLUMN_STATS in view.config.metadata_partitions else None
    if columns is None:
        raise InvalidConfigError(
            f'{view.store.uri("")} has no column statistics of version 9; build them with t.index.build("column_stats")'
        )
    files = StatisticsFiles(call, columns)
    files.catch_up(view)
    folder = MetadataFolder(view.store, view.config)
    timeline = visible_instants(folder.existing_timeline(), view.whole_timeline())
    findings = [*_files(files, StatsReader(view.store, ColumnStatsKind(), timeline))]
    if PARTITION_STATS in view.config.metadata_partitions:
        findings += _partitions(files, StatsReader(view.store, PartitionStatsKind(), timeline))
    counts = Counter(finding.kind for finding in findings)
    return Report(
        subject=f"column statistics of {view.store.uri('')}",
        checked={"files": len(files.ranges), "ranges": sum(map(len, files.ranges.values()))},
        problems={kind: counts[kind] for kind in (_MISSING, _WRONG, _NARROW)},
        findings=few_of_each_kind(findings),
        seconds=time.perf_counter() - started,
    )


def _files(files: StatisticsFiles, reader: StatsReader) -> Iterator[Finding]:
    expected = files.rows(ColumnStatsKind())
    found = reader.rows_at(expected)
    for key, row in expected.items():
        where = f"{row.name}, column {row.range.column}"
        told = found.get(key)
        if told is None:
            yield Finding(kind=_MISSING, key=where, expected=_text(row.range))
        elif not _is_same(told.range, row.range):
            yield Finding(kind=_WRONG, key=where, expected=_text(row.range), found=_text(told.range))


def _partitions(files: StatisticsFiles, reader: StatsReader) -> Iterator[Finding]:
    expected = files.rows(PartitionStatsKind())
    found = reader.rows_at(expected)
    for key, row in expected.items():
        where = f"partition {row.name}, column {row.range.column}"
        told = found.get(key)
        if told is None:
            yield Finding(kind=_MISSING, key=where, expected=_text(row.range))
        elif not _covers(told.range, row.range):
            yield Finding(kind=_NARROW, key=where, expected=_text(row.range), found=_text(told.range))


def _is_same(stored: ColumnRange, expected: ColumnRange) -> bool:
    """Return whether a stored range is right for the file.

    A row keeps the type that the column had when the file was written. If the column was changed since, its bounds are
    converted as the values are, and must hold all values.
    """
    if (stored.values, stored.nulls) != (expected.values, expected.nulls):
        return False
    if stored.type == expected.type:
        return _bounds(stored) == _bounds(expected)
    return _covers(stored, expected)


def _covers(stored: ColumnRange, expected: ColumnRange) -> bool:
    """Return whether the stored bounds, converted to the type of the expected ones, hold them."""
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
