"""The update of the record index by one write, from its begin to its commit.

The writing tasks stage one entry for each key that they add to a file group or remove from one. Log files with the
entries are written before the write acquires the table's lock. Readers see them when the commit completes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hoodie.engine import EngineFor
from hoodie.errors import CommitConflictError
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged_keys import KeyGroups
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.index.record.conflicts import IndexedWrite
from hoodie.index.record.differences import FileGroupChange, stage_changes
from hoodie.index.record.entries import (
    ENTRY_BYTES,
    EntryStage,
    StagedEntries,
    WrittenEntries,
    write_entries,
    write_partitioned_entries,
)
from hoodie.index.record.file_groups import RecordIndexState
from hoodie.index.record.late_entries import (
    index_was_exchanged,
    index_was_replaced_or_dropped,
    index_was_switched,
    late_entries,
)
from hoodie.index.record.state import (
    has_partitioned_index,
    partitioned_index_if_there,
    record_index,
    record_index_if_there,
)
from hoodie.index.table_facts import TableFacts
from hoodie.metadata.table import MetadataTable
from hoodie.timeline import Instant, ms_of_instant_time
from hoodie.view.table_view import TableView


@dataclass
class RecordIndexUpdate:
    """The update of one write; see `IndexUpdate`. If the table has no record index, all methods do nothing.

    `facts` are facts of the table when the write began. `engine_for` returns the engine for the work.
    """

    facts: TableFacts
    instant_time: str
    engine_for: EngineFor
    stats: Sequence[WriteStat] = ()
    _has_files: bool = field(default=False, init=False)

    @property
    def view(self) -> TableView:
        """The table when the write began."""
        return self.facts.view

    @property
    def state(self) -> RecordIndexState | None:
        """The index file groups of the global record index when the write began; None without such an index.

        Also None if the whole metadata table is missing: the commit then builds it anew without this index.
        """
        return self.facts.read(record_index_if_there)

    @property
    def partitioned_state(self) -> Mapping[str, RecordIndexState] | None:
        """The index file groups of each data partition when the write began; None if the index is not partitioned."""
        return self.facts.read(partitioned_index_if_there)

    @property
    def commit_entries(self) -> Mapping[str, str]:
        """Nothing: the delta commit of the metadata table names the log files."""
        return {}

    @property
    def stages_deletes(self) -> bool:
        """Whether the table has a record index."""
        return self.entry_stage("") is not None

    def entry_stage(self, folder: str) -> EntryStage | None:
        """Return where the writing tasks stage entries; None if the table has no record index."""
        if self.partitioned_state is not None:
            return EntryStage(folder, None)
        return None if self.state is None else EntryStage(folder, KeyGroups(len(self.state.file_groups)))

    def note_locations(self, entries: Sequence[StagedEntries]) -> WrittenEntries:
        """Write the log files of the staged entries. Memory of a task: twice the entries of a group of file groups.

        Raises: PartitionPathError for a partition path that file ids of a partitioned index cannot contain.
        """
        if not entries or (self.state is None and self.partitioned_state is None):
            return WrittenEntries()
        self._has_files = True
        engine = self.engine_for(sum(found.rows for found in entries) * ENTRY_BYTES)
        store = self.view.store.spec
        time, moment_ms = self.instant_time, self._moment_ms()
        if self.partitioned_state is not None:
            by_partition = {path: found.file_ids for path, found in self.partitioned_state.items()}
            written = write_partitioned_entries(
                engine, store, entries, instant_time=time, instant_ms=moment_ms, file_ids=by_partition
            )
        else:
            assert self.state is not None
            written = write_entries(
                engine, store, entries, instant_time=time, instant_ms=moment_ms, file_ids=self.state.file_ids
            )
        self.stats = written.stats
        return written

    def stage_deletes(self, slices: Iterable[FileSlice], folder: str) -> tuple[StagedEntries, ...]:
        """Stage the deletion of every key in file groups that the write removes from the table."""
        stage = self.entry_stage(folder)
        if stage is None:
            return ()
        changes = [FileGroupChange(found.partition_path, found.file_id, found, None) for found in slices]
        return tuple(stage_changes(self.engine_for, self.view.store.spec, changes, stage, self.view.slice_read()))

    def retract(self, slices: Sequence[FileSlice], folder: str) -> None:
        """Do nothing: the log files of an earlier attempt are deleted with it."""

    def refresh(self, now: TableView, metadata: CommitMetadata) -> None:
        """Write the entries again if the index was exchanged since the write began; see `IndexUpdate`.

        Raises: CommitConflictError if the index is now a partitioned index.
        """
        if not index_was_exchanged(self.view, now):
            return
        self.discard()
        self.stats = ()
        if has_partitioned_index(now):
            raise CommitConflictError(
                f"{now.store.uri('')} got a partitioned record index while this write ran; nothing was committed, "
                "try again"
            )
        state = record_index(now)
        if state is not None:
            self._has_files = True
            self.stats = late_entries(now, self.instant_time, metadata, state)

    def shares_keys_with(self, now: TableView, other: Instant) -> bool:
        """See `IndexUpdate`. Reads the log files of both writes in the file groups that both changed."""
        write = self._indexed(now)
        return write is None or write.shares_keys_with(other)

    def would_lose_to(self, now: TableView, other: Instant) -> bool:
        """See `IndexUpdate`."""
        write = self._indexed(now)
        return write is not None and write.would_lose_to(other)

    def was_replaced_or_dropped(self, now: TableView) -> bool:
        """Return whether the index for which entries were written was built anew or dropped since."""
        return index_was_replaced_or_dropped(self.view, now)

    def discard(self) -> None:
        """Delete the log files. If the metadata table was dropped, they are already deleted."""
        table = MetadataTable.open(self.view.store, self.view.config) if self._has_files else None
        if table is not None:
            table.discard(self.instant_time)

    def _indexed(self, now: TableView) -> IndexedWrite | None:
        if RECORD_INDEX not in now.config.metadata_partitions:
            return None
        was_switched = index_was_switched(self.view, now)
        return IndexedWrite(now=now, instant_time=self.instant_time, stats=self.stats, was_switched=was_switched)

    def _moment_ms(self) -> int:
        return ms_of_instant_time(self.instant_time, self.view.layout.zone)
