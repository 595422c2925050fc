"""A pending rollback without a whole plan, or that must not be executed, stops neither writes nor rollbacks by name."""

from __future__ import annotations

import pytest

from hoodie.commit.rollback import committed_files, plan_rollback
from hoodie.format.instants.service_metadata import InstantInfo, pending_rollback_plan
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action
from hoodie.timeline.heartbeat import heartbeat_path
from tests.support.deaths import die
from tests.support.fault_store import CrashPoint
from tests.support.tables import rows_of, trips, trips_store

REQUESTED = ".hoodie/timeline/20991201000000000.rollback.requested"
START = {"a": (2, "sf")}


@pytest.fixture
def store() -> MemoryStore:
    """Two commits, and a write that died."""
    store = trips_store({"a": (1, "sf")}, START)
    die(store, lambda table: table.upsert(trips({"b": (1, "sf")})), ".inflight", "create", CrashPoint.AFTER)
    return store


def test_one_that_a_jvm_executes_is_left_to_it(store: MemoryStore) -> None:
    """Even if its plan looks as one that must not be executed, as that of a completed write without files."""
    view = Table(store).view()
    store.create(REQUESTED, plan_rollback(view, view.timeline.completed().instants[0]).to_bytes())
    beat = heartbeat_path("20991201000000000")
    store.create(beat, b"")
    Table(store).upsert(trips({"c": (1, "sf")}))
    assert store.head(REQUESTED) is not None
    store.delete(beat)
    Table(store).upsert(trips({"c": (2, "sf")}))
    assert store.head(REQUESTED) is None
    assert rows_of(store) == {**START, "c": (2, "sf")}


@pytest.mark.parametrize("plan", ["none", "refused", "of a write that completed since"])
def test_the_next_write_deletes_it(store: MemoryStore, plan: str) -> None:
    view = Table(store).view()
    older, newest = view.timeline.completed().instants
    path = view.store.uri(next(iter(committed_files(view, newest))))
    target = InstantInfo(commit_time=newest.requested_time, action=newest.action.value)
    of_pending = pending_rollback_plan(target, [("sf", [path])])
    plans = {"none": b"", "refused": plan_rollback(view, older).to_bytes()}
    store.create(REQUESTED, plans.get(plan, of_pending.to_bytes()))
    Table(store).upsert(trips({"c": (1, "sf")}))
    assert rows_of(store) == {**START, "c": (1, "sf")}
    assert not Table(store).timeline.pending().instants


def test_a_rollback_by_name_does_not_read_it(store: MemoryStore) -> None:
    store.create(REQUESTED, b"no plan")
    (dead,) = (found for found in Table(store).timeline.pending() if found.action is Action.COMMIT)
    assert Table(store).rollback(dead.requested_time).counts["instants"] == 1
    assert rows_of(store) == START
