"""Write the changes of one file group: a new base file, or blocks of one more log file. Runs in a worker.

On-disk format: docs/format/table.md §4. Stored rows are read only if ordering values require it: if a delete has an
ordering value and the record index must store whether the delete is effective, and if a record is inserted whose delete
is logged.

For indexes that keep a record in its file group, the logged rows of deleted records that the merge will hide are
counted. If a log deletes a record without an ordering value, a later row replaces this delete and is then merged with
the row of the base file (docs/format/table.md §6.4). If the base row has the higher ordering value, the base row is
visible again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import TaskContext
from hoodie.files.base_file import open_base_file
from hoodie.files.column_ranges import empty_ranges, joined_ranges, table_ranges, typed_columns
from hoodie.files.logs.log_file import LogFileWriter, delete_blocks
from hoodie.files.markers import write_marker
from hoodie.files.merged_slice import SliceRead, deleted_keys, read_file_slice
from hoodie.files.slices import FileSlice, join_path
from hoodie.files.stamping import COMMIT_TIME, FILE_NAME, SequenceNumbers, Stamper
from hoodie.format.filenames import IoType, new_file_id
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.log.data_block import data_block
from hoodie.format.log.log_block import HeaderKey
from hoodie.format.metadata_table.column_stats import ColumnRange
from hoodie.index.record.entries import EntryWriter
from hoodie.records.change import KIND, LEADING, PARTITION_PATH, RECORD_KEY, Kind
from hoodie.records.merging.merge import delete_ordering, not_outranked
from hoodie.storage import Store, explained, open_store
from hoodie.write.files.context import LogOptions, RowCounts, WriteContext, Written
from hoodie.write.files.file_task import NewBaseFile, rewrite
from hoodie.write.files.task_changes import TaskChanges
from hoodie.write.files.unchanged import all_lose, is_newer_than_stored, may_all_lose, unordered_rows
from hoodie.write.plan import FileTask, TaggedRows


def _hidden_rows(store: Store, file_slice: FileSlice, read: SliceRead, rows: pa.Table) -> int:
    """Count the rows, one per key, that will be hidden by the base row of their deleted record.

    The logs are scanned for deletes; stored rows are read only if one of the keys was deleted.
    """
    ordering = read.merger.ordering_columns
    base = file_slice.base_file
    may_hide = ordering and read.merger.function is None and file_slice.log_files and rows.num_rows
    if base is None or not may_hide:
        return 0
    deleted = deleted_keys(store, file_slice, read, in_order=read.merger.pre_combines)
    returning = rows.filter(pc.is_in(rows[RECORD_KEY], value_set=deleted))
    if not returning.num_rows:
        return 0
    read = replace(read, columns=(RECORD_KEY, *ordering))
    visible = _with_keys(read_file_slice(store, file_slice, read), read.output_schema, returning[RECORD_KEY])
    returning = returning.filter(pc.invert(pc.is_in(returning[RECORD_KEY], value_set=visible[RECORD_KEY])))
    with open_base_file(store, base) as (parquet, _):
        rows_of_base = read.stored.base_rows(store, parquet, read.output_schema, base)
        stored = _with_keys(rows_of_base, read.output_schema, returning[RECORD_KEY])
    places = pc.index_in(returning[RECORD_KEY].combine_chunks(), value_set=stored[RECORD_KEY].combine_chunks())
    returning = returning.filter(places.is_valid())
    return int(np.count_nonzero(~read.merger.newer_wins(stored.take(places.drop_null()), returning)))


def _with_keys(parts: Iterable[pa.Table], schema: pa.Schema, keys: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return the rows with one of the keys."""
    found = [part.filter(pc.is_in(part[RECORD_KEY], value_set=keys)) for part in parts]
    return pa.concat_tables([schema.empty_table(), *found])


_LOOK_BYTES = 4 * 1024 * 1024
_LOOK_SHARE = 4
"""Keys and ordering values of the base file are read before a log file is begun, if they have at most so many bytes:
these, and so many times the bytes of the changes."""


