"""Record locations (RFC-08's getRecordLocations): by the record index, or by the key columns of the file slices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.slices import FileSlice
from hoodie.format.metadata_table.record_location import RecordLocation
from hoodie.format.table.table_config import TimelineZone
from hoodie.index.record import FoundLocations
from hoodie.read.key_holders import is_unique_by_partition, locate
from hoodie.read.local import KeySet, SliceScan
from hoodie.read.lookup import key_columns, key_table
from hoodie.read.plan import plan_keys
from hoodie.read.readable import check_readable
from hoodie.read.times import When, view_as_of
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.timeline import instant_time_of_ms
from hoodie.view.table_view import TableView

LOCATIONS_SCHEMA = pa.schema(
    [
        pa.field(RECORD_KEY, pa.string(), nullable=False),
        pa.field("partition_path", pa.string()),
        pa.field("file_id", pa.string()),
        pa.field("instant", pa.string()),
    ]
)


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
    if PARTITION_PATH in wanted.column_names and not is_unique_by_partition(view):
        wanted = wanted.select([RECORD_KEY])
    record_keys = wanted[RECORD_KEY].combine_chunks()
    found = locate(view, record_keys, as_of=instant_time)
    if found is None:
        return _located_by_files(view, wanted, as_of=instant_time)
    return location_rows(record_keys, found, view.layout.zone)


def location_rows(keys: pa.StringArray, found: FoundLocations, zone: TimelineZone) -> pa.Table:
    """Return keys with their locations, in the order of the keys; columns as in `LOCATIONS_SCHEMA`."""
    texts = _texts(found.locations, zone)
    places = pa.array(found.codes, mask=found.codes < 0)
    return pa.Table.from_arrays([keys, *(column.take(places) for column in texts)], schema=LOCATIONS_SCHEMA)


def _texts(locations: tuple[RecordLocation, ...], zone: TimelineZone) -> list[pa.StringArray]:
    """Return columns of the partition paths, file ids and instants of locations."""
    return [
        pa.array([found.partition_path for found in locations], pa.string()),
        pa.array([found.file_id for found in locations], pa.string()),
        pa.array([instant_time_of_ms(found.instant_ms, zone) for found in locations], pa.string()),
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
    return [pa.array([getattr(found, name) for found in slices], pa.string()) for name in names]


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
