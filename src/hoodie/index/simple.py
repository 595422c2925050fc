"""The simple index: searches the keys in the data files, in the key column of base files and log files.

The non-global index searches a key in the partition of its row. The global index searches it in every partition. If the
key of a row is in another partition, `hoodie.simple.index.update.partition.path` decides whether the record moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Engine, TaskContext
from hoodie.files.base_file import open_base_file, read_base_file
from hoodie.files.chunks import chunks
from hoodie.files.merged_slice import SliceRead, logged_keys, read_file_slice
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.files.staging.staged import StagedHits, StagedRun, StageReader, write_hits
from hoodie.format.hashes.bloom import MAX_KEY_FOOTER_KEY, MIN_KEY_FOOTER_KEY
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.index.api import Route, Tagged, TagRequest
from hoodie.index.kind import IndexKind
from hoodie.index.placement import Placement
from hoodie.index.table_facts import TableFacts
from hoodie.records.change import KIND, PARTITION_PATH, RECORD_KEY, Kind
from hoodie.records.merging.merge import RecordMerger
from hoodie.storage import Store, StoreSpec, open_store
from hoodie.view.rules import slice_read
from hoodie.view.table_view import TableView

Rows = npt.NDArray[np.int64]

_PROBE_BYTES_MIN = 16 * 1024 * 1024
_KEY_BATCH_ROWS = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SimpleIndex:
    """Tags by reading the key columns of the base files that may hold the keys, and of all logs.

    Non-global: a key that a log file deletes still belongs to its file group, as in the JVM, so that late versions of
    the record are merged with the delete. Global: the merged records are searched, so a deleted record is inserted
    again as a new record, in any partition.

    Cost: the key column of every base file in the touched partitions (global: in the table), except files whose key
    range contains none of the keys. Memory of a task: the incoming keys that it searches, and one million stored keys.
    """

    is_global: bool = False
    update_partition_path: bool = True

    @property
    def name(self) -> str:
        """`simple` or `global_simple`."""
        return "global_simple" if self.is_global else "simple"

    @property
    def indexes_logs(self) -> bool:
        """False: inserts are written to base files. The JVM's simple index reads only base files."""
        return False

    @property
    def needs_exchange(self) -> bool:
        """True if the index is global."""
        return self.is_global

    def key_stage(self, view: TableView, merger: RecordMerger) -> None:
        """Return None: the index reads the keys from the staged rows."""

    def begin(self, facts: TableFacts) -> SimpleTagger:
        """See `Index.begin`; nothing is read yet."""
        return SimpleTagger(self, facts.view)


