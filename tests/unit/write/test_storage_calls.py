"""What writes cost: the storage calls of each file, and of each commit over many of them."""

from __future__ import annotations

from collections import Counter
from statistics import median

import pyarrow as pa
import pytest

from hoodie.table import Table
from tests.support.fault_store import FaultStore
from tests.support.tables import new_table, rows_of, trips, trips_store

_FILE_CALLS = {"create": 2, "open_output": 1, "close_output": 1}
"""Of a file in a new partition: the partition's metadata file and the marker, then the file."""


def _calls(files: int) -> Counter[str]:
    """The storage calls of a bulk insert into this many partitions of an empty table."""
    numbers = range(files)
    rows = pa.table({"id": [f"{files}-{row}" for row in numbers], "p": [f"p{row}" for row in numbers]})
    counting = FaultStore(new_table(rows.schema, partition_by="p", index="simple").view().store, count_reads=True)
    counting.register()
    assert Table(counting).bulk_insert(rows).inserted == files
    return Counter(call.operation for call in counting.calls if not call.path.startswith(".hoodie/metadata/"))


@pytest.mark.parametrize("count", [5, 40])
def test_a_bulk_insert_takes_four_calls_a_file(count: int) -> None:
    spent = _calls(1 + count)
    spent.subtract(_calls(1))
    assert {name: calls for name, calls in spent.items() if calls} == {
        name: calls * count for name, calls in _FILE_CALLS.items()
    }


COMMITS = 60
SPREAD = 4
"""Which file group takes an insert, and so the number of files it touches, differs a little from commit to commit."""


def test_commit_fifty_five_costs_what_commit_fifteen_does() -> None:
    store = trips_store()
    counting = FaultStore(store, count_reads=True)
    counting.register()
    table = Table(counting)
    calls: list[int] = []
    files: list[int] = []
    for number in range(COMMITS):
        del counting.calls[:]
        # An update and an insert, in two partitions and two buckets of the record index.
        table.upsert(trips({f"k{number % 7}": (number, "sf"), f"n{number}": (number, "nyc")}))
        calls.append(len(counting.calls))
        files.append(len(store.list(".hoodie/metadata", recursive=True)))
    counting.unregister()
    plain = median(calls[10:20])
    assert median(calls[50:60]) <= plain + SPREAD
    # The commit and the clean that follows it are two commits of the metadata table: each may run a service of it.
    # Archiving deletes the files of eleven commits and their cleans.
    assert max(calls[40:]) < plain + 190
    # A round of all services takes up to eleven commits.
    assert sum(calls[48:59]) < 1.5 * sum(calls[11:22])
    assert max(files[49:]) < max(files[38:49]) + 10
    assert len(rows_of(store)) == COMMITS + 7