def _append(context: WriteContext, rows: TaggedRows, task: FileTask, attempt: TaskContext) -> Written:
    """Write the task's log file and return its write statistics; empty if there is nothing to write.

    Memory: the task's updates, 64 MiB of its inserts, and one block. If ordering values require stored rows, also the
    keys and ordering values of the deleted records, and the memory of `read_file_slice`.
    """
    assert context.log is not None
    assert task.file_slice is not None
    store = open_store(context.store)
    entries = EntryWriter(store, context.entries, attempt)
    numbers = SequenceNumbers(context.instant_time, attempt.partition)
    counts = RowCounts()
    log = _Append(store, context, context.log, task.file_slice, attempt, numbers, entries, counts)
    changes = TaskChanges(store, context, rows, task, counts)
    updates = changes.updates()
    with log:
        if updates is not None:
            log.update(updates)
        for inserts in changes.inserts():
            log.insert(inserts)
        log.delete()
    stats = log.stats()
    if log.leaves_out:
        # In this file group, the logged delete would win over these inserts, or the merge would restore the deleted
        # record. So the inserts are written to a new file group. They are read again, because there may be many.
        again = replace(changes, counts=RowCounts()).inserts()
        left_out = (found for inserts in again for found in log.left_out(inserts))
        new_file = NewBaseFile(store, context, attempt, task.partition_path, numbers, entries, counts)
        stats += new_file.write(new_file_id(uuid.uuid4(), 0), None, next(left_out), left_out)
    return Written.of(stats, entries, counts)


