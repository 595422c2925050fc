"""Read the staged changes of one file task: its updates, and its share of the inserts in parts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.files.staging.staged import StagedHits, StagedRun, StageReader
from hoodie.format.schema.conform import conform
from hoodie.format.schema.required import Paths, loosened, paths_with_null
from hoodie.index import Route
from hoodie.index.api import HashRange, PlacedRows
from hoodie.records.change import KIND, RECORD_KEY, Kind, change_schema
from hoodie.records.keys.automatic_keys import with_commit_time
from hoodie.records.keys.sorting import HASH_END, spread
from hoodie.storage import Store
from hoodie.write.files.context import RowCounts, WriteContext
from hoodie.write.plan import FileTask, TaggedRows

Rows = npt.NDArray[np.int64]
_PART_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class TaskChanges:
    """The staged changes of one file task; one change per key if the write combines duplicates.

    Rows that no table contains are added to `counts`: duplicates, and deletes of keys that the table does not have.
    """

    store: Store
    context: WriteContext
    rows: TaggedRows
    task: FileTask
    counts: RowCounts

    def parts(self) -> Iterator[pa.Table]:
        """Yield all changes in parts that share no key; nothing if there is nothing to do.

        All updates are in the first part. Memory: the updates, and about 64 MiB of inserts.
        """
        updates, inserts = self.updates(), self.inserts()
        if updates is not None:
            # The first part also has the first inserts, so that one pass over the base file is enough for both.
            yield pa.concat_tables([updates, *itertools.islice(inserts, 1)])
        yield from inserts

    def updates(self) -> pa.Table | None:
        """Return the updates and deletes; None if there are none. Memory: all of them."""
        with StageReader(self.store) as reader:
            found = list(_updates(reader, self.task, self.rows.runs_for(self.task.partition_path)))
        return self._combined(found) if found else None

    def inserts(self) -> Iterator[pa.Table]:
        """Yield the task's share of the inserts, in parts that share no key. Memory: about 64 MiB."""
        task = self.task
        runs = [run for run in self.rows.runs_for(task.partition_path) if run.partition_path == task.partition_path]
        parts = _parts(task, runs)
        with StageReader(self.store) as reader:
            if isinstance(task.inserts, PlacedRows):
                are_inserts, hits = True, task.inserts.hits
            else:
                are_inserts, hits = False, self.rows.hits_for(task.partition_path) if parts else ()
            listed = _taken(reader, hits, runs)
            for hashes in parts:
                found = list(_inserts(reader, runs, hashes, listed, are_inserts=are_inserts))
                if not found:
                    continue
                combined = self._combined(found)
                changes = combined.filter(pc.equal(combined[KIND], int(Kind.ROW)))
                self.counts.ignored += combined.num_rows - changes.num_rows
                if changes.num_rows:
                    yield _with_keys(self.context, changes)

    def _combined(self, found: Sequence[pa.Table]) -> pa.Table:
        changes = _settled(self.context, pa.concat_tables(found).combine_chunks())
        if not self.context.combine:
            return changes
        combined = self.context.merger.reduce(changes)
        self.counts.duplicates += changes.num_rows - combined.num_rows
        return combined


def _settled(context: WriteContext, changes: pa.Table) -> pa.Table:
    """Return the changes in the types of the written schema.

    They were staged before all rows were seen, so their nested types may allow null where the schema does not again.
    """
    written = {field.name: field for field in change_schema(context.schema)}
    schema = pa.schema([written.get(field.name, field) for field in changes.schema])
    loose = loosened(schema, changes.schema)
    return conform(_without_lacking_values(changes, loose) if loose else changes, schema)


def _without_lacking_values(changes: pa.Table, loose: Paths) -> pa.Table:
    """Return the changes without the nested values of deletes in columns where a delete has a null at a loose path."""
    is_row = pc.equal(changes[KIND], int(Kind.ROW))
    lacking = paths_with_null(changes.filter(pc.invert(is_row)), loose)
    rows = pc.if_else(is_row, pa.array(np.arange(changes.num_rows)), None)
    for name in {path.split(".")[0] for path in lacking}:
        place = changes.schema.get_field_index(name)
        changes = changes.set_column(place, changes.schema.field(place), changes.column(place).take(rows))
    return changes


