"""The files, file slices, partitions, column statistics and index entries of a table, as Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hoodie.arguments import check_methods
from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.base_file import open_base_file
from hoodie.files.slices import BaseFile, FileSlice, join_path
from hoodie.format.filenames import BaseFileName, instant_of_data_file, parse_data_file
from hoodie.read.history import instant_content
from hoodie.read.index_entries import entry_changes, first_entries
from hoodie.read.times import When
from hoodie.timeline import LockOptions, Timeline
from hoodie.timeline.locks.inspection import found_locks
from hoodie.view.last_writes import last_writes
from hoodie.view.listing import list_files
from hoodie.view.slices import list_slices, with_archived_between
from hoodie.view.still_there import check_still_there
from hoodie.view.table_view import TableView

FILES_SCHEMA = pa.schema(
    [
        pa.field("partition_path", pa.string(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("file_id", pa.string(), nullable=False),
        pa.field("instant", pa.string(), nullable=False),
        pa.field("is_current", pa.bool_(), nullable=False),
        pa.field("rows", pa.int64()),
        pa.field("size_bytes", pa.int64(), nullable=False),
    ]
)
SLICES_SCHEMA = pa.schema(
    [
        pa.field("partition_path", pa.string(), nullable=False),
        pa.field("file_id", pa.string(), nullable=False),
        pa.field("base_instant", pa.string(), nullable=False),
        pa.field("base_file", pa.string()),
        pa.field("base_rows", pa.int64()),
        pa.field("base_size_bytes", pa.int64(), nullable=False),
        pa.field("log_files", pa.int64(), nullable=False),
        pa.field("log_size_bytes", pa.int64(), nullable=False),
    ]
)
LOCKS_SCHEMA = pa.schema(
    [
        pa.field("provider", pa.string(), nullable=False),
        pa.field("place", pa.string(), nullable=False),
        pa.field("is_ours", pa.bool_(), nullable=False),
        pa.field("holder", pa.string()),
        pa.field("written", pa.timestamp("ms", "UTC")),
        pa.field("until", pa.timestamp("ms", "UTC")),
    ]
)
PARTITIONS_SCHEMA = pa.schema(
    [
        pa.field("partition_path", pa.string(), nullable=False),
        pa.field("file_groups", pa.int64(), nullable=False),
        pa.field("base_rows", pa.int64()),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("log_files", pa.int64(), nullable=False),
        pa.field("latest_instant", pa.string(), nullable=False),
    ]
)
STATISTICS_SCHEMA = pa.schema(
    [
        pa.field("partition_path", pa.string(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("column", pa.string(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("nulls", pa.int64()),
        pa.field("min", pa.string()),
        pa.field("max", pa.string()),
        pa.field("size_bytes", pa.int64(), nullable=False),
    ]
)


@check_methods
@dataclass(frozen=True, slots=True, repr=False)
class Inspection:
    """Describe a table as of one view.

    Row counts come from commit metadata. They are null for files of archived instants, and for log files of table
    version 6, because their names do not contain the instant that wrote them. The row count of a log file is the number
    of rows that it adds or changes; deletes are not counted.

    Raises: ViewOvertakenError from `files`, `slices`, `partitions` and `statistics` if a clean deleted files of the
    view meanwhile; `table.inspect` describes the table anew.
    """

    view: TableView

    def __repr__(self) -> str:
        return (
            f"Inspection of {self.view.store.uri('')}: files(), slices(), partitions(), statistics(), index(), locks()"
        )

    def files(self) -> pa.Table:
        """List every committed base file and log file; `is_current` marks the files of the latest slices.

        The rows are sorted by partition path, file id and instant.
        """
        current = {path for found in self._slices() for path in found.paths}
        row_counts = RowCounts(self.view)
        rows = []
        listing = list_files(self.view)
        times = {instant_of_data_file(name) or "" for names in listing.values() for name in names}
        timeline = with_archived_between(self.view, self.view.timeline, times)
        for partition_path, names in listing.items():
            for name, size_bytes in names.items():
                row = _file_row(timeline, partition_path, name, row_counts)
                if row is not None:
                    is_current = join_path(partition_path, name) in current
                    rows.append({**row, "size_bytes": size_bytes, "is_current": is_current})
        rows.sort(key=lambda row: (row["partition_path"], row["file_id"], row["instant"], row["file"]))
        return pa.Table.from_pylist(rows, schema=FILES_SCHEMA)

    def slices(self) -> pa.Table:
        """List the latest file slice of every file group, sorted by partition path and file id."""
        row_counts = RowCounts(self.view)
        return pa.Table.from_pylist([_slice_row(found, row_counts) for found in self._slices()], schema=SLICES_SCHEMA)

    def partitions(self) -> pa.Table:
        """List the partitions that have files: file groups, rows of base files, bytes and log files.

        Only the latest file slices are counted. `latest_instant` is the newest instant that wrote one of the files.
        """
        row_counts, slices = RowCounts(self.view), self._slices()
        by_partition: dict[str, list[FileSlice]] = {}
        for found in slices:
            by_partition.setdefault(found.partition_path, []).append(found)
        times = last_writes(self.view, slices)
        rows = [_partition_row(path, found, row_counts, times[path]) for path, found in by_partition.items()]
        return pa.Table.from_pylist(rows, schema=PARTITIONS_SCHEMA)

    def _slices(self) -> list[FileSlice]:
        """Return the latest slices. Raises: ViewOvertakenError if a clean took files of them meanwhile."""
        slices = list_slices(self.view)
        check_still_there(self.view)
        return slices

    def locks(self, properties: Mapping[str, str] | None = None) -> pa.Table:
        """List the table's locks: provider, place, is_ours, holder, written, until.

        `is_ours`: writers of this library use this provider, by these `properties` and those of the table. `holder` is
        null if the lock is free; `until`: when the lock ends without a renewal, if that is known. A lock of the JVM in
        another place than the table's folder, or in a ZooKeeper that no option names, cannot be seen.

        Raises: LockTimeoutError if ZooKeeper is used and cannot be reached; InvalidConfigError.
        """
        found = found_locks(
            self.view.store, LockOptions.of(properties or {}, self.view.state.lock_options, self.view.config.raw)
        )
        rows = [
            {
                "provider": lock.provider.rpartition(".")[2],
                "place": lock.place,
                "is_ours": lock.is_ours,
                "holder": lock.holder,
                "written": lock.written_ms,
                "until": lock.until_ms,
            }
            for lock in found
        ]
        return pa.Table.from_pylist(rows, schema=LOCKS_SCHEMA)

    def statistics(self) -> pa.Table:
        """List the statistics of every column of every base file of the latest slices.

        The statistics are rows, nulls, minimum and maximum (as strings), and bytes on disk. They come from the Parquet
        footers, one small read for each file. A bound that the footer does not contain is null.
        """
        base_files = [found.base_file for found in self._slices() if found.base_file is not None]
        store = self.view.store

        def read(file: BaseFile, context: TaskContext) -> list[dict[str, Any]]:
            with open_base_file(store, file) as (parquet, _):
                return _column_rows(file, parquet.metadata)

        rows = [row for rows in LocalEngine().run(read, base_files) for row in rows]
        return pa.Table.from_pylist(rows, schema=STATISTICS_SCHEMA)

    def index(self, as_of: When | None = None, *, limit: int | None = None) -> pa.Table:
        """List the entries of the record index: key, partition_path, file_id, instant, bucket.

        `bucket` is the number of the index file group. The rows are sorted by bucket and key. `as_of`: an instant
        (inclusive); None for the newest commit. At most `limit` entries are returned.
        `hoodie.read.index_entries.stream_entries` returns all entries as a stream.

        Raises: UnsupportedError without a record index, or if the index no longer stores its state as of that instant.
        """
        return first_entries(self.view, limit, as_of=as_of)

    def index_changes(self, since: When | None, until: When | None = None) -> pa.Table:
        """List the record index changes of the commits that completed in `(since, until]`, commit by commit.

        Columns: key, change (`put` or `delete`), partition_path, file_id, instant of the commit.

        Raises: UnsupportedError without a record index, or if the index no longer stores these changes.
        """
        return entry_changes(self.view, since, until)

    def instant(self, requested_time: str) -> Mapping[str, Any]:
        """Return the content of one instant as plain Python values; see `hoodie.read.history.instant_content`."""
        return instant_content(self.view, requested_time)


@dataclass(slots=True)
class RowCounts:
    """Row counts of base and log files, from the metadata of the commits that wrote them."""

    view: TableView
    _by_instant: dict[str, Mapping[str | None, int]] = field(default_factory=dict)

    def get(self, instant_time: str, path: str) -> int | None:
        if instant_time not in self._by_instant:
            instant = self.view.timeline.writes().get(instant_time)
            known = instant is not None and instant.is_completed
            stats = self.view.commit_metadata(instant).write_stats() if known and instant is not None else ()
            self._by_instant[instant_time] = {stat.path: stat.num_writes for stat in stats}
        return self._by_instant[instant_time].get(path)


def _file_row(timeline: Timeline, partition_path: str, name: str, row_counts: RowCounts) -> dict[str, Any] | None:
    parsed = parse_data_file(name)
    if parsed is None or not timeline.contains_or_before_start(parsed.instant_time):
        return None
    return {
        "partition_path": partition_path,
        "file": name,
        "kind": "base" if isinstance(parsed, BaseFileName) else "log",
        "file_id": parsed.file_id,
        "instant": parsed.instant_time,
        "rows": row_counts.get(parsed.instant_time, join_path(partition_path, name)),
    }


def _slice_row(found: FileSlice, row_counts: RowCounts) -> dict[str, Any]:
    base = found.base_file
    return {
        "partition_path": found.partition_path,
        "file_id": found.file_id,
        "base_instant": found.base_instant_time,
        "base_file": None if base is None else base.name,
        "base_rows": None if base is None else row_counts.get(base.instant_time, base.path),
        "base_size_bytes": 0 if base is None else base.size_bytes,
        "log_files": len(found.log_files),
        "log_size_bytes": sum(log.size_bytes for log in found.log_files),
    }


def _partition_row(
    partition_path: str, slices: list[FileSlice], row_counts: RowCounts, latest_instant: str
) -> dict[str, Any]:
    rows = [_slice_row(file_slice, row_counts) for file_slice in slices]
    counts = [row["base_rows"] for row in rows if row["base_file"] is not None]
    return {
        "partition_path": partition_path,
        "file_groups": len(slices),
        "base_rows": None if None in counts else sum(counts),
        "size_bytes": sum(file_slice.size_bytes for file_slice in slices),
        "log_files": sum(len(file_slice.log_files) for file_slice in slices),
        "latest_instant": latest_instant,
    }


def _column_rows(file: BaseFile, footer: Any) -> list[dict[str, Any]]:
    """Return one row for each leaf column, over all row groups of the file."""
    columns: dict[str, list[Any]] = {}
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for number in range(row_group.num_columns):
            chunk = row_group.column(number)
            columns.setdefault(chunk.path_in_schema, []).append(chunk)
    return [
        {
            "partition_path": file.partition_path,
            "file": file.name,
            "column": name,
            "rows": footer.num_rows,
            "size_bytes": sum(chunk.total_compressed_size for chunk in chunks),
            **_bounds([chunk.statistics for chunk in chunks]),
        }
        for name, chunks in columns.items()
    ]


def _bounds(statistics: list[Any]) -> dict[str, Any]:
    """Return nulls and bounds over all row groups; null if the statistics of a row group do not contain them."""
    has_nulls = all(found is not None and found.has_null_count for found in statistics)
    nulls = sum(found.null_count for found in statistics) if has_nulls else None
    filled = [found for found in statistics if found is None or found.num_values > 0]
    if not filled or any(found is None or not found.has_min_max for found in filled):
        return {"nulls": nulls, "min": None, "max": None}
    # NaN, which equals nothing, is the greatest value of a chunk that has it.
    greatest = max((found.max for found in filled), key=lambda value: (value != value, value))
    return {"nulls": nulls, "min": _text(min(found.min for found in filled)), "max": _text(greatest)}


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
