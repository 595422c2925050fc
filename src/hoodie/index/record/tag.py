"""Look up the staged keys of one group of index file groups. Runs on a worker."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import TaskContext
from hoodie.files.staging.staged import StagedHits, write_hits
from hoodie.files.staging.staged_keys import PLACE, ROW, StagedKeys, read_keys
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.index.api import LookUpCost, Route
from hoodie.index.record.file_groups import IndexFileGroup, read_file_group
from hoodie.index.record.look_up import LookUp, find, way_of
from hoodie.records.change import KIND, PARTITION_PATH, RECORD_KEY, Kind
from hoodie.records.merging.merge import RecordMerger
from hoodie.storage import Store, StoreSpec, open_store

Rows = npt.NDArray[np.int64]
Routes = npt.NDArray[np.int8]
FileGroup = tuple[str, str]
"""Partition path and file id; `("", "")` for rows that are dropped."""

_NOWHERE: FileGroup = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class TagTask:
    """The keys of one or more groups, and their index file groups. Picklable."""

    store: StoreSpec
    merger: RecordMerger
    keys: tuple[StagedKeys, ...]
    file_groups: tuple[IndexFileGroup, ...]
    file_group_count: int
    moves_records: bool
    look_up: LookUp | None
    output: str


@dataclass(frozen=True, slots=True)
class TaggedGroup:
    """The hits of a task, and the cost of its look-up."""

    hits: tuple[StagedHits, ...]
    cost: LookUpCost


def tag_file_groups(task: TagTask, context: TaskContext) -> TaggedGroup:
    """Look up the keys of a group, and determine the route of each row."""
    store = open_store(task.store)
    rows = read_keys(store, task.keys)
    keys = rows[RECORD_KEY].combine_chunks()
    groups, codes, cost = locate(store, task.file_groups, task.file_group_count, keys, look_up=task.look_up)
    routes = routes_of(task.merger, rows, groups, codes, moves_records=task.moves_records)
    ordinals = np.asarray(rows[ROW].combine_chunks())
    hits = write_hits(store, f"{task.output}-{context.attempt}.arrow", by_file_group(groups, codes, ordinals, routes))
    return TaggedGroup(tuple(hits), cost)


def locate(
    store: Store,
    file_groups: Sequence[IndexFileGroup],
    file_group_count: int,
    keys: pa.StringArray,
    *,
    look_up: LookUp | None,
) -> tuple[list[FileGroup], Rows, LookUpCost]:
    """Return file groups, and for each key its position in them; -1 if the index file groups do not have the key."""
    encoded = keys.dictionary_encode()
    distinct, key_of_row = encoded.dictionary, np.asarray(encoded.indices)
    found = np.full(len(distinct), -1, np.int64)
    groups: dict[FileGroup, int] = {}
    cost = LookUpCost(keys=len(distinct))
    numbers = file_group_index(distinct, file_group_count)
    for file_group in file_groups:
        mine = (numbers == file_group.number).nonzero()[0]
        if not len(mine):
            continue
        content = read_file_group(store, file_group)
        way = look_up or way_of(len(mine), content)
        column = find(content, distinct.take(pa.array(mine)), look_up=way)
        # Locations in one file group may have different instants.
        named = [(location.partition_path, location.file_id) for location in column.locations]
        places = np.array([groups.setdefault(group, len(groups)) for group in named], np.int64)
        hit = column.codes >= 0
        found[mine[hit]] = places[column.codes[hit]]
        cost += LookUpCost(
            found=int(hit.sum()),
            buckets_sought=int(way is LookUp.SEEK),
            buckets_scanned=int(way is LookUp.SCAN),
            bytes_read=file_group.size_bytes,
        )
    return list(groups), found[key_of_row], cost


def routes_of(
    merger: RecordMerger, rows: pa.Table, groups: list[FileGroup], codes: Rows, *, moves_records: bool
) -> Routes:
    """Return the route of each row. If rows of one key would have different targets, all but one are dropped."""
    routes = np.full(len(codes), np.int8(Route.UPDATE))
    is_row = np.asarray(rows[KIND].combine_chunks()) == Kind.ROW
    if moves_records and groups:
        here = pa.array([path for path, _ in groups], pa.string()).take(pa.array(np.maximum(codes, 0)))
        elsewhere = np.asarray(pc.not_equal(rows[PARTITION_PATH].combine_chunks(), here))
        routes[(codes >= 0) & elsewhere & is_row] = Route.MOVE
    routes[_outranked(merger, rows, routes == Route.MOVE)] = Route.DROP
    return routes


def _outranked(merger: RecordMerger, rows: pa.Table, moves: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Find the rows to drop among rows of one key with different targets: different partitions, or rows and deletes.

    A delete is applied where the stored record is; a row is written to its own partition. Of rows that move a record
    one is kept too, as a record moves once. Other duplicates are merged by the task that writes the file, which has all
    columns of the rows.
    """
    dropped = np.zeros(rows.num_rows, np.bool_)
    codes = np.asarray(rows[RECORD_KEY].combine_chunks().dictionary_encode().indices)
    count = int(codes.max(initial=-1)) + 1
    if count == rows.num_rows:
        return dropped
    paths = np.asarray(rows[PARTITION_PATH].combine_chunks().dictionary_encode().indices)
    kinds = np.asarray(rows[KIND].combine_chunks()) == Kind.ROW
    is_contested = _differs(codes, paths, count) | _differs(codes, kinds, count)
    is_contested[codes[moves]] = True
    contested = np.flatnonzero(is_contested[codes])
    if len(contested):
        # Keep the order of the caller's data: of two equal rows the later one counts.
        contested = contested[np.argsort(np.asarray(rows[PLACE].combine_chunks())[contested])]
        numbered = rows.take(pa.array(contested)).append_column("#", pa.array(contested))
        winners = merger.reduce(numbered, across_partitions=True)["#"].combine_chunks()
        dropped[contested] = True
        dropped[np.asarray(winners)] = False
    return dropped


def _differs(codes: npt.NDArray[np.int32], values: npt.NDArray[Any], count: int) -> npt.NDArray[np.bool_]:
    """Return for each of `count` keys whether its rows have different values."""
    one = np.zeros(count, values.dtype)
    one[codes] = values
    found = np.zeros(count, np.bool_)
    found[codes[values != one[codes]]] = True
    return found


def by_file_group(
    groups: list[FileGroup], codes: Rows, ordinals: Rows, routes: Routes
) -> Iterator[tuple[str, str, Rows, Routes]]:
    """Yield the hits by file group. Dropped rows are returned without one, as it may not exist any more."""
    dropped = np.sort(ordinals[routes == Route.DROP])
    if len(dropped):
        yield *_NOWHERE, dropped, np.full(len(dropped), np.int8(Route.DROP))
    found = ((codes >= 0) & (routes != Route.DROP)).nonzero()[0]
    found = found[np.lexsort((ordinals[found], codes[found]))]
    codes, ordinals, routes = codes[found], ordinals[found], routes[found]
    bounds = [*np.diff(codes, prepend=-1).nonzero()[0].tolist(), len(codes)]
    for start, stop in itertools.pairwise(bounds):
        yield *groups[codes[start]], ordinals[start:stop], routes[start:stop]
