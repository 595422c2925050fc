"""Execute a scan in this process: read file slices on threads, prune row groups, filter rows, return Arrow data.

`stream`, `read_batches`, `first_rows` and `count_rows` need bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import LocalEngine, TaskContext, engine_beside
from hoodie.engine.ahead import ahead, reader_of
from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.files.base_file import open_base_file
from hoodie.files.base_rows import has_types, matching_row_groups, row_groups_with_keys
from hoodie.files.merged_slice import SliceRead, read_file_slice, read_logged_rows
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.files.stored_columns import StoredColumns
from hoodie.read.chosen_columns import WHOLE, Path, narrowed, picked, returned_schema
from hoodie.read.plan import COMMIT_TIME, ScanPlan
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.storage import Store

if TYPE_CHECKING:
    from hoodie.records.expression import RowExpression

_WAITING = 2
"""Batches of each thread that wait for the consumer."""


def read_table(plan: ScanPlan) -> pa.Table:
    """Read all rows of the scan, slice by slice in the order of the plan. Memory: all rows."""
    scan = SliceScan.of(plan)

    def read(found: FileSlice, context: TaskContext) -> pa.Table:
        return pa.Table.from_batches(list(scan.batches(plan.view.store, found)), plan.output_schema)

    sizes = [file_slice.size_bytes for file_slice in plan.slices]
    tables = engine_beside(plan.view.store.spec, sum(sizes)).run(read, plan.slices)
    return pa.concat_tables(tables) if tables else plan.output_schema.empty_table()


@dataclass(frozen=True, slots=True)
class KeySet:
    """Record keys, with or without partition paths, that filter batches.

    `values` are the distinct strings that identify a record (key, or path and key). `record_keys` are the keys alone.
    """

    values: pa.StringArray
    record_keys: pa.StringArray
    with_paths: bool

    @classmethod
    def of(cls, keys: pa.Table) -> KeySet:
        """Create the set from a table with `_hoodie_record_key` and optionally `_hoodie_partition_path`."""
        with_paths = PARTITION_PATH in keys.column_names
        record_keys = pc.unique(keys[RECORD_KEY])
        return cls(pc.unique(_path_and_key(keys)) if with_paths else record_keys, record_keys, with_paths)

    def texts(self, rows: pa.Table) -> pa.ChunkedArray:
        """Return the string that identifies the record of each row, as in `values`."""
        return _path_and_key(rows) if self.with_paths else rows[RECORD_KEY]

    def holds(self, rows: pa.Table) -> pa.ChunkedArray:
        """Return a mask of the rows with one of the keys; if the set has partition paths, the path must match too."""
        return pc.is_in(self.texts(rows), value_set=self.values)


def _path_and_key(rows: pa.Table) -> pa.ChunkedArray:
    """Join partition path and record key to one string, separated by NUL, which no partition path contains."""
    return pc.binary_join_element_wise(rows[PARTITION_PATH], rows[RECORD_KEY], "\0")


@dataclass(frozen=True, slots=True)
class SliceScan:
    """The rules by which each file slice of a scan is read. Picklable.

    `paths` as in `ScanPlan`; `reads` are the fields of columns that are read of base files without logs, as in
    `narrowed`. `exact` is None too if the caller applies the exact condition. `merge` is None if no slice has log
    files. `also` filters rows only: pyarrow skips row groups with NaN that match an expression.
    """

    schema: pa.Schema
    columns: tuple[str, ...]
    exact: RowExpression | None
    coarse: pc.Expression | None
    instants: pa.StringArray | None
    keys: KeySet | None
    merge: SliceRead | None
    stored: StoredColumns
    also: pc.Expression | None = None
    paths: tuple[Path, ...] = WHOLE
    reads: tuple[Path, ...] = WHOLE

    @classmethod
    def of(cls, plan: ScanPlan) -> SliceScan:
        """Create the scan of a plan and translate the plan's condition to Arrow.

        Raises: UnsupportedError for a condition that has no Arrow form, which requires a read by Spark; as
        `ScanPlan.slice_read` if slices have log files.
        """
        where = plan.where
        needed = plan.needed_columns()
        return cls(
            schema=pa.schema([plan.schema.field(name) for name in needed]),
            columns=plan.columns,
            exact=None if where is None else where.row_filter(plan.schema),
            coarse=None if where is None else where.row_group_filter(plan.schema, in_utc=True),
            instants=None if plan.instants is None else pa.array(sorted(plan.instants), pa.string()),
            keys=None if plan.keys is None else KeySet.of(plan.keys),
            merge=plan.slice_read(needed, in_utc=True) if plan.has_logs else None,
            stored=plan.stored,
            paths=plan.paths,
            reads=plan.needed_paths(),
        )

    @classmethod
    def roughly(cls, plan: ScanPlan, *, keys: pa.Table | None = None) -> SliceScan:
        """Create a scan of all needed columns that returns at least the rows that match.

        The caller must apply the exact condition, in any time zone. Here only the parts of the condition that have an
        Arrow form filter rows. `keys` as `ScanPlan.keys`.
        """
        try:
            needed = plan.needed_columns()
        except UnsupportedError:
            needed = tuple(plan.schema.names)
        try:
            coarse = None if plan.where is None else plan.where.row_group_filter(plan.schema, in_utc=False)
        except (UnsupportedError, SchemaMismatchError):
            coarse = None
        return cls(
            schema=pa.schema([plan.schema.field(name) for name in needed]),
            columns=needed,
            exact=None,
            coarse=coarse,
            instants=None if plan.instants is None else pa.array(sorted(plan.instants), pa.string()),
            keys=None if keys is None else KeySet.of(keys),
            merge=plan.slice_read(needed, in_utc=False) if plan.has_logs else None,
            stored=plan.stored,
        )

    @property
    def output_schema(self) -> pa.Schema:
        """Schema of the rows that the scan returns."""
        return returned_schema(self.schema, self.columns, self.paths)

    @property
    def filters_rows(self) -> bool:
        """Whether rows are filtered. If so, the number of rows in a file is not the number of rows returned."""
        filters = (self.coarse, self.exact, self.also, self.instants, self.keys)
        return any(condition is not None for condition in filters)

    def batches(self, store: Store, found: FileSlice) -> Iterator[pa.RecordBatch]:
        """Read the slice's rows that match, with the plan's columns.

        Memory: the needed columns of one row group. For a slice with log files: as `files.merged_slice`.
        """
        return self.filtered(self._rows(store, found))

    def logged_batches(self, store: Store, found: FileSlice) -> Iterator[pa.RecordBatch]:
        """Read as `batches`, but only the rows that come from log files; the slice must have log files.

        Memory: as `files.merged_slice`.
        """
        assert self.merge is not None
        return self.filtered(read_logged_rows(store, found, self.merge))

    def filtered(self, rows: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Return those of merged rows that match, with the plan's columns."""
        for kept in rows:
            if self.instants is not None:
                kept = kept.filter(pc.is_in(kept[COMMIT_TIME], value_set=self.instants))
            if self.keys is not None:
                kept = kept.filter(self.keys.holds(kept))
            if self.exact is not None:
                kept = self.exact.matching(kept)
            elif self.coarse is not None:
                kept = kept.filter(self.coarse)
            if self.also is not None:
                kept = kept.filter(self.also)
            chosen = picked(kept, self.paths, self.output_schema) if self.paths else kept.select(list(self.columns))
            yield from chosen.to_batches()

    def _rows(self, store: Store, found: FileSlice) -> Iterator[pa.Table]:
        if found.log_files:
            assert self.merge is not None
            yield from map(self._with_stored_keys, read_file_slice(store, found, self.merge))
        elif found.base_file is not None:
            yield from self._base_rows(store, found.base_file)

    def _with_stored_keys(self, rows: pa.Table) -> pa.Table:
        """Return merged rows without record keys if the table's files do not store record keys."""
        if not self.stored.makes_keys or RECORD_KEY not in rows.column_names:
            return rows
        place = rows.schema.get_field_index(RECORD_KEY)
        return rows.set_column(place, rows.schema.field(place), pa.nulls(rows.num_rows, pa.string()))

    def _base_rows(self, store: Store, file: BaseFile) -> Iterator[pa.Table]:
        with open_base_file(store, file) as (parquet, source):
            groups = None if self.keys is None else row_groups_with_keys(parquet, self.keys.record_keys)
            if groups is not None and not groups:
                return
            if self.coarse is not None and self.stored.are_in(file) and has_types(parquet.schema_arrow, self.schema):
                matching = matching_row_groups(source, self.coarse)
                groups = matching if groups is None else groups & matching
            needed, numbers = narrowed(self.schema, self.reads), None if groups is None else sorted(groups)
            yield from self.stored.base_rows(store, parquet, needed, file, row_groups=numbers)


