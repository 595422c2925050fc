"""Writes while an index build of version 6 is pending: its log files get their names at the commit."""

from __future__ import annotations

import pytest

from hoodie.commit.steps import Step
from hoodie.errors import CommitConflictError
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.support.steps import once_at
from tests.support.tables import rows_of, trips, trips_store

START = {"a": (1, "sf"), "b": (1, "nyc")}
CHANGED = {**START, "a": (2, "sf"), "z": (1, "la")}


def table_of_version_6(table_type: str) -> MemoryStore:
    return trips_store(START, table_type=table_type, table_version=6)


@pytest.mark.parametrize("step", [Step.BEGUN, Step.WRITTEN], ids=str)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_write_while_a_build_is_pending(table_type: str, step: Step) -> None:
    store = table_of_version_6(table_type)
    with once_at(step, lambda: Table(store).upsert(trips(CHANGED))):
        Table(store).index.build("record", buckets=3)
    assert rows_of(store) == CHANGED
    assert Table(store).verify(full=True).ok


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_build_while_a_write_is_pending(table_type: str) -> None:
    """The write is refused: its keys are staged by the old buckets."""
    store = table_of_version_6(table_type)
    act = once_at(Step.WRITTEN, lambda: Table(store).index.build("record", buckets=3))
    with pytest.raises(CommitConflictError, match="built anew"), act:
        Table(store).upsert(trips(CHANGED))
    assert rows_of(store) == START
    Table(store).upsert(trips(CHANGED))
    assert rows_of(store) == CHANGED
    assert Table(store).verify(full=True).ok
