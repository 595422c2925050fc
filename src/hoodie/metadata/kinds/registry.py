"""The kinds of metadata partitions that this release maintains, by partition name, and what all of them do together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hoodie.config import writes
from hoodie.errors import UnsupportedError
from hoodie.files.base_file import ParquetOptions
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.table.call_options import effective_options
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.kinds.bloom_filters import BloomFiltersKind, written_filters
from hoodie.metadata.kinds.column_stats import ColumnStatsKind, written_columns
from hoodie.metadata.kinds.files import FilesKind
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.kinds.partition_stats import PartitionStatsKind
from hoodie.metadata.kinds.record_index import RecordIndexKind


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRegistry:
    """Kinds by the name of their partition. A new kind needs one module and one line here."""

    required: tuple[PartitionKind, ...]
    """Kinds whose partition every metadata table has."""
    named: tuple[PartitionKind, ...] = ()
    """Other kinds. A kind stands behind its leader."""

    def find(self, partition: str) -> PartitionKind | None:
        """Return the kind of a partition; None if this release does not maintain it."""
        return next((kind for kind in (*self.required, *self.named) if kind.name == partition), None)

    def maintained(self, partitions: Collection[str]) -> dict[str, PartitionKind]:
        """Return the kinds by partition name; partitions that this release does not maintain are skipped."""
        return {name: kind for name in sorted(partitions) if (kind := self.find(name)) is not None}

    def all_of(self, partitions: Collection[str]) -> dict[str, PartitionKind]:
        """Return the kinds of all these partitions by partition name, or raise an error.

        A write must maintain every partition: a partition that it does not maintain would miss the rows of the write.

        Raises: UnsupportedError if this release does not maintain a partition. The message names it and the remedy.
        """
        found = self.maintained(partitions)
        unknown = sorted(set(partitions) - found.keys())
        if unknown:
            raise UnsupportedError(
                f"the metadata table has partitions that this release cannot maintain: {', '.join(unknown)}. "
                "Remove them from hoodie.table.metadata.partitions and drop them first"
            )
        return found

    @property
    def built(self) -> tuple[PartitionKind, ...]:
        """The kinds that `services/indexing/file_builds` builds from the data files, without those that follow them."""
        return tuple(kind for kind in self.named if kind.switch is not None and kind.leader is None)

    def builder(self, name: str) -> PartitionKind | None:
        """Return the kind whose build makes a partition: its own or its leader; None if it is not built from files."""
        kind = self.find(name)
        leader = None if kind is None or kind.leader is None else self.find(kind.leader)
        found = leader or kind
        return found if found in self.built else None

    def followers(self, leader: str) -> tuple[PartitionKind, ...]:
        """Return the kinds that are built and dropped with the partition `leader`."""
        return tuple(kind for kind in self.named if kind.leader == leader)

    def with_followers(self, names: Collection[str]) -> frozenset[str]:
        """Return the names of these partitions and of all that are built and dropped with them."""
        return frozenset({*names, *(kind.name for name in names for kind in self.followers(name))})

    def wanted(self, table: DataTable, properties: Mapping[str, str]) -> tuple[PartitionKind, ...]:
        """Return the partitions that the first commit of a table adds, because options of the call or table ask so."""
        options = effective_options(table.config, properties)
        leaders = [found for kind in self.built if (found := kind.wanted(table, options)) is not None]
        return tuple(
            kind
            for leader in leaders
            for kind in (leader, *self.followers(leader.name))
            if kind.leader is None or (kind.fits(table) and kind.switch is not None and kind.switch.get(options))
        )

    def lost(self, table: DataTable) -> tuple[PartitionKind, ...]:
        """Return the partitions that the table's properties ask for, that it lacks, and that a build makes again."""
        return tuple(kind for kind in self.built if kind.is_lost(table))

    def notes(self, table: DataTable, properties: Mapping[str, str]) -> tuple[str, ...]:
        """Return the notes of a write about partitions that are lost, or that its options ask for in vain."""
        version = table.config.version
        found = []
        for kind in self.built:
            if kind.is_lost(table):
                found.append(kind.lost_note)
            elif kind.is_ignored(table, properties):
                found.append(kind.ignored_note)
            elif kind.switch is not None and kind.switch.get(properties) and not kind.is_written_in(version):
                found.append(
                    f"{kind.switch.key}=true has no effect: this release does not write {kind.subject or kind.name} in "
                    f"tables of version {version.value}"
                )
        return tuple(found)

    def outdated(self, table: DataTable) -> frozenset[str]:
        """Return the partitions that writes do not keep up to date, and must drop; those that follow one go with it."""
        named, version = {*table.config.metadata_partitions}, table.config.version
        found = {
            kind.name
            for kind in self.named
            if kind.name in named and (not kind.is_written_in(version) or kind.is_outdated(table))
        }
        alone = {kind.name for kind in self.named if kind.leader is not None and kind.leader not in named - found}
        return frozenset(found | (alone & named))


KINDS: Final = KindRegistry(
    required=(FilesKind(),), named=(RecordIndexKind(), ColumnStatsKind(), PartitionStatsKind(), BloomFiltersKind())
)
"""The partition kinds of this release."""

Collect = Callable[[DataTable], Mapping[str, Any]]
"""Returns `MetadataChanges.collected` for a commit; call it under the table's lock, with the table loaded under it."""


@contextmanager
def collected(table: DataTable, commit: CommitMetadata) -> Iterator[Collect]:
    """Read what the kinds need for the rows of a commit, before the lock is taken; the result reads the rest under it.

    Raises: MissingFileError, CorruptFileError.
    """
    with ExitStack() as held:
        ahead = {kind.name: kind.collect_ahead(table, commit, held) for kind in KINDS.named}
        yield lambda now: {kind.name: kind.collect(now, commit, ahead[kind.name]) for kind in KINDS.named}


def parquet_options(table: DataTable, options: Mapping[str, str], schema: pa.Schema) -> ParquetOptions:
    """Return how a write or a service with these effective options writes base files with the columns of `schema`.

    `schema` has no meta columns. Bloom filters and the ranges of columns are noted if a partition or an index uses
    them.

    Raises: InvalidConfigError if an option does not parse.
    """
    codec = writes.CODEC.get(options)
    return ParquetOptions(
        codec="none" if codec == "uncompressed" else codec,
        range_columns=written_columns(table, schema, options),
        bloom=written_filters(table, options),
        absent=table.config.path_fields,
        has_meta=table.config.populates_meta_fields,
    )
