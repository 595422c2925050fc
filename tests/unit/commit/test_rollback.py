"""Rollbacks that another writer began are finished, whatever state their target is in."""

from __future__ import annotations

import pytest

from hoodie.commit.rollback import committed_files, plan_rollback
from hoodie.errors import CommitConflictError
from hoodie.format.filenames import BaseFileName
from hoodie.format.instants.service_metadata import (
    InstantInfo,
    RollbackPlan,
    RollbackRequest,
    may_have_completed,
    pending_rollback_plan,
)
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action, State, delete_instant_files, read_instant
from hoodie.timeline.heartbeat import heartbeat_path
from tests.support.deaths import check_tidy, die, run_until
from tests.support.fault_store import CrashPoint
from tests.support.steps import begin
from tests.support.tables import copy_of, rows_of, trips, trips_store


def begin_rollback(store: MemoryStore, instant_time: str, state: str) -> str:
    """A rollback as the JVM leaves it when it dies early: a plan that names absolute paths."""
    data = [info.path for info in store.list("", recursive=True) if not info.path.startswith(".hoodie/")]
    requests = tuple(
        RollbackRequest(partition_path=path.rpartition("/")[0], files_to_be_deleted=(store.uri(path),))
        for path in data
        if instant_time in path
    )
    target = InstantInfo(commit_time=instant_time, action="commit")
    plan = RollbackPlan(instant_to_rollback=target, rollback_requests=requests)
    return begin(Table(store), Action.ROLLBACK, plan.to_bytes(), only_requested=state == "requested")


@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_rollback_of_a_completed_commit_is_finished(state: str) -> None:
    store = trips_store({"a": (1, "sf"), "b": (1, "nyc")})
    table = Table(store)
    bad = table.upsert(trips({"a": (2, "sf"), "c": (2, "sf"), "d": (1, "la")}))
    rollback_time = begin_rollback(store, bad.instant, state)
    table.upsert(trips({"e": (1, "sf")}))
    assert rows_of(store) == {"a": (1, "sf"), "b": (1, "nyc"), "e": (1, "sf")}
    timeline = Table(store).timeline
    assert timeline.get(bad.instant) is None
    done = timeline.get(rollback_time)
    assert done is not None
    assert done.is_completed
    check_tidy(store)


@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_refused_rollback_of_a_commit_that_is_not_the_newest_is_given_up(state: str) -> None:
    """The JVM leaves it on the timeline when it says "please rollback greater commits first"."""
    store = trips_store({"a": (1, "sf")})
    table = Table(store)
    refused = table.upsert(trips({"a": (2, "sf"), "b": (2, "sf")}))
    table.upsert(trips({"a": (3, "sf")}))
    rollback_time = begin_rollback(store, refused.instant, state)
    table.upsert(trips({"c": (1, "sf")}))
    assert rows_of(store) == {"a": (3, "sf"), "b": (2, "sf"), "c": (1, "sf")}
    timeline = Table(store).timeline
    assert timeline.get(refused.instant) is not None
    assert timeline.get(rollback_time) is None
    check_tidy(store)


def test_a_rollback_that_another_process_executes_is_left_to_it() -> None:
    """A JVM with concurrency control executes it without the table's lock, and shows so by a heartbeat."""
    store = trips_store({"a": (1, "sf")})
    table = Table(store)
    bad = table.upsert(trips({"a": (2, "sf"), "b": (1, "nyc")}))
    rollback_time = begin_rollback(store, bad.instant, "inflight")
    # As the JVM does next: the target is pending, and its writer is dead.
    done = table.timeline.get(bad.instant)
    assert done is not None
    delete_instant_files(store, table.view().layout, done.requested_time, done.action, State.COMPLETED)
    store.create(heartbeat_path(rollback_time), b"")
    table.upsert(trips({"c": (1, "la")}))
    left = [(found.requested_time, found.state) for found in Table(store).timeline.pending()]
    assert left == [(bad.instant, State.INFLIGHT), (rollback_time, State.INFLIGHT)]
    assert store.list("city=nyc"), "the files of the target were deleted"
    assert rows_of(store) == {"a": (1, "sf"), "c": (1, "la")}
    newest = Table(store).view().completed_writes()[-1].requested_time
    with pytest.raises(CommitConflictError, match="is running"):
        table.rollback(newest)
    with pytest.raises(CommitConflictError, match=rf"by another process, as {rollback_time}.*wait until"):
        table.rollback(bad.instant)
    assert store.list("city=nyc"), "the files of the target were deleted"
    store.delete(heartbeat_path(rollback_time))
    table.upsert(trips({"d": (1, "la")}))
    assert rows_of(store) == {"a": (1, "sf"), "c": (1, "la"), "d": (1, "la")}
    check_tidy(store)


def test_our_plans_have_no_null_that_the_jvm_fails_on() -> None:
    store = trips_store({"a": (1, "sf")})
    change = trips({"a": (2, "sf"), "b": (1, "nyc")})
    calls = run_until(copy_of(store), lambda table: table.upsert(change), None).calls
    wrote_all = next(number for number, call in enumerate(calls, 1) if call.path.endswith(".deltacommit.requested"))
    run_until(store, lambda table: table.upsert(change), wrote_all)
    (dead,) = Table(store).timeline.pending()
    Table(store).upsert(trips({"c": (1, "sf")}))
    (rollback,) = [instant for instant in Table(store).timeline if instant.action is Action.ROLLBACK]
    view = Table(store).view()
    plan = RollbackPlan.parse(read_instant(store, view.layout, rollback, State.REQUESTED))
    assert plan.instant_to_rollback == InstantInfo(commit_time=dead.requested_time, action="commit")
    assert {request.partition_path for request in plan.rollback_requests or ()} == {"city=sf", "city=nyc"}
    for request in plan.rollback_requests or ():
        (path,) = request.files_to_be_deleted
        named = BaseFileName.parse(path.rpartition("/")[2])
        assert named is not None
        assert (request.file_id, request.latest_base_instant) == (named.file_id, dead.requested_time)
        assert request.log_blocks_to_be_deleted == {}
    assert not may_have_completed(plan)


# --- a pending rollback without a whole plan, or that must not be executed, beside a write that died ------------------

REQUESTED = ".hoodie/timeline/20991201000000000.rollback.requested"
START = {"a": (2, "sf")}


@pytest.fixture
def store() -> MemoryStore:
    """Two commits, and a write that died."""
    store = trips_store({"a": (1, "sf")}, START)
    die(store, lambda table: table.upsert(trips({"b": (1, "sf")})), ".inflight", "create", CrashPoint.AFTER)
    return store


def test_a_plan_of_a_rollback_that_a_jvm_executes_is_left_to_it(store: MemoryStore) -> None:
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
def test_the_next_write_deletes_a_rollback_without_a_plan_to_execute(store: MemoryStore, plan: str) -> None:
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
    check_tidy(store)


def test_a_rollback_by_name_does_not_read_the_plan_of_another(store: MemoryStore) -> None:
    store.create(REQUESTED, b"no plan")
    (dead,) = (found for found in Table(store).timeline.pending() if found.action is Action.COMMIT)
    assert Table(store).rollback(dead.requested_time).counts["instants"] == 1
    assert rows_of(store) == START
