"""Coordinators: who may carry a plan out, and what becomes of one whose claim is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from hoodie.commit.call import Call
from hoodie.engine import LocalEngine
from hoodie.errors import CommitConflictError, InvalidConfigError
from hoodie.services.clustering.clustering import CLUSTERING
from hoodie.services.compaction.compaction import COMPACTION
from hoodie.services.planned.claim import claim_plan
from hoodie.services.planned.coordination import Claim, TableCoordinator, ZooKeeperCoordinator, coordinator_of
from hoodie.services.planned.executor import execute, execute_waiting
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import forget_all
from tests.support.merge_on_read import merged_rows, on_engine
from tests.support.tables import Rows, made_once, trips_store

ROWS: Rows = {"a": (2, "sf"), "c": (2, "nyc")}


Registry = set[tuple[str, str]]
"""The plans that a session has claimed, as a server holds them."""


@dataclass(eq=False)
class Session:
    """A coordinator in memory."""

    registry: Registry
    name: str = "registry"
    checks_left: int = 1000

    def claim(self, table_uri: str, instant_time: str) -> Claim | None:
        """Claim a plan."""
        key = (table_uri, instant_time)
        if key in self.registry:
            return None
        self.registry.add(key)
        return Held(self, key)

    def close(self) -> None:
        """Lose all claims: no other session has any."""
        self.registry.clear()


@dataclass
class Held:
    """A claim of a session."""

    session: Session
    key: tuple[str, str]

    def ensure_held(self) -> None:
        """Fail once the session was asked too often."""
        self.session.checks_left -= 1
        if self.session.checks_left < 0:
            raise CommitConflictError("the claim was lost")

    def release(self) -> None:
        """Give it back."""
        self.session.registry.discard(self.key)


@made_once
def planned_table() -> MemoryStore:
    """A table with a plan of a compaction in two partitions; its rows are `ROWS`."""
    store = trips_store({"a": (1, "sf"), "c": (1, "nyc")}, ROWS, table_type="merge_on_read")
    assert Table(store).schedule_compaction()
    return store


def call_of(store: MemoryStore) -> Call:
    """One task at a time."""
    return on_engine(store, LocalEngine(1))


@made_once
def planned_clustering() -> MemoryStore:
    """A table with a plan of a clustering; its rows are `ROWS`."""
    store = trips_store({"a": (2, "sf")}, ROWS, properties={"hoodie.parquet.small.file.limit": "0"})
    assert Table(store).schedule_clustering("ts")
    return store


@pytest.mark.parametrize("end", ["gives it back", "ends", "dies"])
@pytest.mark.parametrize("kind", [COMPACTION, CLUSTERING], ids=["compaction", "clustering"])
def test_a_plan_that_another_process_executes_is_left_alone(kind: Any, end: str) -> None:
    table = Table(planned_table() if kind is COMPACTION else planned_clustering())
    run: Any = table.compact
    pending: Any = table.pending_compactions
    if kind is CLUSTERING:
        run, pending = table.cluster, table.pending_clusterings
    claimed = claim_plan(kind, table.view(), TableCoordinator())
    assert claimed is not None
    (plan,) = pending()
    assert plan.state == "running"
    assert plan.runner.startswith("process ")
    assert run().instant is None
    with pytest.raises(CommitConflictError, match="being executed by another"):
        run(instant=plan.instant)
    with pytest.raises(CommitConflictError, match="being executed by process"):
        table.rollback(plan.instant)
    {"gives it back": claimed.give_back, "ends": claimed.end, "dies": forget_all}[end]()
    is_waiting = end == "gives it back"
    assert pending()[0].state == ("waiting" if is_waiting else "interrupted")
    done = run() if kind is COMPACTION else run(instant=plan.instant)
    assert done.instant == plan.instant
    assert ("executed again a plan that process" in str(done)) != is_waiting
    assert merged_rows(table.view().store) == ROWS


def test_names_of_coordinators() -> None:
    assert isinstance(coordinator_of(None), TableCoordinator)
    session = Session(Registry())
    assert coordinator_of(session) is session
    found = coordinator_of("zookeeper://a:1,b:2/team/tables")
    assert isinstance(found, ZooKeeperCoordinator)
    assert found.name == "zookeeper://a:1,b:2/team/tables"
    assert coordinator_of("zookeeper://a:1").name == "zookeeper://a:1/hoodie"
    for wrong in ("etcd://a:1", "zookeeper://", "a:1"):
        with pytest.raises(InvalidConfigError, match="zookeeper://host:port/path"):
            coordinator_of(wrong)


def test_a_plan_that_another_has_is_left_alone() -> None:
    store, registry = planned_table(), Registry()
    mine, other = Session(registry), Session(registry)
    claim = other.claim(store.uri(""), Table(store).pending_compactions().instants[0])
    assert claim is not None
    assert execute_waiting(COMPACTION, call_of(store), coordinator=mine) == []
    claim.release()
    assert len(execute_waiting(COMPACTION, call_of(store), coordinator=mine)) == 1
    assert registry == set()
    assert merged_rows(store) == ROWS


@pytest.mark.parametrize("checks", [0, 1, 2])
def test_a_compactor_whose_claim_is_lost_stops(checks: int) -> None:
    """Before the first task, before the second, or before the commit."""
    store, registry = planned_table(), Registry()
    with pytest.raises(CommitConflictError, match="the claim was lost"):
        execute(COMPACTION, call_of(store), coordinator=Session(registry, checks_left=checks))
    assert registry == set()
    assert len(Table(store).pending_compactions()) == 1
    assert merged_rows(store) == ROWS
    assert execute(COMPACTION, call_of(store), coordinator=Session(registry)).instant
    assert merged_rows(store) == ROWS


def test_who_has_the_claim_knows_that_the_heartbeat_is_a_ghosts() -> None:
    """The session of the first ended; its heartbeat still beats, and would be believed for two minutes."""
    store, registry = planned_table(), Registry()
    first = Session(registry)
    claimed = claim_plan(COMPACTION, Table(store).view(), first)
    assert claimed is not None
    first.close()
    assert claim_plan(COMPACTION, Table(store).view(), TableCoordinator()) is None
    assert claim_plan(COMPACTION, Table(store).view(), Session(registry, name="of other hosts")) is None
    result = execute(COMPACTION, call_of(store), coordinator=Session(registry))
    assert "executed again a plan that process" in str(result)
    assert merged_rows(store) == ROWS
    claimed.end()
