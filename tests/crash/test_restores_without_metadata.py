"""Restores and rollbacks that die with the metadata table: after its compaction died, or once the table lacks it."""

from __future__ import annotations

import pytest

import hoodie
from hoodie.errors import CommitConflictError
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.support.deaths import check_tidy, deaths, die, run_until
from tests.support.fault_store import CrashPoint
from tests.support.recoveries import noted
from tests.support.samples import IS_WHOLE
from tests.support.tables import Rows, Write, copy_of, made_once, rows_of, trips, trips_store

METADATA = ".hoodie/metadata"
SERVED = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.clean.automatic": "false"}
COMPACTS = {"hoodie.metadata.compact.max.delta.commits": "3", "hoodie.clean.automatic": "false"}
FIRST: Rows = {"a": (1, "sf"), "b": (1, "la")}
STATES: list[Rows] = [
    {**FIRST, "a": (3, "sf"), "c": (2, "sf"), "d": (3, "la")},
    {**FIRST, "a": (2, "sf"), "c": (2, "sf")},
    FIRST,
]
"""The rows before a rollback of two commits, between its two steps, and after it."""


def undone(table_type: str, is_restore: bool) -> tuple[MemoryStore, Write]:
    """A table with a record index and statistics, and the call that rolls back its last two commits."""
    properties = {**SERVED, "hoodie.metadata.compact.max.delta.commits": "1"}
    store = trips_store(table_type=table_type, properties=properties)
    table = Table(store)
    table.insert(trips(FIRST))
    saved = table.savepoint().instant or ""
    first = table.upsert(trips({"a": (2, "sf"), "c": (2, "sf")})).instant or ""
    table.upsert(trips({"a": (3, "sf"), "d": (3, "la")}))
    assert rows_of(store) == STATES[0]
    return store, lambda table: table.restore(saved) if is_restore else table.rollback(first, chain=True)


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("is_restore", [True, False])
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_the_next_write_puts_index_and_statistics_in_order(table_type: str, is_restore: bool) -> None:
    store, act = undone(table_type, is_restore)
    had = Table(store).view().config.metadata_partitions
    assert {"record_index", "column_stats"} <= {*had}
    lacked: set[str] = set()
    for death in deaths(store, act, since=".restore" if is_restore else ".rollback", keep=6):
        with noted(death):
            before = rows_of(death.store)
            lacked |= {*had} - {*Table(death.store).view().config.metadata_partitions}
            assert before in (STATES[2:] if is_restore else STATES)
            for key, (ts, _) in before.items():
                assert key in Table(death.store).to_arrow(where=f"ts = {ts}")["id"].to_pylist()
            if any(found.action == "restore" for found in Table(death.store).timeline.pending()):
                act(Table(death.store))
            notes = written(death.store).notes
            # The write may complete the rollback of one more commit.
            steps = STATES[STATES.index(before) :][:2]
            assert rows_of(death.store) in [{**rows, "a": (9, "sf"), "z": (9, "sf")} for rows in steps]
            table = Table(death.store)
            report = table.verify(full=True)
            assert report.ok, str(report)
            is_lost = any("column statistics are missing" in note for note in notes)
            assert dict(report.warnings) == ({"statistics-missing": 1} if is_lost else {}), f"{report}, {notes}"
            if is_lost:
                table.index.build("column_stats")
            assert Table(death.store).view().config.metadata_partitions == had, notes
            assert table.index.verify("column_stats").ok
            check_tidy(death.store)
    # A sample of the deaths may have none between the two steps that drop and build it.
    assert not IS_WHOLE or {"record_index", "column_stats"} <= lacked, "no death left the table without its metadata"


def test_a_restore_that_died_after_it_dropped_the_metadata_table_builds_what_it_had() -> None:
    store, restore = undone("copy_on_write", True)
    had = Table(store).view().config.metadata_partitions
    calls = run_until(copy_of(store), restore, None).calls
    dropped = next(n for n, call in enumerate(calls, 1) if (call.operation, call.path) == ("delete_folder", METADATA))
    run_until(store, restore, dropped + 3)
    saved = Table(store).savepoints()[0].instant
    notes = str(Table(store).restore(saved).notes)
    assert "column_stats was missing" in notes
    assert "record index was missing" in notes
    assert Table(store).view().config.metadata_partitions == had
    assert rows_of(store) == FIRST
    check_tidy(store)


def written(store: MemoryStore) -> hoodie.WriteResult:
    """The next write. If the rollback that it completes drops the metadata table, it is refused once."""
    rows = trips({"a": (9, "sf"), "z": (9, "sf")})
    try:
        return Table(store).upsert(rows)
    except CommitConflictError as error:
        if "was removed while this write ran; nothing was committed, try again" not in str(error):
            raise
        return Table(store).upsert(rows)


def write(table: Table) -> object:
    return table.upsert(trips({"a": (99, "sf"), "z": (99, "la")}))


def compactions(store: MemoryStore) -> int:
    return sum("compaction" in info.path for info in store.list(f"{METADATA}/.hoodie/timeline"))


@made_once
def before_a_compaction(table_type: str) -> MemoryStore:
    """A table whose next write compacts the metadata table."""
    store = trips_store(table_type=table_type, properties=COMPACTS)
    for i in range(1, 9):
        before = copy_of(store)
        Table(store).upsert(trips({"a": (i, "sf"), f"k{i}": (i, "la")}))
        if i > 3 and compactions(store) > compactions(before):
            return before
    raise AssertionError("no write compacted the metadata table")


def instants_of(store: MemoryStore) -> list[str]:
    return [found.requested_time for found in Table(store).timeline.writes().completed()]


@pytest.mark.parametrize("is_restore", [True, False])
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_dead_metadata_compaction_does_not_outlive_the_commits_of_its_plan(table_type: str, is_restore: bool) -> None:
    store = before_a_compaction(table_type)
    *_, left, newest = instants = instants_of(store)
    count = len(instants) - 1
    want = {"a": (count, "sf"), **{f"k{i}": (i, "la") for i in range(1, count + 1)}}
    calls = run_until(copy_of(store), write, None).calls
    begun = next(number for number, call in enumerate(calls, 1) if "compaction.inflight" in call.path)
    run_until(store, write, begun + 2 * is_restore)
    if is_restore:
        Table(store).restore(left)
    else:
        Table(store).rollback(newest)
    assert rows_of(store) == want
    Table(store).upsert(trips({"next": (1, "sf")}))
    assert rows_of(store) == {**want, "next": (1, "sf")}
    check_tidy(store)


def test_verify_finds_a_metadata_compaction_that_cannot_be_finished() -> None:
    store = before_a_compaction("copy_on_write")
    newest = instants_of(store)[-1]
    die(store, write, "compaction.inflight", point=CrashPoint.AFTER)
    assert "metadata-damaged" not in Table(store).verify().problems
    (log,) = [info for info in store.list(".hoodie/metadata/files") if newest in info.path]
    store.delete(log.path)
    found = Table(store).verify()
    (told,) = [one for one in found.findings if one.key == log.path]
    assert told.kind == "metadata-damaged"
    assert "t.index.rebuild()" in str(told.found)
    assert Table(store).index.rebuild().counts
    write(Table(store))
    assert "metadata-damaged" not in Table(store).verify().problems
