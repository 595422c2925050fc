"""Savepoints and restores of tables whose writers overlapped: a restore never loses rows of its savepoint."""

from __future__ import annotations

import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.format.table.table_config import TableType
from hoodie.services.recovery import savepoint
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.support.deaths import check_tidy
from tests.support.savepoints import saved_by_request
from tests.support.steps import once_at
from tests.support.tables import TYPES, contents, made_once, rows_of, trips, trips_store

KEPT = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.compact.inline": "false"}
FEW = {"hoodie.clean.commits.retained": "2"}


@made_once
def overlapped(table_type: str) -> MemoryStore:
    """A table whose second write was requested before the third, and completed after it."""
    store = trips_store({"a": (1, "sf"), "b": (1, "nyc")}, table_type=table_type, properties=KEPT)
    with once_at(Step.BEGUN, lambda: Table(store).upsert(trips({"b": (3, "nyc")}))):
        Table(store).upsert(trips({"a": (2, "sf")}))
    return store


def last_and_first(store: MemoryStore) -> tuple[str, str]:
    """The requested times of the write that completed last, and of the one that was requested last."""
    last, first = Table(store).timeline.completed().writes().instants[-2:]
    assert str(last.completion_time) > str(first.completion_time)
    return last.requested_time, first.requested_time


def write_on(store: MemoryStore) -> None:
    """Write new versions, and clean."""
    for version in range(4, 7):
        Table(store).upsert(trips({"a": (version, "sf"), "b": (version, "nyc")}))
    if Table(store).view().config.table_type is TableType.MERGE_ON_READ:
        Table(store).schedule_compaction()
        Table(store).compact()
    Table(store).clean(properties=FEW)


@pytest.mark.parametrize("is_default", [False, True], ids=["of its commit", "the default: all rows that are there"])
@pytest.mark.parametrize("table_type", TYPES)
def test_a_savepoint_names_the_files_of_the_moment(table_type: str, is_default: bool) -> None:
    store = overlapped(table_type)
    last, first = last_and_first(store)
    rows = rows_of(store) if is_default else {"a": (1, "sf"), "b": (3, "nyc")}
    done = Table(store).savepoint(None if is_default else first)
    assert done.instant == (last if is_default else first)
    write_on(store)
    Table(store).restore(str(done.instant))
    assert rows_of(store) == rows
    check_tidy(store)


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("of_last", [False, True])
def test_a_savepoint_by_requested_times_is_not_restored(
    table_type: str, of_last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = overlapped(table_type)
    last, first = last_and_first(store)
    commit = last if of_last else first
    with monkeypatch.context() as patched:
        patched.setattr(savepoint, "plan_savepoint", saved_by_request)
        Table(store).savepoint(commit)
    write_on(store)
    before = contents(store)
    with pytest.raises(hoodie.UnsupportedError, match="cannot go back to"):
        Table(store).restore(commit)
    assert contents(store) == before


def test_a_clustering_that_completes_last_is_kept() -> None:
    small = {**KEPT, "hoodie.parquet.small.file.limit": "0"}
    store = trips_store(*({f"a{number}": (1, "sf")} for number in range(3)), properties=small)
    with once_at(Step.WRITTEN, lambda: Table(store).upsert(trips({"b": (3, "nyc")}))):
        Table(store).cluster()
    rows = rows_of(store)
    saved = Table(store).savepoint().instant
    assert saved is not None
    for version in range(4, 8):
        Table(store).upsert(trips({"b": (version, "nyc")}))
    Table(store).clean(properties=FEW)
    Table(store).restore(saved)
    assert rows_of(store) == rows
    check_tidy(store)


def test_a_compaction_that_completes_after_the_savepoint_is_kept() -> None:
    store = trips_store({"a": (1, "sf")}, {"a": (2, "sf")}, table_type="merge_on_read", properties=KEPT)
    Table(store).schedule_compaction()
    Table(store).upsert(trips({"a": (3, "sf")}))
    saved = Table(store).savepoint().instant
    assert saved is not None
    Table(store).compact()
    Table(store).upsert(trips({"a": (4, "sf")}))
    Table(store).restore(saved)
    assert rows_of(store) == {"a": (3, "sf")}
    check_tidy(store)
