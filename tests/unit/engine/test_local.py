"""The in-process engine."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest

from hoodie.engine import ArrowDataset, Exchange, LocalEngine, TaskContext, local
from hoodie.errors import CorruptFileError

SCHEMA = pa.schema([("bucket", pa.int32()), ("n", pa.int64())])
ROWS = 25_000


def table(rows: int = ROWS) -> pa.Table:
    return pa.table([[number % 7 for number in range(rows)], list(range(rows))], schema=SCHEMA)


def same(batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterator[pa.RecordBatch]:
    yield from batches


def gather(
    batches: Iterator[pa.RecordBatch], context: TaskContext
) -> Iterable[tuple[TaskContext, list[int], list[int]]]:
    parts = pa.Table.from_batches(list(batches), SCHEMA)
    return [(context, parts["bucket"].to_pylist(), parts["n"].to_pylist())]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_tasks(threads: int) -> None:
    def work(task: int, context: TaskContext) -> tuple[int, int]:
        return task * 2, context.partition

    assert LocalEngine(threads).run(work, range(20)) == [(number * 2, number) for number in range(20)]
    assert LocalEngine(threads).run(work, []) == []


def test_attempts_of_two_jobs_never_share_a_context() -> None:
    engine = LocalEngine(2)
    contexts = engine.run(lambda task, context: context, range(4)) + engine.run(lambda task, context: context, range(4))
    assert len(set(contexts)) == 8


@pytest.mark.parametrize("threads", [1, 3])
def test_the_first_error_is_raised_as_it_is(threads: int) -> None:
    def work(task: int, context: TaskContext) -> int:
        if task == 3:
            raise CorruptFileError("half a file", path="p/f.parquet")
        return task

    with pytest.raises(CorruptFileError, match="half a file") as caught:
        LocalEngine(threads).run(work, range(6))
    assert caught.value.path == "p/f.parquet"


def test_after_an_error_no_task_runs_any_more() -> None:
    """Else a task would write a file after the write was undone."""
    running: set[int] = set()
    gate = threading.Event()

    def work(task: int, context: TaskContext) -> None:
        running.add(task)
        if task == 0:
            raise RuntimeError("stop")
        gate.wait(0.05)
        running.discard(task)

    with pytest.raises(RuntimeError, match="stop"):
        LocalEngine(2).run(work, range(50))
    assert running == {0}


def test_without_an_exchange_rows_stay_in_their_order() -> None:
    found = LocalEngine(2).process(ArrowDataset(table()), same, SCHEMA, gather)
    assert [context.partition for context, _, _ in found] == list(range(len(found)))
    assert [n for _, _, rows in found for n in rows] == list(range(ROWS))
    assert len(LocalEngine(8).process(ArrowDataset(table(100)), same, SCHEMA, gather)) == 1


def test_rows_of_a_bucket_meet_in_their_order() -> None:
    found = LocalEngine(3).process(ArrowDataset(table()), same, SCHEMA, gather, Exchange(bucket_by="bucket", tasks=3))
    seen: dict[int, int] = {}
    for _, buckets, rows in found:
        assert len({bucket % 3 for bucket in buckets}) == 1
        for bucket in set(buckets):
            assert bucket not in seen
            mine = [n for b, n in zip(buckets, rows, strict=True) if b == bucket]
            assert mine == sorted(mine)
            seen[bucket] = len(mine)
    assert sum(seen.values()) == ROWS


def test_ranges_ascend_and_sorting_is_stable() -> None:
    exchange = Exchange(range_by=("bucket",), sort_by=("bucket",), tasks=4)
    found = LocalEngine(2).process(ArrowDataset(table(1000)), same, SCHEMA, gather, exchange)
    buckets = [bucket for _, part, _ in found for bucket in part]
    assert buckets == sorted(buckets)
    rows = [pair for _, part, numbers in found for pair in zip(part, numbers, strict=True)]
    assert rows == sorted(rows)


@pytest.mark.parametrize("exchange", [None, Exchange(), Exchange(bucket_by="bucket"), Exchange(range_by=("n",))])
def test_nothing_to_process(exchange: Exchange | None) -> None:
    found = LocalEngine(2).process(ArrowDataset(table(0)), same, SCHEMA, gather, exchange)
    assert [n for _, _, rows in found for n in rows] == []


def test_columns_of_more_bytes_than_arrow_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = Exchange(sort_by=("k",), range_by=("b",), tasks=2)
    chunks = [{"k": ["d", "c"], "b": [b"1", None]}, {"k": ["b", None], "b": [b"0", b"2"]}]
    table = pa.concat_tables([pa.table({**chunk, "n": [0, 1]}) for chunk in chunks])
    expected = [part.to_pylist() for part in local._exchange(table, exchange, 2)]
    monkeypatch.setattr(local, "_JOINED_BYTES_MAX", 1)
    found = local._exchange(table, exchange, 2)
    assert [part.to_pylist() for part in found] == expected
    assert {part.schema for part in found} == {table.schema}


def test_a_reader_is_read_once() -> None:
    batches = table(1000).to_batches(max_chunksize=100)
    reads = 0

    def stream() -> Iterator[pa.RecordBatch]:
        nonlocal reads
        for batch in batches:
            reads += 1
            yield batch

    reader = pa.RecordBatchReader.from_batches(SCHEMA, stream())
    found = LocalEngine(4).process(ArrowDataset(reader), same, SCHEMA, gather)
    assert sorted(n for _, _, rows in found for n in rows) == list(range(1000))
    assert reads == len(batches)


def test_data_of_another_engine_is_refused() -> None:
    class Foreign:
        schema = SCHEMA

    with pytest.raises(TypeError, match="accepts only Arrow data, got Foreign"):
        LocalEngine().process(Foreign(), same, SCHEMA, gather)
