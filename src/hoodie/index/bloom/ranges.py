"""The key ranges of file slices: from the table's column statistics if they have them, else from the footers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hoodie.engine import Engine, TaskContext
from hoodie.errors import CorruptFileError, MetadataTableMissingError
from hoodie.files.base_file import open_base_file
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.format.metadata_table.column_stats import StatsRow
from hoodie.format.metadata_table.partition_names import COLUMN_STATS
from hoodie.format.metadata_table.stats_keys import column_prefix, column_stats_key
from hoodie.index.key_ranges import KeyRange
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.kinds.column_stats import ColumnStatsKind
from hoodie.metadata.stats_reader import StatsReader
from hoodie.metadata.visible_instants import visible_instants
from hoodie.records.change import RECORD_KEY
from hoodie.storage import StoreSpec, open_store
from hoodie.view.table_view import TableView

FOOTER_BYTES = 64 * 1024
"""Approximate bytes that are read of a file for its range, to choose an engine."""
_LOOKED_UP_MAX = 4096
"""Rows of statistics that are looked up one by one; for more files, all rows of the key column are read."""


@dataclass(frozen=True, slots=True)
class _ReadRange:
    """Callable for `Engine.run`: the key range of one base file."""

    store: StoreSpec

    def __call__(self, file: BaseFile, _context: TaskContext) -> KeyRange:
        with open_base_file(open_store(self.store), file) as (parquet, _):
            return KeyRange.of_footer(parquet.metadata.metadata)


def slice_ranges(view: TableView, slices: Sequence[FileSlice], engine_for: Callable[[int], Engine]) -> list[KeyRange]:
    """Return the key range of each slice; unknown if the keys of one of its files are not known.

    One read of the statistics, or one of each footer whose file has none. The footer of a log file has no range.

    Raises: CorruptFileError, MissingFileError.
    """
    stats = _statistics(view, slices)
    by_place = {
        (file.partition_path, file.path): _range_of(stats.get(_stats_key(file.partition_path, file.path)))
        for found in slices
        for file in (found.base_file, *found.log_files)
        if file is not None
    }
    unread = [
        found.base_file
        for found in slices
        if found.base_file is not None
        and not found.log_files
        and by_place[found.partition_path, found.base_file.path].low is None
    ]
    if unread:
        engine = engine_for(sum(min(file.size_bytes, FOOTER_BYTES) for file in unread))
        read = engine.run(_ReadRange(view.store.spec), unread)
        by_place |= {(file.partition_path, file.path): found for file, found in zip(unread, read, strict=True)}
    return [_joined([by_place[found.partition_path, path] for path in found.paths]) for found in slices]


def _statistics(view: TableView, slices: Sequence[FileSlice]) -> dict[str, StatsRow]:
    """Return the rows of the key column by key; empty if the table has none. They are derived data: damage is told."""
    if COLUMN_STATS not in view.config.metadata_partitions or not view.config.version.has_known_metadata_table:
        return {}
    try:
        timeline = visible_instants(MetadataFolder(view.store, view.config).existing_timeline(), view.whole_timeline())
        reader = StatsReader(view.store, ColumnStatsKind(), timeline)
        keys = {_stats_key(found.partition_path, path) for found in slices for path in found.paths}
        if len(keys) <= _LOOKED_UP_MAX:
            return reader.rows_at(keys)
        return reader.rows_below([column_prefix(RECORD_KEY)])
    except (MetadataTableMissingError, CorruptFileError) as error:
        view.state.warn(f"key ranges are read from the data files, which is slower: {error}")
        return {}


def _stats_key(partition_path: str, path: str) -> str:
    return column_stats_key(RECORD_KEY, partition_path, path.rpartition("/")[2])


def _range_of(row: StatsRow | None) -> KeyRange:
    low, high = (None, None) if row is None else (row.range.low, row.range.high)
    return KeyRange.of(low, high) if isinstance(low, str) and isinstance(high, str) else KeyRange()


def _joined(ranges: Sequence[KeyRange]) -> KeyRange:
    """Return the range of all keys of several files."""
    lows = [found.low for found in ranges if found.low is not None]
    highs = [found.high for found in ranges if found.high is not None]
    if not ranges or len(lows) < len(ranges):
        return KeyRange()
    return KeyRange(min(lows, key=str.encode), max(highs, key=str.encode))
