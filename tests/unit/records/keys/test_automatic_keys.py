"""Automatic record keys: their form, and which row of which task gets which key."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hoodie.engine import TaskContext
from hoodie.records.change import RECORD_KEY, change_schema
from hoodie.records.keys.automatic_keys import AutomaticallyKeyed, automatic_keys, with_commit_time

TIME = "20260101120000000"


def test_keys_count_the_rows_of_a_task() -> None:
    assert automatic_keys(TIME, 12, 98, 3).to_pylist() == [f"{TIME}_12_{row}" for row in (98, 99, 100)]
    assert automatic_keys(TIME, 0, 0, 0).to_pylist() == []
    assert automatic_keys(TIME, 0, 2**40, 1).to_pylist() == [f"{TIME}_0_{2**40}"]
    # Task 1, row 12 is not task 11, row 2.
    assert set(automatic_keys(TIME, 1, 0, 200).to_pylist()).isdisjoint(automatic_keys(TIME, 11, 0, 200).to_pylist())


def test_the_commit_time_may_come_later() -> None:
    staged = automatic_keys("", 7, 0, 5)
    assert with_commit_time(staged, TIME).equals(automatic_keys(TIME, 7, 0, 5))
    chunks = pa.chunked_array([staged.slice(0, 2), staged.slice(2)])
    assert with_commit_time(chunks, TIME).to_pylist() == automatic_keys(TIME, 7, 0, 5).to_pylist()


def test_a_task_counts_across_its_batches_and_begins_anew_in_each_attempt() -> None:
    schema = change_schema(pa.schema([("v", pa.int64())]))

    def batches() -> Iterator[pa.RecordBatch]:
        for values in ([1, 2, 3], [], [4]):
            columns = [[0] * len(values), [""] * len(values), [""] * len(values), values]
            yield pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)

    def keep(found: Iterator[pa.RecordBatch], _context: TaskContext) -> list[pa.RecordBatch]:
        return list(found)

    keyed = AutomaticallyKeyed(keep, TIME)
    for attempt in (0, 1):
        rows = pa.Table.from_batches(keyed(batches(), TaskContext(5, 2, attempt)), schema)
        assert rows[RECORD_KEY].to_pylist() == [f"{TIME}_5_{row}" for row in range(4)]
        assert rows["v"].to_pylist() == [1, 2, 3, 4]
