"""Cluster one group of file slices: read their merged rows, order them, write new file groups. Runs in a worker."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import TaskContext
from hoodie.errors import CorruptFileError, MissingFileError
from hoodie.files.base_file import BaseFileWriter, ParquetOptions
from hoodie.files.markers import write_marker
from hoodie.files.merged_slice import SliceRead, read_file_slice
from hoodie.files.partition_folder import ensure_partition_metadata
from hoodie.files.slices import FileSlice, join_path
from hoodie.files.stamping import FILE_NAME, SequenceNumbers
from hoodie.format.filenames import BaseFileName, IoType, new_file_id, write_token
from hoodie.format.instants.commit_metadata import RuntimeStats, WriteStat
from hoodie.index.record.entries import EntryStage, EntryWriter, StagedEntries
from hoodie.records.change import RECORD_KEY
from hoodie.services.clustering.plan import RowOrder
from hoodie.services.clustering.sorting import SortLimits, sorted_rows
from hoodie.storage import Store, StoreSpec, explained, open_store

_PIECE_ROWS = 64 * 1024
"""Rows that are written at once: a file that is full by its bytes ends after such a piece."""


@dataclass(frozen=True, slots=True)
class GroupTask:
    """The file slices of one group, all in one partition, and how many base files they become."""

    slices: tuple[FileSlice, ...]
    output_files: int

    @property
    def size_bytes(self) -> int:
        """Bytes of all slices."""
        return sum(found.size_bytes for found in self.slices)


@dataclass(frozen=True, slots=True)
class Clustered:
    """The new file groups of one task, and the staged index entries of their rows."""

    stats: tuple[WriteStat, ...]
    entries: StagedEntries | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterGroup:
    """Callable for `Engine.run`: cluster one group. Picklable if the merge function is picklable.

    `number` makes the file names differ from those of other attempts at the same clustering. `entries`: where to stage
    the new locations of the keys; None without a record index. `keeps_meta`: rows keep their commit time and sequence
    number. Memory: the memory of `read_file_slice` and of `sorted_rows`, and one row group of a new file, whatever the
    size of the group.
    """

    store: StoreSpec
    read: SliceRead
    parquet: ParquetOptions
    instant_time: str
    number: int
    order: RowOrder
    limits: SortLimits
    target_bytes: int
    entries: EntryStage | None
    keeps_meta: bool = True

    def __call__(self, task: GroupTask, attempt: TaskContext) -> Clustered:
        """Write the new file groups; none if all rows of the slices are deleted.

        Raises: CorruptFileError if a file of a slice does not parse, or does not exist.
        """
        store = open_store(self.store)
        partition_path = task.slices[0].partition_path
        entries = None if self.entries is None else EntryWriter(store, self.entries, attempt)
        try:
            with (
                explained(store.uri(partition_path)),
                _Output(self, store, partition_path, attempt, task.output_files) as output,
            ):
                for file_id, rows in output.written(self._rows(store, task, output)):
                    if entries is not None:
                        entries.put(rows[RECORD_KEY], partition_path, file_id)
                stats = output.close()
        except MissingFileError as error:
            raise CorruptFileError(
                f"the clustering plan {self.instant_time} names a file that does not exist ({error}); restore the file "
                f"or roll back the plan with t.rollback({self.instant_time!r}), so that another plan can be scheduled",
                path=store.uri(partition_path),
            ) from error
        return Clustered(stats, None if entries is None else entries.close())

    def _rows(self, store: Store, task: GroupTask, output: _Output) -> Iterator[pa.Table]:
        """Yield the rows of the slices in the order of the new files."""
        pieces = (rows for found in task.slices for rows in output.counted(read_file_slice(store, found, self.read)))
        return sorted_rows(pieces, self.order, self.limits) if self.order.columns else pieces


class _Output:
    """Writes rows to one new file group after the other. A context manager: an open file is abandoned at an error."""

    def __init__(
        self, own: ClusterGroup, store: Store, partition_path: str, attempt: TaskContext, output_files: int
    ) -> None:
        self._own = own
        self._store = store
        self._partition_path = partition_path
        self._attempt = attempt
        self._output_files = output_files
        self._numbers = SequenceNumbers(own.instant_time, attempt.partition)
        self._unique = uuid.uuid4()
        self._read_rows = 0
        self._writer: BaseFileWriter | None = None
        self._file_id = ""
        self._started = 0.0
        self._stats: list[WriteStat] = []

    def counted(self, pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Yield the pieces, and count their rows: sorted rows are all read before the first one is written."""
        for rows in pieces:
            self._read_rows += rows.num_rows
            yield rows

    def written(self, pieces: Iterator[pa.Table]) -> Iterator[tuple[str, pa.Table]]:
        """Write the pieces; yield the parts of them that went into one file, with its file id."""
        for rows in pieces:
            start = 0
            while start < rows.num_rows:
                if self._writer is not None and self._room(self._writer) <= 0:
                    self._finish()
                writer = self._writer or self._start()
                part = rows.slice(start, min(self._room(writer), _PIECE_ROWS))
                writer.write(self._restamped(part))
                start += part.num_rows
                yield self._file_id, part

    def close(self) -> tuple[WriteStat, ...]:
        """Finish the open file and return the write statistics of all files."""
        if self._writer is not None:
            self._finish()
        return tuple(self._stats)

    def _room(self, writer: BaseFileWriter) -> int:
        """Return how many rows the file can still take: by its bytes, and if rows are sorted by its share of them."""
        if writer.written_bytes >= self._own.target_bytes:
            return 0
        return math.ceil(self._read_rows / self._output_files) - writer.rows if self._own.order.columns else _PIECE_ROWS

    def _restamped(self, rows: pa.Table) -> pa.Table:
        """Return the rows with the commit time and sequence numbers of the clustering, if the plan requires it."""
        if self._own.keeps_meta:
            return rows
        numbers = self._numbers.take(rows.num_rows)
        times = pa.repeat(pa.scalar(self._own.instant_time, pa.string()), rows.num_rows)
        for place, values in ((0, times), (1, numbers)):
            rows = rows.set_column(place, rows.schema.field(place), pc.cast(values, rows.schema.field(place).type))
        return rows

    def _start(self) -> BaseFileWriter:
        own, attempt = self._own, self._attempt
        self._file_id = new_file_id(self._unique, len(self._stats))
        token = write_token(attempt.partition, own.number, attempt.attempt)
        name = BaseFileName(self._file_id, token, own.instant_time).name
        path = join_path(self._partition_path, name)
        ensure_partition_metadata(self._store, self._partition_path, own.instant_time)
        write_marker(self._store, own.instant_time, path, IoType.CREATE)
        self._started = time.monotonic()
        self._writer = BaseFileWriter(self._store, path, own.read.schema, own.parquet, {FILE_NAME: name})
        return self._writer

    def _finish(self) -> None:
        writer, self._writer = self._writer, None
        assert writer is not None
        writer.close()
        self._stats.append(
            WriteStat(
                file_id=self._file_id,
                path=writer.path,
                num_writes=writer.rows,
                num_inserts=writer.rows,
                total_write_bytes=writer.size_bytes,
                file_size_bytes=writer.size_bytes,
                partition_path=self._partition_path,
                column_ranges=writer.ranges,
                runtime_stats=RuntimeStats(total_create_time_ms=int((time.monotonic() - self._started) * 1000)),
            )
        )

    def __enter__(self) -> _Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.abandon()
