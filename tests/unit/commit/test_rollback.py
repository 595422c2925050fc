"""Rollbacks that another writer began are finished, whatever state their target is in."""

from __future__ import annotations

import pytest

from hoodie.format.filenames import BaseFileName
from hoodie.format.instants.rollback_content import may_have_completed
from hoodie.format.instants.service_metadata import InstantInfo, RollbackPlan, RollbackRequest
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action, State, create_inflight, create_requested, read_instant
from tests.crash.tables import check_tidy, copy_of, new_table, rows_of, run_until, trips


def begin_rollback(store: MemoryStore, instant_time: str, state: str) -> str:
    """A rollback as the JVM leaves it when it dies early: a plan that names absolute paths."""
    view = Table(store).view()
    files = [
        info.path
        for info in store.list("", recursive=True)
        if instant_time in info.name and not info.path.startswith(".hoodie/")
    ]
    requests = tuple(
        RollbackRequest(partition_path=path.rpartition("/")[0], files_to_be_deleted=(store.uri(path),))
        for path in files
    )
    target = InstantInfo(commit_time=instant_time, action="commit")
    plan = RollbackPlan(instant_to_rollback=target, rollback_requests=requests)
    rollback_time = view.clock.next_time(view.timeline)
    create_requested(store, view.layout, rollback_time, Action.ROLLBACK, plan.to_bytes())
    if state == "inflight":
        create_inflight(store, view.layout, rollback_time, Action.ROLLBACK)
    return rollback_time


@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_rollback_of_a_completed_commit_is_finished(state: str) -> None:
    store = MemoryStore()
    new_table(store)
    table = Table(store)
    table.upsert(trips({"a": (1, "sf"), "b": (1, "nyc")}))
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


def test_our_plans_have_no_null_that_the_jvm_fails_on() -> None:
    store = MemoryStore()
    new_table(store)
    Table(store).upsert(trips({"a": (1, "sf")}))
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
