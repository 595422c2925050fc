"""Requests that run together, and answers that are asked for ahead."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import nullcontext
from functools import partial

import pytest

from hoodie.errors import CommitConflictError, StorageError
from hoodie.storage import (
    MemoryStore,
    Sending,
    Started,
    ask,
    asking_ahead,
    forget_answers,
    later,
    settle,
    together,
    waves,
)
from hoodie.storage.waves import UNORDERED, taking_unordered
from hoodie.table import Table
from hoodie.timeline import TableLock
from tests.support.cloud_store import CloudStore
from tests.support.tables import rows_of, trips, trips_store


def cloud(inner: MemoryStore | None = None) -> CloudStore:
    return CloudStore(inner or MemoryStore(), seed="waves")


def fails() -> None:
    raise StorageError("busy")


def test_calls_run_at_the_same_time_in_an_object_store_only() -> None:
    both = threading.Barrier(2, timeout=10)
    assert together(cloud(), both.wait, lambda: both.wait() * 0)[1] == 0
    order: list[int] = []
    together(MemoryStore(), lambda: order.append(1), lambda: order.append(2))
    assert order == [1, 2]


def test_all_calls_end_before_the_error_of_the_first_is_raised() -> None:
    done: list[str] = []
    with pytest.raises(StorageError, match="busy"):
        together(cloud(), lambda: done.append("first"), fails, lambda: done.append("last"))
    assert sorted(done) == ["first", "last"]
    done.clear()
    with pytest.raises(StorageError, match="busy"):
        send_all(fails, lambda: done.append("sent"))
    assert done == ["sent"]


def send_all(*calls: Callable[[], None]) -> None:
    with Sending(cloud()) as sending:
        for call in calls:
            sending.send(call)


def test_results_are_in_the_order_of_the_calls() -> None:
    for store in (cloud(), MemoryStore()):
        with Sending(store) as sending:
            for number in range(40):
                sending.send(partial(int, number))
        assert sending.results == list(range(40))


def test_started_calls_run_once() -> None:
    for store in (cloud(), MemoryStore()):
        done: list[int] = []
        started = Started(store, partial(done.append, 1))
        started.finish()
        started.finish()
        assert done == [1]
    never: list[int] = []
    Started(MemoryStore(), lambda: never.append(1)).drop()
    assert never == []


def test_an_answer_is_taken_once_and_is_as_old_as_the_request() -> None:
    store, other = cloud(), MemoryStore()
    store.replace("f/a", b"1")
    with asking_ahead():
        ask(store, ("read", "f/a"), ("list", "f"))
        ask(other, ("list", "f"))
        wait_for_answers()
        store.inner.replace("f/a", b"22")
        assert store.read("f/a") == b"1"
        assert store.read("f/a") == b"22"
        assert [info.size_bytes for info in store.list("f")] == [1]
        assert [info.size_bytes for info in store.list("f")] == [2]
        ask(store, ("read", "f/a"))
        wait_for_answers()
        store.inner.replace("f/a", b"333")
        forget_answers()
        assert store.read("f/a") == b"333"
        ask(store, ("read", "f/a"))
        wait_for_answers()
    store.inner.replace("f/a", b"4444")
    assert store.read("f/a") == b"4444", "answers end with the operation"


def wait_for_answers() -> None:
    """Wait until the requests that were sent are answered."""
    assert waves._local.answers is not None
    wait([answer for asked in waves._local.answers._asked.values() for _, answer in asked])


def test_a_change_forgets_the_answers_about_it() -> None:
    store = cloud()
    store.replace("f/a", b"1")
    store.replace("g/a", b"1")
    with asking_ahead():
        ask(store, ("read", "f/a"), ("list", "f"), ("list_all", ""), ("head", "g/a"), ("range 0 9", "f/a"))
        store.replace("f/a", b"22")
        assert store.read("f/a") == b"22"
        assert store.read_range("f/a", 0, 9) == b"22"
        assert store.list("f")[0].size_bytes == 2
        assert store.list("", recursive=True)[0].size_bytes == 2
        store.inner.replace("g/a", b"22")
        found = store.head("g/a")
        assert found is not None
        assert found.size_bytes == 1, "another folder"


def test_an_error_comes_where_the_answer_is_taken() -> None:
    store = cloud()
    with asking_ahead():
        ask(store, ("read", "none"))
        with pytest.raises(FileNotFoundError):
            store.read("none")


def test_an_unordered_answer_is_only_for_who_checks_it() -> None:
    store = cloud()
    store.replace("f/a", b"1")
    with asking_ahead():
        ask(store, (f"{UNORDERED}list", "f"))
        wait_for_answers()
        store.inner.replace("f/a", b"22")
        assert store.list("f")[0].size_bytes == 2
        with taking_unordered() as taken:
            assert store.list("f")[0].size_bytes == 1
        assert taken == ["f"]
        with taking_unordered() as taken:
            assert store.list("f")[0].size_bytes == 2
        assert taken == []


def test_answers_from_before_the_lock_are_not_used_under_it() -> None:
    store = cloud()
    store.replace(".hoodie/hoodie.properties", b"1")
    with asking_ahead():
        ask(store, ("read", ".hoodie/hoodie.properties"))
        wait_for_answers()
        store.inner.replace(".hoodie/hoodie.properties", b"22")
        with TableLock(store, ahead=[("list", "f")]):
            assert store.read(".hoodie/hoodie.properties") == b"22"
        with TableLock(store):
            pass
    assert store.inner.head(".hoodie/lock") is None, "released in the background, and waited for"


@pytest.mark.parametrize("is_lost", [False, True])
def test_two_last_steps_of_the_same_content_have_two_looks_at_the_lock(is_lost: bool) -> None:
    store = cloud()
    with asking_ahead(), TableLock(store) as lock:
        for _ in range(2):
            lock.prepare(b"same")
        lock.ask_if_held(b"same")
        prepared = store.inner.list(".hoodie/.locks")
        assert len(prepared) == 2
        lock.ask_if_held(b"same")
        wait_for_answers()
        if is_lost:  # the next holder deletes what was prepared, after both looks
            store.inner.delete(".hoodie/lock")
            store.inner.delete_all([info.path for info in prepared])
        for path in ("a", "b"):
            with pytest.raises(CommitConflictError, match="took over") if is_lost else nullcontext():
                lock.create_last(path, b"same")
    assert [info.path for info in store.inner.list("", recursive=True)] == ([] if is_lost else ["a", "b"])


def test_later_is_done_at_the_end_of_the_operation() -> None:
    store, done = cloud(), threading.Event()
    with asking_ahead():
        later(store, fails)
        later(store, done.set)
    assert done.is_set()
    done.clear()
    later(store, done.set)
    settle()
    assert done.is_set()


@pytest.mark.parametrize("ask_late", [True, False])
def test_a_read_whose_answers_came_in_another_order_finds_all_rows(
    ask_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit completes between two answers of one wave: those about the metadata table are older, or newer."""
    inner = trips_store({"a": (1, "sf")})
    store = cloud(inner)
    reader = Table(store)
    store.register()
    assert reader.to_arrow().num_rows == 1
    answered, request = CloudStore._request, list[str]()

    def overtaken(self: CloudStore, kind: str, path: str) -> object:
        is_metadata = path.startswith(".hoodie/metadata")
        if is_metadata is not ask_late and not request and kind == "list":
            found = answered(self, kind, path)
            request.append(path)
            Table(inner).upsert(trips({"b": (1, "sf")}))
            return found
        return answered(self, kind, path)

    monkeypatch.setattr(CloudStore, "_request", overtaken)
    found = {row["id"] for row in reader.to_arrow().to_pylist()}
    assert request
    assert found in ({"a"}, {"a", "b"})
    monkeypatch.undo()
    assert rows_of(inner) == {"a": (1, "sf"), "b": (1, "sf")}
    store.unregister()


def test_two_last_steps_under_one_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that the first one prepared is deleted beside the second one, which prepares the same bytes."""
    store, slowly = cloud(), CloudStore.delete

    def late(self: CloudStore, path: str) -> None:
        time.sleep(0.05)
        slowly(self, path)

    monkeypatch.setattr(CloudStore, "delete", late)
    with asking_ahead(), TableLock(store) as lock:
        for name in ("first", "second", "third"):
            lock.prepare(b"same")
            lock.create_last(name, b"same")
        lock.create_last("fourth", b"same")
    assert {info.path for info in store.inner.list("", recursive=True)} == {"first", "second", "third", "fourth"}


def test_calls_run_after_the_last_thread_could_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor.submit", refuse)
    assert together(cloud(), lambda: 1, lambda: 2) == [1, 2]
    with pytest.raises(StorageError):
        together(cloud(), lambda: 1, fails)
