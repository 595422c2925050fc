"""Write one file group: stream its base file, merge the changes in, append the inserts. Runs in a worker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import TaskContext
from hoodie.files.base_file import BaseFileWriter, read_base_file
from hoodie.files.markers import write_marker
from hoodie.files.partition_folder import ensure_partition_metadata
from hoodie.files.slices import join_path
from hoodie.files.staged import StageReader
from hoodie.format.commit_metadata import NULL_COMMIT, RuntimeStats, WriteStat
from hoodie.format.filenames import BaseFileName, IoType, new_file_id, write_token
from hoodie.format.table_schema import with_meta_fields
from hoodie.index import Route
from hoodie.records.change import KIND, RECORD_KEY, Kind, change_schema
from hoodie.records.key_hash import spread
from hoodie.storage import Store, open_store
from hoodie.write.context import WriteContext
from hoodie.write.plan import FileTask
from hoodie.write.stamping import SequenceNumbers, Stamper

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Callable for `Engine.run`: writes the file group of a task.

    Memory: the task's changes, one row group of the base file and one of the new file; not the base file.
    """

    context: WriteContext

    def __call__(self, task: FileTask, attempt: TaskContext) -> WriteStat | None:
        """Write the new base file and say what it holds; None if there was nothing to write."""
        started = time.monotonic()
        store = open_store(self.context.store)
        changes = _load_changes(store, self.context, task)
        if task.base_file is None:
            changes = changes.filter(pc.equal(changes[KIND], int(Kind.ROW)))
        if changes.num_rows == 0:
            return None
        file_id = task.base_file.file_id if task.base_file else new_file_id(uuid.uuid4(), 0)
        name = BaseFileName(file_id, _token(attempt), self.context.instant_time).name
        path = join_path(task.partition_path, name)
        numbers = SequenceNumbers(self.context.instant_time, attempt.partition)
        stamper = Stamper(self.context.schema, self.context.instant_time, numbers, task.partition_path, name)
        ensure_partition_metadata(store, task.partition_path, self.context.instant_time)
        write_marker(store, self.context.instant_time, path, IoType.MERGE if task.base_file else IoType.CREATE)
        merge = _FileMerge(self.context, changes, stamper)
        schema = with_meta_fields(self.context.schema)
        with BaseFileWriter(store, path, schema, self.context.parquet) as writer:
            if task.base_file is not None:
                for stored in read_base_file(store, task.base_file.path, schema):
                    writer.write(merge.merge(stored))
            for rows in merge.inserts():
                writer.write(rows)
        return merge.stat(task, path, writer, file_id, started)


def _token(attempt: TaskContext) -> str:
    return write_token(attempt.partition, attempt.stage, attempt.attempt)


class _FileMerge:
    """The merge of one file: which incoming key met a stored row, and how many did what."""

    def __init__(self, context: WriteContext, changes: pa.Table, stamper: Stamper) -> None:
        self._context = context
        self._changes = changes
        self._keys = changes[RECORD_KEY].combine_chunks()
        self._met = np.zeros(changes.num_rows, np.bool_)
        self._data = context.schema.names
        self._stamper = stamper
        self.updated = 0
        self.deleted = 0
        self.inserted = 0

    def merge(self, stored: pa.Table) -> pa.Table:
        """The rows that take the place of `stored`, in its order."""
        if not self._context.combine:
            return self._stamper.kept_rows(stored)
        places = pc.index_in(stored[RECORD_KEY].combine_chunks(), value_set=self._keys)
        here = np.flatnonzero(np.asarray(pc.is_valid(places)))
        kept = self._stamper.kept_rows(stored)
        if not len(here):
            return kept
        incoming = np.asarray(places.drop_null())
        self._met[incoming] = True
        older = stored.select(self._data).take(pa.array(here))
        merged = self._context.merger.merge(older, self._changes.take(pa.array(incoming)))
        self.updated += int(merged.replaced.sum())
        self.deleted += int(merged.deleted.sum())
        source = np.arange(stored.num_rows)
        source[here[merged.replaced]] = stored.num_rows + np.arange(merged.rows.num_rows)
        if merged.deleted.any():
            source = np.delete(source, here[merged.deleted])
        return pa.concat_tables([kept, self._stamper.new_rows(merged.rows)]).take(pa.array(source))

    def inserts(self) -> Iterator[pa.Table]:
        """Rows whose key no stored row had; deletes of unknown keys have nothing to do."""
        kinds = np.asarray(self._changes[KIND].combine_chunks())
        new = np.flatnonzero(~self._met & (kinds == Kind.ROW))
        self.inserted = len(new)
        step = 256 * 1024
        for start in range(0, len(new), step):
            yield self._stamper.new_rows(self._changes.take(pa.array(new[start : start + step])))

    def stat(self, task: FileTask, path: str, writer: BaseFileWriter, file_id: str, started: float) -> WriteStat:
        """What the commit metadata says of the new file."""
        millis = int((time.monotonic() - started) * 1000)
        runtime = (
            RuntimeStats(total_upsert_time_ms=millis) if task.base_file else RuntimeStats(total_create_time_ms=millis)
        )
        return WriteStat(
            file_id=file_id,
            path=path,
            prev_commit=task.base_file.instant_time if task.base_file else NULL_COMMIT,
            prev_base_file=task.base_file.name if task.base_file else None,
            num_writes=writer.rows,
            num_deletes=self.deleted,
            num_update_writes=self.updated,
            num_inserts=self.inserted,
            total_write_bytes=writer.size_bytes,
            file_size_bytes=writer.size_bytes,
            partition_path=task.partition_path,
            runtime_stats=runtime,
        )


