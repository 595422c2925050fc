"""The kinds of metadata partitions that this release maintains, by partition name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from hoodie.errors import UnsupportedError
from hoodie.metadata.kinds.bloom_filters import BloomFiltersKind
from hoodie.metadata.kinds.column_stats import ColumnStatsKind
from hoodie.metadata.kinds.files import FilesKind
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.kinds.partition_stats import PartitionStatsKind
from hoodie.metadata.kinds.record_index import RecordIndexKind


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRegistry:
    """Kinds by the exact name of their only partition, or by the name prefix of their partitions.

    A new kind needs one module and one line here.
    """

    required: tuple[PartitionKind, ...]
    """Kinds whose partition every metadata table has. They are found by name too."""
    named: tuple[PartitionKind, ...] = ()
    """Other kinds with at most one partition in a table."""
    prefixed: Mapping[str, Callable[[str], PartitionKind]] = field(default_factory=dict, hash=False)
    """Name prefix -> function that returns the kind of a partition, given its whole name."""

    def find(self, partition: str) -> PartitionKind | None:
        """Return the kind of a partition; None if this release does not maintain it. The longest prefix counts."""
        for kind in (*self.required, *self.named):
            if kind.name == partition:
                return kind
        prefixes = [prefix for prefix in self.prefixed if partition.startswith(prefix) and partition != prefix]
        return self.prefixed[max(prefixes, key=len)](partition) if prefixes else None

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


KINDS: Final = KindRegistry(
    required=(FilesKind(),), named=(RecordIndexKind(), ColumnStatsKind(), PartitionStatsKind(), BloomFiltersKind())
)
"""The partition kinds of this release."""
