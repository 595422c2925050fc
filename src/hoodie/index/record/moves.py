"""What an index with an entry for each key found: hits of file groups that exist, and rows that may move their record.

A row may move its record to another partition if it is not older than the stored record. The index stores no ordering
values, so they are read from the file slices with the stored records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import TaskContext
from hoodie.files.merged_slice import SliceRead, read_file_slice
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import StagedHits, StagedRun, StageReader, staged_rows, write_hits
from hoodie.index.api import LookUpCost, Route, Tagged, TagRequest
from hoodie.index.record.tag import TaggedGroup
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store, StoreSpec, open_store
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True)
class _MoveTask:
    file_slice: FileSlice
    hits: tuple[StagedHits, ...]
    output: str


def tagged_by_entries(view: TableView, request: TagRequest, parts: Sequence[TaggedGroup], *, may_move: bool) -> Tagged:
    """Return what tasks found, without the keys whose file group does not exist.

    Entries name such a file group after a failed clustering, or after a write that removed whole file groups.
    """
    found = [hit for part in parts for hit in part.hits]
    partitions = {run.partition_path for run in request.runs} | {hit.partition_path for hit in found}
    slices = tuple(list_slices(view, partitions))
    current = {file_slice.group: file_slice for file_slice in slices}
    hits = [hit for hit in found if not hit.file_id or (hit.partition_path, hit.file_id) in current]
    if may_move and request.merger.ordering_columns:
        hits = _drop_older_moves(view, request, hits, current)
    return Tagged(hits=tuple(hits), slices=slices, look_up=sum((part.cost for part in parts), LookUpCost()))


def _drop_older_moves(
    view: TableView, request: TagRequest, hits: Sequence[StagedHits], current: Mapping[tuple[str, str], FileSlice]
) -> list[StagedHits]:
    """Return the hits, with route DROP for rows that would move but are older than the stored record."""
    moving: dict[tuple[str, str], list[StagedHits]] = {}
    decided: list[StagedHits] = []
    for hit in hits:
        if hit.moves:
            moving.setdefault((hit.partition_path, hit.file_id), []).append(hit)
        else:
            decided.append(hit)
    tasks: list[_MoveTask] = []
    for number, (group, found) in enumerate(moving.items()):
        file_slice = current.get(group)
        if file_slice is None:
            decided += found
            continue
        output = f"{request.stage_folder}/moves-{number}"
        tasks.append(_MoveTask(file_slice, tuple(found), output))
    engine = request.engine_for(sum(task.file_slice.size_bytes for task in tasks))
    read = view.slice_read(request.schema, request.merger)
    columns = (RECORD_KEY, *request.merger.ordering_columns)
    # The function holds the arguments that the tasks share: it is serialised once, each task separately.
    decide = partial(_decide_moves, spec=view.store.spec, read=replace(read, columns=columns), runs=request.runs)
    return decided + [hit for found in engine.run(decide, tasks) for hit in found]


def _decide_moves(
    task: _MoveTask, context: TaskContext, *, spec: StoreSpec, read: SliceRead, runs: tuple[StagedRun, ...]
) -> list[StagedHits]:
    """Rewrite the hits of one file group. Memory: its candidates, and the memory of `read_file_slice`."""
    store = open_store(spec)
    with StageReader(store) as reader:
        batches = [reader.read(hit) for hit in task.hits]
    ordinals = np.concatenate([np.asarray(batch.column("row")) for batch in batches])
    routes = np.concatenate([np.asarray(batch.column("route")) for batch in batches])
    order = np.argsort(ordinals)
    ordinals, routes = ordinals[order], routes[order].copy()
    moving = np.flatnonzero(routes == Route.MOVE)
    candidates = staged_rows(store, runs, ordinals[moving], list(read.columns))
    routes[moving[_is_older(store, task.file_slice, candidates, read)]] = Route.DROP
    path, file_id = task.file_slice.partition_path, task.file_slice.file_id
    return write_hits(store, f"{task.output}-{context.attempt}.arrow", [(path, file_id, ordinals, routes)])


def _is_older(store: Store, file_slice: FileSlice, candidates: pa.Table, read: SliceRead) -> npt.NDArray[np.bool_]:
    """Return for each candidate whether the stored record wins. Without a stored record, it is not older."""
    older = np.zeros(candidates.num_rows, np.bool_)
    keys = candidates[RECORD_KEY].combine_chunks()
    for stored in read_file_slice(store, file_slice, read):
        places = pc.index_in(keys, value_set=stored[RECORD_KEY].combine_chunks())
        met = np.flatnonzero(np.asarray(pc.is_valid(places)))
        if len(met):
            versions = stored.take(places.drop_null())
            older[met] = ~read.merger.newer_wins(versions, candidates.take(pa.array(met)))
    return older
