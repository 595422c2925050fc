"""The partitioned record index: a key is looked up in the index file groups of the row's data partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.config import indexes
from hoodie.engine import TaskContext
from hoodie.errors import MetadataPartitionMissingError
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import StagedRun, StageReader, write_hits
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.index.api import Index, Route, Tagged, TagRequest
from hoodie.index.kind import IndexKind
from hoodie.index.record.file_groups import IndexFileGroup, RecordIndexState
from hoodie.index.record.index import look_up_of, removed
from hoodie.index.record.look_up import LookUp
from hoodie.index.record.moves import tagged_by_entries
from hoodie.index.record.state import PARTITIONED_TYPE, has_partitioned_index, partitioned_index
from hoodie.index.record.tag import TaggedGroup, by_file_group, locate
from hoodie.index.simple import SimpleIndex
from hoodie.metadata.kinds.record_index import RecordIndexKind
from hoodie.metadata.paths import partition_folder
from hoodie.records.change import RECORD_KEY
from hoodie.storage import StoreSpec, open_store
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True)
class PartitionedRecordIndex(Index):
    """Index that looks keys up in the index file groups of their data partition; keys are unique in a partition.

    Cost and memory: as `RecordIndex`, with one task for each data partition that the batch touches.
    """

    view: TableView
    look_up: LookUp | None = None
    name = "partitioned_record"
    indexes_logs = True

    def tag(self, request: TagRequest) -> Tagged:
        """See `Index.tag`. Lists the files of the index.

        Raises:
            CommitConflictError: the index was dropped since the write began.
            MetadataPartitionMissingError: the index has no file group of a data partition that has rows.
        """
        states = self.view.fact(partitioned_index)
        if states is None:
            raise removed(self.view)
        tasks = list(self._tasks(request, states))
        engine = request.engine_for(sum(file_group.size_bytes for task in tasks for file_group in task.file_groups))
        tagged = tagged_by_entries(self.view, request, engine.run(_tag_partition, tasks), may_move=False)
        self._check_none_lost(tagged.slices, states)
        return tagged

    def _check_none_lost(self, slices: Iterable[FileSlice], states: Mapping[str, RecordIndexState]) -> None:
        """Refuse to take all keys of a data partition for new ones: a restore by the JVM can lose its file groups."""
        lost = sorted({file_slice.partition_path for file_slice in slices} - states.keys())
        if lost:
            raise MetadataPartitionMissingError(
                f"the record index has no file group of {len(lost):,} partitions that have rows, one is {lost[0]!r}: "
                "drop it with t.index.drop('record'), then keys are looked up in the data; the next JVM write that "
                "enables it builds it",
                path=self.view.store.uri(partition_folder(RECORD_INDEX)),
            )

    def _tasks(self, request: TagRequest, states: Mapping[str, RecordIndexState]) -> Iterator[_PartitionTask]:
        store = self.view.store.spec
        runs_of: dict[str, list[StagedRun]] = {}
        for run in request.runs:
            runs_of.setdefault(run.partition_path, []).append(run)
        for number, (path, runs) in enumerate(sorted(runs_of.items())):
            if path in states:
                output = f"{request.stage_folder}/tagged-{number}"
                yield _PartitionTask(store, path, states[path].file_groups, tuple(runs), self.look_up, output)


@dataclass(frozen=True, slots=True)
class _PartitionTask:
    store: StoreSpec
    partition_path: str
    file_groups: tuple[IndexFileGroup, ...]
    runs: tuple[StagedRun, ...]
    look_up: LookUp | None
    output: str


def _tag_partition(task: _PartitionTask, context: TaskContext) -> TaggedGroup:
    """Look up the staged keys of one data partition. Memory: these keys."""
    store = open_store(task.store)
    with StageReader(store, [RECORD_KEY]) as reader:
        keys = pa.concat_arrays([reader.read(run).column(RECORD_KEY) for run in task.runs])
    ordinals = np.concatenate([np.arange(run.start, run.start + run.rows) for run in task.runs])
    groups, codes, cost = locate(store, task.file_groups, len(task.file_groups), keys, look_up=task.look_up)
    # An entry of another partition would be corrupt: it is no hit in this partition.
    own = np.array([path == task.partition_path for path, _ in groups] or [True])
    codes = np.where((codes >= 0) & own[np.maximum(codes, 0)], codes, -1)
    routes = np.full(len(codes), np.int8(Route.UPDATE))
    hits = write_hits(store, f"{task.output}-{context.attempt}.arrow", by_file_group(groups, codes, ordinals, routes))
    return TaggedGroup(tuple(hits), cost)


def _make(view: TableView, properties: Mapping[str, str]) -> Index:
    """Return the partitioned index, or the simple index if another writer dropped the record index."""
    if view.timeline.instants and not has_partitioned_index(view):
        return SimpleIndex(view)
    return PartitionedRecordIndex(view, look_up_of(properties))


PARTITIONED_RECORD: Final = IndexKind(
    name="partitioned_record",
    types=(PARTITIONED_TYPE,),
    make=_make,
    switches=(indexes.PARTITIONED_RECORD_INDEX_ENABLE,),
    metadata_partition=RecordIndexKind(is_partitioned=True),
    exists_in=has_partitioned_index,
)
