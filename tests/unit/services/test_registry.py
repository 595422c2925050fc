"""What follows a committed write never takes its result away: every error becomes a note."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from hoodie.commit.call import Call
from hoodie.errors import StorageError
from hoodie.results import OnResult
from hoodie.services import registry
from hoodie.services.cleaning.clean import CLEAN
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.support.fault_store import FaultStore
from tests.support.tables import rows_of, trips, trips_store

COMPACTS = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}


def test_an_error_of_another_library_becomes_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(call: Call, report: OnResult) -> None:
        raise pa.ArrowInvalid("a damaged row group")

    broken = replace(CLEAN, is_due=lambda call, view: True, run=fail)
    others = (broken if service is CLEAN else service for service in registry.SERVICES)
    monkeypatch.setattr(registry, "SERVICES", tuple(others))
    done = Table(trips_store()).insert(trips({"a": (1, "sf")}))
    assert any("which is committed: a damaged row group" in note for found in done.services for note in found.notes)


class FailsFrom(FaultStore):
    """After the delta commit completed, every call from number `first` on fails."""

    def __init__(self, inner: MemoryStore, first: int) -> None:
        """Wrap the store."""
        super().__init__(inner, None, count_reads=True)
        self.first = first
        self.since: int | None = None
        self.failed = False

    def _dies_at(self, operation: str, path: str) -> bool:
        super()._dies_at(operation, path)
        if self.since is None:
            if operation == "delete" and path.startswith(".hoodie/.heartbeat/"):
                # The writer found its commit complete, and ends its heartbeat.
                self.since = 0
            return False
        self.since += 1
        if self.since >= self.first:
            self.failed = True
            raise StorageError(f"503 slow down: {operation} {path}")
        return False


def test_a_store_that_fails_after_the_commit_becomes_a_note() -> None:
    for first in (1, 3, 5, 9, 14, 22):
        store = trips_store({"a": (1, "sf")}, table_type="merge_on_read")
        failing = FailsFrom(store, first)
        failing.register()
        done = Table(failing).upsert(trips({"a": (2, "sf")}), properties=COMPACTS)
        failing.unregister()
        assert failing.failed
        assert done.updated == 1, first
        assert "committed: 503 slow down" in str(done), first
        assert rows_of(store) == {"a": (2, "sf")}
