"""Stage a write's changes: prepare the caller's rows, evaluated once, and write them to runs of one partition each.

Columns are converted to the table's schema, record keys and partition paths are generated, and each row gets its kind
of change. Invalid rows raise an error here, before the timeline changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Consume, Dataset, Engine, Exchange, TaskContext
from hoodie.errors import SchemaMismatchError
from hoodie.files.staging.staged import StagedRun, StageWriter
from hoodie.files.staging.staged_keys import KeyGroups, KeyStage, KeyWriter, StagedKeys
from hoodie.format.schema.arrow_types import blanks
from hoodie.format.schema.required import Paths, paths_with_null
from hoodie.format.schema.table_schema import META_FIELDS, OPERATION_FIELD, conform
from hoodie.records.change import IS_DELETED, KIND, LEADING, RECORD_KEY, Kind, change_schema, flags_deletes
from hoodie.records.keys.automatic_keys import KeySource, consumer_of
from hoodie.records.keys.key_columns import KeyColumns
from hoodie.records.keys.key_generator import KeyGenerator
from hoodie.records.keys.path_columns import check_read_back, with_texts
from hoodie.records.keys.sorting import spread
from hoodie.records.merging.merge import RecordMerger
from hoodie.storage import StoreSpec, explained, open_store

BUCKET = "#bucket"
ROW_NUMBER = "#row"
Result = TypeVar("Result")
_Buckets = np.ndarray[tuple[int], np.dtype[np.int32]]
_NO_DATA = frozenset((*META_FIELDS, OPERATION_FIELD, KIND))


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """Callable that converts the caller's batches to change batches; workers run it.

    `buckets`: if above 0, two columns are added, the hash bucket of the key and the row number, so that rows with the
    same key can be collected in their order. `keys_only`: the rows only name keys to delete. `any_partition`: such keys
    are looked up in every partition, so that the partition columns may be missing. `key_source`: with automatic keys,
    the column of the record keys has empty texts here in rows that get new keys; the consumer of the change batches
    makes the keys. `loose`: columns whose nulls must be reported to the write.
    """

    schema: pa.Schema
    key_generator: KeyGenerator
    key_source: KeySource = KeySource.COLUMNS
    delete_field: str | None = None
    delete_marker: str | None = None
    keys_only: bool = False
    any_partition: bool = False
    buckets: int = 0
    loose: Paths = frozenset()
    path_columns: tuple[str, ...] = ()
    """Partition columns whose values only the partition path will have."""
    stores_keys: bool = True
    """Whether rows that were read from the table have their record keys in the meta columns."""

    @property
    def prepared_schema(self) -> pa.Schema:
        """Return the schema of the change batches."""
        changes = change_schema(self.schema)
        if not self.buckets:
            return changes
        return changes.append(pa.field(BUCKET, pa.int32())).append(pa.field(ROW_NUMBER, pa.int64()))

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterator[pa.RecordBatch]:
        """Prepare a stream of batches; memory: one batch."""
        row_number = context.partition << 40
        for batch in batches:
            if batch.num_rows == 0:
                continue
            batch = with_texts(batch, self.path_columns)
            prepared = self._keys(batch) if self.keys_only else self._rows(batch)
            if self.buckets:
                prepared = self._bucketed(prepared, row_number)
                row_number += prepared.num_rows
            yield prepared

    def _rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert full rows: inserts, updates, and rows that are marked as deletes.

        A column `KIND`, which a merge computes, contains the kind of each row.
        """
        keep = [name for name in batch.schema.names if name not in _NO_DATA]
        if flags_deletes(batch.schema) and IS_DELETED not in self.schema.names:
            keep.remove(IS_DELETED)
        rows = conform(batch.select(keep), self.schema)
        keys = self._record_keys(batch, rows)
        paths = self.key_generator.partition_paths(rows)
        if self.path_columns:
            check_read_back(rows, paths, self.key_generator)
        kinds = np.full(len(keys), np.int8(Kind.ROW))
        kinds[self._deletes(batch, rows)] = np.int8(Kind.DELETE_IN_ORDER)
        if KIND in batch.schema.names:
            kinds[np.asarray(batch.column(KIND)) == Kind.DELETE] = np.int8(Kind.DELETE)
        return pa.RecordBatch.from_arrays(
            [pa.array(kinds), keys, paths, *rows.columns], schema=change_schema(self.schema)
        )

    def _record_keys(self, batch: pa.RecordBatch, rows: pa.RecordBatch) -> pa.StringArray:
        """Return the record keys of `rows`, the batch without its meta columns."""
        if self.key_source is KeySource.AUTOMATIC:
            return pa.repeat(pa.scalar("", pa.string()), batch.num_rows)
        if self.key_source is KeySource.STORED:
            return KeyColumns(self.key_generator, self.schema).record_keys(batch.select([RECORD_KEY]))
        if self.key_source is KeySource.STORED_OR_AUTOMATIC:
            return pc.fill_null(batch.column(RECORD_KEY).cast(pa.string()), "")
        return self.key_generator.record_keys(rows)

    def _keys(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert keys to delete; only the columns of the record key and the partition path are read."""
        columns = KeyColumns(self.key_generator, self.schema)
        given = [name for name in batch.schema.names if self.stores_keys or name not in META_FIELDS]
        naming = batch.select(columns.needed(given))
        keys = columns.record_keys(naming)
        paths = columns.partition_paths(naming)
        if paths is None:
            paths = self._paths_unknown(batch, columns.missing_paths(batch.schema))
        schema = change_schema(self.schema)
        kinds = pa.array(np.full(len(keys), np.int8(Kind.DELETE)))
        empty = [blanks(field.type, len(keys), is_null=True) for field in list(schema)[len(LEADING) :]]
        return pa.RecordBatch.from_arrays([kinds, keys, paths, *empty], schema=schema)

    def _paths_unknown(self, batch: pa.RecordBatch, missing: list[str]) -> pa.Array:
        """Return empty partition paths if the index searches every partition; the batch lacks the `missing` fields."""
        if self.any_partition:
            return pa.array(np.full(batch.num_rows, ""), pa.string())
        expected = list(self.key_generator.partition_fields)
        raise SchemaMismatchError(
            f"keys to delete: expected the partition columns {expected}, found columns {batch.schema.names}; add "
            f"{missing}, or use a table with a global index, which searches every partition"
        )

    def _deletes(self, batch: pa.RecordBatch, rows: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return a mask of the rows that are deletes: by `_hoodie_is_deleted`, or by the table's delete field."""
        gone = np.zeros(rows.num_rows, np.bool_)
        if flags_deletes(batch.schema):
            gone |= np.asarray(pc.fill_null(batch.column(IS_DELETED), False))
        if self.delete_field is not None and self.delete_field in rows.schema.names:
            marked = pc.equal(rows.column(self.delete_field).cast(pa.string()), self.delete_marker)
            gone |= np.asarray(pc.fill_null(marked, False))
        return gone

    def _bucketed(self, prepared: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        rows = np.arange(first_row, first_row + prepared.num_rows)
        buckets = (spread(prepared.column(RECORD_KEY)) % np.uint32(self.buckets)).astype(np.int32)
        if self.key_source is KeySource.STORED_OR_AUTOMATIC:
            buckets = self._with_new_rows(prepared, buckets)
        arrays = [*prepared.columns, pa.array(buckets), pa.array(rows)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.prepared_schema)

    def _with_new_rows(self, prepared: pa.RecordBatch, buckets: _Buckets) -> _Buckets:
        """Return the buckets; rows that get their keys behind the exchange have those of their values.

        A repeated task puts a row into the same bucket, though it may get its rows in another order.
        """
        is_new = pc.equal(prepared.column(RECORD_KEY), "")
        rows = prepared.select([name for name in self.schema.names if _has_text(self.schema.field(name).type)])
        if rows.num_columns and pc.any(is_new).as_py():
            new = rows.filter(is_new)
            texts = [pc.fill_null(column.cast(pa.string()), "") for column in new.columns]
            found = spread(pc.binary_join_element_wise(*texts, "\n")) % np.uint32(self.buckets)
            buckets[np.asarray(is_new)] = found.astype(np.int32)
        return buckets


def _has_text(kind: pa.DataType) -> bool:
    """Return whether equal values of a type are cast to equal texts, without an error."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_date(kind)
    )


def without_deletes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch without its deletes, for operations that do not delete stored rows."""
    kinds = np.asarray(batch.column(KIND))
    return batch if not kinds.any() else batch.filter(pa.array(kinds == Kind.ROW))


@dataclass(frozen=True, slots=True)
class Staged:
    """The staged data of one write: rows in runs, in the order of the input, and keys if the index requires them.

    `duplicates`: rows that were merged into another row with the same key before they were staged. `nulls`: the loose
    columns of the preparation that have a null.
    """

    runs: tuple[StagedRun, ...]
    keys: tuple[StagedKeys, ...]
    key_groups: KeyGroups | None
    duplicates: int = 0
    nulls: Paths = frozenset()

    @property
    def rows(self) -> int:
        """Return the number of staged rows."""
        return sum(run.rows for run in self.runs)


def process(
    engine: Engine,
    data: Dataset,
    preparation: Preparation,
    consume: Consume[Result],
    exchange: Exchange | None = None,
) -> tuple[list[Result], Paths]:
    """Return the results of `Engine.process`, and the loose columns of the preparation that have a null."""
    schema = preparation.prepared_schema
    if not preparation.loose:
        return engine.process(data, preparation, schema, consume, exchange), Paths()
    found = engine.process(data, preparation, schema, _NullWatch(consume, preparation.loose), exchange)
    nulls = Paths().union(*(part for part in found if isinstance(part, frozenset)))
    return [part for part in found if not isinstance(part, frozenset)], nulls


@dataclass(frozen=True, slots=True)
class _NullWatch(Generic[Result]):
    """Callable for workers: the consumer, whose last result is the loose columns that have a null in the task's rows.

    Rows that delete a record are left out: they are not stored.
    """

    consume: Consume[Result]
    loose: Paths

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> list[Result | Paths]:
        found: set[str] = set()
        return [*self.consume(self._watched(batches, found), context), Paths(found)]

    def _watched(self, batches: Iterator[pa.RecordBatch], found: set[str]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            open_paths = self.loose - found
            if open_paths:
                columns = sorted({path.split(".")[0] for path in open_paths})
                found |= paths_with_null(without_deletes(batch.select([KIND, *columns])), open_paths)
            yield batch


def stage(
    engine: Engine,
    data: Dataset,
    preparation: Preparation,
    store: StoreSpec,
    folder: str,
    *,
    merger: RecordMerger | None = None,
    key_stage: KeyStage | None = None,
    memory: str | None = None,
) -> Staged:
    """Stage all rows under `folder`, and their keys if `key_stage` is given; `memory` as for `StageWriter`.

    `merger`: rows with the same key are merged first, in the hash buckets of the preparation. If keys are unique in the
    whole table, these rows may have different partition paths. Automatic keys are staged without their commit time.
    """
    exchange = Exchange(bucket_by=BUCKET, tasks=preparation.buckets) if preparation.buckets else None
    work = _Stage(store, folder, memory, change_schema(preparation.schema), merger, key_stage)
    consume = consumer_of(preparation.key_source, work)
    files, nulls = process(engine, data, preparation, consume, exchange)
    start = 0
    runs: list[StagedRun] = []
    keys: list[StagedKeys] = []
    for file in files:
        keys += [dataclasses.replace(found, start=start) for found in file.keys]
        for run in file.runs:
            runs.append(dataclasses.replace(run, start=start))
            start += run.rows
    key_groups = None if key_stage is None else key_stage.groups
    return Staged(tuple(runs), tuple(keys), key_groups, sum(file.duplicates for file in files), nulls)


@dataclass(frozen=True, slots=True)
class _StagedFile:
    runs: list[StagedRun]
    keys: list[StagedKeys]
    duplicates: int


@dataclass(frozen=True, slots=True)
class _Stage:
    """Callable for workers: write the change batches of one task attempt to its own Arrow IPC file."""

    store: StoreSpec
    folder: str
    memory: str | None
    schema: pa.Schema
    merger: RecordMerger | None
    key_stage: KeyStage | None

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> list[_StagedFile]:
        """Stage the batches. Memory: 64 MiB; with a merger, all rows of the hash bucket."""
        store = open_store(self.store)
        attempt = f"{context.partition}-{context.stage}-{context.attempt}.arrow"
        keys = None
        if self.key_stage is not None:
            keys = KeyWriter(store, f"{self.folder}/keys-{attempt}", self.schema, self.key_stage)
        writer = StageWriter(store, f"{self.folder}/rows-{attempt}", self.schema, keys, memory=self.memory)
        duplicates = 0
        if self.merger is not None:
            gathered = list(batches)
            reduced = self._reduced(gathered, self.merger)
            duplicates = sum(batch.num_rows for batch in gathered) - sum(batch.num_rows for batch in reduced)
            batches = iter(reduced)
        for batch in batches:
            with explained(store.uri(self.folder)):
                writer.write(batch)
        with explained(store.uri(self.folder)):
            return [_StagedFile(writer.close(), [] if keys is None else keys.close(), duplicates)]

    def _reduced(self, gathered: list[pa.RecordBatch], merger: RecordMerger) -> list[pa.RecordBatch]:
        if not gathered:
            return []
        rows = pa.Table.from_batches(gathered)
        ordered = rows.take(pc.sort_indices(rows[ROW_NUMBER])).select(self.schema.names)
        batches_out: list[pa.RecordBatch] = merger.reduce(ordered, across_partitions=True).combine_chunks().to_batches()
        return batches_out
