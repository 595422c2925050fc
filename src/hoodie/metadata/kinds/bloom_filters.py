"""The kind `bloom_filters`: the bloom filter of each base file (docs/format/metadata.md §4.6, docs/indexes/bloom.md).

The key of a row contains the file's name, so that a row never changes. It is deleted when its file is deleted. Rows are
large, 431 KB by default, so that no step holds the rows of all files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from hoodie.config import indexes
from hoodie.engine import LocalEngine
from hoodie.engine.packing import measured_chunks
from hoodie.files.filter_stash import FilterStash, Place, ReadFilter
from hoodie.files.slices import BaseFile, written_file
from hoodie.format.filenames import BaseFileName, name_of
from hoodie.format.hashes.bloom import BloomFilterType, FilterOptions
from hoodie.format.hashes.java_hash import file_group_masks
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.format.metadata_table.filter_row import FILTER_FIELD, FilterRow, bloom_filter_key
from hoodie.format.metadata_table.partition_names import BLOOM_FILTERS
from hoodie.format.table.call_options import effective_options
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.delta_commit import FileGroupDelta, write_base
from hoodie.metadata.kinds.partition_kind import Comparison, Difference, PartitionKind
from hoodie.metadata.paths import file_id_of, partition_folder
from hoodie.metadata.row_readers import FilterReader
from hoodie.timeline import Timeline

_LOG_BYTES: Final = 16 * 1024 * 1024
"""Bytes of rows in one log file of a commit; a larger row has a file of its own."""
_GROUP_BYTES = 64 * 1024 * 1024
"""Bytes of rows in a file group that a build writes; the build and later compactions hold them up to four times."""
_BLOOM_INDEXES: Final = frozenset({"bloom", "global_bloom"})
"""Values of `hoodie.index.type`, in lower case, whose look-ups read bloom filters."""
_CHECKED_TOGETHER = 64
"""Filters that a check holds in memory twice: about 55 MB."""
_MISSING = "missing filter"
_WRONG = "filter that differs from the file's"


@dataclass(frozen=True, slots=True)
class BloomFiltersKind(PartitionKind):
    """The kind `bloom_filters`. It has no index definition."""

    name = BLOOM_FILTERS
    file_id_prefix = "bloom-filters-"
    groups_option = indexes.BLOOM_FILTERS_FILE_GROUPS
    content_field = FILTER_FIELD
    subject = "bloom filters"
    switch = indexes.BLOOM_FILTERS_ENABLE
    lost_note = (
        "the metadata partition bloom_filters is missing, so look-ups read the filters of the data files: another "
        "writer, or a rollback or a restore that died, dropped it; build it with "
        't.index.build("bloom_filters"), or give it up with t.index.drop("bloom_filters")'
    )
    ignored_note = (
        f"{indexes.BLOOM_FILTERS_ENABLE.key}=true adds bloom filters to the metadata of a table without rows only, and "
        'this table has rows: build them with t.index.build("bloom_filters")'
    )

    def collect_ahead(self, table: DataTable, commit: CommitMetadata, held: ExitStack) -> FilterStash:
        """Read the filters of the commit's base files, if the table has the partition. Each footer is read once.

        Memory: as `FilterStash`. Raises: MissingFileError, CorruptFileError.
        """
        return self.collect(table, commit, held.enter_context(FilterStash(table.store)))

    def collect(self, table: DataTable, commit: CommitMetadata, ahead: FilterStash) -> FilterStash:
        """Read the filters that are not read yet: under the lock only those of a table that has just got the partition.

        Raises: MissingFileError, CorruptFileError.
        """
        if self.name not in table.named_partitions:
            ahead.keep(())
            return ahead
        files = map(written_file, commit.write_stats())
        ahead.add([file for file in files if isinstance(file, BaseFile)])
        return ahead

    def rows_of(self, changes: MetadataChanges, table: DataTable, visible: Timeline) -> Iterable[FileGroupDelta]:
        """Make a row for each new base file, and delete those of deleted base files. Memory: one log file's rows."""
        filters: FilterStash | None = changes.collected.get(self.name)
        deleted = [
            bloom_filter_key(path, name)
            for path, names in changes.files_deleted.items()
            for name in names
            if BaseFileName.parse(name) is not None and name not in changes.files_added.get(path, ())
        ]
        if not deleted and (filters is None or not filters.places):
            return ()
        file_ids = FilterReader.open(table.store, self, visible, version=table.config.version).file_ids
        return self._deltas(filters, deleted, file_ids)

    def build(self, followers: Sequence[PartitionKind], held: ExitStack, table: DataTable) -> _FiltersBuild:
        """Read the footers of the base files of the newest slices.

        Files that were written under another index keep the filter that they have. Memory of the driver: about 300 MiB,
        also for many files: filters are staged in files of the table's temporary folder.
        """
        return _FiltersBuild(held.enter_context(FilterStash(table.store)))

    def compare(self, followers: Sequence[PartitionKind], table: DataTable, visible: Timeline) -> Comparison:
        """Compare the filters of the base files of the newest slices with their footers. Memory: a few hundred filters.

        The differences are: a file without a filter; a filter with other bytes.
        """
        files = _base_files(table)
        reader = FilterReader.open(table.store, self, visible, version=table.config.version)
        differences: list[Difference] = []
        for start in range(0, len(files), _CHECKED_TOGETHER):
            differences += _differences(table, reader, files[start : start + _CHECKED_TOGETHER])
        return Comparison(checked={"files": len(files)}, kinds=(_MISSING, _WRONG), differences=differences)

    def _deltas(
        self, filters: FilterStash | None, deleted: Sequence[str], file_ids: Sequence[str]
    ) -> Iterator[FileGroupDelta]:
        gone, nothing = pa.array(sorted(deleted), pa.string()), pa.array([], pa.string())
        places = places_by_group(() if filters is None else filters.places, len(file_ids))
        for file_id, mine, mask in zip(file_ids, places, file_group_masks(gone, len(file_ids)), strict=True):
            yield FileGroupDelta(self.name, file_id, nothing, pa.array([], pa.binary()), gone.filter(mask))
            if filters is not None:
                for part in measured_chunks(mine, _LOG_BYTES, filters.size_bytes):
                    keys = pa.array([bloom_filter_key(*place) for place in part], pa.string())
                    yield FileGroupDelta(self.name, file_id, keys, filters.read(part), nothing)


