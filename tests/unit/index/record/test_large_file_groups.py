"""Base files of the record index that are not held whole answer as those that are."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hoodie
from hoodie.index.record import file_groups
from hoodie.index.record.state import record_index
from hoodie.metadata import slices
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.support.fault_store import FaultStore

KEYS = [f"{number:05d}-" + "k" * 40 for number in range(12_000)]


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    """A table whose two buckets were compacted into base files of several blocks each."""
    store = MemoryStore()
    rows = pa.table({"id": KEYS})
    table = hoodie.create(
        store.uri(""),
        rows.schema,
        record_key="id",
        properties={"hoodie.metadata.record.index.min.filegroup.count": "2"},
    )
    table.bulk_insert(rows)
    for _ in range(9):
        table.upsert(rows.slice(0, 1))
    assert all(bucket.file_slice.base_file for bucket in state_of(store).file_groups)
    return store


def state_of(store: MemoryStore) -> file_groups.RecordIndexState:
    state = record_index(Table(store).view())
    assert state is not None
    return state


def test_few_blocks_of_a_large_bucket_are_read(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Table(store).record_locations(KEYS)
    assert whole["file_id"].null_count == 0
    monkeypatch.setattr(slices, "WHOLE_BYTES_MAX", 0)
    counting = FaultStore(store, count_reads=True)
    counting.register()
    try:
        table = Table(counting)
        found = table.record_locations([KEYS[7], KEYS[11_000], "nobody"])
        base_files = [call.operation for call in counting.calls if "record_index" in call.path]
        assert "read_range" in base_files
        assert "read" not in base_files
        assert found["file_id"].to_pylist() == [whole["file_id"][7].as_py(), whole["file_id"][11_000].as_py(), None]
        assert table.record_locations(KEYS).equals(whole)
    finally:
        counting.unregister()
