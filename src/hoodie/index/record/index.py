"""The global record index: keys are looked up in the metadata table, one task for each group of index file groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from hoodie import config as options
from hoodie.errors import CommitConflictError
from hoodie.files.staging.staged_keys import KeyGroups, KeyStage, StagedKeys
from hoodie.index.api import Index, LookUpCost, Tagged, TagRequest
from hoodie.index.kind import IndexKind
from hoodie.index.placement import Placement
from hoodie.index.record.entries import ENTRY_BYTES
from hoodie.index.record.file_groups import RecordIndexState
from hoodie.index.record.find import LookUp
from hoodie.index.record.moves import drop_older_moves
from hoodie.index.record.state import (
    GLOBAL_TYPE,
    has_partitioned_index,
    has_record_index,
    record_index,
    record_index_if_there,
)
from hoodie.index.record.tag import TagTask, tag_file_groups
from hoodie.index.simple import SimpleIndex
from hoodie.index.table_facts import TableFacts
from hoodie.metadata.kinds.record_index import RecordIndexKind
from hoodie.records.merging.merge import RecordMerger
from hoodie.view.table_view import TableView

_KEYS_TOGETHER = 4096
"""Number of keys up to which one task looks up all keys."""
_TASKS_MIN = 2


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """Index that looks keys up in the record index of the metadata table.

    Cost: the batch's keys, and from each index file group of the keys either the blocks that may have them (seek) or
    all blocks (scan). Memory of a task: the keys of its group, the decoded part of one index file group, and
    `parsed_files.CACHE_BYTES_MAX` of parsed files.

    `initial_buckets`: the number of index file groups that the table will have if it has no record index yet.
    """

    update_partition_path: bool = False
    look_up: LookUp | None = None
    """Forces seek or scan. If None, the share of searched keys decides for each index file group."""
    initial_buckets: int = 10

    @property
    def name(self) -> str:
        """`record`."""
        return "record"

    @property
    def is_global(self) -> bool:
        """True: keys are unique in the table."""
        return True

    @property
    def indexes_logs(self) -> bool:
        """True: an entry contains the file group, not the file."""
        return True

    @property
    def needs_exchange(self) -> bool:
        """False: the task of an index file group has all rows of its keys."""
        return False

    def key_stage(self, view: TableView, merger: RecordMerger) -> KeyStage:
        """Return how to stage keys: by index file group, with the columns that decide which row of a key counts."""
        state = record_index(view)
        groups = KeyGroups(len(state.file_groups) if state else self.initial_buckets)
        return KeyStage(groups, merger.ordering_columns)

    def begin(self, facts: TableFacts) -> RecordTagger:
        """See `Index.begin`. Lists the files of the index."""
        return RecordTagger(self, facts.view, facts.read(record_index_if_there))


@dataclass(frozen=True, slots=True)
class RecordTagger:
    """The record index that serves one write. `state`: its index file groups when the write began."""

    index: RecordIndex
    view: TableView
    state: RecordIndexState | None

    def tag(self, request: TagRequest) -> Tagged:
        """See `Tagger.tag`.

        Raises:
            CommitConflictError: the index was built anew with other file groups since the keys were staged.
        """
        if self.state is None:
            raise CommitConflictError(
                f"the record index of {self.view.store.uri('')} was removed while this write ran; nothing was "
                "committed, try again"
            )
        tasks = list(self._tasks(request, self.state))
        sizes = [task.size_bytes + sum(keys.rows for keys in task.keys) * ENTRY_BYTES for task in tasks]
        parts = request.engine_for(sum(sizes)).run(tag_file_groups, tasks, sizes)
        found = [hit for part in parts for hit in part.hits]
        partitions = {run.partition_path for run in request.runs} | {hit.partition_path for hit in found}
        slices = tuple(self.view.slices(partitions))
        current = {(file_slice.partition_path, file_slice.file_id) for file_slice in slices}
        # An entry may contain a file group that does not exist, as after a failed clustering: its key is not found.
        hits = [hit for hit in found if not hit.file_id or (hit.partition_path, hit.file_id) in current]
        cost = sum((part.cost for part in parts), LookUpCost())
        if self.index.update_partition_path and request.merger.ordering_columns:
            hits = drop_older_moves(self.view, request, hits, slices)
        return Tagged(hits=tuple(hits), slices=slices, look_up=cost)

    def placement(self, default: Placement) -> Placement:
        """Return `default`: a key may be in any file group."""
        return default

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
        together = _KEYS_TOGETHER * len(by_group) // max(sum(keys.rows for keys in request.keys), 1)
        together = min(max(together, 1), max(-(-len(by_group) // _TASKS_MIN), 1))
        for number, start in enumerate(range(0, len(by_group), together)):
            members = sorted(by_group)[start : start + together]
            yield TagTask(
                store=self.view.store.spec,
                merger=request.merger,
                keys=tuple(keys for group in members for keys in by_group[group]),
                file_groups=tuple(
                    file_group for group in members for file_group in state.file_groups[group :: groups.count]
                ),
                file_group_count=len(state.file_groups),
                moves_records=self.index.update_partition_path,
                look_up=self.index.look_up,
                output=f"{request.stage_folder}/tagged-{number}",
            )


def _exists_in(view: TableView) -> bool:
    return has_record_index(view) and not has_partitioned_index(view)


def _make(view: TableView, properties: Mapping[str, str]) -> Index:
    """Return the record index, or the global simple index if another writer dropped the record index."""
    moves = RECORD.moves_records(properties)
    if view.timeline.instants and not _exists_in(view):
        return SimpleIndex(is_global=True, update_partition_path=moves)
    return RecordIndex(
        update_partition_path=moves,
        look_up=look_up_of(properties),
        initial_buckets=options.RECORD_INDEX_BUCKETS_MIN.get(view.config.raw),
    )


def look_up_of(properties: Mapping[str, str]) -> LookUp | None:
    """Return the way to look up keys that the options of a write force; None if they force no way."""
    way = options.RECORD_INDEX_LOOK_UP.get(properties)
    return None if way == "auto" else LookUp(way)


# JVM writers need both the type and the switches: without the switches they drop the index, and without the type they
# do not look keys up in it.
RECORD: Final = IndexKind(
    name="record",
    types=(GLOBAL_TYPE, "GLOBAL_RECORD_LEVEL_INDEX"),
    make=_make,
    is_global=True,
    switches=(options.RECORD_INDEX_ENABLE, options.RECORD_INDEX_ENABLE_NEW),
    moves_option=options.RECORD_UPDATE_PARTITION_PATH,
    stores_moves=True,
    metadata_partition=RecordIndexKind(),
    exists_in=_exists_in,
)
