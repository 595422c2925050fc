"""A bucket table is the same whichever engine writes it: every write, and a switch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.format.buckets import bucket_of_keys
from hoodie.format.filenames import bucket_of_file_id
from hoodie.view.slices import list_slices
from tests.contract.table_lanes import ON_WORKERS, TRIPS, Lane

BUCKETS = 3
CITIES = ("sf", "nyc")
ROWS = 700


def rows(first: int, stop: int, ts: int) -> pa.Table:
    numbers = np.arange(first, stop)
    columns = {
        "id": [f"k{n}" for n in numbers],
        "ts": pa.array(np.full(len(numbers), ts)),
        "fare": pa.array(numbers.astype(np.float64)),
        "city": [CITIES[n % 2] for n in numbers],
    }
    return pa.table(columns, schema=TRIPS)


def check(lane: Lane, expected: dict[str, int]) -> None:
    """The table has these keys with these values of ts, each in the one file group of its bucket."""
    table = lane.open()
    names = ["_hoodie_record_key", "_hoodie_file_name", "ts"]
    found = table.to_arrow(names)
    keys = found["_hoodie_record_key"].combine_chunks()
    assert found.num_rows == len(expected)
    assert dict(zip(keys.to_pylist(), found["ts"].to_pylist(), strict=True)) == expected
    stored = [bucket_of_file_id(name) for name in found["_hoodie_file_name"].to_pylist()]
    assert stored == bucket_of_keys(keys, ["id"], BUCKETS).tolist()
    groups = [(part.partition_path, bucket_of_file_id(part.file_id)) for part in list_slices(table.view())]
    assert len(set(groups)) == len(groups)


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_every_write_of_a_bucket_table(lane: Lane, table_type: str) -> None:
    table = lane.create(
        partition_by="city", ordering="ts", type=table_type, index="bucket",
        properties={"hoodie.bucket.index.num.buckets": str(BUCKETS)},
    )  # fmt: skip
    properties: dict[str, Any] = {"properties": ON_WORKERS}
    expected = {f"k{n}": 1 for n in range(ROWS)}
    table.bulk_insert(lane.data(rows(0, ROWS, 1)), **properties)
    check(lane, expected)
    table.upsert(lane.data(rows(600, 720, 2)), **properties)
    expected |= {f"k{n}": 2 for n in range(600, 720)}
    check(lane, expected)
    table.delete(lane.data(rows(0, 100, 3)), **properties)
    expected = {key: ts for key, ts in expected.items() if int(key[1:]) >= 100}
    check(lane, expected)
    assert table.index.switch("simple").notes
    table.upsert(lane.data(rows(100, 200, 4)), **properties)
    assert table.index.switch("bucket", buckets=BUCKETS).counts["rows_checked"] == len(expected)
    expected |= {f"k{n}": 4 for n in range(100, 200)}
    check(lane, expected)
    table.insert_overwrite(lane.data(rows(0, 400, 5)), **properties)
    expected = {f"k{n}": 5 for n in range(400)}
    check(lane, expected)
    found = lane.arrow(table.read_keys(["k7", "k9", "gone"]))
    assert sorted(found["id"].to_pylist()) == ["k7", "k9"]
