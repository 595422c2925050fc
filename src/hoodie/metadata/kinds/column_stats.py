"""The kind `column_stats`: the range of each column in each file (docs/format/metadata.md §4.4).

The key of a row contains the file's name, so that a row never changes. It is deleted when its file is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hoodie.config import indexes
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.metadata_table.column_stats import StatsRow, column_stats_key
from hoodie.format.metadata_table.metadata_record import RecordType
from hoodie.format.metadata_table.partition_names import COLUMN_STATS
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.definitions import read_definition
from hoodie.metadata.delta_commit import FileGroupDelta
from hoodie.metadata.kinds.partition_kind import CommitFacts, InitialRows, TableContent
from hoodie.metadata.slice_content import SliceContent, compact_newest
from hoodie.metadata.stats_reader import StatsReader
from hoodie.storage import Store

FILE_ID_PREFIX: Final = "col-stats-"
INDEX_VERSION: Final = "V2"
"""Version of the values in tables of version 9. On disk: do not change."""
_COLUMNS: Final = "sourceFields"


@dataclass(frozen=True, slots=True)
class ColumnStatsKind:
    """The kind `column_stats`; `columns` are those of a new partition, meta columns first."""

    columns: tuple[str, ...] = ()
    name: str = COLUMN_STATS
    file_id_prefix: str = FILE_ID_PREFIX
    logs_before_commit: bool = False

    @property
    def definition(self) -> Mapping[str, Any]:
        """The index definition, as the JVM stores it; readers learn the columns from it."""
        return {
            "indexName": self.name,
            "indexType": self.name,
            "indexFunction": self.name,
            _COLUMNS: list(self.columns),
            "indexOptions": {},
            "version": INDEX_VERSION,
        }

    def file_groups(self, properties: Mapping[str, str]) -> int:
        """Return the number that the properties ask for."""
        return indexes.COLUMN_STATS_FILE_GROUPS.get(properties)

    def initialise(self, content: TableContent, file_ids: Sequence[str]) -> Sequence[InitialRows]:
        """Return no rows: the partition is created with the table. A build adds it to a table that has files."""
        return ()

    def rows_of(self, changes: MetadataChanges, facts: CommitFacts) -> Sequence[FileGroupDelta]:
        """Make a row for each column of each new file, and delete those of deleted files."""
        rows = {
            column_stats_key(found.column, path, name): StatsRow(name=name, range=found)
            for path, files in changes.ranges.items()
            for name, ranges in files.items()
            for found in ranges
        }
        columns = (statistics_columns(facts.store) or ()) if changes.files_deleted else ()
        deleted = {
            column_stats_key(column, path, name)
            for path, names in changes.files_deleted.items()
            for column in columns
            for name in names
            if name not in changes.files_added.get(path, ())
        }
        if not rows and not deleted:
            return ()
        return stats_deltas(
            self.name, RecordType.COLUMN_STATS, StatsReader(facts.store, self, facts.timeline).file_ids, rows, deleted
        )

    def compact(self, content: SliceContent, *, file_name: str) -> tuple[pa.Array, pa.Array]:
        """Merge a file slice into its next base file: the newest row of each key, without deletions."""
        return compact_newest(content)


def statistics_columns(store: Store) -> tuple[str, ...] | None:
    """Return the columns that have statistics; None if the table has no statistics that this release maintains.

    Raises: CorruptFileError if the index definitions do not parse.
    """
    definition = read_definition(store, COLUMN_STATS)
    if definition is None or definition.get("version") != INDEX_VERSION:
        return None
    columns = definition.get(_COLUMNS)
    return tuple(map(str, columns)) if isinstance(columns, list) else None


def stats_deltas(
    partition: str,
    record_type: RecordType,
    file_ids: Sequence[str],
    rows: Mapping[str, StatsRow],
    deleted: Iterable[str] = (),
) -> list[FileGroupDelta]:
    """Distribute rows and deleted keys over the file groups, by the hash of their keys; keys ascend in each group."""
    gone = pa.array(sorted(deleted), pa.string())
    groups_of_gone = file_group_index(gone, len(file_ids)) if len(gone) else np.zeros(0, np.int32)
    found = []
    for number, group in enumerate(grouped_rows(rows, record_type, len(file_ids))):
        mine = gone.filter(pa.array(groups_of_gone == number))
        found.append(FileGroupDelta(partition, file_ids[number], *group, mine))
    return found


def grouped_rows(rows: Mapping[str, StatsRow], record_type: RecordType, count: int) -> list[tuple[pa.Array, pa.Array]]:
    """Return the keys, ascending, and the encoded values of each of `count` file groups."""
    names = sorted(rows)
    keys = pa.array(names, pa.string())
    values = pa.array([rows[name].to_bytes(record_type) for name in names], pa.binary())
    numbers = file_group_index(keys, count) if names else np.zeros(0, np.int32)
    masks = [pa.array(numbers == number) for number in range(count)]
    return [(keys.filter(mask), values.filter(mask)) for mask in masks]
