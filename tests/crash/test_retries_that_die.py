"""A writer that dies while it retries: the first attempt leaves nothing, and the next writer undoes the second one."""

from __future__ import annotations

import pytest

from hoodie.commit.steps import Step
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.crash.tables import Rows, check_recovery, deaths, new_table, rows_of, trips
from tests.support.fault_store import FaultStore
from tests.support.steps import once_at

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}
THEIRS: Rows = {"b": (2, "sf"), "x": (2, "sf")}
OURS: Rows = {"a": (3, "sf"), "x": (3, "sf")}


def retried(table: Table) -> None:
    """An upsert that meets another one; the other writer does not die."""
    store = table.view().store
    other = Table(store.inner if isinstance(store, FaultStore) else store)
    with once_at(Step.WRITTEN, lambda: other.upsert(trips(THEIRS))):
        assert any(note.startswith("retried once") for note in table.upsert(trips(OURS)).notes)


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_retry_dies(table_type: str) -> None:
    store = MemoryStore()
    new_table(store, table_type=table_type)
    Table(store).upsert(trips(START))
    undone = 0
    for death in deaths(store, retried, keep=14):
        found = rows_of(death.store)
        if found == START:
            check_recovery(death.store, START, START)
            continue
        undone += 1
        check_recovery(death.store, {**START, **THEIRS}, {**START, **THEIRS, **OURS})
    assert undone >= 4, "the writer did not die in its second attempt"