def _load_changes(store: Store, context: WriteContext, task: FileTask) -> pa.Table:
    """The task's changes, one per key where the write combines duplicates; later rows are newer."""
    schema = change_schema(context.schema)
    with StageReader(store) as reader:
        parts = [*_updates(reader, task), *_inserts(reader, task)]
    if not parts:
        return schema.empty_table()
    changes = pa.concat_tables(parts).combine_chunks()
    return context.merger.reduce(changes) if context.combine else changes


def _updates(reader: StageReader, task: FileTask) -> Iterator[pa.Table]:
    """Rows that the index found in this file group; a row that moves away is here a delete."""
    if task.hits is None:
        return
    found = reader.read(task.hits)
    ordinals, routes = np.asarray(found.column("row")), np.asarray(found.column("route"))
    ordinals, routes = ordinals[routes != Route.DROP], routes[routes != Route.DROP]
    for run in task.runs:
        first, last = np.searchsorted(ordinals, [run.start, run.start + run.rows])
        if first == last:
            continue
        rows = pa.Table.from_batches([reader.read(run)]).take(pa.array(ordinals[first:last] - run.start))
        moves = routes[first:last] == Route.MOVE
        if moves.any():
            kinds = np.where(moves, np.int8(Kind.DELETE), np.asarray(rows[KIND].combine_chunks())).astype(np.int8)
            rows = rows.set_column(0, rows.schema.field(0), pa.array(kinds))
        yield rows


def _inserts(reader: StageReader, task: FileTask) -> Iterator[pa.Table]:
    """This file group's share of the partition's rows that the index found nowhere, or that move here."""
    if task.inserts is None:
        return
    taken = _taken(reader, task)
    for run in task.runs:
        if run.partition_path != task.partition_path:
            continue
        batch = reader.read(run)
        mine = np.ones(run.rows, np.bool_)
        first, last = np.searchsorted(taken, [run.start, run.start + run.rows])
        mine[taken[first:last] - run.start] = False
        if task.inserts.start > 0 or task.inserts.end < 1 << 32:
            hashes = spread(batch.column(RECORD_KEY))
            mine &= (hashes >= task.inserts.start) & (hashes < task.inserts.end)
        if mine.any():
            yield pa.Table.from_batches([batch]).filter(pa.array(mine))


def _taken(reader: StageReader, task: FileTask) -> Rows:
    """Ordinals, ascending, of rows that are no inserts: updated somewhere, or dropped."""
    found = [np.zeros(0, np.int64)]
    for hits in task.all_hits:
        batch = reader.read(hits)
        found.append(np.asarray(batch.column("row"))[np.asarray(batch.column("route")) != Route.MOVE])
    return np.unique(np.concatenate(found))
