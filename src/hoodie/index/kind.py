"""Index kinds: the names of an index, the properties that it stores, and whether keys are unique in the table.

The module of each index defines its kind; `hoodie.index.registry` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hoodie.config import Option, indexes
from hoodie.engine import EngineFor
from hoodie.index.api import Index, IndexUpdate
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.view.table_view import TableView

BeginUpdate = Callable[[TableView, str, EngineFor, Mapping[str, str]], IndexUpdate]
"""Begins the update of an index by a write: the table when it began, instant, engine, and options of the call."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexKind:
    """One index of this release."""

    name: str
    """Name of the index, as in `index=`."""
    types: tuple[str, ...]
    """Values of `hoodie.index.type`, in upper case; a new table stores the first value."""
    make: Callable[[TableView, Mapping[str, str]], Index]
    """Makes the index that serves a write from the table and the effective options. It also returns an index if the
    table does not have the metadata partition, which another writer may have dropped."""
    is_global: bool = False
    """Whether a key is unique in the table, not just in its partition."""
    stores_type: bool = True
    """Whether a new table stores the type."""
    switches: tuple[Option[bool], ...] = ()
    """Options that a new table stores with the value true."""
    moves_option: Option[bool] | None = None
    """Option that decides whether a record moves when its partition changes; None if records cannot move."""
    stores_moves: bool = False
    """Whether a new table stores `moves_option`."""
    metadata_partition: PartitionKind | None = None
    """The metadata partition that the index needs, with the settings for a new table; None if it needs none."""
    places_rows: bool = False
    """Whether the key alone decides the file group of a row. Then every write tags its rows, a hit does not mean that
    the table has the key, and the index places the inserts."""
    own_options: tuple[Option[Any], ...] = ()
    """Options that a table with this index stores, which no write and no other index may set."""
    own_properties: Callable[[Mapping[str, str], Sequence[str]], Mapping[str, str]] = lambda *_: {}
    """Returns what a new table with these properties and record key columns stores of the index alone: the values of
    `own_options`, and the options that JVM Hudi needs beside them."""
    exists_in: Callable[[TableView], bool] = lambda _view: True
    """Returns whether the table has everything that the index needs."""
    update: BeginUpdate | None = None
    """Begins the update of an index that is outside of the metadata table; None for other indexes."""

    def needs_one_of(self, partitions: Collection[str]) -> bool:
        """Return whether `partitions` contains the metadata partition that the index needs."""
        return self.metadata_partition is not None and self.metadata_partition.name in partitions

    @property
    def names(self) -> frozenset[str]:
        """All names of the index in lower case: the name in `index=` and the values of `hoodie.index.type`."""
        return frozenset({self.name, *(text.lower() for text in self.types)})

    def moves_records(self, properties: Mapping[str, str]) -> bool:
        """Return whether a record moves when its partition changes."""
        return self.moves_option is not None and self.moves_option.get(properties)

    def stored_properties(
        self, properties: Mapping[str, str], *, moves_by_default: bool = True, record_key: Sequence[str] = ()
    ) -> dict[str, str]:
        """Return the index properties that a new table with these properties stores. JVM writers obey them too.

        Raises: InvalidConfigError as `own_properties`.
        """
        found = {indexes.INDEX_TYPE_KEY: self.types[0]} if self.stores_type else {}
        found |= self.own_properties(properties, record_key)
        found |= dict.fromkeys((switch.key for switch in self.switches), "true")
        if self.moves_option is not None and self.stores_moves:
            key = self.moves_option.key
            found[key] = properties.get(key, str(moves_by_default).lower())
        return found
