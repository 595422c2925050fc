"""Keep the hits of file groups in which the record lives; for indexes that read the keys of base files and logs.

A key that a log deletes is still in its file group. That is right while it is the only one: late versions of the record
are merged with the delete. But an insert that looks up no keys may store the record in a second file group. A row that
was merged into both would make two records of one key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from hoodie.engine import TaskContext
from hoodie.files.merged_slice import SliceRead, read_file_slice
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import StagedHits, StagedRun, StageReader, staged_rows, write_hits
from hoodie.index.api import Purpose, TagRequest
from hoodie.index.key_search import KeySearch
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store, StoreSpec, open_store

Rows = npt.NDArray[np.int64]
Group = tuple[str, str]


def living_hits(
    store: Store, search: KeySearch, request: TagRequest, hits: Sequence[StagedHits], slices: Sequence[FileSlice]
) -> tuple[StagedHits, ...]:
    """Return the hits, less those of file groups whose logs delete the key, if another file group has the row's key.

    If no file group has the record, the row keeps its hit in the file group with the newest log, whose delete is the
    last one. A write that only adds rows (`Purpose.ADD`) checks whether the table has the records: no such hit is kept.

    Memory: two bytes for each staged row, and 8 for each hit in question. Merged records are read only of the file
    groups that have logs and such a row.
    """
    logged = {found.group: found for found in slices if found.log_files}
    if search.is_global or not any((hit.partition_path, hit.file_id) in logged for hit in hits):
        return tuple(hits)
    asked = np.ones(_end(hits), np.bool_) if request.purpose is Purpose.ADD else _in_several(store, hits)
    if not asked.any():
        return tuple(hits)
    questions = {group: rows for group, rows in _rows_by_group(store, hits, asked) if group in logged}
    if not questions:
        return tuple(hits)
    dead = _dead(search, request, questions, logged)
    if request.purpose is not Purpose.ADD:
        dead = _less_the_last(store, hits, asked, dead, logged)
    return _without(store, hits, dead, f"{request.stage_folder}/living.arrow")


def _end(hits: Sequence[StagedHits]) -> int:
    return max((hit.last for hit in hits), default=-1) + 1


def _in_several(store: Store, hits: Sequence[StagedHits]) -> npt.NDArray[np.bool_]:
    """Return for each staged row whether several file groups have its key."""
    seen, again = np.zeros(_end(hits), np.bool_), np.zeros(_end(hits), np.bool_)
    for _, rows in _rows_by_group(store, hits):
        again[rows[seen[rows]]] = True
        seen[rows] = True
    return again


def _rows_by_group(
    store: Store, hits: Sequence[StagedHits], asked: npt.NDArray[np.bool_] | None = None
) -> Iterator[tuple[Group, Rows]]:
    """Yield the ordinals of each file group's requested hits, ascending; groups without any are left out."""
    groups: dict[Group, list[StagedHits]] = {}
    for hit in hits:
        groups.setdefault((hit.partition_path, hit.file_id), []).append(hit)
    with StageReader(store) as reader:
        for group, found in groups.items():
            rows = np.sort(np.concatenate([np.asarray(reader.read(hit).column("row")) for hit in found]))
            rows = rows if asked is None else rows[asked[rows]]
            if len(rows):
                yield group, rows


def _dead(
    search: KeySearch, request: TagRequest, questions: dict[Group, Rows], slices: dict[Group, FileSlice]
) -> dict[Group, Rows]:
    """Return the ordinals whose record a file group has deleted."""
    store = open_store(search.store)
    path = f"{request.stage_folder}/asked.arrow"
    asked = write_hits(store, path, ((*group, rows, np.zeros(len(rows), np.int8)) for group, rows in questions.items()))
    tasks = [
        _DeadTask(slices[group], hit, f"{request.stage_folder}/dead-{number}")
        for number, (group, hit) in enumerate(zip(questions, asked, strict=True))
    ]
    engine = request.engine_for(sum(task.file_slice.size_bytes for task in tasks))
    read = replace(search.read, columns=(RECORD_KEY,))
    # The function holds the arguments that the tasks share: it is serialised once, each task separately.
    find = partial(_find_dead, spec=search.store, read=read, runs=request.runs)
    with StageReader(store) as reader:
        found = [hit for hits in engine.run(find, tasks) for hit in hits]
        return {(hit.partition_path, hit.file_id): np.asarray(reader.read(hit).column("row")) for hit in found}


@dataclass(frozen=True, slots=True)
class _DeadTask:
    file_slice: FileSlice
    asked: StagedHits
    output: str


def _find_dead(
    task: _DeadTask, context: TaskContext, *, spec: StoreSpec, read: SliceRead, runs: tuple[StagedRun, ...]
) -> list[StagedHits]:
    """Write the requested rows that the merged slice does not have. Memory: their keys, and `read_file_slice`."""
    store = open_store(spec)
    with StageReader(store) as reader:
        ordinals = np.asarray(reader.read(task.asked).column("row"))
    keys = staged_rows(store, runs, ordinals, [RECORD_KEY])[RECORD_KEY].combine_chunks()
    is_dead = np.ones(len(keys), np.bool_)
    for stored in read_file_slice(store, task.file_slice, read):
        is_dead &= ~np.asarray(pc.is_in(keys, value_set=stored[RECORD_KEY].combine_chunks()))
    dead, group = ordinals[is_dead], task.file_slice.group
    return write_hits(store, f"{task.output}-{context.attempt}.arrow", [(*group, dead, np.zeros(len(dead), np.int8))])


def _less_the_last(
    store: Store,
    hits: Sequence[StagedHits],
    asked: npt.NDArray[np.bool_],
    dead: dict[Group, Rows],
    slices: dict[Group, FileSlice],
) -> dict[Group, Rows]:
    """Return the dead hits, less one of each row that lives nowhere: the hit of the newest log."""
    lives = np.zeros(len(asked), np.bool_)
    for group, rows in _rows_by_group(store, hits, asked):
        lives[np.setdiff1d(rows, dead.get(group, ()), assume_unique=True)] = True
    kept: dict[Group, Rows] = {}
    newest = {group: max(log.name.instant_time for log in slices[group].log_files) for group in dead}
    for group in sorted(dead, key=lambda group: (newest[group], group), reverse=True):
        rows = dead[group]
        kept[group] = rows[lives[rows]]
        lives[rows] = True
    return kept


def _without(store: Store, hits: Sequence[StagedHits], dead: dict[Group, Rows], path: str) -> tuple[StagedHits, ...]:
    """Return the hits without the dead ones; hits that change are written anew."""
    kept: list[StagedHits] = []
    changed: list[tuple[str, str, Rows, npt.NDArray[np.int8]]] = []
    with StageReader(store) as reader:
        for hit in hits:
            group = (hit.partition_path, hit.file_id)
            if not len(dead.get(group, ())):
                kept.append(hit)
                continue
            found = reader.read(hit)
            rows, routes = np.asarray(found.column("row")), np.asarray(found.column("route"))
            stays = ~np.isin(rows, dead[group])
            if stays.any():
                changed.append((*group, rows[stays], routes[stays]))
    return (*kept, *write_hits(store, path, changed)) if changed else tuple(kept)
