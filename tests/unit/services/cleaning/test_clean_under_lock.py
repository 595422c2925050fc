"""A small clean that follows a write runs under the write's lock; whatever happens to it, the write is committed."""

from __future__ import annotations

import re
import time

import pytest

from hoodie.commit.pending import PendingInstant
from hoodie.engine import EngineFor
from hoodie.errors import CommitConflictError, StorageError
from hoodie.services.cleaning import clean, execution
from hoodie.services.cleaning.execution import FilesByPartition
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.write import outcome
from tests.support.cloud_store import CloudStore
from tests.support.fault_store import FaultStore
from tests.support.tables import rows_of, trips, trips_store

CLEANS = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1", "hoodie.archive.automatic": "false"}
OFF = {**CLEANS, "hoodie.clean.automatic": "false"}
NEW = trips({"a": (9, "sf")})


def store_with_old_slices() -> MemoryStore:
    store = trips_store({"a": (1, "sf")})
    for version in (2, 3):
        Table(store).upsert(trips({"a": (version, "sf")}), properties=OFF)
    return store


def locks(calls: FaultStore) -> int:
    """How often the lock was taken."""
    return sum(call.operation == "create" and call.path == ".hoodie/lock" for call in calls.calls)


def upserted(store: MemoryStore) -> tuple[FaultStore, list[str]]:
    watched = FaultStore(store)
    watched.register()
    try:
        done = Table(watched).upsert(NEW, properties=CLEANS)
    finally:
        watched.unregister()
    return watched, [service.operation for service in done.services]


def test_a_small_clean_takes_no_lock_of_its_own() -> None:
    store = store_with_old_slices()
    watched, services = upserted(store)
    assert (locks(watched), services) == (2, ["clean"])
    assert rows_of(store) == {"a": (9, "sf")}
    assert Table(store).verify(full=True).ok


@pytest.mark.parametrize("limit", ["_PARTITIONS_UNDER_LOCK_MAX", "_FILES_UNDER_LOCK_MAX"])
def test_a_large_clean_takes_a_lock_of_its_own(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_with_old_slices()
    monkeypatch.setattr(clean, limit, 0)
    watched, services = upserted(store)
    assert (locks(watched), services) == (4, ["clean"])


class Failing(FaultStore):
    """After the commit, every call fails from the first of an operation on a path with an ending."""

    operation, ending, has_failed = "", "", False

    def _dies_at(self, operation: str, path: str) -> bool:
        super()._dies_at(operation, path)
        self.has_failed |= operation == self.operation and path.endswith(self.ending)
        if self.has_failed:
            raise StorageError(f"503 slow down: {operation} {path}")
        return False


@pytest.mark.parametrize(
    ("operation", "ending"),
    [("create", ".clean.requested"), ("create", ".clean.inflight"), ("delete", ".parquet"), ("move", ".clean")],
)
def test_a_clean_that_fails_is_a_note_and_the_next_one_finishes_it(operation: str, ending: str) -> None:
    store = store_with_old_slices()
    failing = Failing(store, None, count_reads=True)
    failing.operation, failing.ending = operation, ending
    failing.register()
    done = Table(failing).upsert(NEW, properties=CLEANS)
    failing.unregister()
    assert failing.has_failed
    assert "committed: 503 slow down" in str(done)
    assert rows_of(store) == {"a": (9, "sf")}
    Table(store).clean(properties=CLEANS)
    assert not Table(store).timeline.pending().instants
    assert Table(store).verify(full=True).ok


def test_a_lock_that_was_taken_over_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_with_old_slices()
    delete, lock = execution.delete_files, ".hoodie/lock"

    def stopped(pending: PendingInstant, files: FilesByPartition, engine_for: EngineFor) -> None:
        """The process is stopped after its last request, for longer than its lease and its heartbeat."""
        delete(pending, files, engine_for)
        time.sleep(0.05)  # the look at the lock that was asked for ahead is answered
        store.replace(lock, re.sub(rb"[0-9a-f]{32}", b"0" * 32, store.read(lock)))
        assert pending.heartbeat is not None
        monkeypatch.setattr(pending.heartbeat, "ensure_fresh", lost)

    def lost() -> None:
        raise CommitConflictError("the heartbeat is old")

    monkeypatch.setattr(clean, "delete_files", stopped)
    cloud = CloudStore(store, seed="overtaken")
    cloud.register()
    monkeypatch.setattr(outcome, "run_after_write", lambda *_, **__: [])
    done = Table(cloud).upsert(NEW, properties=CLEANS)
    cloud.unregister()
    assert (done.services, store.head(lock) is not None) == ((), True)


def test_a_service_that_fails_before_the_clean_is_named_once() -> None:
    store = store_with_old_slices()
    expires = {"hoodie.partition.ttl.inline": "true", "hoodie.partition.ttl.strategy.days.retain": "999999999"}
    done = Table(store).upsert(NEW, properties={**CLEANS, **expires})
    assert [service.operation for service in done.services] == ["ttl", "clean"]
    assert str(done).count("failed after this write") == 1
