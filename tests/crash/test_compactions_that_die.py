"""A compaction that dies at any storage call: no row is lost or doubled, writers go on, and it is taken up again."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.files.markers import TEMP_FOLDER
from hoodie.format.filenames import BaseFileName, LogFileName
from hoodie.services.compaction.compaction import COMPACTION
from hoodie.services.planned.pending import roll_back_plan
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.view.slices import list_files, list_from_storage
from hoodie.view.table_state import TableState
from tests.crash.tables import DEATHS_KEPT, Death, copy_of, deaths, run_until
from tests.support.fault_store import CrashPoint
from tests.support.merge_on_read import Rows, commit_times, merged_rows, new_table, trips

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc"), "d": (1, "la")}
CHANGE: Rows = {"a": (2, "sf"), "c": (2, "nyc"), "e": (1, "nyc")}
AFTER: Rows = {"a": (2, "sf"), "c": (2, "nyc"), "d": (1, "la"), "e": (1, "nyc")}
LATER: Rows = {"a": (3, "sf"), "f": (1, "sf"), "d": (3, "la")}


FEW_BUCKETS = {"hoodie.metadata.record.index.min.filegroup.count": "1"}


def logged_table(index: str = "simple") -> MemoryStore:
    """A table with logs in two of its three file groups."""
    store = new_table(index=index, properties=FEW_BUCKETS)
    Table(store).upsert(trips(START))
    Table(store).upsert(trips(CHANGE))
    Table(store).delete(pa.table({"id": ["b"], "city": ["sf"]}))
    return store


def planned_table(index: str = "simple") -> MemoryStore:
    """The same with a plan."""
    store = logged_table(index)
    assert Table(store).schedule_compaction()
    return store


def compact_all(store: MemoryStore) -> None:
    """Carry out whatever is pending: dead compactors are known at once."""
    while Table(store).compact().instant is not None:
        pass


def check_tidy(store: MemoryStore, death: Death) -> None:
    """Nothing is pending, every data file is believed, and nothing temporary lies around."""
    view = Table(store).view()
    assert list(view.timeline.pending()) == [], death
    in_storage = list_from_storage(store, view.config, view.timeline, view.archive())
    assert list_files(view) == in_storage, death
    believed = {f"{path}/{name}" for path, files in in_storage.items() for name in files}
    for info in store.list("", recursive=True):
        if not info.path.startswith(".hoodie/") and (BaseFileName.parse(info.name) or LogFileName.parse(info.name)):
            assert info.path in believed, f"{death}: {info.path}"
    for folder in (TEMP_FOLDER, ".hoodie/.heartbeat", ".hoodie/.locks"):
        assert store.list(folder, recursive=True) == [], death
    assert store.head(".hoodie/lock") is None, death


def check_recovery(death: Death, *, is_written_between: bool) -> None:
    """Rows stay what they are; a writer may come first; the plan is carried out in the end, once."""
    store = death.store
    rows, times = merged_rows(store), commit_times(store)
    assert rows == AFTER, death
    if is_written_between:
        Table(store).upsert(trips(LATER))
        rows = {**AFTER, **LATER}
        assert merged_rows(store) == rows, death
        times = commit_times(store)
    compact_all(store)
    assert merged_rows(store) == rows, death
    assert commit_times(store) == times, death
    assert len(Table(store).timeline.filter(lambda found: found.action.value == "commit")) <= 1, death
    if death.number % 3 == 0:
        Table(store).upsert(trips({"z": (1, "sf")}))
        assert merged_rows(store) == {**rows, "z": (1, "sf")}, death
        check_tidy(store, death)


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("index", ["record", "simple"])
@pytest.mark.parametrize("is_written_between", [False, True], ids=["compacted next", "written to next"])
def test_a_compaction_that_dies(index: str, is_written_between: bool) -> None:
    count = 0
    for death in deaths(planned_table(index), lambda table: table.compact()):
        if (death.number % 2 == 0) is (index == "record"):
            check_recovery(death, is_written_between=is_written_between)
        count += 1
    assert count >= DEATHS_KEPT


def test_scheduling_that_dies() -> None:
    count = 0
    for death in deaths(logged_table(), lambda table: table.schedule_compaction()):
        assert merged_rows(death.store) == AFTER
        if not Table(death.store).pending_compactions().instants:
            assert Table(death.store).schedule_compaction()
        check_recovery(death, is_written_between=True)
        count += 1
    assert count > 2


def test_a_compaction_that_dies_while_it_takes_up_one_that_died() -> None:
    """The second finds base files and markers of the first, and what that told the metadata table."""
    store = planned_table()
    calls = run_until(copy_of(store), lambda table: table.compact(), None).calls
    settled = next(n for n, call in enumerate(calls, 1) if call.path.endswith(".commit"))
    run_until(store, lambda table: table.compact(), settled, CrashPoint.BEFORE)
    for death in deaths(store, lambda table: table.compact()):
        check_recovery(death, is_written_between=death.number % 2 == 0)


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("remove_plan", [False, True])
def test_a_rollback_that_dies(remove_plan: bool) -> None:
    store = planned_table()
    (instant,) = Table(store).pending_compactions().instants
    calls = run_until(copy_of(store), lambda table: table.compact(), None).calls
    settled = next(n for n, call in enumerate(calls, 1) if call.path.endswith(".commit"))
    run_until(store, lambda table: table.compact(), settled, CrashPoint.BEFORE)

    def roll_back(table: Table) -> None:
        roll_back_plan(COMPACTION, TableState(table.view().store), instant, remove_plan=remove_plan)

    count = 0
    for death in deaths(store, roll_back):
        assert merged_rows(death.store) == AFTER, death
        if Table(death.store).pending_compactions().instants:
            roll_back_plan(COMPACTION, TableState(death.store), instant, remove_plan=remove_plan)
        if remove_plan:
            assert Table(death.store).pending_compactions().instants == []
            assert Table(death.store).schedule_compaction()
        check_recovery(death, is_written_between=True)
        count += 1
    assert count > 5


def test_a_writer_that_dies_while_a_compaction_is_pending() -> None:
    """Its rollback leaves the plan alone, and takes no file of the slices that the plan names."""
    count = 0
    for death in deaths(planned_table(), lambda table: table.upsert(trips(LATER))):
        rows = merged_rows(death.store)
        assert rows in (AFTER, {**AFTER, **LATER}), death
        if death.number % 2:
            compact_all(death.store)
            assert merged_rows(death.store) == rows, death
        Table(death.store).upsert(trips({"z": (1, "sf")}))
        compact_all(death.store)
        assert merged_rows(death.store) == {**rows, "z": (1, "sf")}, death
        count += 1
    assert count >= DEATHS_KEPT
