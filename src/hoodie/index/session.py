"""The indexes of a table at work for one write: what they know when it begins, and what they learn of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from hoodie.files.slices import FileSlice
from hoodie.index.api import Index, Tagged, Tagger, TagRequest
from hoodie.index.placement import Placement
from hoodie.index.record.entries import EntryStage, StagedEntries, WrittenEntries
from hoodie.index.record.update import RecordIndexUpdate
from hoodie.index.table_facts import TableFacts
from hoodie.metadata.services.context import EngineFor
from hoodie.view.table_view import TableView


@dataclass(frozen=True)
class IndexSession:
    """All that a write asks of the indexes of its table, and tells them.

    One index serves the write: it tags and places the rows. The record index learns the locations of all rows that are
    written, if the table maintains one, even if another index serves the write.
    """

    index: Index
    facts: TableFacts
    update: RecordIndexUpdate

    @classmethod
    def begin(cls, index: Index, view: TableView, instant_time: str, engine_for: EngineFor) -> IndexSession:
        """Begin with the table as the write found it; `index` serves the write, `engine_for` does the work.

        Reads nothing: what is needed of the indexes is read when it is first asked for.
        """
        facts = TableFacts(view)
        return cls(index, facts, RecordIndexUpdate(facts, instant_time, engine_for))

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
        """Where the writing tasks stage the locations of keys; None if no index records them."""
        return self.update.entry_stage(folder)

    def stage_deletes(self, slices: Iterable[FileSlice], folder: str) -> tuple[StagedEntries, ...]:
        """Stage the deletion of every key in file groups that the write takes out of the table."""
        return self.update.stage_deletes(slices, folder)

    def note_locations(self, entries: Sequence[StagedEntries]) -> WrittenEntries:
        """Record the staged locations, which count when the write completes.

        Raises: PartitionPathError for a data partition that a partitioned index cannot name.
        """
        return self.update.note_locations(entries)
