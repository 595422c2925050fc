"""Restores and rollbacks of completed commits that die, and whose recovery dies too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hoodie
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.crash.tables import Rows, Write, check_recovery, check_tidy, deaths, new_table, rows_of, run_until, trips
from tests.support.samples import sample_numbers

FIRST: Rows = {"a": (1, "sf"), "b": (1, "la")}
CHANGE: Rows = {"a": (2, "sf"), "c": (2, "nyc")}
BOTH: Rows = {**FIRST, **CHANGE}
NEXT: Rows = {"y": (1, "la")}
COMPACTS = {"hoodie.metadata.compact.max.delta.commits": "1"}
KINDS = {"copy_on_write": None, "merge_on_read": None, "compacted metadata": COMPACTS}


def saved_table(kind: str) -> tuple[MemoryStore, str, str]:
    """A table with a savepoint of the first commit; the requested times of both commits."""
    store = MemoryStore()
    new_table(store, table_type="merge_on_read" if kind == "merge_on_read" else "copy_on_write", properties=KINDS[kind])
    table = Table(store)
    table.upsert(trips(FIRST))
    saved = table.savepoint().instant
    table.upsert(trips(CHANGE))
    newest = table.timeline.completed().writes().latest()
    assert saved is not None
    assert newest is not None
    if KINDS[kind] is not None:
        table.upsert(trips({"a": (3, "sf")}))
        table.upsert(trips(CHANGE))
    return store, saved, newest.requested_time


def moved(store: MemoryStore) -> MemoryStore:
    """Another store with the same files; absolute paths in plans lead to it."""
    copied = MemoryStore()
    old, new = store.uri("").encode(), copied.uri("").encode()
    assert len(old) == len(new), "plans store the length of a path"
    for info in store.list("", recursive=True):
        copied.create(info.path, store.read(info.path).replace(old, new))
    return copied


def second_deaths(store: MemoryStore, write: Write, *, keep: int) -> Iterator[tuple[str, MemoryStore]]:
    """Tables on which the recovery died as well, at a sample of its calls."""
    calls = run_until(moved(store), write, None).calls
    for number in sample_numbers(range(1, len(calls) + 1), keep):
        copied = moved(store)
        run_until(copied, write, number)
        yield f"then before call {number}", copied


@pytest.mark.parametrize("kind", KINDS)
def test_a_restore_dies_and_the_one_that_goes_on_with_it_dies_too(kind: str) -> None:
    store, saved, _ = saved_table(kind)
    before = rows_of(store)
    for first in deaths(store, lambda table: table.restore(saved), keep=5):
        for second, died in second_deaths(first.store, lambda table: table.restore(saved), keep=3):
            told = f"{first}, {second}"
            table = Table(died)
            pending = [str(found) for found in table.timeline.pending() if found.action == "restore"]
            if pending:
                with pytest.raises(hoodie.UnsupportedError, match=rf"t\.restore\('{saved}'\)"):
                    table.upsert(trips({"z": (1, "sf")}))
            else:
                assert rows_of(died) in (before, FIRST), told
            table.restore(saved)
            assert rows_of(died) == FIRST, told
            check_recovery(died, FIRST, FIRST)


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
def test_a_rollback_dies_and_the_next_writer_dies_too(kind: str) -> None:
    store, _, newest = saved_table(kind)
    for first in deaths(store, lambda table: table.rollback(newest), keep=6):
        for _, died in second_deaths(first.store, lambda table: table.upsert(trips(NEXT)), keep=3):
            added = NEXT if "y" in rows_of(died) else {}
            assert rows_of(died) in ({**FIRST, **added}, {**BOTH, **added})
            Table(died).upsert(trips({"z": (1, "sf")}))
            # The next writer completes a rollback that was begun.
            left = {**added, "z": (1, "sf")}
            assert rows_of(died) in ({**FIRST, **left}, {**BOTH, **left})
            check_tidy(died)
