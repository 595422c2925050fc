"""A clustering that dies at any storage call: rows and index stay right, and the plan is taken up, or rolled back."""

from __future__ import annotations

import pytest

from hoodie.errors import CommitConflictError
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.crash.tables import Death, Rows, check_tidy, copy_of, deaths, new_table, rows_of, run_until, trips
from tests.support.fault_store import CrashPoint

START: Rows = {"a": (1, "sf"), "b": (2, "sf"), "c": (1, "nyc"), "d": (2, "sf")}
MORE: Rows = {"c": (1, "nyc"), "e": (3, "sf")}
ROWS: Rows = {**START, **MORE}


def small_files(table_type: str = "copy_on_write") -> MemoryStore:
    """A table with two file groups in one partition and one in the other; on merge-on-read one has a log file."""
    store = MemoryStore()
    new_table(store, table_type=table_type, properties={"hoodie.parquet.small.file.limit": "0"})
    Table(store).upsert(trips(START))
    Table(store).upsert(trips(MORE))
    return store


def planned(table_type: str = "copy_on_write") -> MemoryStore:
    """The same with a plan."""
    store = small_files(table_type)
    assert Table(store).schedule_clustering("ts")
    return store


def cluster(table: Table) -> object:
    """Execute what is pending."""
    return [table.cluster(instant=instant) for instant in table.pending_clusterings().instants]


def check_recovery(death: Death, *, rolls_back: bool) -> None:
    """Rows stay what they are; the plan is executed or rolled back; then writers find every key, and all is tidy."""
    store = death.store
    assert rows_of(store) == ROWS, death
    if rolls_back:
        for instant in Table(store).pending_clusterings().instants:
            with pytest.raises(CommitConflictError, match="being clustered"):
                Table(store).upsert(trips({"a": (9, "sf")}))
            Table(store).rollback(instant)
    else:
        cluster(Table(store))
    assert rows_of(store) == ROWS, death
    Table(store).upsert(trips({"a": (9, "sf"), "f": (1, "la")}))
    assert rows_of(store) == {**ROWS, "a": (9, "sf"), "f": (1, "la")}, death
    check_tidy(store)


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_clustering_that_dies(table_type: str) -> None:
    for death in deaths(planned(table_type), cluster, keep=7):
        check_recovery(death, rolls_back=death.number % 2 == 0)


def test_scheduling_that_dies() -> None:
    for death in deaths(small_files(), lambda table: table.schedule_clustering("ts"), keep=4):
        check_recovery(death, rolls_back=death.number % 2 == 0)


@pytest.mark.parametrize("ending", [".replacecommit", ".deltacommit"])
def test_a_clustering_dies_that_takes_up_a_dead_one(ending: str) -> None:
    """The second attempt finds files, markers and index entries of the first, which was about to complete."""
    store = planned()
    calls = run_until(copy_of(store), cluster, None).calls
    place = next(n for n, call in enumerate(calls, 1) if call.operation == "move" and call.path.endswith(ending))
    run_until(store, cluster, place, CrashPoint.BEFORE)
    for death in deaths(store, cluster, keep=5):
        check_recovery(death, rolls_back=death.number % 2 == 0)


def test_a_rollback_of_a_dead_clustering_dies() -> None:
    store = planned()
    (instant,) = Table(store).pending_clusterings().instants
    calls = run_until(copy_of(store), cluster, None).calls
    place = next(n for n, call in enumerate(calls, 1) if call.path.endswith(".replacecommit"))
    run_until(store, cluster, place, CrashPoint.BEFORE)
    for death in deaths(store, lambda table: table.rollback(instant), keep=5):
        check_recovery(death, rolls_back=death.number % 2 == 0)
