from __future__ import annotations

from collections.abc import Callable

import pytest

from hoodie.storage import MemoryStore, Store, open_store
from tests.support.fault_store import Call, CrashError, CrashPoint, FaultStore


def write_some(store: Store) -> None:
    store.create("a", b"created")
    store.read("a")
    with store.open_output("b") as file:
        file.write(b"0123")
        file.write(b"4567")
    store.replace("a", b"replaced")
    store.list("")
    store.delete("a")
    store.delete_folder("p")


MUTATIONS = [
    Call("create", "a"),
    Call("open_output", "b"),
    Call("close_output", "b"),
    Call("replace", "a"),
    Call("delete", "a"),
    Call("delete_folder", "p"),
]


def left(store: Store) -> dict[str, bytes]:
    return {info.path: store.read(info.path) for info in store.list("", recursive=True)}


def test_a_dry_run_tells_the_calls() -> None:
    store = FaultStore(MemoryStore())
    write_some(store)
    assert store.calls == MUTATIONS
    every = FaultStore(MemoryStore(), count_reads=True)
    write_some(every)
    assert [call.operation for call in every.calls] == [
        "create", "read", "open_output", "close_output", "replace", "list", "delete", "delete_folder",
    ]  # fmt: skip


def test_renewals_by_a_thread_do_not_change_the_numbers_of_calls() -> None:
    store = FaultStore(MemoryStore(), 3, count_reads=True)
    store.create("lock", b"1")
    assert store.refresh("lock", b"1")
    store.read("lock")
    assert [call.operation for call in store.calls] == ["create", "read"]
    with pytest.raises(CrashError):
        store.read("lock")
    with pytest.raises(CrashError):
        store.refresh("lock", b"1")


@pytest.mark.parametrize(
    ("fail_at", "before", "after"),
    [
        (1, {}, {"a": b"created"}),
        (2, {"a": b"created"}, {"a": b"created", "b": b""}),
        (3, {"a": b"created", "b": b"0123"}, {"a": b"created", "b": b"01234567"}),
        (4, {"a": b"created", "b": b"01234567"}, {"a": b"replaced", "b": b"01234567"}),
        (5, {"a": b"replaced", "b": b"01234567"}, {"b": b"01234567"}),
        (6, {"b": b"01234567", "p/x": b""}, {"b": b"01234567"}),
    ],
)
def test_what_a_crash_leaves(fail_at: int, before: dict[str, bytes], after: dict[str, bytes]) -> None:
    for crash_point, expected in ((CrashPoint.BEFORE, before), (CrashPoint.AFTER, after)):
        inner = MemoryStore()
        if fail_at == 6:
            inner.create("p/x", b"")
        store = FaultStore(inner, fail_at, crash_point=crash_point)
        with pytest.raises(CrashError, match=f"call {fail_at}"):
            write_some(store)
        assert store.crashed
        assert left(inner) == expected
        assert store.calls == MUTATIONS[:fail_at]


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.list(""),
        lambda store: store.folders(""),
        lambda store: store.head("a"),
        lambda store: store.read("a"),
        lambda store: store.read_range("a", 0, 1),
        lambda store: store.open_input("a"),
        lambda store: store.create("z", b""),
        lambda store: store.open_output("z"),
    ],
)
def test_the_dead_do_nothing(call: Callable[[Store], object]) -> None:
    inner = MemoryStore()
    inner.create("a", b"1")
    store = FaultStore(inner, 1)
    with pytest.raises(CrashError):
        store.delete("a")
    with pytest.raises(CrashError):
        call(store)
    assert left(inner) == {"a": b"1"}


@pytest.mark.parametrize("crash_point", list(CrashPoint))
def test_a_writer_that_is_open_when_the_process_dies_leaves_half(crash_point: CrashPoint) -> None:
    inner = MemoryStore()
    store = FaultStore(inner, 2, crash_point=crash_point)
    file = store.open_output("b")
    file.write(b"01234567")
    with pytest.raises(CrashError):
        store.create("c", b"")
    with pytest.raises(CrashError):
        file.close()
    assert inner.read("b") == b"0123"


def test_reads_crash_when_counted() -> None:
    store = FaultStore(MemoryStore(), 2, count_reads=True)
    store.list("")
    with pytest.raises(CrashError):
        store.list("")


def test_workers_find_it_again() -> None:
    store = FaultStore(MemoryStore(), 1)
    spec = store.register()
    try:
        with pytest.raises(CrashError):
            open_store(spec).create("f", b"")
        assert store.crashed
    finally:
        store.unregister()
