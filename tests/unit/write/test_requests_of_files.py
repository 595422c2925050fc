"""The storage calls that a bulk insert takes for each file."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

import hoodie
from hoodie.storage.memory import MemoryStore
from hoodie.table import Table
from tests.support.fault_store import FaultStore

_FILE_CALLS = {"create": 2, "open_output": 1, "close_output": 1}
"""Of a file in a new partition: the partition's metadata file and the marker, then the file."""


def _calls(store: MemoryStore, rows: pa.Table) -> Counter[str]:
    counting = FaultStore(store, count_reads=True)
    counting.register()
    written = Table(counting).bulk_insert(rows)
    assert written.inserted == len(rows)
    return Counter(call.operation for call in counting.calls if not call.path.startswith(".hoodie/metadata/"))


@pytest.mark.parametrize("count", [5, 40])
def test_a_bulk_insert_takes_four_calls_a_file(count: int) -> None:
    def rows(number: int) -> pa.Table:
        return pa.table({"id": [f"{number}-{row}" for row in range(number)], "p": [f"p{row}" for row in range(number)]})

    few, more = MemoryStore(), MemoryStore()
    for store in (few, more):
        hoodie.create(store.spec.uri, rows(1).schema, record_key="id", partition_by="p", index="simple")
    spent = _calls(more, rows(1 + count))
    spent.subtract(_calls(few, rows(1)))
    assert {name: calls for name, calls in spent.items() if calls} == {
        name: calls * count for name, calls in _FILE_CALLS.items()
    }