@dataclass(slots=True)
class _Append:
    """The log file of one attempt at a task; the file is created with its first block."""

    store: Store
    context: WriteContext
    options: LogOptions
    file_slice: FileSlice
    attempt: TaskContext
    numbers: SequenceNumbers
    entries: EntryWriter
    counts: RowCounts
    started: float = field(default_factory=time.monotonic)
    updated: int = 0
    inserted: int = 0
    deleted: int = 0
    ranges: dict[str, ColumnRange] | None = None
    """The ranges of the columns of the logged rows; None before the first row."""
    leaves_out: bool = False
    """Whether some of the inserts cannot be appended to this log file."""
    _writer: LogFileWriter | None = None
    _deletes: list[pa.Table] = field(default_factory=list)
    _deleted_before: pa.StringArray | None = None

    def update(self, changes: pa.Table) -> None:
        """Write the rows, and collect the deletes, of keys that are in the file group."""
        if self._all_lose(changes):
            return
        kinds = np.asarray(changes[KIND].combine_chunks())
        changes, kinds = self._settled(changes, kinds)
        merger = self.context.merger
        if merger.logged_ordering:
            undecided = changes.filter(pa.array(kinds != Kind.DELETE))
            self.counts.undecided += undecided.num_rows
            self.counts.unordered += unordered_rows(undecided, merger)
        rows = changes.filter(pa.array(kinds == Kind.ROW))
        if self.context.entries is None and not self.context.is_partial:
            self.counts.hidden += _hidden_rows(self.store, self.file_slice, self.options.read, rows)
        self.updated += rows.num_rows
        self._write_rows(rows)
        gone = changes.filter(pa.array(kinds != Kind.ROW))
        if gone.num_rows:
            self._deletes.append(gone)
            self.entries.delete(gone[RECORD_KEY], self.file_slice.partition_path)

    def _all_lose(self, changes: pa.Table) -> bool:
        """Return whether no row wins against the base file, by a look that costs little; then all are counted.

        Logged rows are at least as new as those of the base file, unless a log file deletes the record. With a record
        index, the keys of `changes` are not deleted.
        """
        base_file = self.file_slice.base_file
        is_known = self.context.entries is not None or not self.file_slice.log_files
        has_deletes = bool((np.asarray(changes[KIND].combine_chunks()) != Kind.ROW).any())
        is_asked = base_file is not None and is_known and not self.context.is_partial and not has_deletes
        if base_file is None or not is_asked or not may_all_lose(self.context, changes):
            return False
        bytes_max = _LOOK_BYTES + _LOOK_SHARE * changes.nbytes
        with open_base_file(self.store, base_file) as (parquet, _):
            if is_newer_than_stored(parquet, self.context, base_file, changes):
                return False
            lost = all_lose(self.store, parquet, self.context, base_file, changes, bytes_max=bytes_max)
        if lost is None:
            return False
        lost.count(self.counts)
        return True

    def insert(self, rows: pa.Table) -> None:
        """Write rows with new keys, except rows that cannot be appended to this log file."""
        returning = self._returning(rows)
        if returning is not None:
            self.leaves_out = True
            rows = rows.filter(pa.array(~returning))
        self.inserted += rows.num_rows
        self._write_rows(rows)
        self.entries.put(rows[RECORD_KEY], self.file_slice.partition_path, self.file_slice.file_id)

    def left_out(self, rows: pa.Table) -> list[pa.Table]:
        """Return the rows that `insert` skipped, because they cannot be appended to this log file."""
        returning = self._returning(rows)
        return [] if returning is None else [rows.filter(pa.array(returning))]

    def delete(self) -> None:
        """Write the collected deletes, after the rows."""
        if not self._deletes:
            return
        gone = pa.concat_tables(self._deletes).combine_chunks()
        self.deleted += gone.num_rows
        for block in delete_blocks(
            gone,
            np.asarray(gone[KIND].combine_chunks()) == Kind.DELETE_IN_ORDER,
            partition_path=self.file_slice.partition_path,
            ordering_columns=self._delete_ordering,
            headers={HeaderKey.INSTANT_TIME: self.context.instant_time, HeaderKey.SCHEMA: self.options.avro_schema},
        ):
            self._open().write(block)

    def stats(self) -> list[WriteStat]:
        """Return the write statistic of the log file, if there is a log file."""
        if self._writer is None:
            return []
        stat = WriteStat.of_log(
            self._writer.path,
            self.file_slice.partition_path,
            self._writer.size_bytes,
            prev_commit=self.context.instant_time,
            upsert_time_ms=int((time.monotonic() - self.started) * 1000),
        )
        if self.context.cdc is not None or self.options.names.has_base_instant:
            # Readers of change data find the state before the log file by these names. Version 6 always has them.
            found, base = self.file_slice, self.file_slice.base_file
            earlier = tuple(log.name.name for log in found.log_files)
            names = (*earlier, *(stat.log_files or ()))
            base_file = "" if base is None else base.name
            stat = replace(stat, prev_commit=found.base_instant_time, base_file=base_file, log_files=names)
        ranges = None if self.ranges is None else tuple(self.ranges.values())
        columns = self.context.parquet.range_columns
        if ranges is None and columns is not None:
            ranges = empty_ranges(typed_columns(columns, self.options.read.schema))
        counted = replace(
            stat,
            num_writes=self.updated + self.inserted,
            num_deletes=self.deleted,
            num_update_writes=self.updated,
            num_inserts=self.inserted,
            column_ranges=ranges,
        )
        return [counted]

    def __enter__(self) -> _Append:
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if self._writer is not None:
            self._writer.__exit__(kind, *details)

    def _open(self) -> LogFileWriter:
        """Return the writer of the log file; the first call writes the marker and creates the file."""
        if self._writer is None:
            found, instant_time = self.file_slice, self.context.instant_time
            names = self.options.names
            path = join_path(found.partition_path, names.next_name(found, instant_time, self.attempt).name)
            write_marker(self.store, instant_time, path, IoType.APPEND if names.has_base_instant else IoType.CREATE)
            self._writer = LogFileWriter(self.store, path)
        return self._writer

    def _write_rows(self, changes: pa.Table) -> None:
        """Write data blocks of these rows, each of a bounded size."""
        if not changes.num_rows:
            return
        schema, found = self.context.schema, self.file_slice
        values = {
            COMMIT_TIME: self.context.instant_time,
            PARTITION_PATH: found.partition_path,
            FILE_NAME: found.file_id,
        }
        rows = Stamper(schema, self.numbers, values).new_rows(changes.select([*LEADING, *schema.names]))
        if (columns := self.context.parquet.range_columns) is not None:
            ranges = table_ranges(rows, typed_columns(columns, rows.schema))
            self.ranges = ranges if self.ranges is None else joined_ranges(self.ranges, ranges)
        step = max(int(rows.num_rows * self.options.block_bytes_max / max(rows.nbytes, 1)), 1)
        for start in range(0, rows.num_rows, step):
            block = data_block(
                rows.slice(start, step),
                instant_time=self.context.instant_time,
                avro_schema=self.options.avro_schema,
                data_format=self.options.data_format,
                is_partial=self.context.is_partial,
            )
            self._open().write(block)

    def _settled(self, changes: pa.Table, kinds: npt.NDArray[np.int8]) -> tuple[pa.Table, npt.NDArray[np.int8]]:
        """Compare deletes that have an ordering value with the stored rows, if the table has a record index.

        The deletes are resolved now: kept as unconditional deletes, or discarded. After a delete, the record index has
        no entry of the key, and the key may be inserted into any file group. So a logged delete must not depend on
        later rows of the key.
        """
        in_order = np.flatnonzero(kinds == Kind.DELETE_IN_ORDER)
        if self.context.entries is None or not len(in_order):
            return changes, kinds
        kinds = kinds.copy()
        kinds[in_order] = Kind.DELETE
        merger, ordering = self.context.merger, self._delete_ordering
        if not ordering:
            return changes, kinds
        deletes = changes.take(pa.array(in_order))
        stored = self._stored(deletes[RECORD_KEY].combine_chunks())
        places = pc.index_in(deletes[RECORD_KEY].combine_chunks(), value_set=stored[RECORD_KEY].combine_chunks())
        known = np.asarray(pc.is_valid(places))
        deletes = deletes.filter(pa.array(known))
        wins = not_outranked(stored.take(places.drop_null()), deletes, ordering)
        if len(ordering) == 1:
            # As in the merge of log files: a delete without an ordering value always wins.
            wins |= np.asarray(deletes[ordering[0]].is_null())
        keep = np.ones(len(kinds), np.bool_)
        # Hudi 0.x deletes the row of the base file in any case.
        keep[in_order] = merger.pre_combines
        keep[in_order[np.flatnonzero(known)]] = wins
        self.counts.ignored += int((~keep).sum())
        return changes.filter(pa.array(keep)), kinds[keep]

    @property
    def _delete_ordering(self) -> tuple[str, ...]:
        """The columns whose values decide whether a logged delete wins."""
        return delete_ordering(self.context.merger, self.options.read.schema)

    def _stored(self, keys: pa.StringArray) -> pa.Table:
        """Return the keys and ordering values of the stored records with these keys that can win against a delete."""
        merger = self.context.merger
        columns = (RECORD_KEY, *merger.logged_ordering)
        read = replace(self.options.read, columns=columns)
        found = replace(self.file_slice, base_file=None) if merger.pre_combines else self.file_slice
        schema = pa.schema([self.options.read.schema.field(name) for name in columns])
        return _with_keys(read_file_slice(self.store, found, read), schema, keys)

    def _returning(self, rows: pa.Table) -> npt.NDArray[np.bool_] | None:
        """Return a mask of the new records whose delete is logged in the file group; None if there are none.

        Only if ordering values decide or fields are mixed; otherwise the later version, the row, wins.
        """
        merger = self.context.merger
        if not self.file_slice.log_files or not (merger.ordering_columns or merger.overlay is not None):
            return None
        if self._deleted_before is None:
            self._deleted_before = deleted_keys(self.store, self.file_slice, self.options.read)
        found = np.asarray(pc.is_in(rows[RECORD_KEY].combine_chunks(), value_set=self._deleted_before))
        return found if found.any() else None


@dataclass(frozen=True, slots=True)
class WriteFileGroup:
    """Callable for `Engine.run`: write the changes of a task's file group; `rows` contains these changes.

    Memory: as `file_task.rewrite` and `_append`.
    """

    context: WriteContext
    rows: TaggedRows

    def __call__(self, task: FileTask, attempt: TaskContext) -> Written:
        """Write the file and return its write statistics; the result is empty if there is nothing to write."""
        with explained(self.context.store.uri):
            return (_append if task.appends else rewrite)(self.context, self.rows, task, attempt)