def stream(plan: ScanPlan) -> pa.RecordBatchReader:
    """Return the scan's rows as a stream, slice by slice; slices without log files come first.

    Memory: as `SliceScan.batches` of one slice.
    """
    scan = SliceScan.of(plan)

    def batches() -> Iterator[pa.RecordBatch]:
        for file_slice in sorted(plan.slices, key=lambda one: bool(one.log_files)):
            yield from scan.batches(plan.view.store, file_slice)

    return reader_of(plan.output_schema, batches())


def read_batches(
    plan: ScanPlan, batch_rows: int | None = None, *, scan: SliceScan | None = None
) -> pa.RecordBatchReader:
    """Return the rows of a scan as a stream, in no defined order.

    `batch_rows`: the most rows of a batch, at least 1; None for batches as they are read. `scan`: other rules to read
    the slices of the plan by; its columns are those of the batches.

    Memory: for each thread what `SliceScan.batches` holds, and three batches. Raises: InvalidConfigError for another
    `batch_rows`; as `SliceScan.of` now, and errors of files while the stream is read.
    """
    if batch_rows is not None and batch_rows < 1:
        raise InvalidConfigError(f"batch_rows={batch_rows}: expected a whole number from 1")
    scan = scan or SliceScan.of(plan)
    return reader_of(scan.output_schema, _batches(plan, scan, batch_rows))


