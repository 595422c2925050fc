"""A rebuild of the metadata table that dies at any storage call, by its own call or within a write: no row is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import hoodie
from hoodie.files.table_properties import update_table_config
from hoodie.metadata.table import MetadataTable
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.crash.tables import DEATHS_KEPT, Rows, check_tidy, deaths, new_table, rows_of, trips

pytestmark = pytest.mark.filterwarnings("ignore::hoodie.HoodieWarning")

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}
CHANGE: Rows = {"a": (2, "sf"), "c": (2, "la"), "x": (1, "oslo")}
CHANGED: Rows = {**START, **CHANGE}
LAST: Rows = {"b": (2, "sf"), "y": (1, "la")}


def lost_metadata() -> MemoryStore:
    """A table with the rows of `START`, whose metadata table is gone."""
    store = MemoryStore()
    new_table(store)
    Table(store).upsert(trips(START))
    store.delete_folder(".hoodie/metadata")
    return store


def lost_index() -> MemoryStore:
    """A table with the rows of `START`, whose record index a JVM writer dropped."""
    store = MemoryStore()
    new_table(store)
    Table(store).upsert(trips(START))
    config = Table(store).view().config
    update_table_config(store, {"hoodie.table.metadata.partitions": "files"})
    MetadataTable(store, config).drop_partitions({"record_index"})
    return store


def damaged() -> MemoryStore:
    """A table with the rows of `START`, whose record index lacks a file group."""
    store = MemoryStore()
    new_table(store)
    Table(store).upsert(trips(START))
    for info in store.list(".hoodie/metadata/record_index"):
        if "record-index-0000-0" in info.name:
            store.delete(info.path)
    return store


def upsert(table: Table) -> hoodie.WriteResult:
    return table.upsert(trips(CHANGE))


def bulk_insert(table: Table) -> hoodie.WriteResult:
    return table.bulk_insert(trips({"x": (1, "oslo")}))


CASES: dict[str, tuple[Callable[[], MemoryStore], Callable[[Table], object], Rows]] = {
    "rebuild of a damaged index": (damaged, lambda table: table.index.rebuild(), START),
    "upsert without metadata table": (lost_metadata, upsert, CHANGED),
    "bulk insert without metadata table": (lost_metadata, bulk_insert, {**START, "x": (1, "oslo")}),
    "upsert after the index was dropped": (lost_index, upsert, CHANGED),
}


@pytest.mark.parametrize("name", CASES)
def test_a_death_at_any_storage_call_loses_nothing_and_the_next_write_mends_the_table(name: str) -> None:
    made, act, after = CASES[name]
    count = 0
    # An upsert builds what is missing before its instant begins; deaths of an upsert have tests of their own.
    until = ".commit.inflight" if name.startswith("upsert") else None
    for death in deaths(made(), act, until=until):
        found = rows_of(death.store)
        assert found in (START, after), f"{death}: neither the rows before nor after: {found}"
        if name.startswith("rebuild"):
            # Until the rebuild has begun, writes are refused because of the damage.
            Table(death.store).index.rebuild()
        Table(death.store).upsert(trips(LAST))
        assert rows_of(death.store) == {**found, **LAST}, str(death)
        check_tidy(death.store)
        report = Table(death.store).index.verify()
        assert report.ok, f"{death}: {report}"
        assert report.checked["entries"] == len({**found, **LAST})
        count += 1
    assert count >= DEATHS_KEPT