def _with_keys(context: WriteContext, inserts: pa.Table) -> pa.Table:
    """Return the inserts with their record keys; automatic keys get their commit time here."""
    if not context.has_automatic_keys:
        return inserts
    place = inserts.schema.get_field_index(RECORD_KEY)
    keys = with_commit_time(inserts.column(place), context.instant_time)
    return inserts.set_column(place, inserts.schema.field(place), keys)


def _parts(task: FileTask, runs: Sequence[StagedRun]) -> list[HashRange]:
    """Split the task's hash range of inserts into ranges of about 64 MiB of rows each."""
    if task.inserts is None:
        return []
    if isinstance(task.inserts, PlacedRows):
        start, end = 0, HASH_END
        size_bytes = sum(run.size_bytes for run in runs) * task.insert_rows / max(sum(run.rows for run in runs), 1)
    else:
        start, end = task.inserts.start, task.inserts.end
        size_bytes = sum(
            run.size_bytes
            * max(min(run.hash_end, end) - max(run.hash_start, start), 0)
            / (run.hash_end - run.hash_start)
            for run in runs
        )
    count = min(max(-(-int(size_bytes) // _PART_BYTES), 1), end - start)
    bounds = [start + (end - start) * number // count for number in range(count + 1)]
    return [HashRange(first, last) for first, last in itertools.pairwise(bounds)]


def _updates(reader: StageReader, task: FileTask, runs: Sequence[StagedRun]) -> Iterator[pa.Table]:
    """Yield the rows that the index found in this file group; a row that moves to another partition is a delete."""
    if not task.hits:
        return
    found = [reader.read(hits) for hits in task.hits]
    ordinals = np.concatenate([np.asarray(batch.column("row")) for batch in found])
    routes = np.concatenate([np.asarray(batch.column("route")) for batch in found])
    order = np.flatnonzero(routes != Route.DROP)
    order = order[np.argsort(ordinals[order], kind="stable")]
    ordinals, routes = ordinals[order], routes[order]
    for run in runs:
        first, last = np.searchsorted(ordinals, [run.start, run.start + run.rows])
        if first == last:
            continue
        rows = reader.read_some(run, ordinals[first:last] - run.start)
        moves = routes[first:last] == Route.MOVE
        if moves.any():
            kinds = np.where(moves, np.int8(Kind.DELETE), np.asarray(rows[KIND].combine_chunks())).astype(np.int8)
            rows = rows.set_column(0, rows.schema.field(0), pa.array(kinds))
        yield rows


def _inserts(
    reader: StageReader, runs: Sequence[StagedRun], hashes: HashRange, listed: Rows, *, are_inserts: bool
) -> Iterator[pa.Table]:
    """Yield the inserts of a range of key hashes from the partition's runs.

    `listed`: ascending ordinals of the rows that are inserts, or (not `are_inserts`) of those that are none.
    """
    for run in runs:
        first, last = np.searchsorted(listed, [run.start, run.start + run.rows])
        mine = np.full(run.rows, not are_inserts)
        mine[listed[first:last] - run.start] = are_inserts
        if run.hash_end <= hashes.start or run.hash_start >= hashes.end or not mine.any():
            continue
        batch = reader.read(run)
        if run.hash_start < hashes.start or run.hash_end > hashes.end:
            found = spread(batch.column(RECORD_KEY))
            mine &= (found >= hashes.start) & (found < hashes.end)
        if mine.any():
            yield pa.Table.from_batches([batch]).filter(pa.array(mine))


def _taken(reader: StageReader, all_hits: Sequence[StagedHits], runs: Sequence[StagedRun]) -> Rows:
    """Return the ascending ordinals of rows that are not inserts: updates and dropped rows.

    The result has all such rows of the runs; it may have others.
    """
    found = [np.zeros(0, np.int64)]
    for hits in all_hits:
        if not any(hits.first < run.start + run.rows and run.start <= hits.last for run in runs):
            continue
        batch = reader.read(hits)
        found.append(np.asarray(batch.column("row"))[np.asarray(batch.column("route")) != Route.MOVE])
    return np.unique(np.concatenate(found))