@dataclass(frozen=True, slots=True)
class SimpleTagger:
    """The simple index as it serves one write."""

    index: SimpleIndex
    view: TableView

    def tag(self, request: TagRequest) -> Tagged:
        """See `Tagger.tag`. Each task searches a few file slices of one partition."""
        touched = None if self.index.is_global else {run.partition_path for run in request.runs}
        slices = tuple(self.view.slices(touched))
        if not request.runs or not slices:
            return Tagged(slices=slices)
        engine = request.engine_for(sum(found.size_bytes for found in slices))
        tasks = list(self._tasks(engine, request, slices))
        return Tagged(hits=tuple(hit for hits in engine.run(probe, tasks) for hit in hits), slices=slices)

    def placement(self, default: Placement) -> Placement:
        """Return `default`: a key may be in any file group."""
        return default

    def _tasks(self, engine: Engine, request: TagRequest, slices: Sequence[FileSlice]) -> Iterator[_ProbeTask]:
        runs_of: dict[str, list[StagedRun]] = {}
        for run in request.runs:
            runs_of.setdefault(run.partition_path, []).append(run)
        total = sum(found.size_bytes for found in slices)
        limit = max(total // (engine.parallelism * 2), _PROBE_BYTES_MIN)
        number = 0
        by_partition: dict[str, list[FileSlice]] = {}
        for found in slices:
            if self.index.is_global or found.partition_path in runs_of:
                by_partition.setdefault(found.partition_path, []).append(found)
        read = slice_read(self.view.config, with_meta_fields(request.schema), request.merger)
        for partition_path, own in by_partition.items():
            runs = request.runs if self.index.is_global else tuple(runs_of[partition_path])
            for files in chunks(own, limit):
                output = f"{request.stage_folder}/hits-{number}"
                yield _ProbeTask(self.view.store.spec, read, self.index, partition_path, files, runs, output)
                number += 1


@dataclass(frozen=True, slots=True)
class _ProbeTask:
    store: StoreSpec
    read: SliceRead
    index: SimpleIndex
    partition_path: str
    slices: tuple[FileSlice, ...]
    runs: tuple[StagedRun, ...]
    output: str


def probe(task: _ProbeTask, context: TaskContext) -> list[StagedHits]:
    """Search the staged keys in a few file slices of one partition. Runs on a worker."""
    store = open_store(task.store)
    incoming = _Incoming.load(store, task)
    found = []
    for file_slice in task.slices:
        rows, routes = incoming.find(store, file_slice, task)
        if len(rows):
            found.append((task.partition_path, file_slice.file_id, rows, routes))
    return write_hits(store, f"{task.output}-{context.attempt}.arrow", found)


@dataclass(frozen=True, slots=True)
class _Incoming:
    """The staged rows that a task searches: their keys, and the columns that decide whether a record moves."""

    rows: pa.Table
    ordinals: Rows
    unique_keys: pa.StringArray
    codes: npt.NDArray[np.int32]

    @classmethod
    def load(cls, store: Store, task: _ProbeTask) -> _Incoming:
        columns = [RECORD_KEY]
        if task.index.is_global:
            columns += [KIND, PARTITION_PATH, *task.read.merger.ordering_columns]
        with StageReader(store, columns) as reader:
            batches = [reader.read(run) for run in task.runs]
        rows = pa.Table.from_batches(batches)
        ordinals = [np.arange(run.start, run.start + run.rows) for run in task.runs]
        keys = rows[RECORD_KEY].combine_chunks().dictionary_encode()
        return cls(rows, np.concatenate(ordinals), keys.dictionary, np.asarray(keys.indices))

    def find(self, store: Store, file_slice: FileSlice, task: _ProbeTask) -> tuple[Rows, npt.NDArray[np.int8]]:
        """Return the ordinals, ascending, of the rows whose key is in the file slice, and the route of each row."""
        decide_moves = task.index.is_global and task.index.update_partition_path
        stored_row = np.full(len(self.unique_keys), -1)
        kept: list[pa.Table] = []
        count = 0
        for batch in self._stored(store, file_slice, task, decide_moves=decide_moves):
            places = pc.index_in(batch[RECORD_KEY].combine_chunks(), value_set=self.unique_keys)
            matched = np.asarray(pc.is_valid(places))
            stored_row[np.asarray(places.drop_null())] = count + np.arange(int(matched.sum()))
            count += int(matched.sum())
            if decide_moves:
                kept.append(batch.filter(pa.array(matched)))
        hits = np.flatnonzero(stored_row[self.codes] >= 0)
        if not task.index.is_global or not len(hits):
            return self.ordinals[hits], np.zeros(len(hits), np.int8)
        stored = stored_row[self.codes[hits]]
        routes = self._routes(hits, pa.concat_tables(kept).take(pa.array(stored)) if kept else None, task)
        order = np.argsort(self.ordinals[hits])
        return self.ordinals[hits][order], routes[order]

    def _stored(
        self, store: Store, file_slice: FileSlice, task: _ProbeTask, *, decide_moves: bool
    ) -> Iterator[pa.Table]:
        """Yield the stored keys, with ordering values if these decide moves; a global index reads merged records."""
        columns = (RECORD_KEY, *(task.read.merger.ordering_columns if decide_moves else ()))
        if task.index.is_global and file_slice.log_files:
            yield from read_file_slice(store, file_slice, replace(task.read, columns=columns))
            return
        base = file_slice.base_file
        if base is not None and not self._outside(store, base):
            names = task.read.stored.names_at(base.instant_time)
            yield from read_base_file(
                store, base, task.read.schema, columns=columns, batch_rows=_KEY_BATCH_ROWS, names=names
            )
        if file_slice.log_files:
            yield pa.table({RECORD_KEY: logged_keys(store, file_slice, task.read)})

    def _routes(self, hits: Rows, stored: pa.Table | None, task: _ProbeTask) -> npt.NDArray[np.int8]:
        """Return the route of each hit of a global look-up."""
        newer = self.rows.take(pa.array(hits))
        elsewhere = np.asarray(pc.not_equal(newer[PARTITION_PATH], task.partition_path).combine_chunks())
        routes = np.full(len(hits), np.int8(Route.UPDATE))
        if stored is None:
            return routes
        wins = task.read.merger.newer_wins(stored, newer)
        kinds = np.asarray(newer[KIND].combine_chunks())
        deletes = kinds != Kind.ROW
        routes[elsewhere & ~deletes & wins] = Route.MOVE
        routes[elsewhere & ~deletes & ~wins] = Route.DROP
        return routes

    def _outside(self, store: Store, file: BaseFile) -> bool:
        """Return whether no incoming key is in the key range that the file's footer stores."""
        if len(self.unique_keys) == 0:
            return True
        with open_base_file(store, file) as (parquet, _):
            footer = parquet.metadata.metadata or {}
        low, high = footer.get(MIN_KEY_FOOTER_KEY.encode()), footer.get(MAX_KEY_FOOTER_KEY.encode())
        if not low or not high or not low.isascii() or not high.isascii():
            return False  # Beyond ASCII the JVM's order of keys is not byte order.
        bounds = pc.min_max(self.unique_keys)
        return bool(bounds["max"].as_py().encode() < low or bounds["min"].as_py().encode() > high)


def _make(_view: TableView, _properties: Mapping[str, str]) -> SimpleIndex:
    return SimpleIndex()


# The type is not stored: a JVM writer may then choose another index that keeps keys unique in each partition.
SIMPLE: Final = IndexKind(name="simple", types=("SIMPLE",), make=_make, stores_type=False)
