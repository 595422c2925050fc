"""Writers that meet in places where their keys, files or instants do not tell it: tables in memory, no record index."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pytest

from hoodie.commit.steps import Step, watching
from hoodie.errors import HoodieWarning, MissingFileError, RecordKeyError
from hoodie.files.markers import delete_markers
from hoodie.read.local import read_table
from hoodie.read.plan import ScanPlan
from hoodie.storage import Store
from hoodie.table import Table
from hoodie.timeline import InstantClock, TableLock
from hoodie.timeline.locks import in_process
from tests.support.steps import once_at
from tests.support.tables import PLAIN, TYPES, new_table, rows, values_of

ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}


def new_store(*data: pa.Table, kind: str = "copy_on_write", **properties: str) -> Store:
    table = new_table(PLAIN, *data, partition_by="city", type=kind, index="simple", properties=properties)
    return table.view().store


def shown(store: Store) -> list[tuple[str, int]]:
    return values_of(Table(store), "id", "ts")


def policy(name: str) -> dict[str, str]:
    return {"hoodie.datasource.insert.dup.policy": name}


@pytest.mark.parametrize("kind", TYPES)
def test_inserts_that_look_up_keys_do_not_store_one_key_twice(kind: str) -> None:
    store = new_store(kind=kind)

    def other() -> None:
        assert Table(store).insert(rows("a", ts=1), properties=policy("drop")).inserted == 1

    with once_at(Step.LOCATED, other):
        mine = Table(store).insert(rows("a", "b", ts=2), properties=policy("drop"))
    assert mine.inserted == 1
    assert mine.notes[0].startswith("retried once")
    assert shown(store) == [("a", 1), ("b", 2)]

    with once_at(Step.LOCATED, lambda: Table(store).upsert(rows("c", ts=3))), pytest.raises(RecordKeyError):
        Table(store).insert(rows("c", ts=4), properties=policy("fail"))
    with once_at(Step.LOCATED, lambda: Table(store).insert(rows("d", ts=5), properties=policy("fail"))):
        assert Table(store).upsert(rows("d", ts=6)).updated == 1
    assert shown(store) == [("a", 1), ("b", 2), ("c", 3), ("d", 6)]


def test_inserts_that_look_up_no_keys_do_not_conflict() -> None:
    store = new_store()
    with once_at(Step.LOCATED, lambda: Table(store).insert(rows("a", ts=1))):
        assert Table(store).insert(rows("a", ts=2)).notes == ()
    assert shown(store) == [("a", 1), ("a", 2)]


def test_the_time_of_an_undone_attempt_has_no_other_owner_until_the_undo_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store(rows("a"))
    began = InstantClock.__init__

    def behind(clock: InstantClock, *given: object) -> None:
        began(clock, *given, now_ms=lambda: time.time_ns() // 1_000_000 - 3_600_000)  # type: ignore[arg-type]

    monkeypatch.setattr(InstantClock, "__init__", behind)
    undone: list[str] = []
    others: list[str] = []
    written, go = threading.Event(), threading.Event()

    def other() -> None:
        def wait(step: Step) -> None:
            if step is Step.WRITTEN:
                written.set()
                go.wait(20)

        with watching(wait):
            others.append(Table(store).upsert(rows("b", city="la")).instant or "")

    thread = threading.Thread(target=other)

    def delete_when_another_writes(given: Store, instant_time: str) -> None:
        if not undone:
            undone.append(instant_time)
            thread.start()
            assert written.wait(20)
        delete_markers(given, instant_time)

    def fail(step: Step) -> None:
        if step is Step.WRITTEN:
            raise KeyError

    monkeypatch.setattr("hoodie.commit.pending.delete_markers", delete_when_another_writes)
    with watching(fail), pytest.raises(KeyError):
        Table(store).upsert(rows("a", ts=3))
    assert Table(store).upsert(rows("c", city="oslo")).notes == ()
    go.set()
    thread.join()
    assert others
    assert others != undone
    assert shown(store) == [("a", 1), ("b", 1), ("c", 1)]


@pytest.mark.parametrize("operation", ["update", "delete_where"])
def test_rows_whose_files_were_cleaned_are_read_again(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store(rows("a", "b"), **ONE_VERSION)
    called: list[ScanPlan] = []

    def late(plan: ScanPlan) -> pa.Table:
        if not called:
            called.append(plan)
            Table(store).upsert(rows("b", ts=5))
        return read_table(plan)

    monkeypatch.setattr("hoodie.merge_into.by_condition.read_table", late)
    monkeypatch.setattr("hoodie.read.local.read_table", late)
    table = Table(store)
    done = table.update({"ts": "ts + 1"}) if operation == "update" else table.delete_where("ts = 5")
    assert called
    assert done.notes[0].startswith("retried once")
    assert shown(store) == ([("a", 2), ("b", 6)] if operation == "update" else [("a", 1)])


def test_a_file_that_nobody_cleaned_is_damage() -> None:
    store = new_store(rows("a"))
    for info in store.list("", recursive=True):
        if info.name.endswith(".parquet"):
            store.delete(info.path)
    with pytest.raises(MissingFileError):
        Table(store).update({"ts": "ts + 1"})


def test_every_part_of_a_call_takes_the_lock_that_the_call_names(monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store(rows("a"), kind="merge_on_read")
    table = Table(store)
    taken: set[str] = set()
    acquire = TableLock.acquire

    def noted(lock: TableLock) -> None:
        acquire(lock)
        taken.add(lock._name)

    monkeypatch.setattr(TableLock, "acquire", noted)
    properties = {
        "hoodie.write.lock.provider": in_process.NAME,
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    }
    for number in range(5):
        table.upsert(rows("a", ts=number + 2), properties=properties)
    table.cluster(by="id", properties=properties)
    # The metadata table is built anew by a part of the write that does not know its options.
    store.delete_folder(".hoodie/metadata")
    with pytest.warns(HoodieWarning, match="the metadata table is missing"):
        table.upsert(rows("b"), properties=properties)
    assert taken == {in_process.NAME}
    table.upsert(rows("b"))
    assert len(taken) == 2
