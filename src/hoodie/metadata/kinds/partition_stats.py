"""The kind `partition_stats`: the range of each column in each data partition (docs/format/metadata.md §4.5).

A row covers all files that the partition had since the row was made: a commit joins the ranges of its files to the row,
and reads no file for that. While an earlier instant is pending, readers join them instead. Values that updates and
compactions removed stay covered until the partition is replaced, the statistics are built anew, or a JVM writer writes
to the partition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from hoodie.config import indexes
from hoodie.errors import CorruptFileError, InstantNotFoundError
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation
from hoodie.format.instants.service_metadata import RollbackMetadata
from hoodie.format.metadata_table.column_stats import ColumnRange, StatsRow, partition_stats_key
from hoodie.format.metadata_table.metadata_record import NON_PARTITIONED_KEY, RecordType
from hoodie.format.metadata_table.partition_names import COLUMN_STATS, PARTITION_STATS
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.delta_commit import FileGroupDelta
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import fills_a_partition
from hoodie.metadata.kinds.column_stats import statistics_columns
from hoodie.metadata.kinds.statistics import Ranges, StatisticsKind, joined, stats_deltas
from hoodie.metadata.row_readers import StatsReader, with_joined_rows
from hoodie.metadata.slice_content import SliceContent
from hoodie.timeline import Action, Instant, Timeline, layout_of, read_instant

_REPLACING: Final = frozenset(
    operation.value
    for operation in (
        WriteOperation.INSERT_OVERWRITE,
        WriteOperation.INSERT_OVERWRITE_TABLE,
        WriteOperation.DELETE_PARTITION,
    )
)


@dataclass(frozen=True, slots=True)
class PartitionStatsKind(StatisticsKind):
    """The kind `partition_stats`; its columns and its version are those of `column_stats`, which it follows."""

    name = PARTITION_STATS
    file_id_prefix = "partition-stats-"
    groups_option = indexes.PARTITION_STATS_FILE_GROUPS
    switch = indexes.PARTITION_STATS_ENABLE
    leader = COLUMN_STATS
    record_type = RecordType.PARTITION_STATS
    repeats_rows = False
    too_narrow = "range of a partition that does not cover its files"

    def fits(self, table: DataTable) -> bool:
        """Return whether the table has partitions, and a version with this kind."""
        return bool(table.config.partition_fields) and self.is_written_in(table.config.version)

    def is_written_in(self, version: TableVersion) -> bool:
        """Return whether the version has the kind, which came with Hudi 1.0."""
        return version.has_index_definitions

    def is_outdated(self, table: DataTable) -> bool:
        """Return whether a rollback brought rows back that the ranges do not cover (`lacks_restored_rows`)."""
        if not _rollbacks(table.timeline):
            return False
        return lacks_restored_rows(table, MetadataFolder(table.store, table.config).timeline())

    def collect(self, table: DataTable, commit: CommitMetadata, ahead: Any) -> frozenset[str]:
        """Return the partitions whose file groups are all replaced by the commit."""
        replaced = commit.partition_to_replace_file_ids or {}
        if commit.operation_type not in _REPLACING or self.name not in table.config.metadata_partitions:
            return frozenset()
        left = {
            found.partition_path
            for found in table.slices(tuple(replaced))
            if found.file_id not in replaced[found.partition_path]
        }
        return frozenset(replaced) - left

    def rows_of(self, changes: MetadataChanges, table: DataTable, visible: Timeline) -> Sequence[FileGroupDelta]:
        """Make a row for each column of each partition with new files; delete those of dropped partitions.

        While an earlier write is pending, rows neither replace nor delete older ones: readers join them. The rows of
        that write will be older in the order of the log files, and would be lost.
        """
        ranges: Ranges = changes.collected.get(COLUMN_STATS) or {}
        replaced_whole: Collection[str] = changes.collected.get(self.name) or ()
        rows = self.rows_of_ranges(ranges)
        is_loose = changes.is_overlapped
        if is_loose:
            changes, replaced_whole = replace(changes, partitions_dropped=()), ()
        emptied = {path for path in replaced_whole if not ranges.get(path)}
        gone = (*changes.partitions_dropped, *emptied)
        columns = (statistics_columns(table.store, table.config.version) or ()) if gone else ()
        deleted = {partition_stats_key(column, path) for path in gone for column in columns} - rows.keys()
        if not rows and not deleted:
            return ()
        reader = StatsReader(table.store, self, visible, version=table.config.version)
        replaced = {*replaced_whole, *changes.partitions_dropped}
        kept = {key for key, row in rows.items() if row.name not in {_named(path) for path in replaced}}
        stored = reader.rows_at(kept)
        for key in kept:
            rows[key] = _following(stored.get(key), rows[key], is_loose=is_loose)
        return stats_deltas(self, reader.file_ids, rows, deleted, version=table.config.version)

    def compact(self, content: SliceContent, *, file_name: str) -> tuple[pa.Array, pa.Array]:
        """Merge a file slice as readers do: rows that are not tight are joined with the older ones of their keys."""
        keys, values = StatisticsKind.compact(self, content, file_name=file_name)
        return keys, with_joined_rows(content, keys, values, self.record_type)

    def rows_of_ranges(self, ranges: Ranges) -> dict[str, StatsRow]:
        """Return a row for each column of each partition, by key."""
        return {
            partition_stats_key(found.column, path): StatsRow(name=_named(path), range=found, is_tight=True)
            for path, files in ranges.items()
            for found in _folded(files.values())
        }

    def name_in_findings(self, row: StatsRow) -> str:
        """Return the name of what a row describes."""
        return f"partition {row.name}"


def lacks_restored_rows(table: DataTable, metadata_timeline: Timeline) -> bool:
    """Return whether the partition was filled after a commit that was rolled back later: its rows may be too narrow.

    They were made from the files after that commit, and the rollback brought older files back. This library builds the
    metadata table anew for such a rollback. The JVM does not; it also fills the partition in the call that rolls back,
    and its own reads then lose rows. A commit that never completed brings nothing back: it is not in the metadata
    table, whose timeline then has no rollback of it.

    Reads the rollbacks that came next after the partition was filled: a rollback behind a later write takes back no
    completed commit that is older. An unreadable rollback, or one archived meanwhile, counts.
    """
    fillings = [found for found in metadata_timeline.completed() if fills_a_partition(found.requested_time)]
    filled = [found.completion_time or "" for found in fillings]
    written = [found.requested_time for found in table.timeline.writes().completed()]
    for rollback in _rollbacks(table.timeline):
        later = [time for time in filled if time < (rollback.completion_time or "")]
        if not later:
            continue
        if any(max(later) < found < rollback.requested_time for found in written):
            continue
        is_in_metadata = metadata_timeline.get(rollback.requested_time, Action.ROLLBACK) is not None
        try:
            content = read_instant(table.store, layout_of(table.config), rollback)
            undone = RollbackMetadata.parse(content, path=str(rollback)).commits_rollback
        except (InstantNotFoundError, CorruptFileError):
            return True
        # A metadata table that was made after the commit does not have it, whether or not the commit completed.
        if any(commit < (max(later) if is_in_metadata else min(filled)) for commit in undone):
            return True
    return False


def _rollbacks(timeline: Timeline) -> list[Instant]:
    return [found for found in timeline.completed() if found.action is Action.ROLLBACK]


def _folded(files: Iterable[Iterable[ColumnRange]]) -> list[ColumnRange]:
    """Return the range of each column in all these files together."""
    totals: dict[str, ColumnRange] = {}
    for ranges in files:
        for found in ranges:
            older = totals.get(found.column)
            totals[found.column] = found if older is None else joined(older, found)
    return list(totals.values())


def _following(older: StatsRow | None, newer: StatsRow, *, is_loose: bool) -> StatsRow:
    """Return the row to write after an older one; a loose one is joined with it by readers.

    The JVM fails to join bounds of two types: then the row includes the older one.
    """
    if older is None:
        return replace(newer, is_tight=not is_loose)
    is_joinable = None in (older.range.low, newer.range.low) or older.range.type == newer.range.type
    if is_loose and is_joinable:
        return replace(newer, is_tight=False)
    return replace(newer, range=joined(older.range, newer.range))


def _named(partition_path: str) -> str:
    """Return the name of a partition in its rows."""
    return partition_path or NON_PARTITIONED_KEY
