"""Write the rows of a bulk write from the caller's data to new base files. Runs in workers.

`BulkWrite` writes them directly, in one pass. `StageOrWrite` stages rows, so that rows of several tasks share a file;
then `WritePieces` writes the staged rows to files. Rows keep the order in which the tasks got them.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
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
from hoodie.format.filenames import BaseFileName, IoType, new_file_id
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.index.record.entries import EntryWriter
from hoodie.records.change import PARTITION_PATH, RECORD_KEY, change_schema
from hoodie.storage import Started, Store, explained, open_store, together
from hoodie.write.files.context import RowCounts, WriteContext, Written, stat_of
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
        counts, schema = RowCounts(), change_schema(self.context.schema)
        store = open_store(self.context.store)
        with (
            EncodingThreads(self.threads) if self.threads > 1 else nullcontext() as threads,
            _BulkFiles(store, self.context, attempt, attempt.partition, counts, threads) as files,
        ):
            for rows in _gathered(_kept(batches, schema, counts), schema):
                with explained(self.context.store.uri):
                    files.write(rows)
            with explained(self.context.store.uri):
                return [files.close()]


@dataclass
class _BulkFiles:
    """The open files of one task, by partition path. A context manager: files that are still open are abandoned.

    `number`: of the task, in the sequence numbers of its rows.
    """

    store: Store
    context: WriteContext
    attempt: TaskContext
    number: int
    counts: RowCounts
    threads: EncodingThreads | None = None

    def __post_init__(self) -> None:
        self._numbers = SequenceNumbers(self.context.instant_time, self.number)
        self._entries = EntryWriter(self.store, self.context.entries, self.attempt)
        self._unique = uuid.uuid4()
        self._open: dict[str, _OpenFile] = {}
        self._started = 0
        self._done: list[WriteStat] = []

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
        current.writer.write(current.stamper.new_rows(rows))
        self._entries.put(rows[RECORD_KEY], partition_path, current.file_id)
        if current.writer.written_bytes >= self.context.sizing.max_file_bytes:
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
            self._done += together(self.store, *(file.close for file in files.values()))
        except BaseException:
            self._open = files
            raise

    def close(self) -> Written:
        """Finish all open files and return what was written."""
        self.finish()
        return Written.of(self._done, self._entries, self.counts)

    def _start(self, partition_path: str) -> _OpenFile:
        file_id = new_file_id(self._unique, self._started)
        self._started += 1
        instant_time = self.context.instant_time
        name = BaseFileName(file_id, self.attempt.write_token, instant_time).name
        path = join_path(partition_path, name)
        announced = Started(
            self.store,
            partial(ensure_partition_metadata, self.store, partition_path, instant_time, is_likely_new=True),
            partial(write_marker, self.store, instant_time, path, IoType.CREATE),
        )
        if not self.store.spec.is_remote:
            announced.finish()  # an object appears when its file is closed, a file on a disk when it is opened
        schema = with_meta_fields(self.context.schema)
        same = {COMMIT_TIME: instant_time, PARTITION_PATH: partition_path, FILE_NAME: name}
        try:
            writer = BaseFileWriter(self.store, path, schema, self.context.parquet, same, self.threads)
        except BaseException:
            announced.drop()
            raise
        stamper = Stamper(self.context.schema, self._numbers, {})
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
                    self.store.delete(file.writer.path)  # no rollback would find it


@dataclass(slots=True)
class _OpenFile:
    partition_path: str
    file_id: str
    writer: BaseFileWriter
    stamper: Stamper
    started: float
    announced: Started
    """The partition's metadata and the marker."""

    def close(self) -> WriteStat:
        self.announced.finish()
        self.writer.close()
        return stat_of(self.writer, self.file_id, self.partition_path, self.started)


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
            paths = pa.chunked_array([batch.column(PARTITION_PATH) for batch in first], pa.string())
            if not (is_all and self.stages_few) and pc.count_distinct(paths).as_py() <= 1:
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
        for rows in _kept(batches, schema, counts):
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
        number = self.first_task + attempt.partition
        with (
            explained(self.context.store.uri),
            StageReader(store) as reader,
            _BulkFiles(store, self.context, attempt, number, counts) as files,
        ):
            for piece in pieces:
                for rows in _gathered(map(reader.read, piece)):
                    files.append(piece[0].partition_path, rows)
                files.finish()
            return files.close()


def _kept(batches: Iterator[pa.RecordBatch], schema: pa.Schema, counts: RowCounts) -> Iterator[pa.RecordBatch]:
    """Yield the rows that are stored, with the columns of the schema; others are counted as ignored."""
    for batch in batches:
        rows = without_deletes(batch.select(schema.names))
        counts.ignored += batch.num_rows - rows.num_rows
        yield rows


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


def _gathered(batches: Iterable[pa.RecordBatch], schema: pa.Schema | None = None) -> Iterator[pa.Table]:
    """Yield the rows in tables of about 16 MiB."""
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes >= _GATHER_BYTES:
            yield pa.Table.from_batches(held, schema)
            held, held_bytes = [], 0
    if held:
        yield pa.Table.from_batches(held, schema)
