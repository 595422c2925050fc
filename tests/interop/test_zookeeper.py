"""Compactors on several machines share plans through ZooKeeper: a real server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from hoodie.commit.call import Call
from hoodie.errors import CommitConflictError, LockTimeoutError
from hoodie.services.compaction.compaction import COMPACTION
from hoodie.services.planned.coordination import ZooKeeperCoordinator
from hoodie.services.planned.executor import execute
from hoodie.view.table_state import TableState
from tests.support.compactor_processes import (
    CITIES,
    instants_of,
    planned_table,
    start_and_kill_compactor,
    start_compactor,
)
from tests.support.merge_on_read import EngineThen, merged_rows
from tests.support.zookeeper_server import free_port, running_zookeeper


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of a ZooKeeper server."""
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as address:
        yield address


def test_three_compactors_do_each_plan_once_and_take_up_what_a_killed_one_left(tmp_path: Path, zookeeper: str) -> None:
    table, rows = planned_table(tmp_path / "table")
    plans = table.pending_compactions().instants
    start_and_kill_compactor(tmp_path / "table", zookeeper)
    compactors = [start_compactor(tmp_path / "table", zookeeper) for _ in range(3)]
    done = [instant for compactor in compactors for instant in instants_of(compactor)]
    assert len(set(done)) == len(done)
    assert len(done) >= len(CITIES) - 1
    # The session of the one that was killed ends by itself; until then nobody else has its claim.
    deadline = time.monotonic() + 60.0
    while len(table.pending_compactions()):
        assert time.monotonic() < deadline, "the plan of the killed compactor was not taken up"
        done += instants_of(start_compactor(tmp_path / "table", zookeeper))
    assert sorted(done) == plans
    assert merged_rows(table.view().store) == rows


def test_the_loss_of_the_session_stops_the_work(tmp_path: Path, zookeeper: str) -> None:
    table, rows = planned_table(tmp_path / "table")
    state = TableState(table.view().store)
    mine, other = (ZooKeeperCoordinator(zookeeper, session_seconds=2.0) for _ in range(2))
    instant = table.pending_compactions().instants[0]
    taken: list[str | None] = []

    def lose_session() -> None:
        _end_session(mine, zookeeper)
        # Another machine holds the claim now, so it knows that the heartbeat it sees is that of a ghost.
        taken.append(
            execute(COMPACTION, Call(state=TableState(table.view().store)), instant, coordinator=other).instant
        )

    engine = EngineThen(then=lose_session)
    with pytest.raises(CommitConflictError, match=r"ZooKeeper session ended|does not belong to this process"):
        execute(
            COMPACTION,
            Call(state=state, engine=engine, properties={"hoodie.python.local.bytes.max": "0"}),
            instant,
            coordinator=mine,
        )
    assert taken == [instant]
    assert merged_rows(table.view().store) == rows
    for coordinator in (mine, other):
        coordinator.close()


def test_a_claim_is_one_sessions_and_one_compactions(zookeeper: str) -> None:
    mine, other = (ZooKeeperCoordinator(zookeeper, "test/claims") for _ in range(2))
    claim = mine.claim("file:///table", "1")
    assert claim is not None
    assert mine.claim("file:///table/", "1") is None
    assert other.claim("file:///table", "1") is None
    second = other.claim("file:///table", "2")
    assert second is not None
    claim.ensure_held()
    claim.release()
    with pytest.raises(CommitConflictError, match="ZooKeeper session ended"):
        claim.ensure_held()
    taken = other.claim("file:///table", "1")
    assert taken is not None
    other.close()
    again = mine.claim("file:///table", "1")
    assert again is not None
    mine.close()


def test_a_server_that_is_not_there() -> None:
    absent = ZooKeeperCoordinator(f"127.0.0.1:{free_port()}", connect_seconds_max=0.5)
    with pytest.raises(LockTimeoutError, match="could not be reached"):
        absent.claim("file:///table", "1")


def _end_session(coordinator: ZooKeeperCoordinator, hosts: str) -> None:
    """End a session behind its owner's back: who knows its id and password may take it over and close it."""
    client = coordinator._client
    assert client is not None
    ghost = KazooClient(hosts, client_id=client.client_id)
    ghost.start()
    ghost.stop()
    ghost.close()
