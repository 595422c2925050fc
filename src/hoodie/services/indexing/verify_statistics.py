"""Compare the column statistics of a table with its data files."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from hoodie.commit.call import Call
from hoodie.errors import InvalidConfigError
from hoodie.format.metadata_table.column_stats import ColumnRange, StatsRow, order_of
from hoodie.format.metadata_table.partition_names import COLUMN_STATS, PARTITION_STATS
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.kinds.column_stats import ColumnStatsKind, statistics_columns
from hoodie.metadata.kinds.partition_stats import PartitionStatsKind, joined
from hoodie.metadata.stats_reader import StatsReader
from hoodie.metadata.visible_instants import visible_instants
from hoodie.services.indexing.statistics import StatisticsFiles
from hoodie.services.results import Finding, Report, few_of_each_kind
from hoodie.view.table_view import TableView

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
    rows = files.rows(ColumnStatsKind())
    found = reader.rows_at(rows)
    for key, row in rows.items():
        yield from _problems(_WRONG, row.name, row.range, found.get(key))


def _partitions(files: StatisticsFiles, reader: StatsReader) -> Iterator[Finding]:
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
