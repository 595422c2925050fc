"""Look up records by key: the rows of given keys, the given rows whose keys are new, and the locations of records.

Record locations (RFC-08's getRecordLocations) come from the record index, or from the key columns of the file slices.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.slices import FileSlice
from hoodie.format.metadata_table.record_location import RecordLocation
from hoodie.format.table.table_config import TimelineZone
from hoodie.index import rows_follow_columns
from hoodie.index.record.look_up import FoundLocations
from hoodie.read.key_holders import is_unique_by_partition, locate
from hoodie.read.local import KeySet, SliceScan, read_table
from hoodie.read.plan import ScanPlan, check_readable, plan_keys
from hoodie.read.report import report_schema
from hoodie.read.times import When, view_as_of
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.keys.key_columns import KeyColumns
from hoodie.timeline import instant_time_of_ms
from hoodie.view.stored_keys import view_key_generator
from hoodie.view.table_view import TableView


def key_columns(view: TableView) -> KeyColumns:
    """Return the rules by which record keys and partition paths are made from the columns of this table.

    Raises: UnsupportedError for a key generator that only the JVM has.
    """
    return KeyColumns(view_key_generator(view), view.schema().arrow)


def key_table(columns: KeyColumns, rows: pa.Table | pa.RecordBatch) -> pa.Table:
    """Return the record keys of rows, and the partition paths if the columns determine them; rows stay in order.

    The rows must have the table's key columns, in types that can be converted to the table's types, or
    `_hoodie_record_key` (and `_hoodie_partition_path`). Other columns are ignored.

    Raises: SchemaMismatchError if the rows have neither, or types cannot be converted; RecordKeyError for null keys.
    """
    naming = rows.select(columns.needed(rows.schema.names))
    if isinstance(naming, pa.Table):
        arrays = [column.combine_chunks() for column in naming.columns]
        naming = pa.RecordBatch.from_arrays(arrays, schema=naming.schema)
    made = {RECORD_KEY: columns.record_keys(naming)}
    paths = columns.partition_paths(naming)
    return pa.table(made if paths is None else {**made, PARTITION_PATH: paths})


def plan_lookup(view: TableView, keys: pa.Table) -> ScanPlan:
    """Plan the read of the rows with these keys; file groups and partitions that hold none of them are not read."""
    check_readable(view, by_meta_columns=True)
    wanted = key_table(key_columns(view), keys)
    if PARTITION_PATH in wanted.column_names and not rows_follow_columns(view):
        # In such a table rows stay in their first partition, and their partition columns can name another partition.
        wanted = wanted.select([RECORD_KEY])
    return plan_keys(view, wanted)


def filter_exists(view: TableView, rows: pa.Table, *, is_global: bool) -> pa.Table:
    """Return the rows whose key the table does not hold, in order. Callers de-duplicate rows by this before an insert.

    If `is_global`, a key is looked up in the whole table, otherwise in its own partition only. With a record index and
    `is_global` no data file is read. Memory: the rows, and those of their keys that the table holds.
    """
    check_readable(view, by_meta_columns=True)
    wanted = key_table(key_columns(view), rows)
    if is_global and PARTITION_PATH in wanted.column_names:
        wanted = wanted.select([RECORD_KEY])
    found = locate(view, wanted[RECORD_KEY].combine_chunks()) if is_global else None
    if found is not None:
        is_new = pa.array(found.codes < 0)
    else:
        scan = dataclasses.replace(plan_lookup(view, wanted), columns=tuple(wanted.column_names))
        is_new = pc.invert(KeySet.of(read_table(scan)).holds(wanted))
    return rows.filter(is_new)


LOCATIONS_SCHEMA = report_schema(f"{RECORD_KEY} string, partition_path string?, file_id string?, instant string?")


def record_locations(view: TableView, keys: pa.Table, *, as_of: When | None = None) -> pa.Table:
    """Return the location of each key, in the order of the keys; null if the table does not hold the key.

    `keys` are rows as for `key_table`. With a record index `instant` is the instant in the index entry. Without a
    record index it is the base instant of the file slice, and a key that several partitions hold has a row for each.
    Memory: the keys and their locations, and the memory of `index.record.look_up`.

    Raises: as `key_table`; UnsupportedError if the cleaner removed files that `as_of` (inclusive) requires.
    """
    view, instant_time = (view, None) if as_of is None else view_as_of(view, as_of)
    check_readable(view, by_meta_columns=True)
    wanted = key_table(key_columns(view), keys)
    by_path = is_unique_by_partition(view) and rows_follow_columns(view, as_of=instant_time)
    if PARTITION_PATH in wanted.column_names and not by_path:
        wanted = wanted.select([RECORD_KEY])
    record_keys = wanted[RECORD_KEY].combine_chunks()
    found = locate(view, record_keys, as_of=instant_time)
    if found is None:
        return _located_by_files(view, wanted, as_of=instant_time)
    return location_rows(record_keys, found, view.layout.zone)


def location_rows(keys: pa.StringArray, found: FoundLocations, zone: TimelineZone) -> pa.Table:
    """Return keys with their locations, in the order of the keys; columns as in `LOCATIONS_SCHEMA`."""
    places = pa.array(found.codes, mask=found.codes < 0)
    return pa.Table.from_arrays(
        [keys, *(column.take(places) for column in location_columns(found.locations, zone))], schema=LOCATIONS_SCHEMA
    )


def location_columns(locations: Sequence[RecordLocation], zone: TimelineZone) -> list[pa.StringArray]:
    """Return columns of the partition paths, file ids and instants of locations."""
    return [
        pa.array([location.partition_path for location in locations], pa.string()),
        pa.array([location.file_id for location in locations], pa.string()),
        pa.array([instant_time_of_ms(location.instant_ms, zone) for location in locations], pa.string()),
    ]


def _located_by_files(view: TableView, wanted: pa.Table, *, as_of: str | None) -> pa.Table:
    """Find locations by reading the key column of every file slice that can hold one of the keys."""
    plan = plan_keys(view, wanted, as_of=as_of).with_columns(wanted.column_names)
    scan = SliceScan.of(plan)
    keys = KeySet.of(wanted)

    def find(found: FileSlice, context: TaskContext) -> npt.NDArray[np.int64]:
        held = pa.Table.from_batches(list(scan.batches(view.store, found)), plan.output_schema)
        return np.unique(np.asarray(pc.index_in(keys.texts(held), value_set=keys.values), np.int64))

    parts = LocalEngine().run(find, plan.slices)
    # Pairs of a distinct key and a slice that holds the key, sorted by key. Several rows of a key in one slice are one
    # location.
    key_of_pair = np.concatenate([np.zeros(0, np.int64), *parts])
    slice_of_pair = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    order = np.argsort(key_of_pair, kind="stable")
    key_of_row = np.asarray(pc.index_in(keys.texts(wanted), value_set=keys.values), np.int64)
    rows, pairs = _joined(key_of_row, key_of_pair[order])
    places = np.append(slice_of_pair[order], -1)[pairs]
    taken = [column.take(pa.array(places, mask=places < 0)) for column in slice_columns(plan.slices)]
    names = wanted[RECORD_KEY].combine_chunks().take(pa.array(rows))
    return pa.Table.from_arrays([names, *taken], schema=LOCATIONS_SCHEMA)


def slice_columns(slices: Sequence[FileSlice]) -> list[pa.StringArray]:
    """Return columns of the partition paths, file ids and base instants of file slices."""
    names = ("partition_path", "file_id", "base_instant_time")
    return [pa.array([getattr(file_slice, name) for file_slice in slices], pa.string()) for name in names]


def _joined(
    key_of_row: npt.NDArray[np.int64], key_of_pair: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Join each row with the pairs of its key, in the order of the rows; -1 is the pair of a row without any.

    The pairs must be sorted by key.
    """
    first = np.searchsorted(key_of_pair, key_of_row)
    count = np.searchsorted(key_of_pair, key_of_row, side="right") - first
    repeats = np.maximum(count, 1)
    rows = np.repeat(np.arange(len(key_of_row)), repeats)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    return rows, np.where(count[rows] > 0, first[rows] + nth, -1)
