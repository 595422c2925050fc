"""The use of a table's indexes by one write, from its begin to its commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hoodie.engine import EngineFor
from hoodie.errors import CommitConflictError
from hoodie.files.slices import FileSlice
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.format.table.table_config import TableConfig
from hoodie.index.api import Index, IndexUpdate, Placement, Tagged, TagRequest
from hoodie.index.kind import IndexKind
from hoodie.index.record.entries import EntryStage, StagedEntries, WrittenEntries
from hoodie.index.record.index import RecordIndexUpdate
from hoodie.index.registry import index_kind
from hoodie.index.selection import stored_index
from hoodie.timeline import Instant
from hoodie.view.table_view import TableView


@dataclass(frozen=True)
class IndexWrite(IndexUpdate):
    """The indexes of a table as one write uses them: one finds keys, and all that store locations record them.

    `serving` tags and places the rows (see `Index`); None if the write looks up no keys. The other methods are those of
    `IndexUpdate`, for the record index and for an index outside of the metadata table, if the table has one;
    `external`: the kind of that other index when the write began.
    """

    serving: Index | None
    updates: tuple[IndexUpdate, ...]
    external: IndexKind | None

    @classmethod
    def begin(
        cls,
        serving: Index | None,
        view: TableView,
        instant_time: str,
        engine_for: EngineFor,
        properties: Mapping[str, str],
    ) -> IndexWrite:
        """Begin with the table when the write began; `properties` are the options of the call. Nothing is read yet."""
        updates: list[IndexUpdate] = [RecordIndexUpdate(view, instant_time, engine_for)]
        external = _external(view.config)
        if external is not None and external.update is not None:
            updates.append(external.update(view, instant_time, engine_for, properties))
        return cls(None if serving is None else serving.at(view), tuple(updates), external)

    def tag(self, request: TagRequest) -> Tagged:
        return self._serving.tag(request)

    @property
    def places_rows(self) -> bool:
        """Whether the key alone decides the file group of a row (`IndexKind.places_rows`)."""
        return self.serving is not None and index_kind(self.serving.name).places_rows

    def placement(self, default: Placement) -> Placement:
        return self._serving.placement(default)

    @property
    def _serving(self) -> Index:
        assert self.serving is not None, "the write was begun without an index"
        return self.serving

    @property
    def stats(self) -> Sequence[WriteStat]:
        return [stat for update in self.updates for stat in update.stats]

    @property
    def commit_entries(self) -> Mapping[str, str]:
        return {key: value for update in self.updates for key, value in update.commit_entries.items()}

    @property
    def stages_deletes(self) -> bool:
        return any(update.stages_deletes for update in self.updates)

    def entry_stage(self, folder: str) -> EntryStage | None:
        """Return where the writing tasks stage the locations of keys, for all indexes; None if none records them."""
        stages = [stage for update in self.updates if (stage := update.entry_stage(folder)) is not None]
        return stages[0] if stages else None

    def stage_deletes(self, slices: Iterable[FileSlice], folder: str) -> tuple[StagedEntries, ...]:
        removed = tuple(slices)
        return tuple(entries for update in self.updates for entries in update.stage_deletes(removed, folder))

    def note_locations(self, entries: Sequence[StagedEntries]) -> WrittenEntries:
        """Record the staged locations in every index. Readers see them when the write completes.

        Raises: PartitionPathError for a partition path that file ids of a partitioned index cannot contain.
        """
        written = [update.note_locations(entries) for update in self.updates]
        stats = tuple(stat for part in written for stat in part.stats)
        return WrittenEntries(stats=stats, duplicates=max(part.duplicates for part in written))

    def retract(self, slices: Sequence[FileSlice], folder: str) -> None:
        for update in self.updates:
            update.retract(slices, folder)

    def refresh(self, now: TableView, metadata: CommitMetadata) -> None:
        """See `IndexUpdate`.

        Raises: CommitConflictError too if the table got an external index, or another rule that places rows.
        """
        found = _external(now.config)
        if found is not None and found is not self.external:
            raise CommitConflictError(
                f"{now.store.uri('')} got the index {found.name!r} while this write ran; nothing was committed, try "
                "again"
            )
        if self.serving is not None:
            self.serving.check_placed(now)
        for update in self.updates:
            update.refresh(now, metadata)

    def shares_keys_with(self, now: TableView, other: Instant) -> bool:
        """See `IndexUpdate`: the external index has all keys of both writes, unless it was given up meanwhile."""
        record, *external = self.updates
        if external and _external(now.config) is self.external:
            return any(update.shares_keys_with(now, other) for update in external)
        return record.shares_keys_with(now, other)

    def would_lose_to(self, now: TableView, other: Instant) -> bool:
        return any(update.would_lose_to(now, other) for update in self.updates)

    def was_replaced_or_dropped(self, now: TableView) -> bool:
        return any(update.was_replaced_or_dropped(now) for update in self.updates)

    def discard(self) -> None:
        for update in self.updates:
            update.discard()


def _external(config: TableConfig) -> IndexKind | None:
    """Return the index of the table if it is outside of the metadata table."""
    kind = stored_index(config)
    return kind if kind is not None and kind.update is not None else None
