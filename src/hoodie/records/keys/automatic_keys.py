"""Automatic record keys (RFC-76): `<commit time>_<partition id>_<row id>`, for tables without record key fields.

The JVM makes the same form (docs/format/table.md §3.3). The partition id is the number of the task that stages or
writes the row, and the row id counts its rows from 0. No two rows of a commit have both numbers in common, and no two
commits of a table have a time in common, so the keys are unique in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine.api import Consume, TaskContext
from hoodie.records.change import RECORD_KEY

Result = TypeVar("Result")


class KeySource(Enum):
    """Where the record keys of a write's rows come from."""

    COLUMNS = "columns"
    """The record key fields of the table."""
    STORED = "stored"
    """The column `_hoodie_record_key` of rows that were read from the table."""
    AUTOMATIC = "automatic"
    """Rows get new keys in the task that stages or writes them."""
    STORED_OR_AUTOMATIC = "stored or automatic"
    """Rows with a `_hoodie_record_key` are stored rows; rows where it is null get new keys."""


def automatic_keys(commit_time: str, partition: int, start: int, count: int) -> pa.StringArray:
    """Return the keys of the rows `start` to `start + count` (exclusive) of a task.

    >>> automatic_keys("20260101120000000", 3, 9, 2).to_pylist()
    ['20260101120000000_3_9', '20260101120000000_3_10']
    """
    rows = pc.cast(pa.array(np.arange(start, start + count)), pa.string())
    return pc.binary_join_element_wise(f"{commit_time}_{partition}_", rows, "")


def with_commit_time(keys: pa.StringArray | pa.ChunkedArray, commit_time: str) -> pa.StringArray | pa.ChunkedArray:
    """Return the keys; those that were made without a commit time have this commit time.

    >>> with_commit_time(automatic_keys("", 3, 9, 1), "20260101120000000").to_pylist()
    ['20260101120000000_3_9']
    """
    return pc.if_else(pc.starts_with(keys, "_"), pc.binary_join_element_wise(commit_time, keys, ""), keys)


@dataclass(frozen=True, slots=True)
class AutomaticallyKeyed(Generic[Result]):
    """Consumer for `Engine.process` that gives each row its key and passes the rows to another consumer.

    Both run in one task attempt. An engine returns the results of one attempt only, so that a row has one key even if
    another attempt of the task gets the rows in another order. `commit_time`: the first part of the keys; empty if the
    rows are staged, as the time of their commit is known later (`with_commit_time`). `only_empty`: rows whose key is no
    empty text keep it.
    """

    consume: Consume[Result]
    commit_time: str = ""
    only_empty: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterable[Result]:
        """Return what the other consumer returns. Memory: one batch."""
        return self.consume(self._keyed(batches, context.partition), context)

    def _keyed(self, batches: Iterator[pa.RecordBatch], partition: int) -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in batches:
            place = batch.schema.get_field_index(RECORD_KEY)
            keys = automatic_keys(self.commit_time, partition, start, batch.num_rows)
            start += batch.num_rows
            if self.only_empty:
                given = batch.column(place)
                keys = pc.if_else(pc.equal(given, ""), keys, given)
            yield batch.set_column(place, batch.schema.field(place), keys)


def consumer_of(source: KeySource, consume: Consume[Result], commit_time: str = "") -> Consume[Result]:
    """Return the consumer; with automatic keys, rows get their missing keys before it."""
    if source not in (KeySource.AUTOMATIC, KeySource.STORED_OR_AUTOMATIC):
        return consume
    return AutomaticallyKeyed(consume, commit_time, only_empty=source is KeySource.STORED_OR_AUTOMATIC)
