"""Rollbacks and restores after a compaction of the metadata table died, and restores that drop the metadata table."""

from __future__ import annotations

import pytest

from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.crash.tables import check_tidy, copy_of, new_table, rows_of, run_until, trips

METADATA = ".hoodie/metadata"
COMPACTIONS = f"{METADATA}/.hoodie/timeline"
COMPACTS = {"hoodie.metadata.compact.max.delta.commits": "3", "hoodie.clean.automatic": "false"}


def compactions(store: MemoryStore) -> int:
    return sum("compaction" in info.path for info in store.list(COMPACTIONS))


def before_a_compaction(table_type: str) -> tuple[MemoryStore, list[str]]:
    """A table whose next write compacts the metadata table, and the instants of its commits."""
    store = MemoryStore()
    instants: list[str] = []
    new_table(store, table_type=table_type, properties=COMPACTS)
    for i in range(1, 9):
        before = copy_of(store)
        instant = Table(store).upsert(trips({"a": (i, "sf"), f"k{i}": (i, "la")})).instant or ""
        if len(instants) > 2 and compactions(store) > compactions(before):
            return before, instants
        instants.append(instant)
    raise AssertionError("no write compacted the metadata table")


def write(table: Table) -> object:
    return table.upsert(trips({"a": (99, "sf"), "z": (99, "la")}))


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_dead_metadata_compaction_does_not_outlive_the_commits_of_its_plan(table_type: str) -> None:
    base, instants = before_a_compaction(table_type)
    left = len(instants) - 1
    want = {"a": (left, "sf"), **{f"k{i}": (i, "la") for i in range(1, left + 1)}}
    calls = run_until(copy_of(base), write, None).calls
    begun = next(number for number, call in enumerate(calls, 1) if "compaction.inflight" in call.path)
    for number in range(begun, begun + 4, 2):
        store = copy_of(base)
        run_until(store, write, number)
        if number == begun:
            Table(store).rollback(instants[-1])
        else:
            Table(store).restore(instants[-2])
        assert rows_of(store) == want
        Table(store).upsert(trips({"next": (1, "sf")}))
        assert rows_of(store) == {**want, "next": (1, "sf")}
        check_tidy(store)


def test_verify_finds_a_metadata_compaction_that_cannot_be_finished() -> None:
    base, instants = before_a_compaction("copy_on_write")
    calls = run_until(copy_of(base), write, None).calls
    begun = next(number for number, call in enumerate(calls, 1) if "compaction.inflight" in call.path)
    run_until(base, write, begun + 1)
    assert "metadata-damaged" not in Table(base).verify().problems
    (log,) = [info for info in base.list(".hoodie/metadata/files") if instants[-1] in info.path]
    base.delete(log.path)
    found = Table(base).verify()
    (told,) = [one for one in found.findings if one.key == log.path]
    assert told.kind == "metadata-damaged"
    assert "t.index.rebuild()" in str(told.found)
    assert Table(base).index.rebuild().counts
    write(Table(base))
    assert "metadata-damaged" not in Table(base).verify().problems


def test_a_restore_that_died_after_it_dropped_the_metadata_table_builds_what_it_had() -> None:
    store = MemoryStore()
    new_table(store, properties={**COMPACTS, "hoodie.metadata.index.column.stats.enable": "true"})
    table = Table(store)
    table.insert(trips({"a": (1, "sf")}))
    saved = table.savepoint().instant or ""
    for key in "bcdef":
        table.insert(trips({key: (1, "sf")}))
    had = Table(store).view().config.metadata_partitions
    assert {"record_index", "column_stats"} <= {*had}
    calls = run_until(copy_of(store), lambda table: table.restore(saved), None).calls
    dropped = next(n for n, call in enumerate(calls, 1) if call.operation == "delete_folder" and call.path == METADATA)
    run_until(store, lambda table: table.restore(saved), dropped + 3)
    done = Table(store).restore(saved)
    assert any("column_stats was missing" in note for note in done.notes)
    assert any("record index was missing" in note for note in done.notes)
    assert Table(store).view().config.metadata_partitions == had
    assert rows_of(store) == {"a": (1, "sf")}
    check_tidy(store)
