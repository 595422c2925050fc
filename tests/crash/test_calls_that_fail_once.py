"""One storage call fails and the program lives on: the write happened, or it is undone at once and leaves no trace."""

from __future__ import annotations

import pytest

from hoodie.errors import CommitConflictError
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline.locks.last_step import OUTCOME_NOT_KNOWN
from tests.crash.tables import (
    DEATHS_KEPT,
    Rows,
    Write,
    check_tidy,
    copy_of,
    new_table,
    rows_of,
    run_until,
    trips,
)
from tests.support.fault_store import CrashError, CrashPoint, FaultStore
from tests.support.samples import sample_numbers

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}
CHANGE: Rows = {"a": (2, "sf"), "x": (1, "la")}
WRITES: dict[str, tuple[Write, Rows]] = {
    "upsert": (lambda table: table.upsert(trips(CHANGE)), {**START, **CHANGE}),
    "insert_overwrite": (lambda table: table.insert_overwrite(trips(CHANGE)), {**CHANGE, "c": (1, "nyc")}),
}


class FailingOnce(FaultStore):
    """Fails at one call; all others go through."""

    def _dies_at(self, operation: str, path: str) -> bool:
        super()._dies_at(operation, path)
        self._crashed = False
        return len(self.calls) == self._fail_at


@pytest.fixture(scope="module")
def table() -> MemoryStore:
    store = MemoryStore()
    new_table(store)
    Table(store).upsert(trips(START))
    return store


@pytest.mark.parametrize(
    ("name", "point"),
    [("upsert", CrashPoint.BEFORE), ("upsert", CrashPoint.AFTER), ("insert_overwrite", CrashPoint.BEFORE)],
)
def test_a_call_that_fails(table: MemoryStore, name: str, point: CrashPoint) -> None:
    write, new = WRITES[name]
    count = len(run_until(copy_of(table), write, None).calls)
    for number in sample_numbers(range(1, count + 1), DEATHS_KEPT):
        store = copy_of(table)
        failing = FailingOnce(store, number, crash_point=point)
        failing.register()
        handle = Table(failing)
        told, says = True, ""
        try:
            write(handle)
        except (CrashError, CommitConflictError) as error:
            told, says = False, str(error)
        call = failing.calls[number - 1]
        found = rows_of(store)
        assert found == new if told else found in (START, new), f"after {call}: {found}"
        if not told and found == new:
            # A caller that is told "failed" writes again, and doubles what it inserts.
            assert OUTCOME_NOT_KNOWN in says, f"after {call}: {says}"
        reached_metadata = any("/metadata/" in made.path for made in failing.calls[:number])
        if not told and not reached_metadata and not call.path.endswith(".requested"):
            # Whether the requested file was ours is not known if the answer is lost: then the next writer decides.
            assert list(Table(store).timeline.pending()) == [], f"after {call}"
            assert found == START
        handle.upsert(trips({"z": (1, "sf")}))
        failing.unregister()
        assert rows_of(store) == {**found, "z": (1, "sf")}, f"after {call}"
        check_tidy(store)
