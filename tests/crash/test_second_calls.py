"""A service dies at any storage call, and the same call is made again: the table is as if it had not died.

This is more than the matrix of test_every_action_that_dies.py proves: files, archives and instants are those of one
undisturbed call. There the next writer may come first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from hoodie.timeline import Action
from hoodie.view.slices import list_slices
from tests.support.archived import OFTEN, active_times, archived_times
from tests.support.cleaned_tables import data_files, table_of_versions, version_of
from tests.support.deaths import check_tidy, deaths, die
from tests.support.fault_store import CrashPoint
from tests.support.recoveries import noted
from tests.support.tables import Rows, copy_of, rows_of, trips, trips_store
from tests.unit.services.check import wounds

OFF = {"hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"}
ADDED: Rows = {"next": (1, "sf"), "other": (1, "oslo")}


@dataclass(frozen=True)
class Case:
    """A call on a table, and the facts that the second call must leave; `stays` is the same after each death too."""

    make: Callable[[], Store]
    act: Callable[[Table], object]
    facts: Callable[[Store], object]
    stays: Callable[[Store], object] = lambda store: None
    keep: int = 4


def to_clean(table_type: str) -> MemoryStore:
    """A table with old slices and a deleted partition, both before the retained window."""
    table = table_of_versions(3, table_type=table_type)
    table.delete_partitions(["city=nyc"])
    if table_type == "merge_on_read":
        assert table.schedule_compaction()
        table.compact()
    for version in range(3, 7):
        table.upsert(version_of(version, "a"))
    store = table.view().store
    assert isinstance(store, MemoryStore)
    return store


def clean(table: Table) -> object:
    return table.clean(properties={"hoodie.clean.commits.retained": "2"})


def dead_clean() -> MemoryStore:
    store = to_clean("copy_on_write")
    die(store, clean, "parquet", "delete", CrashPoint.AFTER)
    return store


def cleaned(store: Store) -> object:
    """One clean is on the timeline, and the partition is gone."""
    files = data_files(store)
    assert "city=nyc" not in files
    assert sum(instant.action is Action.CLEAN for instant in Table(store).timeline) == 1
    return files


def repair(table: Table) -> object:
    return table.repair(dry_run=False, min_age_seconds=0)


def repaired(store: Store) -> object:
    """All committed files are what they were."""
    report = Table(store).verify(full=True)
    assert report.ok, str(report)
    return {path: store.read(path) for path in wounds.data_files(store)}


def with_a_lost_file() -> MemoryStore:
    store = trips_store(wounds.SECOND)
    store.delete(next(path for path in wounds.data_files(store) if path.startswith("city=sf/")))
    return store


def accept_loss(table: Table) -> None:
    """Accept that the file is lost, unless this is accepted already; and repair the rest."""
    if not table.verify().ok:
        view = table.view()
        (lost,) = [path for found in list_slices(view) for path in found.paths if view.store.head(path) is None]
        table.repair(dry_run=False, accept_loss=lost)
    repair(table)


WOUNDED = (
    "half-written properties with a backup",
    "an empty completed file, the newest",
    "a rollback without a plan",
    "a base file of a failed task",
    "a missing partition metadata file",
    "a torn log file of the listing",
    "a write that died before its last step",
)
CASES = {
    "clean, copy on write": Case(partial(to_clean, "copy_on_write"), clean, cleaned, rows_of),
    "clean, merge on read": Case(partial(to_clean, "merge_on_read"), clean, cleaned, rows_of),
    "clean that finishes a dead one": Case(dead_clean, clean, cleaned, rows_of),
    "accepted loss": Case(with_a_lost_file, accept_loss, repaired, keep=6),
    **{wound.name: Case(wound.make, repair, repaired, keep=3) for wound in wounds.WOUNDS if wound.name in WOUNDED},
}


def test_each_wound_is_known() -> None:
    assert set(WOUNDED) <= CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_the_same_call_again_leaves_what_one_call_leaves(name: str) -> None:
    case = CASES[name]
    start = case.make()
    assert isinstance(start, MemoryStore)
    whole, stays = copy_of(start), case.stays(start)
    case.act(Table(whole))
    rows, facts = rows_of(whole), case.facts(whole)
    for death in deaths(start, case.act, keep=case.keep):
        with noted(death):
            assert case.stays(death.store) == stays
            case.act(Table(death.store))
            assert (rows_of(death.store), case.facts(death.store)) == (rows, facts)
            Table(death.store).upsert(trips(ADDED))
            assert rows_of(death.store) == {**rows, **ADDED}


@pytest.mark.parametrize("merges", [False, True], ids=["first file", "file that is merged"])
def test_an_archiving_that_dies_is_completed_by_a_later_one(merges: bool) -> None:
    """No instant is lost, and after the later one none is archived twice, or both archived and active."""
    store, rows = trips_store(properties=OFTEN), Rows()
    for number in range(15 if merges else 7):
        rows |= {f"k{number % 3}": (number, "sf")}
        archives = merges and number in (6, 10)
        given = {"hoodie.clean.automatic": "false"} if archives else OFF
        Table(store).upsert(trips({f"k{number % 3}": (number, "sf")}), properties=given)
    before = {*archived_times(store), *active_times(store)}
    has_merged = False
    for death in deaths(store, Table.archive, keep=4):
        with noted(death):
            assert {*archived_times(death.store), *active_times(death.store)} == before
            view = Table(death.store).view()
            assert not view.timeline.pending().instants
            assert all(view.timeline.contains_or_before_start(time) for time in before)
            while len(active_times(death.store)) <= 4:
                Table(death.store).upsert(trips({"k0": rows["k0"]}), properties=OFF)
            Table(death.store).archive()
            everything = [*archived_times(death.store), *active_times(death.store)]
            assert len(everything) == len({*everything})
            assert before <= {*everything}
            assert rows_of(death.store) == rows
            check_tidy(death.store)
        names = death.store.names(".hoodie/timeline/history")
        has_merged |= any(name.endswith("_1.parquet") for name in names)
    assert has_merged or not merges
