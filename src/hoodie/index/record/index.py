"""The global record index: keys are looked up in the metadata table, one task for each group of index file groups.

The partitioned index has the same update of a write. The writing tasks stage one entry for each key that they add
to a file group or remove from one. Log files with the entries are written before the write acquires the table's lock.
Readers see them when the commit completes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hoodie.config import indexes
from hoodie.engine import EngineFor
from hoodie.errors import CommitConflictError
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged_keys import KeyGroups, KeyStage, StagedKeys
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.index.api import Index, IndexUpdate, Tagged, TagRequest
from hoodie.index.kind import IndexKind
from hoodie.index.record.catch_up import (
    IndexedWrite,
    index_was_exchanged,
    index_was_replaced_or_dropped,
    index_was_switched,
    late_entries,
    switched_builds,
)
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
from hoodie.index.record.look_up import LookUp
from hoodie.index.record.moves import tagged_by_entries
from hoodie.index.record.state import (
    GLOBAL_TYPE,
    has_partitioned_index,
    has_record_index,
    partitioned_index_if_there,
    record_index,
    record_index_if_there,
    record_index_of_write,
)
from hoodie.index.record.tag import TagTask, tag_file_groups
from hoodie.index.simple import SimpleIndex
from hoodie.metadata.kinds.record_index import RecordIndexKind
from hoodie.metadata.table import MetadataTable
from hoodie.records.merging.merge import RecordMerger
from hoodie.timeline import Instant, ms_of_instant_time
from hoodie.view.table_view import TableView


@dataclass
class RecordIndexUpdate(IndexUpdate):
    """The update of one write. If the table has no record index, all methods do nothing.

    `view`: the table when the write began. `engine_for` returns the engine for the work.
    """

    view: TableView
    instant_time: str
    engine_for: EngineFor
    stats: Sequence[WriteStat] = ()
    _has_files: bool = field(default=False, init=False)
    _switched: frozenset[str] = field(default=frozenset(), init=False)
    """Version 6: the pending builds that had switched their index on when the write began."""
    _was_exchanged: bool = field(default=False, init=False)
    """Whether the index was built anew before its state was read, so that no entries are staged."""

    def __post_init__(self) -> None:
        """Note the pending builds before the index is read."""
        if self.view.config.version.log_name_has_base_instant:
            self._switched = switched_builds(self.view)

    @property
    def state(self) -> RecordIndexState | None:
        """The index file groups of the global record index when the write began; None without such an index.

        Also None if the whole metadata table is missing: the commit then builds it anew without this index; and if
        another index was built since: `refresh` then writes the entries.

        Raises: CommitConflictError as `record_index_of_write`.
        """
        if self._was_exchanged:
            return None
        try:
            return self.view.fact(record_index_if_there)
        except CommitConflictError:
            self._was_exchanged = index_was_exchanged(self.view, self.view.refreshed())
            if not self._was_exchanged:
                raise
            return None

    @property
    def partitioned_state(self) -> Mapping[str, RecordIndexState] | None:
        """The index file groups of each data partition when the write began; None if the index is not partitioned."""
        return self.view.fact(partitioned_index_if_there)

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

        In version 6 the log files are staged beside the entries, whose folder must exist until the commit.

        Raises: PartitionPathError for a partition path that file ids of a partitioned index cannot contain.
        """
        if not entries or (self.state is None and self.partitioned_state is None):
            return WrittenEntries()
        engine = self.engine_for(sum(entry.rows for entry in entries) * ENTRY_BYTES)
        folder = None
        if self.view.config.version.log_name_has_base_instant:
            # The log files get their names when the commit is written, and must exist until then.
            folder = entries[0].path.rpartition("/")[0]
        self._has_files = folder is None
        store = self.view.store.spec
        time, moment_ms = self.instant_time, ms_of_instant_time(self.instant_time, self.view.layout.zone)
        if self.partitioned_state is not None:
            by_partition = {path: found.file_ids for path, found in self.partitioned_state.items()}
            written = write_partitioned_entries(
                engine, store, entries, instant_time=time, instant_ms=moment_ms, file_ids=by_partition
            )
        else:
            assert self.state is not None
            written = write_entries(
                engine,
                store,
                entries,
                instant_time=time,
                instant_ms=moment_ms,
                file_ids=self.state.file_ids,
                folder=folder,
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

    def refresh(self, now: TableView, metadata: CommitMetadata) -> None:
        """Write the entries again if the index was exchanged since the write began; see `IndexUpdate`.

        Raises: CommitConflictError if the index is now a partitioned index, or was exchanged in version 6.
        """
        is_old = now.config.version.log_name_has_base_instant
        if not self._was_exchanged and not index_was_exchanged(self.view, now, self._switched if is_old else None):
            return
        self.discard()
        self.stats = ()
        if has_partitioned_index(now):
            raise CommitConflictError(
                f"{now.store.uri('')} got a partitioned record index while this write ran; nothing was committed, "
                "try again"
            )
        state = record_index(now)
        if state is not None and is_old:
            cause = f"{now.store.uri('')} got a record index, or another one, while this write ran"
            raise CommitConflictError(f"{cause}; nothing was committed, try again", retry_cause=cause)
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


_KEYS_TOGETHER = 4096
"""Number of keys up to which one task looks up all keys."""
_TASKS_MIN = 2
_KEYS_ALONE = 256
"""Number of keys up to which one thread looks up all keys: another thread costs more than it saves on a disk."""


@dataclass(frozen=True, slots=True)
class RecordIndex(Index):
    """Index that looks keys up in the record index of the metadata table.

    Cost: the batch's keys, and from each index file group of the keys either the blocks that may have them (seek) or
    all blocks (scan). Memory of a task: the keys of its group, the decoded part of one index file group, and
    `parsed_files.CACHE_BYTES_MAX` of parsed files. An entry contains the file group, not the file.

    `initial_buckets`: the number of index file groups that the table will have if it has no record index yet.
    """

    view: TableView
    update_partition_path: bool = False
    look_up: LookUp | None = None
    """Forces seek or scan. If None, the share of searched keys decides for each index file group."""
    initial_buckets: int = 10
    name = "record"
    is_global = True
    indexes_logs = True

    def key_stage(self, merger: RecordMerger) -> KeyStage:
        """Return how to stage keys: by index file group, with the columns that decide which row of a key counts."""
        state = self.view.fact(record_index_of_write)
        groups = KeyGroups(len(state.file_groups) if state else self.initial_buckets)
        return KeyStage(groups, merger.batch_ordering)

    def tag(self, request: TagRequest) -> Tagged:
        """See `Index.tag`. Lists the files of the index.

        Raises: CommitConflictError if the index was built anew with other file groups since the keys were staged.
        """
        state = self.view.fact(record_index_if_there)
        if state is None:
            raise removed(self.view)
        tasks = list(self._tasks(request, state))
        sizes = [
            sum(found.size_bytes for found in task.file_groups) + sum(keys.rows for keys in task.keys) * ENTRY_BYTES
            for task in tasks
        ]
        parts = request.engine_for(sum(sizes)).run(tag_file_groups, tasks, sizes)
        return tagged_by_entries(self.view, request, parts, may_move=self.update_partition_path)

    def _tasks(self, request: TagRequest, state: RecordIndexState) -> Iterator[TagTask]:
        """Yield one task for each group that has keys. If there are few keys, one task has several groups."""
        groups = KeyGroups(len(state.file_groups))
        if request.key_groups != groups:
            raise CommitConflictError(
                f"the record index of {self.view.store.uri('')} was built anew while this write ran; nothing was "
                "committed, try again"
            )
        by_group: dict[int, list[StagedKeys]] = {}
        for keys in request.keys:
            by_group.setdefault(keys.group, []).append(keys)
        rows, store = sum(keys.rows for keys in request.keys), self.view.store.spec
        together = _KEYS_TOGETHER * len(by_group) // max(rows, 1)
        if rows > _KEYS_ALONE or store.is_remote:
            together = min(together, -(-len(by_group) // _TASKS_MIN))
        together = max(together, 1)
        for number, start in enumerate(range(0, len(by_group), together)):
            members = sorted(by_group)[start : start + together]
            yield TagTask(
                store=store,
                merger=request.merger,
                keys=tuple(keys for group in members for keys in by_group[group]),
                file_groups=tuple(
                    file_group for group in members for file_group in state.file_groups[group :: groups.count]
                ),
                file_group_count=len(state.file_groups),
                moves_records=self.update_partition_path,
                look_up=self.look_up,
                output=f"{request.stage_folder}/tagged-{number}",
            )


def removed(view: TableView) -> CommitConflictError:
    """Return the error of a write whose record index is gone."""
    return CommitConflictError(
        f"the record index of {view.store.uri('')} was removed while this write ran; nothing was committed, try again"
    )


def _exists_in(view: TableView) -> bool:
    return has_record_index(view) and not has_partitioned_index(view)


def _make(view: TableView, properties: Mapping[str, str]) -> Index:
    """Return the record index, or the global simple index if another writer dropped the record index."""
    moves = RECORD.moves_records(properties)
    if view.timeline.instants and not _exists_in(view):
        return SimpleIndex(view, is_global=True, update_partition_path=moves)
    return RecordIndex(
        view,
        update_partition_path=moves,
        look_up=look_up_of(properties),
        initial_buckets=indexes.RECORD_INDEX_BUCKETS_MIN.get(view.config.raw),
    )


def look_up_of(properties: Mapping[str, str]) -> LookUp | None:
    """Return the way to look up keys that the options of a write force; None if they force no way."""
    way = indexes.RECORD_INDEX_LOOK_UP.get(properties)
    return None if way == "auto" else LookUp(way)


# JVM writers need both the type and the switches: without the switches they drop the index, and without the type they
# do not look keys up in it.
RECORD: Final = IndexKind(
    name="record",
    types=(GLOBAL_TYPE, "GLOBAL_RECORD_LEVEL_INDEX"),
    make=_make,
    is_global=True,
    switches=(indexes.RECORD_INDEX_ENABLE, indexes.RECORD_INDEX_ENABLE_NEW),
    moves_option=indexes.RECORD_UPDATE_PARTITION_PATH,
    stores_moves=True,
    metadata_partition=RecordIndexKind(),
    exists_in=_exists_in,
)
