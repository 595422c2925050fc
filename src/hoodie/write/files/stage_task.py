"""Stage the rows of a bulk write, so that rows of several tasks share a file; then write the staged rows to files.

Both callables run in workers. Rows keep the order in which the tasks got them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import TaskContext
from hoodie.files.staging.staged import StagedRun, StageReader, StageWriter
from hoodie.records.change import PARTITION_PATH, change_schema
from hoodie.storage import explained, open_store
from hoodie.write.context import WriteContext
from hoodie.write.files.bulk_task import BulkFiles, BulkWrite
from hoodie.write.files.written import RowCounts, Written
from hoodie.write.prepare import without_deletes

_SEEN_BYTES = 64 * 1024 * 1024
"""Arrow bytes of a task's rows that decide whether the task stages them."""
_GATHER_BYTES = 16 * 1024 * 1024

Piece = tuple[StagedRun, ...]
"""Runs of one partition path: the rows of one file."""


@dataclass(frozen=True, slots=True)
class StagedOrWritten:
    """What one task did with its rows: staged them, or wrote them to files."""

    task: int
    runs: tuple[StagedRun, ...] = ()
    written: Written = field(default_factory=Written)


@dataclass(frozen=True, slots=True)
class StageOrWrite:
    """Consumer for `Engine.process`: stage the rows of one task in `folder`, or write them to files at once.

    `stages_all`: every task stages. Otherwise a task whose first 64 MiB of rows have one partition path writes, because
    its file is no small one. `stages_few`: it stages its rows if they are fewer than that. Memory: 64 MiB of rows, or
    as `BulkWrite`.
    """

    context: WriteContext
    folder: str
    stages_all: bool
    stages_few: bool

    def __call__(self, batches: Iterator[pa.RecordBatch], attempt: TaskContext) -> list[StagedOrWritten]:
        """Stage or write all rows; deletes are skipped, because there are no stored rows to delete."""
        if not self.stages_all:
            first, is_all = _first(batches)
            batches = itertools.chain(first, batches)
            if not (is_all and self.stages_few) and _has_one_path(first):
                return [
                    StagedOrWritten(attempt.partition, written=found)
                    for found in BulkWrite(self.context)(batches, attempt)
                ]
        return [self._stage(batches, attempt)]

    def _stage(self, batches: Iterator[pa.RecordBatch], attempt: TaskContext) -> StagedOrWritten:
        store, schema = open_store(self.context.store), change_schema(self.context.schema)
        path = f"{self.folder}/bulk-{attempt.partition}-{attempt.stage}-{attempt.attempt}.arrow"
        counts = RowCounts()
        writer: StageWriter | None = None
        runs: list[StagedRun] = []
        for batch in batches:
            rows = without_deletes(batch.select(schema.names))
            counts.ignored += batch.num_rows - rows.num_rows
            with explained(store.uri(self.folder)):
                writer = writer or StageWriter(store, path, schema, by_hash=False)
                writer.write(rows)
        if writer is not None:
            with explained(store.uri(self.folder)):
                runs = writer.close()
        return StagedOrWritten(attempt.partition, tuple(runs), Written(counts=counts))


@dataclass(frozen=True, slots=True)
class WritePieces:
    """Callable for `Engine.run`: write each piece to a new file group, or to several if a file becomes full.

    `first_task`: the sequence numbers of rows have task numbers from here on, as earlier tasks of the write have lower
    ones. Memory: one row group, 16 MiB of rows, and one batch.
    """

    context: WriteContext
    first_task: int

    def __call__(self, pieces: Sequence[Piece], attempt: TaskContext) -> Written:
        """Write the pieces one after another."""
        store, counts = open_store(self.context.store), RowCounts()
        task = self.first_task + attempt.partition
        with (
            explained(self.context.store.uri),
            StageReader(store) as reader,
            BulkFiles(store, self.context, attempt, counts, numbers=task) as files,
        ):
            for piece in pieces:
                for rows in _rows(reader, piece):
                    files.write(rows)
                files.finish()
            return files.close()


def _first(batches: Iterator[pa.RecordBatch]) -> tuple[list[pa.RecordBatch], bool]:
    """Take the first batches, up to 64 MiB; return them, and whether they are all."""
    found: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in batches:
        found.append(batch)
        size_bytes += batch.nbytes
        if size_bytes >= _SEEN_BYTES:
            return found, False
    return found, True


def _has_one_path(batches: Sequence[pa.RecordBatch]) -> bool:
    paths = pa.chunked_array([batch.column(PARTITION_PATH) for batch in batches], pa.string())
    return bool(pc.count_distinct(paths).as_py() <= 1)


def _rows(reader: StageReader, piece: Piece) -> Iterator[pa.Table]:
    """Yield the rows of a piece in tables of about 16 MiB."""
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for run in piece:
        held.append(reader.read(run))
        held_bytes += held[-1].nbytes
        if held_bytes >= _GATHER_BYTES:
            yield pa.Table.from_batches(held)
            held, held_bytes = [], 0
    if held:
        yield pa.Table.from_batches(held)
