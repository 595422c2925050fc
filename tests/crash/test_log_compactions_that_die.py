"""A log compaction that dies at any storage call: rows and meta fields stay, writers go on, and it is taken up."""

from __future__ import annotations

import pytest

from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.crash.tables import FEW_BUCKETS, check_tidy, copy_of, deaths, run_until
from tests.support.fault_store import CrashPoint
from tests.support.merge_on_read import Rows, commit_times, merged_rows, new_table, trips

AFTER: Rows = {"a": (4, "sf"), "c": (1, "nyc")}
LATER: Rows = {"b": (9, "sf"), "z": (1, "nyc")}
_DEATHS = 5
"""Calls at which a log compaction dies in a normal run."""


def logged_table(index: str) -> MemoryStore:
    """A table with four log files in a file group; its rows are `AFTER`."""
    store = new_table(index=index, properties=FEW_BUCKETS)
    table = Table(store)
    table.upsert(trips({"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}))
    table.upsert(trips({"a": (4, "sf"), "b": (2, "sf")}))
    table.upsert(trips({"a": (3, "sf"), "b": (3, "sf")}, deleted=("b",)))
    table.upsert(trips({"a": (2, "sf")}))
    table.upsert(trips({"a": (4, "sf")}))
    assert merged_rows(store) == AFTER
    return store


def planned_table(index: str) -> MemoryStore:
    """The same with a plan."""
    store = logged_table(index)
    assert Table(store).schedule_log_compaction(3)
    return store


def log_compactions(store: MemoryStore) -> int:
    """How many completed ones the timeline has."""
    view = Table(store).view()
    return sum(view.commit_metadata(found).operation_type == "LOG_COMPACT" for found in view.timeline.completed())


def check_recovery(store: MemoryStore, index: str, *, is_written_between: bool) -> None:
    """Rows stay what they are; a writer may come first; the plan is carried out in the end, once."""
    rows, times = merged_rows(store), commit_times(store)
    assert rows == AFTER
    if is_written_between:
        Table(store).upsert(trips(LATER))
        rows = {**AFTER, **LATER}
        assert merged_rows(store) == rows
        times = commit_times(store)
    while Table(store).compact().instant is not None:
        pass
    assert log_compactions(store) == 1
    assert (merged_rows(store), commit_times(store)) == (rows, times)
    Table(store).upsert(trips({"last": (1, "sf")}))
    assert merged_rows(store) == {**rows, "last": (1, "sf")}
    check_tidy(store, has_record_index=index == "record")
    if index == "record":
        report = Table(store).index.verify()
        assert report.ok, str(report)


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("index", ["record", "simple"])
@pytest.mark.parametrize("is_written_between", [False, True], ids=["compacted next", "written to next"])
def test_a_log_compaction_that_dies(index: str, is_written_between: bool) -> None:
    count = 0
    for death in deaths(planned_table(index), lambda table: table.compact(), keep=_DEATHS):
        try:
            check_recovery(death.store, index, is_written_between=is_written_between)
        except BaseException as error:
            error.add_note(str(death))
            raise
        count += 1
    assert count >= _DEATHS


def test_scheduling_that_dies() -> None:
    count = 0
    for death in deaths(logged_table("record"), lambda table: table.schedule_log_compaction(3)):
        assert merged_rows(death.store) == AFTER, death
        if not Table(death.store).pending_compactions().instants:
            assert Table(death.store).schedule_log_compaction(3), death
        check_recovery(death.store, "record", is_written_between=True)
        count += 1
    assert count > 2


def test_a_log_compaction_that_dies_while_it_takes_up_one_that_died() -> None:
    """The second finds log files and markers of the first, and what that told the metadata table."""
    store = planned_table("record")
    calls = run_until(copy_of(store), lambda table: table.compact(), None).calls
    settled = max(n for n, call in enumerate(calls, 1) if call.path.endswith(".deltacommit"))
    run_until(store, lambda table: table.compact(), settled, CrashPoint.BEFORE)
    assert log_compactions(store) == 0
    count = 0
    for death in deaths(store, lambda table: table.compact(), keep=_DEATHS):
        check_recovery(death.store, "record", is_written_between=death.number % 2 == 0)
        count += 1
    assert count >= _DEATHS


def test_a_writer_that_dies_while_a_log_compaction_is_pending() -> None:
    """Its rollback leaves the plan alone, and takes no file of the slices that the plan names."""
    count = 0
    for death in deaths(planned_table("record"), lambda table: table.upsert(trips(LATER)), keep=_DEATHS):
        rows = merged_rows(death.store)
        assert rows in (AFTER, {**AFTER, **LATER}), death
        if death.number % 2:
            assert Table(death.store).compact().instant, death
        Table(death.store).upsert(trips({"y": (1, "sf")}))
        while Table(death.store).compact().instant is not None:
            pass
        assert merged_rows(death.store) == {**rows, "y": (1, "sf")}, death
        check_tidy(death.store)
        count += 1
    assert count >= _DEATHS
