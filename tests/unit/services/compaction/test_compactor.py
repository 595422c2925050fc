"""A compactor beside the writer, as a thread."""

from __future__ import annotations

import threading

import pytest

from hoodie.commit.call import Call
from hoodie.errors import CorruptFileError, InvalidConfigError
from hoodie.services.compaction.compaction import compact_once
from hoodie.services.results import ServiceResult
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.view.table_state import TableState
from tests.support.merge_on_read import Rows, merged_rows, new_table, trips

SECONDS_MAX = 30.0


def logged_table(deltas: int, **properties: str) -> tuple[MemoryStore, Rows]:
    store = new_table(properties={"hoodie.compact.inline.max.delta.commits": "3"})
    for number in range(deltas):
        Table(store).upsert(trips({"a": (number, "sf")}))
    return store, {"a": (deltas - 1, "sf")}


def test_it_schedules_what_is_due_and_carries_out_what_is_pending() -> None:
    store, rows = logged_table(2)
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
    assert rows != merged_rows(store)


def test_a_thread_compacts_while_its_writer_goes_on() -> None:
    store, _ = logged_table(1)
    done = threading.Event()
    reported: list[ServiceResult] = []

    def report(result: ServiceResult) -> None:
        reported.append(result)
        done.set()

    table = Table(store)
    with table.compactor(interval=0.05, report=report) as compactor:
        assert compactor.is_running
        for number in range(10, 30):
            table.upsert(trips({"a": (number, "sf"), f"b{number}": (number, "nyc")}))
        assert done.wait(SECONDS_MAX)
    assert not compactor.is_running
    assert compactor.results == reported
    assert compactor.last_error is None
    assert merged_rows(store) == {"a": (29, "sf")} | {f"b{number}": (number, "nyc") for number in range(10, 30)}
    assert table.index.verify().ok


def test_a_round_that_fails_does_not_end_it() -> None:
    store, rows = logged_table(2)
    table = Table(store)
    table.schedule_compaction()
    (log, *_) = [info for info in store.list("city=sf") if ".log." in info.name]
    content = store.read(log.path)
    store.delete(log.path)
    failed, done = threading.Event(), threading.Event()
    compactor = table.compactor(
        interval=600, on_error=lambda error: failed.set(), report=lambda result: done.set()
    ).start()
    with compactor:
        assert failed.wait(SECONDS_MAX)
        assert isinstance(compactor.last_error, CorruptFileError)
        store.create(log.path, content)
        compactor.wake()
        assert done.wait(SECONDS_MAX)
    assert merged_rows(store) == rows


def test_one_plan_that_fails_does_not_keep_the_others_from_being_done() -> None:
    store = new_table()
    table = Table(store)
    table.upsert(trips({"a": (1, "sf"), "c": (1, "nyc")}))
    table.upsert(trips({"a": (2, "sf")}))
    broken = table.schedule_compaction()
    table.upsert(trips({"c": (2, "nyc")}))
    whole = table.schedule_compaction()
    (log,) = [info for info in store.list("city=sf") if ".log." in info.name]
    content = store.read(log.path)
    store.delete(log.path)
    compactor = table.compactor()
    with pytest.raises(CorruptFileError):
        compactor.run_once()
    assert [result.instant for result in compactor.results] == [whole]
    assert table.pending_compactions().instants == [broken]
    store.create(log.path, content)
    compactor.run_once()
    assert merged_rows(store) == {"a": (2, "sf"), "c": (2, "nyc")}


def test_misuse() -> None:
    table = Table(new_table())
    with pytest.raises(InvalidConfigError, match="interval"):
        table.compactor(interval=0)
    with table.compactor() as compactor, pytest.raises(InvalidConfigError, match="started before"):
        compactor.start()
