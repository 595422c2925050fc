"""The use of a table's indexes by one write, from its begin to its commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hoodie.engine import EngineFor
from hoodie.files.slices import FileSlice
from hoodie.index.api import Index, Tagged, Tagger, TagRequest
from hoodie.index.placement import Placement
from hoodie.index.record.entries import EntryStage, StagedEntries, WrittenEntries
from hoodie.index.table_facts import TableFacts
from hoodie.index.updates import IndexUpdates
from hoodie.view.table_view import TableView


@dataclass(frozen=True)
class IndexSession:
    """The calls of one write to the indexes of its table.

    One index serves the write: it tags and places the rows. The locations of all written rows are recorded in every
    index of the table that stores locations, even if another index serves the write.
    """

    index: Index
    facts: TableFacts
    update: IndexUpdates

    @classmethod
    def begin(
        cls,
        index: Index,
        view: TableView,
        instant_time: str,
        engine_for: EngineFor,
        properties: Mapping[str, str],
    ) -> IndexSession:
        """Begin with the table when the write began; `index` serves the write, `engine_for` does the work.

        `properties` are the options of the call.

        Reads nothing: each fact of an index is read at its first use.
        """
        facts = TableFacts(view)
        return cls(index, facts, IndexUpdates.begin(facts, instant_time, engine_for, properties))

    @cached_property
    def _tagger(self) -> Tagger:
        return self.index.begin(self.facts)

    def tag(self, request: TagRequest) -> Tagged:
        """See `Tagger.tag`."""
        return self._tagger.tag(request)

    def placement(self, default: Placement) -> Placement:
        """See `Tagger.placement`."""
        return self._tagger.placement(default)

    def entry_stage(self, folder: str) -> EntryStage | None:
        """Return where the writing tasks stage the locations of keys; None if no index records them."""
        return self.update.entry_stage(folder)

    def stage_deletes(self, slices: Iterable[FileSlice], folder: str) -> tuple[StagedEntries, ...]:
        """Stage the deletion of every key in file groups that the write removes from the table."""
        return self.update.stage_deletes(slices, folder)

    def note_locations(self, entries: Sequence[StagedEntries]) -> WrittenEntries:
        """Record the staged locations. Readers see them when the write completes.

        Raises: PartitionPathError for a partition path that file ids of a partitioned index cannot contain.
        """
        return self.update.note_locations(entries)
