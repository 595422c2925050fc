"""Write the rows of a bulk write from the caller's data to new base files. Runs in workers.

`BulkWrite` writes them directly, in one pass. `StageOrWrite` stages rows, so that rows of several tasks share a file;
then `WritePieces` writes the staged rows to files. Rows keep the order in which the tasks got them.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import TaskContext
from hoodie.files.base_file import BaseFileWriter
from hoodie.files.encoding_threads import EncodingThreads
from hoodie.files.markers import write_marker
from hoodie.files.partition_folder import ensure_partition_metadata
from hoodie.files.slices import join_path
from hoodie.files.staging.staged import StagedRun, StageReader, StageWriter, split_by_partition
from hoodie.files.stamping import COMMIT_TIME, FILE_NAME, SequenceNumbers, Stamper
from hoodie.format.filenames import BaseFileName, IoType, new_file_id, write_token
from hoodie.format.instants.commit_metadata import RuntimeStats, WriteStat
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.index.record.entries import EntryWriter
from hoodie.records.change import PARTITION_PATH, RECORD_KEY, change_schema
from hoodie.storage import Started, Store, explained, open_store, together
from hoodie.write.files.context import RowCounts, WriteContext, Written
from hoodie.write.staging import without_deletes

_GATHER_BYTES = 16 * 1024 * 1024
_HELD_BYTES_MAX = 256 * 1024 * 1024
_OPEN_FILES_MAX = 200


@dataclass(frozen=True, slots=True)
class BulkWrite:
    """Consumer for `Engine.process`: write the change batches of one task to new file groups.

    Each task has one open file per partition, and starts the next file when it is full. Memory: 256 MiB for all open
    files. If one task writes to hundreds of partitions, this limit makes row groups small; then sort by partition.

    `threads`: above 1, so many threads encode row groups, and the task reads and prepares rows; for a write of one task
    in this process. Memory: a row group more for each thread, and one.
    """

    context: WriteContext
    threads: int = 1

    def __call__(self, batches: Iterator[pa.RecordBatch], attempt: TaskContext) -> list[Written]:
        """Write all rows; deletes are skipped, because there are no stored rows to delete."""
        counts = RowCounts()
        with (
            EncodingThreads(self.threads) if self.threads > 1 else nullcontext() as threads,
            _BulkFiles(open_store(self.context.store), self.context, attempt, counts, threads=threads) as files,
        ):
            schema = change_schema(self.context.schema)
            gathered: list[pa.RecordBatch] = []
            gathered_bytes = 0
            for batch in batches:
                gathered.append(without_deletes(batch.select(schema.names)))
                counts.ignored += batch.num_rows - gathered[-1].num_rows
                gathered_bytes += batch.nbytes
                if gathered_bytes >= _GATHER_BYTES:
                    with explained(self.context.store.uri):
                        files.write(pa.Table.from_batches(gathered, schema))
                    gathered, gathered_bytes = [], 0
            with explained(self.context.store.uri):
                if gathered:
                    files.write(pa.Table.from_batches(gathered, schema))
                return [files.close()]


class _BulkFiles:
    """The open files of one task, by partition path. A context manager: files that are still open are abandoned.

    `numbers`: the number of the task in the sequence numbers of its rows; default is the attempt's number.
    """

    def __init__(
        self,
        store: Store,
        context: WriteContext,
        attempt: TaskContext,
        counts: RowCounts,
        *,
        numbers: int | None = None,
        threads: EncodingThreads | None = None,
    ) -> None:
        self._store = store
        self._threads = threads
        self._counts = counts
        self._context = context
        self._attempt = attempt
        self._numbers = SequenceNumbers(context.instant_time, attempt.partition if numbers is None else numbers)
        self._unique = uuid.uuid4()
        self._count = 0
        self._open: dict[str, _OpenFile] = {}
        self._done: list[WriteStat] = []
        self._entries = EntryWriter(store, context.entries, attempt) if context.entries is not None else None

    def write(self, rows: pa.Table) -> None:
        """Append rows to the open files of their partition paths."""
        if rows.num_rows:
            for partition_path, part in split_by_partition(rows):
                self.append(partition_path, part)

    def append(self, partition_path: str, rows: pa.Table) -> None:
        """Append rows of one partition path to its open file."""
        if partition_path not in self._open:
            if len(self._open) >= _OPEN_FILES_MAX:
                self._finish(max(self._open, key=lambda path: self._open[path].writer.rows))
            self._open[partition_path] = self._start(partition_path)
        current = self._open[partition_path]
        current.write(rows)
        if self._entries is not None:
            self._entries.put(rows[RECORD_KEY], partition_path, current.file_id)
        if current.writer.written_bytes >= self._context.sizing.max_file_bytes:
            self._finish(partition_path)
        held = sum(file.writer.held_bytes for file in self._open.values())
        while held > _HELD_BYTES_MAX:
            # The largest row groups: small ones may still become larger.
            largest = max((file.writer for file in self._open.values()), key=lambda writer: writer.held_bytes)
            held -= largest.held_bytes
            largest.flush()

    def finish(self) -> None:
        """Finish all open files: rows that follow are written to new files."""
        for file in self._open.values():
            file.writer.flush()
        files, self._open = self._open, {}
        try:
            self._done += together(self._store, *(file.close for file in files.values()))
        except BaseException:
            self._open = files
            raise

    def close(self) -> Written:
        """Finish all open files and return what was written."""
        self.finish()
        return Written.of(self._done, self._entries.close() if self._entries is not None else None, self._counts)

    def _start(self, partition_path: str) -> _OpenFile:
        file_id = new_file_id(self._unique, self._count)
        self._count += 1
        attempt, instant_time = self._attempt, self._context.instant_time
        name = BaseFileName(file_id, write_token(attempt.partition, attempt.stage, attempt.attempt), instant_time).name
        path = join_path(partition_path, name)
        announced = Started(
            self._store,
            partial(ensure_partition_metadata, self._store, partition_path, instant_time, is_likely_new=True),
            partial(write_marker, self._store, instant_time, path, IoType.CREATE),
        )
        if not self._store.spec.is_remote:
            announced.finish()  # an object appears when its file is closed, a file on a disk when it is opened
        schema = with_meta_fields(self._context.schema)
        same = {COMMIT_TIME: instant_time, PARTITION_PATH: partition_path, FILE_NAME: name}
        try:
            writer = BaseFileWriter(self._store, path, schema, self._context.parquet, same, self._threads)
        except BaseException:
            announced.drop()
            raise
        stamper = Stamper(self._context.schema, self._numbers, {})
        return _OpenFile(partition_path, file_id, writer, stamper, time.monotonic(), announced)

    def _finish(self, partition_path: str) -> None:
        self._done.append(self._open[partition_path].close())
        del self._open[partition_path]

    def __enter__(self) -> _BulkFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            is_marked = file.announced.drop()
            file.writer.abandon()
            if not is_marked:
                with suppress(Exception):
                    self._store.delete(file.writer.path)  # no rollback would find it


@dataclass(slots=True)
class _OpenFile:
    partition_path: str
    file_id: str
    writer: BaseFileWriter
    stamper: Stamper
    started: float
    announced: Started
    """The partition's metadata and the marker."""

    def write(self, rows: pa.Table) -> None:
        self.writer.write(self.stamper.new_rows(rows))

    def close(self) -> WriteStat:
        self.announced.finish()
        self.writer.close()
        return WriteStat(
            file_id=self.file_id,
            path=self.writer.path,
            num_writes=self.writer.rows,
            num_inserts=self.writer.rows,
            total_write_bytes=self.writer.size_bytes,
            file_size_bytes=self.writer.size_bytes,
            partition_path=self.partition_path,
            column_ranges=self.writer.ranges,
            runtime_stats=RuntimeStats(total_create_time_ms=int((time.monotonic() - self.started) * 1000)),
        )


_SEEN_BYTES = 64 * 1024 * 1024
"""Arrow bytes of a task's rows that decide whether the task stages them."""

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
    memory: str | None = None
    """As for `StageWriter`."""

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
                writer = writer or StageWriter(store, path, schema, by_hash=False, memory=self.memory)
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
            _BulkFiles(store, self.context, attempt, counts, numbers=task) as files,
        ):
            for piece in pieces:
                for rows in _rows(reader, piece):
                    files.append(piece[0].partition_path, rows)
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
