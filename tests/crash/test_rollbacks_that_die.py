"""A writer that dies while it rolls back another dead one leaves a table that the third one brings in order."""

from __future__ import annotations

import pytest

from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.crash.tables import Rows, check_recovery, check_tidy, copy_of, deaths, new_table, rows_of, run_until, trips
from tests.support.fault_store import CrashPoint

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}
CHANGE: Rows = {"a": (2, "sf"), "c": (2, "nyc"), "x": (1, "la")}
WRITES = {
    "upsert": lambda table: table.upsert(trips(CHANGE)),
    "insert_overwrite": lambda table: table.insert_overwrite(trips(CHANGE)),
}
# Where the first writer dies: the operation and the end of the path of the call, and whether that call still happens.
DEATHS = {
    "after requested": ("create", ".requested", CrashPoint.AFTER),
    "after inflight": ("create", ".inflight", CrashPoint.AFTER),
    "before the first data file": ("open_output", ".parquet", CrashPoint.BEFORE),
    "half a data file": ("close_output", ".parquet", CrashPoint.BEFORE),
    "metadata table in flight": ("create", ".deltacommit.inflight", CrashPoint.AFTER),
    "metadata table's log file written": ("create", "log.1_0-0-0", CrashPoint.AFTER),
    "metadata table committed": ("move", ".deltacommit", CrashPoint.AFTER),
}


def dead_writer(operation: str, write: str, ending: str, point: CrashPoint) -> MemoryStore:
    """A table with the rows of `START` on which a write died."""
    store = MemoryStore()
    new_table(store)
    Table(store).upsert(trips(START))
    counting = run_until(copy_of(store), WRITES[write], None)
    places = [
        n for n, call in enumerate(counting.calls, 1) if call.operation == operation and call.path.endswith(ending)
    ]
    run_until(store, WRITES[write], places[0], point)
    return store


@pytest.mark.parametrize(
    ("where", "write"),
    [
        *((where, "upsert") for where in DEATHS if where != "before the first data file"),
        ("metadata table committed", "insert_overwrite"),
    ],
)
def test_the_rollback_of_a_dead_write_dies_too(where: str, write: str) -> None:
    operation, ending, point = DEATHS[where]
    store = dead_writer(operation, write, ending, point)
    assert rows_of(store) == START
    requested_of_the_next = ".commit.requested"
    count = 0
    for death in deaths(store, WRITES["upsert"], until=requested_of_the_next):
        check_recovery(death.store, START, START)
        count += 1
    assert count >= 6, "the rollback was not among the calls"


@pytest.mark.parametrize("where", DEATHS)
def test_the_next_write_tells_of_the_rollback(where: str) -> None:
    operation, ending, point = DEATHS[where]
    store = dead_writer(operation, "upsert", ending, point)
    (dead,) = Table(store).timeline.pending()
    result = Table(store).insert_overwrite(trips(CHANGE))
    assert any(dead.requested_time in note for note in result.notes)
    assert Table(store).timeline.get(dead.requested_time) is None
    assert rows_of(store) == CHANGE
    check_tidy(store)