def places_by_group(places: Collection[Place], count: int) -> list[list[Place]]:
    """Return the files of each of `count` file groups, in the order of their keys."""
    by_key = {bloom_filter_key(*place): place for place in places}
    keys = pa.array(sorted(by_key), pa.string())
    return [[by_key[key] for key in keys.filter(mask).to_pylist()] for mask in file_group_masks(keys, count)]


def written_filters(table: DataTable, options: Mapping[str, str]) -> FilterOptions | None:
    """Return the options of the filters of base files; None if no index of the table, or of this call, reads them.

    Raises: InvalidConfigError if an option does not parse.
    """
    is_read = (
        indexes.INDEX_TYPE.get(options, table.config.raw) in _BLOOM_INDEXES or BLOOM_FILTERS in table.named_partitions
    )
    if not is_read and BloomFiltersKind().wanted(table, effective_options(table.config, options)) is None:
        return None
    return filter_options(options)


def filter_options(options: Mapping[str, str]) -> FilterOptions:
    """Return the options of bloom filters. Raises: InvalidConfigError if an option does not parse."""
    return FilterOptions(
        filter_type=BloomFilterType(indexes.BLOOM_FILTER_TYPE.get(options).upper()),
        entries=indexes.BLOOM_ENTRIES.get(options),
        false_positive_rate=indexes.BLOOM_RATE.get(options),
        entries_max=indexes.BLOOM_ENTRIES_MAX.get(options),
    )


@dataclass(slots=True)
class _FiltersBuild:
    """The filters of the base files of the newest slices. Memory: as `FilterStash`, and four times 64 MiB."""

    filters: FilterStash
    files_read: int = 0
    _groups: int = 0
    _written: dict[int, tuple[list[Place], WriteStat]] = field(default_factory=dict)
    """What the file of each file group has, by number."""

    @property
    def counts(self) -> Mapping[str, int]:
        """The files with filters, and the files that were read for them."""
        return {"files": len(self.filters.places), "files_read": self.files_read}

    def catch_up(self, table: DataTable) -> int:
        """Read the files that are new since the last call, and forget those that left; return how many were read."""
        files = {(file.partition_path, file.name): file for file in _base_files(table)}
        self.filters.keep(files)
        count = self.filters.add(files.values())
        self.files_read += count
        return count

    def prepare(self, table: DataTable, built_at: str) -> None:
        """Write the files before the lock is taken; `write` then writes only those whose content has changed since."""
        self.write(table, BloomFiltersKind(), built_at=built_at)

    def write(self, table: DataTable, kind: PartitionKind, *, built_at: str) -> list[WriteStat]:
        """Write one base file for each file group; many files need more of them than the properties ask for."""
        asked = kind.file_groups(table.config.raw)
        self._groups = self._groups or max(asked, -(-self.filters.total_bytes // _GROUP_BYTES))
        folder = partition_folder(kind.name)
        for number, places in enumerate(places_by_group(self.filters.places, self._groups)):
            before, stat = self._written.get(number, (None, None))
            if before == places and stat is not None and table.store.head(f"{folder}/{name_of(stat.path or '')}"):
                continue
            keys = pa.array([bloom_filter_key(*place) for place in places], pa.string())
            values = self.filters.read(places)
            file_id = file_id_of(kind.file_id_prefix, number)
            self._written[number] = (
                places,
                write_base(table.store, kind.name, file_id, keys, values, built_at),
            )
        return [stat for _, stat in self._written.values()]


def _base_files(table: DataTable) -> list[BaseFile]:
    return [found.base_file for found in table.slices(None) if found.base_file is not None]


def _differences(table: DataTable, reader: FilterReader, files: list[BaseFile]) -> Iterator[Difference]:
    stored = reader.rows_at(table.store, [(file.partition_path, file.name) for file in files])
    expected = LocalEngine().run(ReadFilter(table.store.spec), files)
    for file, wanted in zip(files, expected, strict=True):
        found = stored.get((file.partition_path, file.name))
        if found is None:
            yield Difference(kind=_MISSING, key=file.path, expected=_text(wanted))
        elif found.text != wanted.text:
            yield Difference(kind=_WRONG, key=file.path, expected=_text(wanted), found=_text(found))


def _text(row: FilterRow) -> str:
    return f"{row.type_code} of {len(row.text)} characters"
