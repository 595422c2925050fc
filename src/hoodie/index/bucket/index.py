"""The bucket index: tags each row with the file group of its bucket, and places rows of new buckets. Reads no data.

A row belongs to its bucket whether or not the table has its key. So the hits of this index do not tell inserts from
updates: the merge with the file group does.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.engine import TaskContext
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import StagedHits, StagedRun, StageReader, write_hits
from hoodie.format.filenames import bucket_file_id
from hoodie.index.api import Index, InsertShare, PlacedRows, Placement, Purpose, Route, Tagged, TagRequest
from hoodie.index.bucket.rule import FIXED_OPTIONS, BucketRule, bucket_rule, file_ids_by_bucket, new_table_properties
from hoodie.index.kind import IndexKind
from hoodie.records.change import RECORD_KEY
from hoodie.storage import StoreSpec, open_store
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView

_TASK_ROWS = 1_000_000
_KEY_BYTES = 64
"""Estimated bytes of a staged key, which decide where the work runs."""


@dataclass(slots=True)
class BucketIndex(Index):
    """Index that finds the file group of a key by its hash. `placed`: the rows of new file groups, after `tag`.

    All rows of a bucket can be appended to log files: it has one file group. Cost: one listing of the file groups of
    the touched partitions, and the key column of the staged rows. Memory of a task: the keys of a million rows.
    """

    view: TableView
    rule: BucketRule
    new_id: Callable[[], uuid.UUID] = uuid.uuid4
    placed: tuple[StagedHits, ...] = field(default=(), init=False)
    name = "bucket"
    indexes_logs = True

    def tag(self, request: TagRequest) -> Tagged:
        """See `Index.tag`. Rows of buckets without a file group are placed in new ones.

        Raises: UnsupportedError if a touched partition has file groups that do not obey the rule.
        """
        paths = {run.partition_path for run in request.runs}
        slices = tuple(list_slices(self.view, paths))
        known = {}
        if request.purpose is not Purpose.REPLACE:
            known = file_ids_by_bucket(slices, self.rule, where=self.view.store.uri(""))
        unique = self.new_id()
        tasks = [
            _BucketTask(
                store=self.view.store.spec,
                rule=self.rule,
                partition_path=path,
                runs=runs,
                known=known.get(path, {}),
                # File ids differ between partitions.
                unique=uuid.uuid5(unique, path),
                output=f"{request.stage_folder}/buckets-{number}",
            )
            for number, (path, runs) in enumerate(_batches(request.runs))
        ]
        engine = request.engine_for(sum(run.rows for run in request.runs) * _KEY_BYTES)
        hits = [hit for found in engine.run(assign, tasks) for hit in found]
        current = {(found.partition_path, found.file_id) for found in slices}
        merges = request.purpose is Purpose.MERGE
        is_met = [merges and (hit.partition_path, hit.file_id) in current for hit in hits]
        self.placed = tuple(hit for hit, met in zip(hits, is_met, strict=True) if not met)
        return Tagged(hits=tuple(hit for hit, met in zip(hits, is_met, strict=True) if met), slices=slices)

    def placement(self, default: Placement) -> Placement:
        """Return the placement of the rows that `tag` placed."""
        return BucketPlacement(self.placed)


@dataclass(frozen=True, slots=True)
class BucketPlacement:
    """Places each insert in the file group of its bucket."""

    placed: tuple[StagedHits, ...]

    def place(self, partition_path: str, rows: int, slices: Sequence[FileSlice]) -> Iterator[InsertShare]:
        """Return a share for each bucket that gets rows; see `Placement.place`."""
        by_file_id: dict[str, list[StagedHits]] = {}
        for hits in self.placed:
            if hits.partition_path == partition_path:
                by_file_id.setdefault(hits.file_id, []).append(hits)
        for file_id, found in sorted(by_file_id.items()):
            yield InsertShare(file_id, PlacedRows(tuple(found)), sum(hits.updates for hits in found))


def _batches(runs: Sequence[StagedRun]) -> Iterator[tuple[str, tuple[StagedRun, ...]]]:
    """Yield runs of one partition with about a million rows, in the order of their rows."""
    by_path: dict[str, list[StagedRun]] = {}
    for run in sorted(runs, key=lambda run: run.start):
        mine = by_path.setdefault(run.partition_path, [])
        mine.append(run)
        if sum(found.rows for found in mine) >= _TASK_ROWS:
            yield run.partition_path, tuple(by_path.pop(run.partition_path))
    for path, left in by_path.items():
        yield path, tuple(left)


@dataclass(frozen=True, slots=True, kw_only=True)
class _BucketTask:
    store: StoreSpec
    rule: BucketRule
    partition_path: str
    runs: tuple[StagedRun, ...]
    known: Mapping[int, str]
    unique: uuid.UUID
    output: str


def assign(task: _BucketTask, context: TaskContext) -> list[StagedHits]:
    """Assign each row to the file group of its bucket, which may be new. Runs on a worker. Memory: the keys."""
    store = open_store(task.store)
    with StageReader(store, [RECORD_KEY]) as reader:
        keys = pa.concat_arrays([reader.read(run).column(RECORD_KEY) for run in task.runs])
    ordinals = np.concatenate([np.arange(run.start, run.start + run.rows) for run in task.runs])
    buckets = task.rule.buckets(keys, task.partition_path)
    order = np.argsort(buckets, kind="stable")
    numbers, starts = np.unique(buckets[order], return_index=True)
    routes = np.full(len(keys), np.int8(Route.UPDATE))
    found = (
        (
            task.partition_path,
            task.known.get(int(number)) or bucket_file_id(int(number), task.unique),
            ordinals[rows],
            routes[: len(rows)],
        )
        for number, rows in zip(numbers, np.split(order, starts[1:]), strict=True)
    )
    return write_hits(store, f"{task.output}-{context.attempt}.arrow", found)


def _make(view: TableView, properties: Mapping[str, str]) -> BucketIndex:
    return BucketIndex(view, bucket_rule(view, properties))


BUCKET: Final = IndexKind(
    name="bucket",
    types=("BUCKET",),
    make=_make,
    places_rows=True,
    own_options=FIXED_OPTIONS,
    own_properties=new_table_properties,
)
