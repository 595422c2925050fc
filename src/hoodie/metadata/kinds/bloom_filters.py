"""The kind `bloom_filters`: the bloom filter of each base file (docs/format/metadata.md §4.6).

The key of a row contains the file's name, so that a row never changes. It is deleted when its file is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie import config as options
from hoodie.format.filenames import BaseFileName
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.metadata_table.filter_row import FilterRow
from hoodie.format.metadata_table.partition_names import BLOOM_FILTERS
from hoodie.format.metadata_table.stats_keys import bloom_filter_key
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.delta_commit import FileGroupDelta
from hoodie.metadata.filter_reader import FilterReader
from hoodie.metadata.kinds.newest_rows import compact_newest
from hoodie.metadata.kinds.partition_kind import CommitFacts, InitialRows, TableContent
from hoodie.metadata.slice_content import SliceContent

FILE_ID_PREFIX: Final = "bloom-filters-"


@dataclass(frozen=True, slots=True)
class BloomFiltersKind:
    """The kind `bloom_filters`. It has no index definition."""

    name: str = BLOOM_FILTERS
    file_id_prefix: str = FILE_ID_PREFIX
    logs_before_commit: bool = False
    definition: None = None

    def file_groups(self, properties: Mapping[str, str]) -> int:
        """Return the number that the properties ask for."""
        return options.BLOOM_FILTERS_FILE_GROUPS.get(properties)

    def initialise(self, content: TableContent, file_ids: Sequence[str]) -> Sequence[InitialRows]:
        """Return no rows: the partition is created with the table. A build adds it to a table that has files."""
        return ()

    def rows_of(self, changes: MetadataChanges, facts: CommitFacts) -> Sequence[FileGroupDelta]:
        """Make a row for each new base file, and delete those of deleted base files."""
        rows = {
            bloom_filter_key(path, name): row for path, files in changes.filters.items() for name, row in files.items()
        }
        deleted = [
            bloom_filter_key(path, name)
            for path, names in changes.files_deleted.items()
            for name in names
            if BaseFileName.parse(name) is not None and name not in changes.files_added.get(path, ())
        ]
        if not rows and not deleted:
            return ()
        file_ids = FilterReader.open(facts.store, self, facts.timeline).file_ids
        gone = pa.array(sorted(deleted), pa.string())
        groups_of_gone = file_group_index(gone, len(file_ids)) if len(gone) else np.zeros(0, np.int32)
        return [
            FileGroupDelta(self.name, file_ids[number], *group, gone.filter(pa.array(groups_of_gone == number)))
            for number, group in enumerate(grouped_filters(rows, len(file_ids)))
        ]

    def compact(self, content: SliceContent, *, file_name: str) -> tuple[pa.Array, pa.Array]:
        """Merge a file slice into its next base file: the newest row of each key, without deletions."""
        return compact_newest(content)


def grouped_filters(rows: Mapping[str, FilterRow], count: int) -> Iterable[tuple[pa.Array, pa.Array]]:
    """Yield the keys, ascending, and the encoded values of each of `count` file groups. Memory: one file group."""
    names = sorted(rows)
    keys = pa.array(names, pa.string())
    numbers = file_group_index(keys, count) if names else np.zeros(0, np.int32)
    for number in range(count):
        mine = keys.filter(pa.array(numbers == number))
        yield mine, pa.array([rows[name].to_bytes() for name in mine.to_pylist()], pa.binary())
