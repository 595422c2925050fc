"""Rolling back completed commits: the newest, a chain; the metadata table and the record index follow."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import hoodie
from hoodie.format.filenames import instant_of_data_file
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action
from tests.support.deaths import check_tidy
from tests.support.tables import TYPES, contents, made_once, rows_of, trips, trips_store

ONE = {"a": (1, "sf"), "b": (1, "la")}
CHANGES: dict[str, Callable[[Table], object]] = {
    "upsert": lambda table: table.upsert(trips({"a": (2, "sf"), "c": (2, "nyc")})),
    "move": lambda table: table.upsert(trips({"a": (2, "oslo")})),
    "delete": lambda table: table.delete(trips({"a": (2, "sf")})),
    "insert_overwrite": lambda table: table.insert_overwrite(trips({"x": (1, "sf")})),
    "delete_partitions": lambda table: table.delete_partitions(["city=sf"]),
}


def newest(store: MemoryStore) -> str:
    """The requested time of the newest commit."""
    return Table(store).timeline.completed().writes().instants[-1].requested_time


@made_once
def changed(table_type: str = "copy_on_write", change: str = "upsert") -> MemoryStore:
    """A table with the rows `ONE`, and another commit."""
    store = trips_store(ONE, table_type=table_type)
    CHANGES[change](Table(store))
    return store


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("change", CHANGES)
def test_the_newest_commit(change: str, table_type: str) -> None:
    store = changed(table_type, change)
    table, last = Table(store), newest(store)
    told = table.rollback(last, dry_run=True)
    assert told.dry_run
    assert rows_of(store) != ONE
    done = table.rollback(last)
    assert done.counts == told.counts
    assert rows_of(store) == ONE
    check_tidy(store)
    Table(store).upsert(trips({"z": (1, "sf")}))
    assert rows_of(store) == {**ONE, "z": (1, "sf")}
    assert Table(store).timeline.get(last) is None


def test_a_chain() -> None:
    store = changed("merge_on_read")
    table, second = Table(store), newest(store)
    table.schedule_compaction()
    table.compact()
    table.upsert(trips({"d": (3, "sf"), "a": (4, "sf")}))
    planned = table.schedule_compaction()
    files = contents(store)
    with pytest.raises(hoodie.UnsupportedError, match=r"not the newest.*chain=True"):
        table.rollback(second)
    assert contents(store) == files
    done = table.rollback(second, chain=True)
    # The result adds up, and leaves the rows of compactions out.
    found = f"{3 + (planned is not None)} instants, 2 inserted rows, 2 updated rows, 0 deleted rows, "
    assert found in str(done)
    assert rows_of(store) == ONE
    check_tidy(store)
    assert [found.action for found in table.timeline.writes()] == [Action.DELTA_COMMIT]


ROWS_OF: dict[str, tuple[int, int, int]] = {
    "upsert": (1, 1, 0),
    "move": (1, 0, 1),
    "delete": (0, 0, 1),
}


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("change", ROWS_OF)
def test_the_result_counts_the_rows_that_the_commit_recorded(change: str, table_type: str) -> None:
    """What the history of the table says of the commit; no data file is read for it."""
    store = changed(table_type, change)
    table, last = Table(store), newest(store)
    (row,) = [found for found in table.history().to_pylist() if found["instant"] == last]
    for path in [info.path for info in store.list("", recursive=True) if not info.path.startswith(".hoodie")]:
        if instant_of_data_file(path) == last:
            store.delete(path)
    done = table.rollback(last, dry_run=True)
    recorded = tuple(done.counts[f"{name}_rows"] for name in ("inserted", "updated", "deleted"))
    assert recorded == ROWS_OF[change] == tuple(row[name] for name in ("inserted", "updated", "deleted"))
    assert done.counts["instants"] == 1


def test_a_compaction_alone() -> None:
    found = changed("merge_on_read")
    table, rows = Table(found), rows_of(found)
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
    later = [{"d": (ts, "sf")} for ts in (3, 4, 5)]
    compacts = {"hoodie.metadata.compact.max.delta.commits": "2"}
    store = trips_store(ONE, {"a": (2, "sf"), "c": (2, "nyc")}, *later, properties=compacts)
    table = Table(store)
    done = table.rollback(table.timeline.instants[1].requested_time, chain=True)
    assert any("built anew" in note for note in done.notes)
    assert rows_of(store) == ONE
    check_tidy(store)


def test_an_index_that_was_built_later_is_built_anew() -> None:
    store = trips_store(ONE, {"a": (2, "sf"), "c": (2, "nyc")}, index="simple")
    table = Table(store)
    table.index.build("record")
    done = table.rollback(newest(store))
    assert any("record index" in note for note in done.notes)
    assert rows_of(store) == ONE
    check_tidy(store)


def test_what_is_refused() -> None:
    table = Table(changed())
    saved = str(table.savepoint().instant)
    with pytest.raises(hoodie.UnsupportedError, match=r"t\.delete_savepoint"):
        table.rollback(saved)
    table.delete_savepoint(saved)
    table.rollback(saved)
    with pytest.raises(hoodie.InstantNotFoundError, match="no instant"):
        table.rollback(saved)


def test_every_commit_can_go() -> None:
    store = trips_store(ONE)
    table = Table(store)
    table.rollback(newest(store))
    assert rows_of(store) == {}
    table.upsert(trips(ONE))
    assert rows_of(store) == ONE
    check_tidy(store)


@pytest.mark.matrix(keep=16)
@pytest.mark.parametrize("change", ["upsert", "move", "delete"])
@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("index", ["simple", "record", "bucket", "global_bloom"])
@pytest.mark.parametrize("way", ["rollback", "restore"])
def test_a_commit_of_version_6_is_taken_back_after_an_upgrade(way: str, index: str, version: int, change: str) -> None:
    """Its log files have the name of their slice, which is the newest again without the compaction of the upgrade."""
    store = trips_store(ONE, table_type="merge_on_read", index=index, table_version=6)
    Table(store).upsert(trips({"a": (2, "sf")}))
    before = rows_of(store)
    saved = Table(store).savepoint().instant
    CHANGES[change](Table(store))
    gone = newest(store)
    Table(store).upgrade(version, dry_run=False)
    if way == "rollback":
        Table(store).rollback(gone, chain=True)
    else:
        Table(store).restore(str(saved))
    assert rows_of(store) == before
    assert Table(store).verify(full=True).ok
    Table(store).upsert(trips({"z": (1, "sf")}))
    Table(store).schedule_compaction(strategy="unbounded")
    Table(store).compact()
    assert rows_of(store) == {**before, "z": (1, "sf")}
    check_tidy(store, has_record_index=index == "record")
