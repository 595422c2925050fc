"""What distinguishes one index from another: its names, the properties it stores, whether keys are unique in the table.

The module of each index defines its kind; `hoodie.index.registry` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from hoodie import config as options
from hoodie.config import Option
from hoodie.index.api import Index
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.view.table_view import TableView


def _always(_view: TableView) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexKind:
    """One index that this release has."""

    name: str
    """As in `index=`."""
    types: tuple[str, ...]
    """Values of `hoodie.index.type`, in upper case; a new table stores the first."""
    make: Callable[[TableView, Mapping[str, str]], Index]
    """Make the index that serves a write, of the table and the effective options. It also serves a table without the
    metadata partition, which another writer may have dropped."""
    is_global: bool = False
    """Whether a key is unique in the table, not just in its partition."""
    stores_type: bool = True
    """Whether a new table stores the type."""
    switches: tuple[Option[bool], ...] = ()
    """Options that a new table stores as true."""
    moves_option: Option[bool] | None = None
    """Decides whether a record whose partition changed moves there; None where records cannot move."""
    stores_moves: bool = False
    """Whether a new table stores `moves_option`."""
    metadata_partition: PartitionKind | None = None
    """The metadata partition that the index needs, as a new table gets it."""
    exists_in: Callable[[TableView], bool] = _always
    """Whether the table has all that the index needs."""

    def needs_one_of(self, partitions: Collection[str]) -> bool:
        """Whether the metadata partition that the index needs is among these."""
        return self.metadata_partition is not None and self.metadata_partition.name in partitions

    @property
    def names(self) -> frozenset[str]:
        """All names, ours and those of `hoodie.index.type`, in lower case."""
        return frozenset({self.name, *(text.lower() for text in self.types)})

    def moves_records(self, properties: Mapping[str, str]) -> bool:
        """Whether a record whose partition changed moves there."""
        return self.moves_option is not None and self.moves_option.get(properties)

    def stored_properties(self, properties: Mapping[str, str], *, moves_by_default: bool = True) -> dict[str, str]:
        """The index as properties of a new table with these properties. They bind JVM writers too."""
        found = {options.INDEX_TYPE_KEY: self.types[0]} if self.stores_type else {}
        found |= dict.fromkeys((switch.key for switch in self.switches), "true")
        if self.moves_option is not None and self.stores_moves:
            key = self.moves_option.key
            found[key] = properties.get(key, str(moves_by_default).lower())
        return found
