"""A compactor beside the writer, as a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from hoodie.commit.call import Call
from hoodie.errors import CorruptFileError, InvalidConfigError
from hoodie.results import ServiceResult
from hoodie.services.compaction.compaction import compact_once
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.view.table_state import TableState
from tests.support.merge_on_read import merged_rows
from tests.support.tables import trips, trips_store

SECONDS_MAX = 30.0


def logged_table(deltas: int) -> MemoryStore:
    """A table whose only row was written so many times."""
    versions = [{"a": (number, "sf")} for number in range(deltas)]
    due = {"hoodie.compact.inline.max.delta.commits": "3"}
    return trips_store(*versions, table_type="merge_on_read", properties=due)


def lose_log(store: MemoryStore) -> Callable[[], None]:
    """Delete the first log file of `sf`; return what restores it."""
    (path, *_) = [info.path for info in store.list("city=sf") if ".log." in info.name]
    content = store.read(path)
    store.delete(path)
    return lambda: store.create(path, content)


def test_it_schedules_what_is_due_and_carries_out_what_is_pending() -> None:
    store = logged_table(2)
    call = Call(state=TableState(store))
    assert compact_once(call) == []
    Table(store).upsert(trips({"a": (9, "sf")}))
    assert compact_once(call, schedule=False) == []
    (result,) = compact_once(call)
    assert result.counts["log_files"] == 2
    assert merged_rows(store) == {"a": (9, "sf")}
    Table(store).upsert(trips({"a": (10, "sf")}))
    Table(store).schedule_compaction()
    assert len(compact_once(call, schedule=False)) == 1
    assert merged_rows(store) == {"a": (10, "sf")}


def test_a_thread_compacts_while_its_writer_goes_on() -> None:
    store = logged_table(1)
    done = threading.Event()
    reported: list[ServiceResult] = []

    def report(result: ServiceResult) -> None:
        reported.append(result)
        done.set()

    table = Table(store)
    with table.compactor(interval=0.05, report=report) as compactor:
        assert compactor.is_running
        for number in range(10, 20):
            table.upsert(trips({"a": (number, "sf"), f"b{number}": (number, "nyc")}))
        assert done.wait(SECONDS_MAX)
    assert not compactor.is_running
    assert compactor.results == reported
    assert compactor.last_error is None
    assert merged_rows(store) == {"a": (19, "sf")} | {f"b{number}": (number, "nyc") for number in range(10, 20)}
    assert table.index.verify().ok


def test_a_round_that_fails_does_not_end_it() -> None:
    store = logged_table(2)
    table = Table(store)
    table.schedule_compaction()
    restore = lose_log(store)
    failed, done = threading.Event(), threading.Event()
    compactor = table.compactor(
        interval=600, on_error=lambda error: failed.set(), report=lambda result: done.set()
    ).start()
    with compactor:
        assert failed.wait(SECONDS_MAX)
        assert isinstance(compactor.last_error, CorruptFileError)
        restore()
        compactor.wake()
        assert done.wait(SECONDS_MAX)
    assert merged_rows(store) == {"a": (1, "sf")}


def test_misuse() -> None:
    table = Table(logged_table(0))
    with pytest.raises(InvalidConfigError, match="interval"):
        table.compactor(interval=0)
    with table.compactor() as compactor, pytest.raises(InvalidConfigError, match="started before"):
        compactor.start()
