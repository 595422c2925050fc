"""Rolling back what somebody names: plans, and writes whose writer died; nothing else."""

from __future__ import annotations

import pytest

import hoodie
from hoodie.format.instants.service_metadata import InstantInfo, RollbackPlan
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action
from hoodie.timeline.heartbeat import heartbeat_path
from tests.support.deaths import deaths
from tests.support.merge_on_read import merged_rows
from tests.support.steps import begin
from tests.support.tables import trips, trips_store


@pytest.fixture
def store() -> MemoryStore:
    """A table with a log file."""
    return trips_store({"a": (1, "sf")}, {"a": (2, "sf")}, table_type="merge_on_read", index="simple")


def test_a_plan_is_taken_back_and_its_slices_are_free(store: MemoryStore) -> None:
    table = Table(store)
    first = table.schedule_compaction()
    assert first is not None
    assert table.schedule_compaction() is None
    assert table.rollback(first).instant == first
    assert table.pending_compactions().instants == []
    assert table.schedule_compaction() is not None
    assert table.compact().counts["log_files"] == 1
    assert merged_rows(store) == {"a": (2, "sf")}


def rolled_back_elsewhere(store: MemoryStore) -> tuple[str, str]:
    """A new plan of a compaction, and its rollback, which another process has begun."""
    table = Table(store)
    plan = str(table.schedule_compaction())
    target = InstantInfo(commit_time=plan, action="compaction")
    content = RollbackPlan(instant_to_rollback=target, rollback_requests=()).to_bytes()
    rollback_time = begin(table, Action.ROLLBACK, content, only_requested=True)
    store.create(heartbeat_path(rollback_time), b"")
    return plan, rollback_time


def test_a_plan_that_another_process_rolls_back_is_left_to_it(store: MemoryStore) -> None:
    table = Table(store)
    plan, rollback_time = rolled_back_elsewhere(store)
    with pytest.raises(hoodie.CommitConflictError, match=f"by another process, as {rollback_time}"):
        table.rollback(plan)
    with pytest.raises(hoodie.CommitConflictError, match=f"by another process, as {rollback_time}"):
        table.rollback(plan, dry_run=True)
    assert table.timeline.get(plan) is not None
    store.delete(heartbeat_path(rollback_time))
    assert table.rollback(plan).instant == plan


def test_a_plan_that_is_being_rolled_back_is_not_executed(store: MemoryStore) -> None:
    """The rollback would take the completed compaction back. A dead rollback is completed first."""
    table = Table(store)
    plan, rollback_time = rolled_back_elsewhere(store)
    with pytest.raises(hoodie.CommitConflictError, match=f"rolled back by another process, as {rollback_time}"):
        table.compact(plan)
    store.delete(heartbeat_path(rollback_time))
    with pytest.raises(hoodie.CommitConflictError, match="was rolled back: a rollback of it had begun"):
        table.compact(plan)
    done = table.compact()
    assert done.instant != plan
    assert [found.requested_time for found in table.timeline.pending()] == []
    assert merged_rows(store) == {"a": (2, "sf")}


def test_a_dead_write_is_rolled_back(store: MemoryStore) -> None:
    change = trips({"a": (3, "sf"), "b": (1, "la")})
    dead = next(deaths(store, lambda table: table.upsert(change), since=".deltacommit.inflight")).store
    (pending,) = Table(dead).timeline.pending()
    done = Table(dead).rollback(pending.requested_time)
    assert (done.instant, done.counts["instants"]) == (pending.requested_time, 1)
    assert list(Table(dead).timeline.pending()) == []
    assert merged_rows(dead) == {"a": (2, "sf")}
    with pytest.raises(hoodie.InstantNotFoundError, match="no instant 123"):
        Table(dead).rollback("123")


def test_a_dry_run_refuses_what_the_rollback_refuses(store: MemoryStore) -> None:
    table = Table(store)
    pending = begin(table, Action.DELTA_COMMIT)
    store.create(heartbeat_path(pending), b"")
    for dry_run in (True, False):
        with pytest.raises(hoodie.CommitConflictError, match="is running: stop it first"):
            table.rollback(pending, dry_run=dry_run)
    store.delete(heartbeat_path(pending))
    assert table.rollback(pending, dry_run=True).notes == (f"{pending}.deltacommit (inflight) would be rolled back",)
    assert table.timeline.get(pending) is not None


def test_a_planned_compaction_of_version_6_stays_if_later_writes_need_it() -> None:
    changes = ({"a": (1, "sf")}, {"a": (2, "sf")})
    table = Table(trips_store(*changes, table_type="merge_on_read", index="simple", table_version=6))
    plan = str(table.schedule_compaction())
    assert table.rollback(plan, dry_run=True).counts["instants"] == 1
    table.upsert(trips({"a": (3, "sf")}))
    for dry_run in (True, False):
        with pytest.raises(hoodie.UnsupportedError, match=r"cannot be removed: .* began after it"):
            table.rollback(plan, dry_run=dry_run)
    assert merged_rows(table.view().store) == {"a": (3, "sf")}
    assert table.compact(instant=plan).instant == plan
    assert merged_rows(table.view().store) == {"a": (3, "sf")}
    assert table.verify(full=True).ok
