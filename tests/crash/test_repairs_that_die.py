"""A repair that dies at any storage call leaves a table that the next repair, or the next writer, brings in order."""

from __future__ import annotations

import pytest

from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.crash.tables import Rows, check_tidy, copy_of, deaths, new_table, rows_of, trips
from tests.unit.services.check.wounds import SECOND, WOUNDS, data_files

NAMES = (
    "half-written properties with a backup",
    "an empty completed file, the newest",
    "a rollback without a plan",
    "a base file of a failed task",
    "a missing partition metadata file",
    "a torn log file of the listing",
    "a write that died before its last step",
)


def repair(table: Table) -> object:
    return table.repair(dry_run=False, min_age_seconds=0)


def wounded(name: str) -> MemoryStore:
    store = next(wound for wound in WOUNDS if wound.name == name).make()
    assert isinstance(store, MemoryStore)
    return store


@pytest.mark.parametrize("name", NAMES)
def test_the_next_repair_goes_on(name: str) -> None:
    (wound,) = (wound for wound in WOUNDS if wound.name == name)
    assert wound.rows is not None
    count = 0
    for death in deaths(wounded(name), repair, keep=4):
        table = Table(death.store)
        table.repair(dry_run=False, min_age_seconds=0)
        assert rows_of(death.store) == wound.rows, str(death)
        report = table.verify(full=True)
        assert report.ok, f"{death}: {report}"
        count += 1
    assert count >= 2


def test_a_writer_goes_on_after_a_repair_that_died() -> None:
    added: Rows = {"next": (1, "sf"), "other": (1, "oslo")}
    for death in deaths(wounded("a write that died before its last step"), repair, keep=4):
        assert rows_of(death.store) == SECOND
        Table(death.store).upsert(trips(added))
        assert rows_of(death.store) == {**SECOND, **added}
        check_tidy(death.store)


def test_an_accepted_loss_that_dies_happened_or_can_be_accepted_again() -> None:
    store = MemoryStore()
    new_table(store)
    Table(store).upsert(trips(SECOND))
    lost = next(path for path in data_files(store) if path.startswith("city=sf/"))
    left = {key: row for key, row in SECOND.items() if row[1] != "sf"}
    assert left != SECOND
    store.delete(lost)
    ends = set()
    for death in deaths(store, lambda table: table.repair(dry_run=False, accept_loss=lost), keep=6):
        table = Table(death.store)
        ends.add(table.verify().ok)
        if not table.verify().ok:
            table.repair(dry_run=False, accept_loss=lost)
        table.repair(dry_run=False, min_age_seconds=0)
        assert rows_of(death.store) == left, str(death)
        report = table.verify(full=True)
        assert report.ok, f"{death}: {report}"
        Table(death.store).upsert(trips({"next": (1, "sf")}))
        assert rows_of(death.store) == {**left, "next": (1, "sf")}
    assert ends == {True, False}


def test_committed_files_survive_every_death() -> None:
    store = wounded("a base file of a failed task")
    committed = {path: store.read(path) for path in data_files(store) if "_9" not in path}
    assert len(committed) > 2
    for death in deaths(copy_of(store), repair, keep=4):
        assert {path: death.store.read(path) for path in committed} == committed
