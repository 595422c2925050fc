"""Count the logged rows of deleted records that the merge will hide, for indexes that keep a record in its file group.

If a log deletes a record without an ordering value, a later row replaces this delete and is then merged with the row of
the base file (docs/format/table.md §6.4). If the base row has the higher ordering value, the base row is visible again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.files.base_file import read_base_file
from hoodie.files.merged_slice import SliceRead, deleted_keys, read_file_slice
from hoodie.files.slices import FileSlice
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store


def hidden_rows(store: Store, file_slice: FileSlice, read: SliceRead, rows: pa.Table) -> int:
    """Count the rows, one per key, that will be hidden by the base row of their deleted record.

    The logs are scanned for deletes; stored rows are read only if one of the keys was deleted.
    """
    ordering = read.merger.ordering_columns
    base = file_slice.base_file
    if (
        not ordering
        or read.merger.function is not None
        or base is None
        or not file_slice.log_files
        or not rows.num_rows
    ):
        return 0
    deleted = deleted_keys(store, file_slice, read, in_order=False)
    returning = rows.filter(pc.is_in(rows[RECORD_KEY], value_set=deleted))
    if not returning.num_rows:
        return 0
    read = replace(read, columns=(RECORD_KEY, *ordering))
    visible = _with_keys(read_file_slice(store, file_slice, read), read.output_schema, returning[RECORD_KEY])
    returning = returning.filter(pc.invert(pc.is_in(returning[RECORD_KEY], value_set=visible[RECORD_KEY])))
    names = read.stored.names_at(base.instant_time)
    rows_of_base = read_base_file(store, base, read.schema, columns=read.columns, names=names)
    stored = _with_keys(rows_of_base, read.output_schema, returning[RECORD_KEY])
    places = pc.index_in(returning[RECORD_KEY].combine_chunks(), value_set=stored[RECORD_KEY].combine_chunks())
    returning = returning.filter(places.is_valid())
    return int(np.count_nonzero(~read.merger.newer_wins(stored.take(places.drop_null()), returning)))


def _with_keys(parts: Iterable[pa.Table], schema: pa.Schema, keys: pa.ChunkedArray) -> pa.Table:
    """Return the rows with one of the keys."""
    found = [part.filter(pc.is_in(part[RECORD_KEY], value_set=keys)) for part in parts]
    return pa.concat_tables([schema.empty_table(), *found])
