"""Threads may share a handle: each read is one snapshot, and no write is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import hoodie

WRITERS, WRITES, READS = 3, 4, 8
ROWS = pa.table({"id": [f"k{n:03}" for n in range(300)], "p": [str(n % 3) for n in range(300)], "n": [0] * 300})


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_threads_write_and_read_by_one_handle(tmp_path: Path, table_type: str) -> None:
    table = hoodie.create(tmp_path / "t", ROWS, record_key="id", partition_by="p", type=table_type, spark=False)
    table.upsert(ROWS)

    def write(writer: int) -> None:
        own = ROWS.slice(writer * 100, 100)
        for number in range(1, WRITES + 1):
            table.upsert(own.set_column(2, "n", pa.array([number] * 100)))

    def read(_: int) -> None:
        for _ in range(READS):
            found = table.to_arrow(["id", "n"])
            counts = found.group_by("n").aggregate([("id", "count_distinct")])["id_count_distinct"].to_pylist()
            assert sum(counts) == found.num_rows == 300
            assert all(count % 100 == 0 for count in counts)  # whole commits only
            assert sum(batch.num_rows for batch in table.to_batches()) == table.count() == 300
            assert table.to_polars().select(pl.len()).collect().item() == 300
            assert table.read_keys(["k001"]).num_rows == 1

    with ThreadPoolExecutor(WRITERS + 2) as threads:
        works = [threads.submit(write, writer) for writer in range(WRITERS)] + [threads.submit(read, n) for n in (0, 1)]
        for work in works:
            work.result()
    assert table.count(where=f"n = {WRITES}") == 300
    assert len(table.timeline.instants) >= 1 + WRITERS * WRITES
    assert table.verify().ok
