"""A writer that dies at any storage call loses no row, adds none, and is in nobody's way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from hoodie.files.table_properties import table_exists
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.crash.tables import DEATHS_KEPT, Rows, Write, check_recovery, copy_of, deaths, new_table, rows_of, trips
from tests.support.fault_store import CrashError, CrashPoint, FaultStore
from tests.support.metadata_limits import DELTA_COMMITS_MAX

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}


@dataclass(frozen=True)
class Case:
    """A write, and the rows it leads to from `START`."""

    write: Write
    new: Rows


def rows(change: Mapping[str, tuple[int, str] | None], start: Rows = START) -> Rows:
    """The start with some rows added, changed, or (None) gone."""
    return {key: row for key, row in {**start, **change}.items() if row is not None}


CASES = {
    "upsert": Case(
        lambda table: table.upsert(
            trips({"a": (2, "sf"), "b": (0, "sf"), "c": (2, "nyc"), "x": (1, "la")}, deleted=("c",))
        ),
        rows({"a": (2, "sf"), "c": None, "x": (1, "la")}),
    ),
    "insert into a small file and a new partition": Case(
        lambda table: table.insert(trips({"x": (1, "sf"), "y": (1, "la")})), rows({"x": (1, "sf"), "y": (1, "la")})
    ),
    "delete": Case(
        lambda table: table.delete(trips({"a": (0, "sf"), "c": (0, "nyc")}).select(["id", "city"])),
        rows({"a": None, "c": None}),
    ),
    "bulk_insert": Case(
        lambda table: table.bulk_insert(trips({"x": (1, "sf"), "y": (1, "la")})), rows({"x": (1, "sf"), "y": (1, "la")})
    ),
    "insert_overwrite": Case(
        lambda table: table.insert_overwrite(trips({"x": (1, "sf"), "y": (1, "la")})),
        {"x": (1, "sf"), "y": (1, "la"), "c": (1, "nyc")},
    ),
    "delete_partitions": Case(
        lambda table: table.delete_partitions(["city=sf"]),
        {"c": (1, "nyc")},
    ),
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


@pytest.fixture(scope="module")
def table() -> MemoryStore:
    """Three rows in two partitions."""
    store = MemoryStore()
    new_table(store)
    Table(store).upsert(trips(START))
    return store


def check_deaths(store: MemoryStore, case: Case) -> None:
    """The write dies at each of its calls: before the first one nothing has happened, after the last one all has."""
    outcomes = []
    for death in deaths(store, case.write):
        outcomes.append(rows_of(death.store))
        try:
            check_recovery(death.store, START, case.new)
        except BaseException as error:
            error.add_note(str(death))
            raise
    assert outcomes[0] == START
    assert outcomes[-1] == case.new


@each_case
def test_a_write_that_dies(table: MemoryStore, case: Case) -> None:
    check_deaths(table, case)


def test_a_write_that_dies_while_it_appends_to_logs() -> None:
    store = MemoryStore()
    new_table(store, table_type="merge_on_read")
    Table(store).upsert(trips({**START, "b": (0, "sf")}))
    Table(store).upsert(trips(START))
    check_deaths(store, CASES["upsert"])


def test_a_write_that_dies_while_it_logs_change_data() -> None:
    store = MemoryStore()
    new_table(store, properties={"hoodie.table.cdc.enabled": "true"})
    Table(store).upsert(trips(START))
    check_deaths(store, CASES["upsert"])
    changes = Table(store)
    written = changes.upsert(trips({"a": (2, "sf")}))
    assert any(info.name.endswith(".cdc") for info in store.list("city=sf"))
    assert [
        change["op"] for change in changes.changes(mode="cdc").to_pylist() if change["ts_ms"] == written.instant
    ] == ["u"]


def test_the_first_write_into_an_empty_table_that_dies() -> None:
    store = MemoryStore()
    new_table(store)
    for death in deaths(store, lambda table: table.upsert(trips(START))):
        check_recovery(death.store, {}, START)


def test_a_write_that_compacts_the_metadata_table_and_dies(table: MemoryStore) -> None:
    store = copy_of(table)
    writer = Table(store)
    for number in range(DELTA_COMMITS_MAX - 3):
        writer.upsert(trips({"b": (number + 1, "sf")}))
    start, new = rows_of(store), {**rows_of(store), "b": (50, "sf")}
    count = 0
    change = trips({"b": (50, "sf")})
    for death in deaths(store, lambda some: some.upsert(change), since=".compaction.requested"):
        check_recovery(death.store, start, new)
        count += 1
    assert count >= DEATHS_KEPT, "no compaction was among the calls"


def test_a_creation_that_dies() -> None:
    for point in CrashPoint:
        store = MemoryStore()
        dying = FaultStore(store, 1, crash_point=point)
        with pytest.raises(CrashError):
            new_table(dying)
        if not table_exists(store):
            new_table(store)
        check_recovery(store, {}, {})
