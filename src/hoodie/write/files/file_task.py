"""Write a new base file: stream the existing base file, merge the changes, append the inserts. Runs in a worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import attrgetter

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.engine import TaskContext
from hoodie.files.base_file import BaseFileWriter, open_base_file
from hoodie.files.markers import write_marker
from hoodie.files.partition_folder import ensure_partition_metadata
from hoodie.files.slices import BaseFile, join_path
from hoodie.files.stamping import COMMIT_TIME, FILE_NAME, SequenceNumbers, Stamper
from hoodie.files.stored_groups import StoredGroups
from hoodie.format.filenames import BaseFileName, IoType, name_of
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.index.record.entries import EntryWriter
from hoodie.records.change import KIND, PARTITION_PATH, Kind
from hoodie.storage import Started, Store, open_store
from hoodie.write.files.cdc_log import CdcLog
from hoodie.write.files.context import RowCounts, WriteContext, Written, stat_of
from hoodie.write.files.file_merge import FileMerge
from hoodie.write.files.task_changes import TaskChanges
from hoodie.write.files.touched import Piece, TouchedGroups
from hoodie.write.files.unchanged import ChangeProbe, ReadAhead, all_lose, is_newer_than_stored
from hoodie.write.plan import FileTask, TaggedRows

_HELD_BYTES_MAX = 64 * 1024 * 1024
"""Arrow bytes of stored rows that are held until the first change."""


def rewrite(context: WriteContext, rows: TaggedRows, task: FileTask, attempt: TaskContext) -> Written:
    """Write the task's new base file and return its write statistics; empty if there is nothing to write.

    There is nothing to write if ordering columns decide, no row of the base file changes, and no row is added. Memory:
    the task's updates, 64 MiB of its inserts, one row group of the existing base file and one row group of the new
    file. Neither the whole base file nor all inserts are in memory.
    """
    store = open_store(context.store)
    counts = RowCounts()
    parts = TaskChanges(store, context, rows, task, counts).parts()
    changes = next(parts, None)
    if changes is None:
        return Written(counts=counts)
    entries = EntryWriter(store, context.entries, attempt)
    numbers = SequenceNumbers(context.instant_time, attempt.partition)
    new_file = NewBaseFile(store, context, attempt, task.partition_path, numbers, entries, counts)
    stats = new_file.write(task.file_id, task.base_file, changes, parts)
    return Written.of(stats, entries, counts)


@dataclass(frozen=True, slots=True)
class _OldFile:
    """The base file that is replaced. `pieces` reads its rows, as often as it is called.

    They have the meta columns, but for the file name, and the columns of `schema`. `groups`: the row groups that can be
    copied; None if all rows are encoded anew. `whole_group` reads all columns of one, if `schema` has only some.
    """

    pieces: Callable[[], Iterator[Piece]]
    schema: pa.Schema
    groups: StoredGroups | None = None
    whole_group: Callable[[int], Iterator[pa.Table]] | None = None


@dataclass(frozen=True, slots=True)
class NewBaseFile:
    """Writer of a new base file for one attempt at a task."""

    store: Store
    context: WriteContext
    attempt: TaskContext
    partition_path: str
    numbers: SequenceNumbers
    entries: EntryWriter
    counts: RowCounts

    def write(
        self, file_id: str, base_file: BaseFile | None, changes: pa.Table, parts: Iterable[pa.Table] = ()
    ) -> list[WriteStat]:
        """Add the changes to the existing base file, or create the file group.

        `parts` are further inserts, which follow only if `changes` has inserts. No file is written if no change wins
        over the stored rows.
        """
        announced = self._announced(file_id, base_file)
        if base_file is None:
            return [self._write(file_id, None, changes, (), parts, announced, None)]
        try:
            with open_base_file(self.store, base_file) as (parquet, source):
                old = self._old_file(parquet, source, base_file, changes)
                pieces = self._pieces_to_change(parquet, base_file, old, changes)
                if pieces is not None:
                    return [self._write(file_id, base_file, changes, pieces, parts, announced, old)]
        except BaseException:
            announced.drop()  # waits for what was begun: the undo of the write must find all markers
            raise
        announced.drop()  # the commit deletes the marker
        return []

    def _pieces_to_change(
        self, parquet: pq.ParquetFile, base_file: BaseFile, old: _OldFile, changes: pa.Table
    ) -> Iterator[Piece] | None:
        """Return the stored rows; None, with all changes counted, if none of them changes and no row is added."""
        is_decided = self.context.merge_stored and self.context.merger.ordering_columns
        if not is_decided or is_newer_than_stored(parquet, self.context, base_file, changes):
            return old.pieces()
        probe = all_lose(self.store, parquet, self.context, base_file, changes)
        if probe is None:
            ahead, probe = ReadAhead(old.pieces, _HELD_BYTES_MAX), ChangeProbe(self.context, changes)
            if ahead.finds_change(probe):
                return ahead.pieces()
        probe.count(self.counts)
        return None

    def _old_file(
        self, parquet: pq.ParquetFile, source: pa.NativeFile, base_file: BaseFile, changes: pa.Table
    ) -> _OldFile:
        """Return what reads the stored rows, and the row groups that are copied, if any."""
        columns, context, stored = self.context.stored, self.context, None
        if columns.are_in(base_file) and not columns.makes_keys and context.parquet.has_meta:
            stored = StoredGroups.of(parquet, source, self._schema, self.store.uri(base_file.path))

        def read(schema: pa.Schema, groups: list[int] | None) -> Iterator[pa.Table]:
            kept = with_meta_fields(schema)
            # All columns of stored rows stay as they are but the file name.
            kept = kept.remove(kept.get_field_index(FILE_NAME))
            return columns.base_rows(self.store, parquet, kept, base_file, row_groups=groups, with_keys=True)

        if stored is None:
            return _OldFile(lambda: map(Piece, read(context.file_schema, None)), context.file_schema)
        only_rows = pc.all(pc.equal(changes[KIND], int(Kind.ROW))).as_py()
        in_part = context.is_partial and only_rows and not stored.has_large
        schema = context.schema if in_part else context.file_schema
        touched = TouchedGroups(context, stored, changes, lambda group: read(schema, [group]))
        whole_group = (lambda group: read(context.file_schema, [group])) if in_part else None
        return _OldFile(touched.pieces, schema, stored, whole_group)

    def _announced(self, file_id: str, base_file: BaseFile | None) -> Started:
        """Begin to write the partition's metadata and the marker, in an object store beside the read of stored rows."""
        instant_time, io_type = self.context.instant_time, IoType.MERGE if base_file else IoType.CREATE
        return Started(
            self.store,
            partial(ensure_partition_metadata, self.store, self.partition_path, instant_time),
            partial(write_marker, self.store, instant_time, self._path(file_id), io_type),
        )

    def _path(self, file_id: str) -> str:
        name = BaseFileName(file_id, self.attempt.write_token, self.context.instant_time).name
        return join_path(self.partition_path, name)

    def _write(
        self,
        file_id: str,
        base_file: BaseFile | None,
        changes: pa.Table,
        pieces: Iterable[Piece],
        parts: Iterable[pa.Table],
        announced: Started,
        old: _OldFile | None,
    ) -> WriteStat:
        """Write the file from the pieces of the file of before and the changes."""
        started = time.monotonic()
        store, instant_time = self.store, self.context.instant_time
        path = self._path(file_id)
        name = name_of(path)
        # A new file has rows of this instant only, and each column of one value is written by the writer.
        values = {COMMIT_TIME: instant_time, PARTITION_PATH: self.partition_path}
        stamper = Stamper(old.schema if old else self.context.schema, self.numbers, values if base_file else {})
        same = {FILE_NAME: name} if base_file else {**values, FILE_NAME: name}
        announced.finish()
        with self._cdc_log(base_file) as cdc:
            merge = FileMerge(self.context, changes, stamper, self.entries, (self.partition_path, file_id), cdc)
            with BaseFileWriter(store, path, self._schema, self.context.parquet, same) as writer:
                if old is not None:
                    _write_pieces(writer, merge, pieces, old, 2 * self.context.parquet.row_group_bytes)
                for rows in merge.inserts():
                    writer.write(rows)
                for part in parts:
                    writer.write(merge.append(part))
        merge.count_ignored(self.counts)
        stat = merge.counted(stat_of(writer, file_id, self.partition_path, started, base_file))
        return stat if cdc is None else replace(stat, cdc_stats=cdc.sizes)

    def _cdc_log(self, base_file: BaseFile | None) -> AbstractContextManager[CdcLog | None]:
        """Return the log of what a rewrite changes; None for a new file group, whose rows all are new."""
        options = self.context.cdc
        if options is None or base_file is None:
            return nullcontext()
        instant_time, token = self.context.instant_time, self.attempt.write_token
        return CdcLog(self.store, options, instant_time, self.partition_path, base_file.file_id, token)

    @property
    def _schema(self) -> pa.Schema:
        return with_meta_fields(self.context.file_schema)


