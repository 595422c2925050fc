"""Look up keys by Spark: record locations, existence checks, and the rows of updates.

Keys are looked up in the record index, or by a join. For the index, rows are shuffled by index file group first, so
that a task reads few index file groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from hoodie.engine import LocalEngine
from hoodie.index import rows_follow_columns
from hoodie.index.record.file_groups import RecordIndexState
from hoodie.index.record.look_up import FoundLocations, look_up
from hoodie.merge_into.by_condition import UpdatePlan
from hoodie.read.key_holders import index_for_reads, is_unique_by_partition, only_in
from hoodie.read.lookup import LOCATIONS_SCHEMA, key_columns, key_table, location_rows, slice_columns
from hoodie.read.plan import check_readable, plan_scan
from hoodie.read.times import When, view_as_of
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.keys.key_columns import KeyColumns
from hoodie.records.sql.quoting import quoted
from hoodie.spark.assignment import Assignment, types_of
from hoodie.spark.scan import read_scan
from hoodie.spark.small_tables import from_arrow
from hoodie.spark.tasks import in_workers
from hoodie.spark.types import arrow_schema_of, spark_schema_of
from hoodie.storage import StoreSpec, open_store
from hoodie.view.slices import list_slices
from hoodie.view.still_there import check_still_there
from hoodie.view.table_view import TableView

# These names differ from the meta columns, because rows that were read from a table have the meta columns already.
_WANTED_KEY = "#wanted_key"
_WANTED_PATH = "#wanted_path"
_BUCKET = "#bucket"
_FILE_NAME = "_hoodie_file_name"


@dataclass(frozen=True, slots=True)
class FileGroupLookUp:
    """The data that workers need to look keys up in the record index. Picklable.

    `current` are the partition paths and file ids of the file groups that exist.
    """

    store: StoreSpec
    state: RecordIndexState
    current: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, view: TableView, *, as_of: str | None = None) -> FileGroupLookUp | None:
        """Create a look-up in the table's record index; None if reads cannot use a record index."""
        state = index_for_reads(view, as_of=as_of)
        if state is None:
            return None
        current = frozenset(found.group for found in list_slices(view, as_of=as_of))
        check_still_there(view, as_of)
        return cls(view.store.spec, state, current)

    def by_bucket(self, keyed: Any) -> Any:
        """Shuffle a DataFrame with the column `_WANTED_KEY` by index file group; adds the number of the file group."""
        state = self.state

        def add_buckets(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                numbers = pa.array(state.numbers_of(batch.column(_WANTED_KEY).cast(pa.string())))
                yield pa.RecordBatch.from_arrays([*batch.columns, numbers], [*batch.schema.names, _BUCKET])

        schema = arrow_schema_of(keyed.schema).append(pa.field(_BUCKET, pa.int32(), False))
        return in_workers(keyed, add_buckets, spark_schema_of(schema)).repartition(F.col(_BUCKET))

    def locate(self, keys: pa.Array) -> FoundLocations:
        """Look up the locations of keys; runs in a worker, which keeps parsed files in memory for its next batches."""
        found = look_up(LocalEngine(threads=1), open_store(self.store), self.state, keys.cast(pa.string()))
        return only_in(found, self.current)


def _with_wanted_keys(columns: KeyColumns, frame: Any, *, by_path: bool, keep: bool) -> Any:
    """Add record keys to a DataFrame, and partition paths if `by_path`; its other columns are kept if `keep`."""
    names = frame.columns if keep else []
    added = {RECORD_KEY: _WANTED_KEY} | ({PARTITION_PATH: _WANTED_PATH} if by_path else {})

    def add_keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            keys = key_table(columns, batch)
            made = [keys[name].combine_chunks() for name in added]
            kept = batch.columns if names else []
            yield pa.RecordBatch.from_arrays([*kept, *made], [*names, *added.values()])

    schema = arrow_schema_of(frame.schema) if keep else pa.schema([])
    for name in added.values():
        schema = schema.append(pa.field(name, pa.string(), False))
    return in_workers(frame, add_keys, spark_schema_of(schema))


def record_locations(view: TableView, frame: Any, *, as_of: When | None = None) -> Any:
    """Return the location of each key of a DataFrame; see `hoodie.read.lookup.record_locations`.

    The order of the rows is not defined. Memory of a worker: as `index.record.look_up`, and the partition paths and
    file ids of the table's file groups.
    """
    check_readable(view, by_meta_columns=True)
    view, instant_time = (view, None) if as_of is None else view_as_of(view, as_of)
    columns = key_columns(view)
    frame = frame.select(*map(quoted, columns.needed(frame.columns)))
    tells_paths = columns.tells_paths(arrow_schema_of(frame.schema)) and rows_follow_columns(view, as_of=instant_time)
    by_path = is_unique_by_partition(view) and tells_paths
    keyed = _with_wanted_keys(columns, frame, by_path=by_path, keep=False)
    index = FileGroupLookUp.of(view, as_of=instant_time)
    if index is None:
        return _located_by_join(view, keyed, by_path=by_path, as_of=instant_time)
    look, zone = index.locate, view.layout.zone

    def locate(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            keys = batch.column(_WANTED_KEY)
            yield from location_rows(keys.cast(pa.string()), look(keys), zone).to_batches()

    return in_workers(index.by_bucket(keyed), locate, spark_schema_of(LOCATIONS_SCHEMA))


def _located_by_join(view: TableView, keyed: Any, *, by_path: bool, as_of: str | None) -> Any:
    """Find locations by a join with the key column of the table, and with the base instants of its file slices."""
    session = keyed.sparkSession
    scan = plan_scan(view, columns=[RECORD_KEY, PARTITION_PATH, _FILE_NAME], as_of=as_of)
    held = read_scan(session, scan).select(
        F.col(RECORD_KEY),
        F.col(PARTITION_PATH).alias("partition_path"),
        F.substring_index(F.col(_FILE_NAME), "_", 1).alias("file_id"),
    )
    slices = pa.table(slice_columns(scan.slices), ["partition_path", "file_id", "instant"])
    located = held.distinct().join(F.broadcast(from_arrow(session, slices)), ["partition_path", "file_id"])
    condition = F.col(_WANTED_KEY) == F.col(RECORD_KEY)
    if by_path:
        condition = condition & (F.col(_WANTED_PATH) == F.col("partition_path"))
    joined = keyed.join(located, condition, "left")
    return joined.select(F.col(_WANTED_KEY).alias(RECORD_KEY), "partition_path", "file_id", "instant")


def assigned(session: Any, plan: UpdatePlan, assignments: Mapping[str, str]) -> Any:
    """Return the rows that an update writes; Spark evaluates the assignments. Raises: as `Assignment.of`."""
    frame = read_scan(session, plan.scan)
    wanted = {field.name: field.dataType for field in frame.schema}
    columns = {name: F.col(quoted(name)) for name in plan.columns}
    for name, given in types_of(frame, assignments).items():
        columns[name] = Assignment("update", name, given, wanted[name]).of(F.expr(assignments[name])).alias(name)
    return frame.select(*columns.values())


def filter_exists(view: TableView, frame: Any, *, is_global: bool) -> Any:
    """Return the rows of a DataFrame whose key the table does not hold.

    With a record index the rows are shuffled by index file group, and each worker reads the index file groups of its
    rows. Otherwise the rows are joined with the table's key columns by an anti join.
    """
    check_readable(view, by_meta_columns=True)
    columns = key_columns(view)
    names = frame.columns
    by_path = not is_global and columns.tells_paths(arrow_schema_of(frame.schema))
    keyed = _with_wanted_keys(columns, frame, by_path=by_path, keep=True)
    index = FileGroupLookUp.of(view) if is_global else None
    if index is not None:
        look, width = index.locate, len(names)

        def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                is_new = pa.array(look(batch.column(_WANTED_KEY)).codes < 0)
                rows = pa.RecordBatch.from_arrays(batch.columns[:width], schema=pa.schema(list(batch.schema)[:width]))
                yield rows.filter(is_new)

        return in_workers(index.by_bucket(keyed), keep, frame.schema)
    wanted = {RECORD_KEY: _WANTED_KEY} | ({PARTITION_PATH: _WANTED_PATH} if by_path else {})
    held = read_scan(frame.sparkSession, plan_scan(view, columns=list(wanted)))
    held = held.select(*(F.col(name).alias(alias) for name, alias in wanted.items()))
    return keyed.join(held, list(wanted.values()), "left_anti").select(*(F.col(quoted(name)) for name in names))
