"""Rolling back completed commits: the newest, a chain; the metadata table and the record index follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

import hoodie
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action
from tests.crash.tables import check_tidy, deaths, new_table, rows_of, trips

ONE = {"a": (1, "sf"), "b": (1, "la")}
CHANGES: dict[str, Callable[[Table], object]] = {
    "upsert": lambda table: table.upsert(trips({"a": (2, "sf"), "c": (2, "nyc")})),
    "move": lambda table: table.upsert(trips({"a": (2, "oslo")})),
    "delete": lambda table: table.delete(trips({"a": (2, "sf")})),
    "insert_overwrite": lambda table: table.insert_overwrite(trips({"x": (1, "sf")})),
    "delete_partitions": lambda table: table.delete_partitions(["city=sf"]),
}


COMPACTS = {"hoodie.metadata.compact.max.delta.commits": "2"}


def new(table_type: str, properties: Mapping[str, str] | None = None) -> MemoryStore:
    """A table with one commit."""
    store = MemoryStore()
    new_table(store, table_type=table_type, properties=properties)
    Table(store).upsert(trips(ONE))
    return store


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("change", CHANGES)
def test_the_newest_commit(change: str, table_type: str) -> None:
    store = new(table_type)
    table = Table(store)
    CHANGES[change](table)
    newest = table.timeline.completed().writes().instants[-1]
    told = table.rollback(newest.requested_time, dry_run=True)
    assert told.dry_run
    assert rows_of(store) != ONE
    done = table.rollback(newest.requested_time)
    assert done.counts == told.counts
    assert rows_of(store) == ONE
    check_tidy(store)
    Table(store).upsert(trips({"z": (1, "sf")}))
    assert rows_of(store) == {**ONE, "z": (1, "sf")}
    assert Table(store).timeline.get(newest.requested_time) is None


def test_a_chain() -> None:
    store = new("merge_on_read")
    table = Table(store)
    CHANGES["upsert"](table)
    second = table.timeline.completed().writes().instants[-1].requested_time
    table.schedule_compaction()
    table.compact()
    table.upsert(trips({"d": (3, "sf")}))
    planned = table.schedule_compaction()
    files = [info.path for info in store.list("", recursive=True)]
    with pytest.raises(hoodie.UnsupportedError, match=r"not the newest.*chain=True"):
        table.rollback(second)
    assert [info.path for info in store.list("", recursive=True)] == files
    done = table.rollback(second, chain=True)
    assert done.counts["instants"] == 3 + (planned is not None)
    assert rows_of(store) == ONE
    check_tidy(store)
    assert [found.action for found in table.timeline.writes()] == [Action.DELTA_COMMIT]


def test_a_compaction_alone() -> None:
    found = new("merge_on_read")
    table = Table(found)
    CHANGES["upsert"](table)
    rows = rows_of(found)
    table.schedule_compaction()
    compaction = table.compact().instant
    assert compaction is not None
    table.rollback(compaction)
    assert rows_of(found) == rows
    check_tidy(found)
    table.schedule_compaction()
    table.compact()
    assert rows_of(found) == rows


def test_a_metadata_table_that_compacted_the_commit_is_built_anew() -> None:
    store = new("copy_on_write", COMPACTS)
    table = Table(store)
    table.upsert(trips({"a": (2, "sf"), "c": (2, "nyc")}))
    second = table.timeline.completed().writes().instants[-1].requested_time
    for ts in (3, 4, 5):
        table.upsert(trips({"d": (ts, "sf")}))
    done = table.rollback(second, chain=True)
    assert any("built anew" in note for note in done.notes)
    assert rows_of(store) == ONE
    check_tidy(store)


def test_an_index_that_was_built_later_is_built_anew() -> None:
    store = MemoryStore()
    new_table(store, index="simple")
    table = Table(store)
    table.upsert(trips(ONE))
    table.upsert(trips({"a": (2, "sf"), "c": (2, "nyc")}))
    second = table.timeline.completed().writes().instants[-1].requested_time
    table.index.build("record")
    done = table.rollback(second)
    assert any("record index" in note for note in done.notes)
    assert rows_of(store) == ONE
    check_tidy(store)


def test_what_is_refused() -> None:
    store = new("copy_on_write")
    table = Table(store)
    CHANGES["upsert"](table)
    newest = table.savepoint().instant
    assert newest is not None
    with pytest.raises(hoodie.UnsupportedError, match=r"t\.delete_savepoint"):
        table.rollback(newest)
    table.delete_savepoint(newest)
    table.rollback(newest)
    with pytest.raises(hoodie.InstantNotFoundError, match="no instant"):
        table.rollback(newest)


def test_every_commit_can_go() -> None:
    store = new("copy_on_write")
    table = Table(store)
    (only,) = table.timeline.completed().writes().instants
    table.rollback(only.requested_time)
    assert rows_of(store) == {}
    table.upsert(trips(ONE))
    assert rows_of(store) == ONE
    check_tidy(store)


def test_deaths_of_a_rollback_are_resumed_by_the_next_writer() -> None:
    store = new("copy_on_write")
    CHANGES["upsert"](Table(store))
    both = rows_of(store)
    newest = Table(store).timeline.completed().writes().instants[-1].requested_time
    for death in deaths(store, lambda table: table.rollback(newest), keep=12):
        assert rows_of(death.store) in (ONE, both), str(death)
        Table(death.store).upsert(trips({"z": (1, "sf")}))
        rows = rows_of(death.store)
        assert rows in ({**ONE, "z": (1, "sf")}, {**both, "z": (1, "sf")}), str(death)
        check_tidy(death.store)