def _write_pieces(
    writer: BaseFileWriter, merge: FileMerge, pieces: Iterable[Piece], old: _OldFile, group_bytes_max: int
) -> None:
    """Write stored rows with their changes. Columns of a row group that do not change are copied.

    A row group whose rows have more than `group_bytes_max` Arrow bytes now is encoded anew, as several.

    Memory: the pieces of one row group, before and after the merge.
    """
    for group, found in groupby(pieces, key=attrgetter("group")):
        if group is None or old.groups is None:
            for piece in found:
                writer.write(merge.merge(piece.rows, piece.places))
            continue
        merged = merge.merge_group(found)
        if not merged.loses_rows and merged.nbytes <= group_bytes_max:
            changed = pa.concat_tables(merged.rows).select(merged.changed) if merged.changed else None
            writer.copy(old.groups, group, changed)
            continue
        for rows in _completed(merged.rows, old.whole_group(group)) if old.whole_group else merged.rows:
            writer.write(rows)


def _completed(parts: Sequence[pa.Table], stored: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield all stored rows of a row group, with the columns of `parts`, which are the same rows, instead of theirs."""
    columns, start = pa.concat_tables(parts), 0
    names = set(columns.column_names)
    for rows in stored:
        part = columns.slice(start, rows.num_rows)
        start += rows.num_rows
        mixed = [(part if name in names else rows)[name] for name in rows.column_names]
        yield pa.Table.from_arrays(mixed, schema=rows.schema)
