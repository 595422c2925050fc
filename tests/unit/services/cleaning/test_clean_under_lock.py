"""A small clean that follows a write runs under the write's lock; whatever happens to it, the write is committed."""

from __future__ import annotations

import pytest

from hoodie.errors import StorageError
from hoodie.services.cleaning import clean
from hoodie.storage import MemoryStore
from hoodie.table import Table
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
