"""The kind `bloom_filters`: the bloom filter of each base file (docs/format/metadata.md §4.6).

The key of a row contains the file's name, so that a row never changes. It is deleted when its file is deleted. Rows are
large, 431 KB by default, so that no step holds the rows of all files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.config import indexes
from hoodie.files.filter_stash import FilterStash, Place
from hoodie.format.filenames import BaseFileName
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.metadata_table.filter_row import bloom_filter_key
from hoodie.format.metadata_table.partition_names import BLOOM_FILTERS
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.delta_commit import FileGroupDelta
from hoodie.metadata.filter_reader import FilterReader
from hoodie.metadata.kinds.partition_kind import CommitFacts, InitialRows, TableContent
from hoodie.metadata.slice_content import SliceContent, compact_newest

FILE_ID_PREFIX: Final = "bloom-filters-"
_LOG_BYTES: Final = 16 * 1024 * 1024
"""Bytes of rows in one log file of a commit."""


@dataclass(frozen=True, slots=True)
class BloomFiltersKind:
    """The kind `bloom_filters`. It has no index definition."""

    name: str = BLOOM_FILTERS
    file_id_prefix: str = FILE_ID_PREFIX
    logs_before_commit: bool = False
    definition: None = None

    def file_groups(self, properties: Mapping[str, str]) -> int:
        """Return the number that the properties ask for."""
        return indexes.BLOOM_FILTERS_FILE_GROUPS.get(properties)

    def initialise(self, content: TableContent, file_ids: Sequence[str]) -> Sequence[InitialRows]:
        """Return no rows: the partition is created with the table. A build adds it to a table that has files."""
        return ()

    def rows_of(self, changes: MetadataChanges, facts: CommitFacts) -> Iterable[FileGroupDelta]:
        """Make a row for each new base file, and delete those of deleted base files. Memory: one log file's rows."""
        places = () if changes.filters is None else changes.filters.places
        deleted = [
            bloom_filter_key(path, name)
            for path, names in changes.files_deleted.items()
            for name in names
            if BaseFileName.parse(name) is not None and name not in changes.files_added.get(path, ())
        ]
        if not places and not deleted:
            return ()
        file_ids = FilterReader.open(facts.store, self, facts.timeline).file_ids
        return self._deltas(changes.filters, deleted, file_ids)

    def compact(self, content: SliceContent, *, file_name: str) -> tuple[pa.Array, pa.Array]:
        """Merge a file slice into its next base file: the newest row of each key, without deletions."""
        return compact_newest(content)

    def _deltas(
        self, filters: FilterStash | None, deleted: Sequence[str], file_ids: Sequence[str]
    ) -> Iterator[FileGroupDelta]:
        gone = pa.array(sorted(deleted), pa.string())
        groups_of_gone = file_group_index(gone, len(file_ids)) if len(gone) else np.zeros(0, np.int32)
        nothing = pa.array([], pa.string())
        places = places_by_group(() if filters is None else filters.places, len(file_ids))
        for number, file_id in enumerate(file_ids):
            mine = gone.filter(pa.array(groups_of_gone == number))
            yield FileGroupDelta(self.name, file_id, nothing, pa.array([], pa.binary()), mine)
            if filters is None:
                continue
            for part in _parts(places[number], filters):
                keys = pa.array([bloom_filter_key(*place) for place in part], pa.string())
                yield FileGroupDelta(self.name, file_id, keys, filters.read(part), nothing)


def places_by_group(places: Collection[Place], count: int) -> list[list[Place]]:
    """Return the files of each of `count` file groups, in the order of their keys."""
    by_key = {bloom_filter_key(*place): place for place in places}
    names = sorted(by_key)
    found: list[list[Place]] = [[] for _ in range(count)]
    if names:
        for name, number in zip(names, file_group_index(pa.array(names, pa.string()), count).tolist(), strict=True):
            found[number].append(by_key[name])
    return found


def _parts(places: Sequence[Place], filters: FilterStash) -> Iterator[list[Place]]:
    """Divide files into parts whose rows have at most `_LOG_BYTES` together; a larger row is a part of its own."""
    part: list[Place] = []
    part_bytes = 0
    for place in places:
        size_bytes = filters.size_bytes(place)
        if part and part_bytes + size_bytes > _LOG_BYTES:
            yield part
            part, part_bytes = [], 0
        part.append(place)
        part_bytes += size_bytes
    if part:
        yield part
