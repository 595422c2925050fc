"""Commits go on costing the same: storage calls, and files of the metadata table, over a hundred instants."""

from __future__ import annotations

from statistics import median

from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.crash.tables import new_table, rows_of, trips
from tests.support.fault_store import FaultStore

COMMITS = 60
SPREAD = 4
"""Which file group takes an insert, and so the number of files it touches, differs a little from commit to commit."""


def test_commit_fifty_five_costs_what_commit_fifteen_does() -> None:
    store = MemoryStore()
    new_table(store)
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