def _batches(plan: ScanPlan, scan: SliceScan, batch_rows: int | None) -> Iterator[pa.RecordBatch]:
    # Slices with log files take longest: a thread that begins with them does not end last.
    slices = sorted(plan.slices, key=lambda found: not found.log_files)
    threads = min(LocalEngine().threads, len(slices))
    if threads == 0:
        return
    reads = (partial(scan.batches, plan.view.store, file_slice) for file_slice in slices)
    for batch in ahead(reads, threads=threads, waiting=threads * _WAITING):
        for start in range(0, batch.num_rows, batch_rows or max(batch.num_rows, 1)):
            yield batch.slice(start, batch_rows)


def first_rows(plan: ScanPlan, limit: int) -> pa.Table:
    """Return the first `limit` rows of the scan; the read stops after them. Memory: as `stream`, and the rows."""
    return first_of(stream(plan), limit)


def first_of(rows: pa.RecordBatchReader, limit: int) -> pa.Table:
    """Return the first `limit` rows of a stream, which is read no further. Memory: these rows, and one batch."""
    kept: list[pa.RecordBatch] = []
    missing = limit
    for batch in rows if limit > 0 else ():
        kept.append(batch.slice(0, min(missing, batch.num_rows)))
        missing -= kept[-1].num_rows
        if missing <= 0:
            break
    return pa.Table.from_batches(kept, rows.schema)


def count_rows(plan: ScanPlan) -> int:
    """Count the rows of the scan.

    If the scan has no filter, the counts of slices without log files come from Parquet footers.
    """
    scan = SliceScan.of(plan)
    store = plan.view.store

    def count(found: FileSlice, context: TaskContext) -> int:
        if scan.filters_rows or found.log_files:
            return sum(batch.num_rows for batch in scan.batches(store, found))
        assert found.base_file is not None
        with open_base_file(store, found.base_file) as (parquet, _):
            return int(parquet.metadata.num_rows)

    return sum(LocalEngine().run(count, plan.slices))
