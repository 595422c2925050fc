"""Runs a scan in this process: file slices on threads, row groups pruned, rows filtered exactly, Arrow out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.engine import LocalEngine, TaskContext
from hoodie.errors import SchemaMismatchError, UnsupportedError
from hoodie.files.base_file import parquet_file, stored_rows
from hoodie.files.merged_slice import SliceRead, read_file_slice
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.read.plan import COMMIT_TIME, ScanPlan
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.storage import Store


def read_table(plan: ScanPlan) -> pa.Table:
    """All rows of the scan, slice by slice in the order of the plan. Memory: all of them."""
    scan = SliceScan.of(plan)

    def read(found: FileSlice, context: TaskContext) -> pa.Table:
        return pa.Table.from_batches(list(scan.batches(plan.view.store, found)), plan.output_schema)

    tables = LocalEngine().run(read, plan.slices)
    return pa.concat_tables(tables) if tables else plan.output_schema.empty_table()


@dataclass(frozen=True, slots=True)
class KeySet:
    """Record keys, with partition paths or without, by which batches are filtered.

    `values` are the distinct texts that identify a record (key, or path and key), `record_keys` the keys alone.
    """

    values: pa.StringArray
    record_keys: pa.StringArray
    with_paths: bool

    @classmethod
    def of(cls, keys: pa.Table) -> KeySet:
        """The keys of a table with `_hoodie_record_key` and maybe `_hoodie_partition_path`."""
        with_paths = PARTITION_PATH in keys.column_names
        record_keys = pc.unique(keys[RECORD_KEY])
        return cls(pc.unique(_path_and_key(keys)) if with_paths else record_keys, record_keys, with_paths)

    def texts(self, rows: pa.Table) -> pa.ChunkedArray:
        """The text that identifies the record of each row, as in `values`."""
        return _path_and_key(rows) if self.with_paths else rows[RECORD_KEY]

    def holds(self, rows: pa.Table) -> pa.ChunkedArray:
        """Which rows have one of the keys; where the set has partition paths, at that path."""
        return pc.is_in(self.texts(rows), value_set=self.values)

    def row_groups(self, file: pq.ParquetFile) -> list[int]:
        """Row groups of a base file that may hold one of the keys, by the statistics of the key column."""
        if RECORD_KEY not in file.schema_arrow.names:
            return list(range(file.metadata.num_row_groups))
        column = file.schema_arrow.names.index(RECORD_KEY)
        return [group for group in range(file.metadata.num_row_groups) if self._may_be_in(file, group, column)]

    def _may_be_in(self, file: pq.ParquetFile, group: int, column: int) -> bool:
        found = file.metadata.row_group(group).column(column)
        if found.path_in_schema != RECORD_KEY or not found.is_stats_set or not found.statistics.has_min_max:
            return True
        low, high = found.statistics.min, found.statistics.max
        return bool(
            pc.any(pc.and_(pc.greater_equal(self.record_keys, low), pc.less_equal(self.record_keys, high))).as_py()
        )


def _path_and_key(rows: pa.Table) -> pa.ChunkedArray:
    """One text for both; no partition path holds a NUL."""
    return pc.binary_join_element_wise(rows[PARTITION_PATH], rows[RECORD_KEY], "\0")


@dataclass(frozen=True, slots=True)
class SliceScan:
    """How each file slice of a scan is read. Picklable; `merge` is None where no slice has log files."""

    schema: pa.Schema
    columns: tuple[str, ...]
    exact: pc.Expression | None
    coarse: pc.Expression | None
    instants: pa.StringArray | None
    keys: KeySet | None
    merge: SliceRead | None

    @classmethod
    def of(cls, plan: ScanPlan) -> SliceScan:
        """Translate the plan's condition.

        Raises: UnsupportedError for a condition without an Arrow form: read it through Spark; and as
        `ScanPlan.slice_read` where slices have log files.
        """
        where = plan.where
        needed = plan.needed_columns()
        return cls(
            schema=pa.schema([plan.schema.field(name) for name in needed]),
            columns=plan.columns,
            exact=None if where is None else where.row_filter(plan.schema),
            coarse=None if where is None else where.row_group_filter(plan.schema),
            instants=None if plan.instants is None else pa.array(sorted(plan.instants), pa.string()),
            keys=None if plan.keys is None else KeySet.of(plan.keys),
            merge=plan.slice_read(needed) if plan.merged else None,
        )

    @classmethod
    def roughly(cls, plan: ScanPlan, *, keys: pa.Table | None = None) -> SliceScan:
        """A scan of all needed columns, and of at least the rows that match: the caller applies the exact condition.

        Only the parts of the condition that have an Arrow form filter rows here. `keys` as `ScanPlan.keys`.

        Raises: as `ScanPlan.slice_read` where slices have log files.
        """
        try:
            needed = plan.needed_columns()
        except UnsupportedError:
            needed = tuple(plan.schema.names)
        try:
            coarse = None if plan.where is None else plan.where.row_group_filter(plan.schema)
        except (UnsupportedError, SchemaMismatchError):
            coarse = None
        return cls(
            schema=pa.schema([plan.schema.field(name) for name in needed]),
            columns=needed,
            exact=coarse,
            coarse=coarse,
            instants=None if plan.instants is None else pa.array(sorted(plan.instants), pa.string()),
            keys=None if keys is None else KeySet.of(keys),
            merge=plan.slice_read(needed) if plan.merged else None,
        )

    @property
    def filters_rows(self) -> bool:
        """Whether rows are filtered, so that the number of rows in a file is not the number of rows returned."""
        return self.exact is not None or self.instants is not None or self.keys is not None

    def batches(self, store: Store, found: FileSlice) -> Iterator[pa.RecordBatch]:
        """The slice's rows that match, with the plan's columns.

        Memory: a row group's needed columns; of a slice with log files what `files.merged_slice` takes.
        """
        for rows in self._rows(store, found):
            kept = rows
            if self.instants is not None:
                kept = kept.filter(pc.is_in(kept[COMMIT_TIME], value_set=self.instants))
            if self.keys is not None:
                kept = kept.filter(self.keys.holds(kept))
            if self.exact is not None:
                kept = kept.filter(self.exact)
            yield from kept.select(list(self.columns)).to_batches()

    def _rows(self, store: Store, found: FileSlice) -> Iterator[pa.Table]:
        if found.log_files:
            assert self.merge is not None
            yield from read_file_slice(store, found, self.merge)
        elif found.base_file is not None:
            yield from self._base_rows(store, found.base_file)

    def _base_rows(self, store: Store, file: BaseFile) -> Iterator[pa.Table]:
        with store.open_input(file.path) as source:
            parquet = parquet_file(store, file.path, source)
            groups = None if self.keys is None else self.keys.row_groups(parquet)
            if groups == []:
                return
            if self.coarse is not None and self._has_current_types(parquet.schema_arrow):
                # Not at the top: the module imports pandas, which is slow and which most programs do without.
                import pyarrow.dataset as ds

                fragment = ds.ParquetFileFormat().make_fragment(source)
                matching = {group.id for group in fragment.subset(self.coarse).row_groups}
                groups = sorted(matching) if groups is None else [group for group in groups if group in matching]
            yield from stored_rows(parquet, self.schema, where=store.uri(file.path), row_groups=groups)

    def _has_current_types(self, stored: pa.Schema) -> bool:
        """Whether the file's statistics fit the condition: it has all needed columns in the table's current types."""
        return all(
            field.name in stored.names and stored.field(field.name).type.equals(field.type) for field in self.schema
        )
