"""The kind `partition_stats`: the range of each column in each data partition (docs/format/metadata.md §4.5).

A row covers all files that the partition had since the row was made: a commit joins the ranges of its files to the row,
and reads no file for that. Values that updates and compactions removed stay covered until the partition is replaced,
the statistics are built anew, or a JVM writer writes to the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from hoodie.config import indexes
from hoodie.format.metadata_table.column_stats import ColumnRange, StatsRow, partition_stats_key
from hoodie.format.metadata_table.metadata_record import NON_PARTITIONED_KEY, RecordType
from hoodie.format.metadata_table.partition_names import PARTITION_STATS
from hoodie.format.metadata_table.value_types import NULL_TYPE, ValueType, promoted, wider
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.delta_commit import FileGroupDelta
from hoodie.metadata.kinds.column_stats import statistics_columns, stats_deltas
from hoodie.metadata.kinds.partition_kind import CommitFacts, InitialRows, TableContent
from hoodie.metadata.slice_content import SliceContent, compact_newest
from hoodie.metadata.stats_reader import StatsReader

FILE_ID_PREFIX: Final = "partition-stats-"


@dataclass(frozen=True, slots=True)
class PartitionStatsKind:
    """The kind `partition_stats`; its columns and its version are those of `column_stats`."""

    name: str = PARTITION_STATS
    file_id_prefix: str = FILE_ID_PREFIX
    logs_before_commit: bool = False
    definition: None = None

    def file_groups(self, properties: Mapping[str, str]) -> int:
        """Return the number that the properties ask for."""
        return indexes.PARTITION_STATS_FILE_GROUPS.get(properties)

    def initialise(self, content: TableContent, file_ids: Sequence[str]) -> Sequence[InitialRows]:
        """Return no rows: the partition is created with the table. A build adds it to a table that has files."""
        return ()

    def rows_of(self, changes: MetadataChanges, facts: CommitFacts) -> Sequence[FileGroupDelta]:
        """Make a row for each column of each partition with new files; delete those of dropped partitions."""
        rows = {
            partition_stats_key(found.column, path): partition_row(path, found)
            for path, files in changes.ranges.items()
            for found in folded(files.values())
        }
        emptied = {path for path in changes.replaced_partitions if not changes.ranges.get(path)}
        gone = (*changes.partitions_dropped, *emptied)
        columns = (statistics_columns(facts.store) or ()) if gone else ()
        deleted = {partition_stats_key(column, path) for path in gone for column in columns} - rows.keys()
        if not rows and not deleted:
            return ()
        reader = StatsReader(facts.store, self, facts.timeline)
        replaced = {*changes.replaced_partitions, *changes.partitions_dropped}
        kept = {key for key, row in rows.items() if row.name not in {_named(path) for path in replaced}}
        for key, older in reader.rows_at(kept).items():
            rows[key] = _joined(older, rows[key])
        return stats_deltas(self.name, RecordType.PARTITION_STATS, reader.file_ids, rows, deleted)

    def compact(self, content: SliceContent, *, file_name: str) -> tuple[pa.Array, pa.Array]:
        """Merge a file slice into its next base file: the newest row of each key, without deletions."""
        return compact_newest(content)


def partition_row(partition_path: str, found: ColumnRange) -> StatsRow:
    """Return the row of a column of a partition; it replaces the older row."""
    return StatsRow(name=_named(partition_path), range=found, is_tight=True)


def folded(files: Iterable[Iterable[ColumnRange]]) -> list[ColumnRange]:
    """Return the range of each column in all these files together."""
    totals: dict[str, ColumnRange] = {}
    for ranges in files:
        for found in ranges:
            older = totals.get(found.column)
            totals[found.column] = found if older is None else joined(older, found)
    return list(totals.values())


def joined(older: ColumnRange, newer: ColumnRange) -> ColumnRange:
    """Return the range of both, with the wider type; the bounds of the other one are converted to it.

    Files of one partition can have both types in any order, as the ones that a change of the column left as they were.
    """
    if older.type is None or newer.type is None or newer.type == NULL_TYPE:
        return older.joined(newer)
    wide = wider(older.type, newer.type)
    return _promoted(older, wide).joined(_promoted(newer, wide))


def _promoted(found: ColumnRange, wanted: ValueType) -> ColumnRange:
    assert found.type is not None
    low, high = promoted(found.low, found.high, found.type, wanted)
    return replace(found, type=wanted, low=low, high=high)


def _joined(older: StatsRow, newer: StatsRow) -> StatsRow:
    return replace(newer, range=joined(older.range, newer.range))


def _named(partition_path: str) -> str:
    """Return the name of a partition in its rows."""
    return partition_path or NON_PARTITIONED_KEY
