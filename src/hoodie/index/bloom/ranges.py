"""The key ranges of file slices: from the table's column statistics if they have them, else from the footers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from hoodie.engine import EngineFor, TaskContext
from hoodie.errors import CorruptFileError, MetadataTableMissingError
from hoodie.files.base_file import open_base_file
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.format.filenames import name_of
from hoodie.format.hashes.bloom import FOOTER_KEY, TYPE_FOOTER_KEY, BloomFilter
from hoodie.format.metadata_table.column_stats import StatsRow, column_prefix, column_stats_key
from hoodie.index.key_search import KeyRange
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.column_stats import ColumnStatsKind
from hoodie.metadata.row_readers import StatsReader
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store, StoreSpec, open_store
from hoodie.view.table_view import TableView

FOOTER_BYTES = 64 * 1024
"""Approximate bytes that are read of a file for its range, to choose an engine."""
_KEPT_FOOTERS = 40
"""Footers that are kept with their filters: 17 MB by default."""
_KEPT_BYTES = 1024 * 1024
"""Greatest size of the text of a filter that is kept."""
_LOOKED_UP_MAX = 4096
"""Rows of statistics that are looked up one by one; for more files, all rows of the key column are read."""


def _read_footer(file: BaseFile, _context: TaskContext, *, store: StoreSpec, keeps_filter: bool) -> StoredKeys:
    found = read_stored_keys(open_store(store), file)
    return found if keeps_filter else replace(found, text=None)


def read_stored_keys(store: Store, file: BaseFile) -> StoredKeys:
    """Read range and filter of the keys from the footer of a base file. Raises: CorruptFileError, MissingFileError."""
    with open_base_file(store, file) as (parquet, _):
        footer = parquet.metadata.metadata or {}
    kind = footer.get(TYPE_FOOTER_KEY.encode())
    text, type_code = footer.get(FOOTER_KEY.encode()), None if kind is None else kind.decode()
    return StoredKeys(KeyRange.of_footer(footer), text, type_code)


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """The footer of a base file about its keys: the range, and the text and the type of its filter."""

    range: KeyRange
    text: bytes | None = None
    type_code: str | None = None

    def filter(self, *, path: str) -> BloomFilter | None:
        """Return the filter; without one every key may be in the file. Raises: CorruptFileError."""
        return None if self.text is None else BloomFilter.parse(self.text, self.type_code, path=path)


def slice_ranges(
    view: TableView, slices: Sequence[FileSlice], engine_for: EngineFor
) -> tuple[list[KeyRange], dict[int, StoredKeys]]:
    """Return the key range of each slice, unknown if the keys of one of its files are not known; and kept footers.

    One read of the statistics, or one of each footer whose file has none. The footer of a log file has no range. The
    footers of a few files are returned, by number of the slice, so that they are not read again for their filters: at
    most 40 of up to 1 MiB.

    Raises: CorruptFileError, MissingFileError.
    """
    stats = _statistics(view, slices)
    by_place = {
        (found.partition_path, path): _range_of(stats.get(_stats_key(found.partition_path, path)))
        for found in slices
        for path in found.paths
    }
    unread = [
        (number, found.base_file)
        for number, found in enumerate(slices)
        if found.base_file is not None
        and not found.log_files
        and by_place[found.partition_path, found.base_file.path].low is None
    ]
    footers: dict[int, StoredKeys] = {}
    if unread:
        engine = engine_for(sum(min(file.size_bytes, FOOTER_BYTES) for _, file in unread))
        keeps = len(unread) <= _KEPT_FOOTERS
        read_footer = partial(_read_footer, store=view.store.spec, keeps_filter=keeps)
        read = engine.run(read_footer, [file for _, file in unread])
        for (number, file), found in zip(unread, read, strict=True):
            by_place[file.partition_path, file.path] = found.range
            if keeps and len(found.text or b"") <= _KEPT_BYTES:
                footers[number] = found
    ranges = [_joined([by_place[found.partition_path, path] for path in found.paths]) for found in slices]
    return ranges, footers


def _statistics(view: TableView, slices: Sequence[FileSlice]) -> dict[str, StatsRow]:
    """Return the rows of the key column by key; empty if the table has none. Damage only causes a warning."""
    if not ColumnStatsKind().is_in(view.config):
        return {}
    try:
        timeline = visible_instants(MetadataFolder(view.store, view.config).existing_timeline(), view.whole_timeline())
        reader = StatsReader(view.store, ColumnStatsKind(), timeline, version=view.config.version)
        keys = {_stats_key(file_slice.partition_path, path) for file_slice in slices for path in file_slice.paths}
        if len(keys) <= _LOOKED_UP_MAX:
            return reader.rows_at(keys)
        return reader.rows_below([column_prefix(RECORD_KEY)])
    except (MetadataTableMissingError, CorruptFileError) as error:
        view.state.warn(f"key ranges are read from the data files, which is slower: {error}")
        return {}


def _stats_key(partition_path: str, path: str) -> str:
    return column_stats_key(RECORD_KEY, partition_path, name_of(path))


def _range_of(row: StatsRow | None) -> KeyRange:
    # Keys are never null: nulls are row groups of long keys, whose bounds a JVM did not find.
    low, high = (None, None) if row is None or row.range.nulls else (row.range.low, row.range.high)
    return KeyRange.of(low, high) if isinstance(low, str) and isinstance(high, str) else KeyRange()


def _joined(ranges: Sequence[KeyRange]) -> KeyRange:
    """Return the range of all keys of several files."""
    lows = [key_range.low for key_range in ranges if key_range.low is not None]
    highs = [key_range.high for key_range in ranges if key_range.high is not None]
    if not ranges or len(lows) < len(ranges):
        return KeyRange()
    return KeyRange(min(lows, key=str.encode), max(highs, key=str.encode))
