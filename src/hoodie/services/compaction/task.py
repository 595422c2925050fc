"""Compact one file slice: merge its base file and log files into one new base file. Runs in a worker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import TaskContext
from hoodie.errors import CorruptFileError, MissingFileError
from hoodie.files.base_file import BaseFileWriter, ParquetOptions, open_base_file
from hoodie.files.markers import write_marker
from hoodie.files.merged_slice import SliceRead, merge_or_copy, read_file_slice
from hoodie.files.partition_folder import ensure_partition_metadata
from hoodie.files.slices import FileSlice, join_path
from hoodie.files.stamping import FILE_NAME
from hoodie.files.stored_groups import StoredGroups
from hoodie.format.filenames import BaseFileName, IoType, write_token
from hoodie.format.instants.commit_metadata import NULL_COMMIT, RuntimeStats, WriteStat
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store, StoreSpec, explained, open_store

_COMMIT_TIME = "_hoodie_commit_time"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSlice:
    """Callable for `Engine.run`: compact one file slice. Picklable if the merge function is picklable.

    `number` makes the file names differ from those of other attempts at the same compaction. `without`: rows with these
    record keys are left out. Row groups whose keys no log has are copied (decision 22). Memory: the memory of
    `read_file_slice` and one row group of the new file, independent of the slice's size.
    """

    store: StoreSpec
    read: SliceRead
    parquet: ParquetOptions
    instant_time: str
    number: int
    without: pa.Array | None = None

    def __call__(self, task: FileSlice, attempt: TaskContext) -> WriteStat:
        """Write the slice's next base file and return its write statistic; the file may have no rows.

        Rows keep the commit time and sequence number of the write that logged them.

        Raises: CorruptFileError if a file of the slice does not parse, or does not exist.
        """
        started = time.monotonic()
        store = open_store(self.store)
        token = write_token(attempt.partition, self.number, attempt.attempt)
        name = BaseFileName(task.file_id, token, self.instant_time).name
        path = join_path(task.partition_path, name)
        ensure_partition_metadata(store, task.partition_path, self.instant_time)
        write_marker(store, self.instant_time, path, IoType.MERGE if task.base_file else IoType.CREATE)
        same = {FILE_NAME: name}
        schema, logged = self.read.schema, _LoggedRows(task)
        try:
            with (
                explained(store.uri(path)),
                self._base(store, task) as (stored, groups),
                BaseFileWriter(store, path, schema, self.parquet, same) as writer,
            ):
                for found in self._merged(store, task, groups):
                    if groups is not None and isinstance(found, int):
                        writer.copy(groups, found)
                        continue
                    logged.count(found)
                    writer.write(found)
        except MissingFileError as error:
            raise CorruptFileError(
                f"the compaction plan {self.instant_time} names a file that does not exist ({error}); restore the "
                "file, or give up its rows with t.repair(accept_loss=…), which executes the plan without it",
                path=store.uri(task.partition_path),
            ) from error
        return _stat(task, stored, path, writer, logged, started)

    @contextmanager
    def _base(self, store: Store, task: FileSlice) -> Iterator[tuple[int, StoredGroups | None]]:
        """Open the base file; yield its number of rows, and its row groups if the new file can take some of them."""
        base, stored = task.base_file, self.read.stored
        if base is None:
            yield 0, None
            return
        copies = self.without is None and self.parquet.has_meta and stored.are_in(base) and not stored.makes_keys
        with open_base_file(store, base) as (parquet, source):
            where = store.uri(base.path)
            groups = StoredGroups.of(parquet, source, self.read.schema, where) if copies else None
            yield parquet.metadata.num_rows, groups

    def _merged(self, store: Store, task: FileSlice, groups: StoredGroups | None) -> Iterator[pa.Table | int]:
        """Yield the rows of the slice, and the numbers of row groups to copy."""
        if groups is not None:
            yield from merge_or_copy(store, task, self.read, groups)
            return
        for rows in read_file_slice(store, task, self.read):
            if self.without is None:
                yield rows
            else:
                yield rows.filter(pc.invert(pc.is_in(rows[RECORD_KEY], value_set=self.without)))


class _LoggedRows:
    """Count the rows that come from log files: rows of the base file never have the instant time of a log file.

    In version 6 the names of log files have the instant of the base file. There all writes of a slice are later.
    """

    def __init__(self, file_slice: FileSlice) -> None:
        self._base = file_slice.base_file
        self._names = sorted({log.name.instant_time for log in file_slice.log_files})
        self.rows = 0

    def count(self, rows: pa.Table) -> None:
        """Count the rows of one batch of the merged slice."""
        times = rows[_COMMIT_TIME]
        if self._base is None:
            self.rows += rows.num_rows
        elif self._base.instant_time in self._names:
            self.rows += pc.sum(pc.greater(times, self._base.instant_time)).as_py() or 0
        else:
            self.rows += pc.sum(pc.is_in(times, value_set=pa.array(self._names, pa.string()))).as_py() or 0


def _stat(
    task: FileSlice, stored: int, path: str, writer: BaseFileWriter, logged: _LoggedRows, started: float
) -> WriteStat:
    """Return the write statistic of the new file; the base file of before had `stored` rows.

    Inserts, updates and deletes are estimated from row counts; the effect of each logged row is not counted. If a slice
    has a base file, its logged rows mostly are updates and deletes, because inserts mostly create new file groups.
    """
    base = task.base_file
    inserted = max(0, writer.rows - stored)
    deleted = max(0, stored - writer.rows)
    updated = max(0, logged.rows - inserted)
    return WriteStat(
        file_id=task.file_id,
        path=path,
        prev_commit=task.base_instant_time if base is not None else NULL_COMMIT,
        prev_base_file=base.name if base is not None else None,
        num_writes=writer.rows,
        num_deletes=deleted,
        num_update_writes=updated,
        num_inserts=inserted,
        total_write_bytes=writer.size_bytes,
        file_size_bytes=writer.size_bytes,
        partition_path=task.partition_path,
        column_ranges=writer.ranges,
        runtime_stats=RuntimeStats(total_upsert_time_ms=int((time.monotonic() - started) * 1000)),
        total_log_records=logged.rows + deleted,
        total_updated_records_compacted=logged.rows + deleted,
        total_log_files_compacted=len(task.log_files),
        total_log_size_compacted=sum(log.size_bytes for log in task.log_files),
    )
