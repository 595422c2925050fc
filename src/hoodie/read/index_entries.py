"""The record index as an Arrow table: its entries as of an instant, and the entries changed between two instants."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from hoodie.engine.ahead import reader_of
from hoodie.errors import UnsupportedError
from hoodie.format.metadata_table.record_location import LocationColumn
from hoodie.index import lost_record_index
from hoodie.index.record.look_up import LookUp, find
from hoodie.index.record.state import IndexHistory, index_history
from hoodie.metadata.kinds.record_index import RecordIndexKind
from hoodie.metadata.slice_content import RowBlock
from hoodie.metadata.slices import SliceReader
from hoodie.read.changes import completed_between
from hoodie.read.local import first_of
from hoodie.read.lookup import location_columns
from hoodie.read.report import report_schema
from hoodie.read.times import When, view_as_of
from hoodie.timeline import Instant
from hoodie.view.table_view import TableView

ENTRIES_SCHEMA = report_schema("key string, partition_path string, file_id string, instant string, bucket int32")
CHANGES_SCHEMA = report_schema("key string, change string, partition_path string?, file_id string?, instant string")
_BATCH_ROWS = 64 * 1024


def stream_entries(view: TableView, *, as_of: When | None = None) -> pa.RecordBatchReader:
    """Return all entries as a stream, one index file group after the other, sorted by key in each.

    `as_of`: an instant (inclusive); None for the newest commit. `bucket` is the number of the index file group. Memory:
    a few copies of the keys and values of one index file group.

    Raises: UnsupportedError for a table without a record index, or if the index no longer stores its state as of that
    instant.
    """
    view, instant_time = (view, None) if as_of is None else view_as_of(view, as_of)
    state = _index_of(view).state(as_of=instant_time)
    reader = SliceReader(view.store, view.config.version)

    def batches() -> Iterator[pa.RecordBatch]:
        for bucket in state.file_groups:
            content = reader.read_once(bucket.file_slice)
            keys, _ = RecordIndexKind().compact(content, file_name="")
            for start in range(0, len(keys), _BATCH_ROWS):
                some = keys.slice(start, _BATCH_ROWS)
                located = _columns(find(content, some, look_up=LookUp.SEEK), view)
                numbers = pa.array(np.full(len(some), bucket.number, np.int32))
                yield pa.RecordBatch.from_arrays([some, *located, numbers], schema=ENTRIES_SCHEMA)

    return reader_of(ENTRIES_SCHEMA, batches())


def first_entries(view: TableView, limit: int | None, *, as_of: When | None = None) -> pa.Table:
    """Return the first `limit` entries of `stream_entries`, or all entries if it is None.

    The read stops as soon as it has enough entries.
    """
    reader = stream_entries(view, as_of=as_of)
    return reader.read_all() if limit is None else first_of(reader, limit)


def entry_changes(view: TableView, since: When | None, until: When | None = None) -> pa.Table:
    """Return the index changes of the commits that completed in `(since, until]`, commit by commit.

    `change` is `put` or `delete`. Times are as for `Table.changes`. A key that several commits changed has a row for
    each commit. An update of a record inside its file group changes no entry. Only the log files of those commits are
    read. Memory: the changes.

    Raises: UnsupportedError for a table without a record index, and if the
    changes can no longer be read: they were part of an index build, or were compacted into base files and cleaned.
    """
    index = _index_of(view)
    instants = completed_between(view, since, until)
    parts = [_changes(block, instant, view) for instant, block in index.changes(instants)]
    return pa.concat_tables([CHANGES_SCHEMA.empty_table(), *parts]).combine_chunks()


def _changes(block: RowBlock, instant: Instant, view: TableView) -> pa.Table:
    keys = block.keys.cast(pa.string())
    values = block.values
    change = "delete" if values is None else "put"
    located: list[pa.Array] = [pa.nulls(len(keys), pa.string())] * 2
    if values is not None:
        column = LocationColumn.parse(values, schema_json=block.schema_json, path=str(instant))
        located = _columns(column, view)[:2]
    constants = [pa.repeat(pa.scalar(text, pa.string()), len(keys)) for text in (change, instant.requested_time)]
    return pa.Table.from_arrays([keys, constants[0], *located, constants[1]], schema=CHANGES_SCHEMA)


def _columns(found: LocationColumn, view: TableView) -> list[pa.Array]:
    """Return columns of partition paths, file ids and instants."""
    places = pa.array(found.codes)
    return [column.take(places) for column in location_columns(found.locations, view.layout.zone)]


def _index_of(view: TableView) -> IndexHistory:
    index = index_history(view)
    if index is None:
        lost = lost_record_index(view)
        if lost is not None:
            raise UnsupportedError(f'{lost}; the next write builds it, or t.index.build("record")')
        raise UnsupportedError(f'{view.store.uri("")} has no record index; build it with t.index.build("record")')
    return index
