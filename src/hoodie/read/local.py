"""Run a scan in this process: base files on threads, row groups pruned, rows filtered exactly, Arrow out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import LocalEngine, TaskContext
from hoodie.errors import CorruptFileError
from hoodie.files.base_file import open_parquet
from hoodie.files.slices import BaseFile
from hoodie.format.table_schema import conform
from hoodie.read.plan import ScanPlan
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.expression import columns_of, to_filter, to_scan_filter
from hoodie.storage import Store

COMMIT_TIME = "_hoodie_commit_time"


def read_table(plan: ScanPlan) -> pa.Table:
    """All rows of the scan, file by file in the order of the plan."""
    scan = FileScan.of(plan)

    def read(file: BaseFile, context: TaskContext) -> pa.Table:
        return pa.Table.from_batches(list(scan.batches(plan.view.store, file)), plan.output_schema)

    tables = LocalEngine().run(read, plan.files)
    return pa.concat_tables(tables) if tables else plan.output_schema.empty_table()


def has_keys(rows: pa.Table, keys: pa.Table) -> pa.ChunkedArray:
    """Which rows have one of the record keys; with partition paths among the keys, at that path."""
    if PARTITION_PATH not in keys.column_names:
        return pc.is_in(rows[RECORD_KEY], value_set=keys[RECORD_KEY].combine_chunks())
    return pc.is_in(_path_and_key(rows), value_set=_path_and_key(keys).combine_chunks())


def _path_and_key(rows: pa.Table) -> pa.ChunkedArray:
    """One text for both; no partition path holds a NUL."""
    return pc.binary_join_element_wise(rows[PARTITION_PATH], rows[RECORD_KEY], "\0")


@dataclass(frozen=True, slots=True)
class FileScan:
    """How each file of a scan is read."""

    schema: pa.Schema
    columns: tuple[str, ...]
    needed: tuple[str, ...]
    exact: pc.Expression | None
    coarse: pc.Expression | None
    instants: pa.StringArray | None
    keys: pa.Table | None

    @classmethod
    def of(cls, plan: ScanPlan) -> FileScan:
        """Translate the plan's condition.

        Raises: UnsupportedError for a condition without an Arrow form: read it through Spark.
        """
        where = plan.where
        needed = list(plan.columns)
        if where is not None:
            needed += [name for name in columns_of(where, plan.schema) if name not in needed]
        needed += [COMMIT_TIME] if plan.instants is not None else []
        needed += plan.keys.column_names if plan.keys is not None else []
        needed = list(dict.fromkeys(needed))
        return cls(
            schema=pa.schema([plan.schema.field(name) for name in needed]),
            columns=plan.columns,
            needed=tuple(needed),
            exact=None if where is None else to_filter(where, plan.schema),
            coarse=None if where is None else to_scan_filter(where, plan.schema),
            instants=None if plan.instants is None else pa.array(sorted(plan.instants), pa.string()),
            keys=plan.keys,
        )

    def batches(self, store: Store, file: BaseFile) -> Iterator[pa.RecordBatch]:
        """The file's rows that match, with the plan's columns. Memory: a row group's needed columns."""
        for rows in self._rows(store, file):
            kept = rows
            if self.instants is not None:
                kept = kept.filter(pc.is_in(kept[COMMIT_TIME], value_set=self.instants))
            if self.keys is not None:
                kept = kept.filter(has_keys(kept, self.keys))
            if self.exact is not None:
                kept = kept.filter(self.exact)
            yield from kept.select(list(self.columns)).to_batches()

    def _rows(self, store: Store, file: BaseFile) -> Iterator[pa.Table]:
        with open_parquet(store, file.path) as parquet, store.open_input(file.path) as source:
            present = [name for name in self.needed if name in parquet.schema_arrow.names]
            groups = list(range(parquet.metadata.num_row_groups))
            if self.coarse is not None and self._has_current_types(parquet.schema_arrow):
                # Not at the top: the module imports pandas, which is slow and which most programs do without.
                import pyarrow.dataset as ds

                fragment = ds.ParquetFileFormat().make_fragment(source)
                groups = [group.id for group in fragment.subset(self.coarse).row_groups]
            try:
                for batch in parquet.iter_batches(
                    row_groups=groups, columns=present, batch_size=128 * 1024, use_threads=False
                ):
                    yield conform(pa.Table.from_batches([batch]), self.schema, stored=True)
            except (pa.ArrowInvalid, OSError) as error:
                raise CorruptFileError(
                    f"the Parquet data cannot be read ({error})", path=store.uri(file.path)
                ) from error

    def _has_current_types(self, stored: pa.Schema) -> bool:
        """Whether the file has all needed columns in the table's current types, so that its statistics fit "
        "the condition."""
        return all(
            field.name in stored.names and stored.field(field.name).type.equals(field.type) for field in self.schema
        )
