"""Locks of writers that nobody can see: leases, reboots, and lock files that are no lock files."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hoodie.errors import CommitConflictError, HoodieError, LockTimeoutError, StorageError
from hoodie.storage import LocalStore, MemoryStore, Store, UnsyncedError, process
from hoodie.timeline import LockOptions, TableLock
from hoodie.timeline.owner import Owner
from tests.unit.timeline.writers import HOSTILE, on_another_machine

LOCK = ".hoodie/lock"
LOCKS = ".hoodie/.locks"


def waiter(
    store: Store, *, wait_ms: int = 60_000, retry_ms: int = 100, between: Callable[[], object] = lambda: None
) -> TableLock:
    """A lock whose clock goes on only while it waits; `between` is called at each look."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds * 1000
        between()

    wanted = LockOptions(wait_ms_max=wait_ms, retry_ms=retry_ms, retry_ms_max=retry_ms)
    return TableLock(store, wanted, monotonic_ms=lambda: now[0], sleep_seconds=sleep)


def elsewhere(lease_ms: int = 30_000) -> Owner:
    return replace(on_another_machine(), lease_ms=lease_ms)


def test_the_lock_of_a_dead_writer_on_another_machine_ends_with_its_lease() -> None:
    store = MemoryStore(now_ms=lambda: 10**15)  # the change time of the file, by a clock that is wrong by far
    store.create(LOCK, elsewhere().to_bytes())
    with pytest.raises(LockTimeoutError, match=r"elsewhere.*lock ends after 30 s.*wait_time_ms"):
        waiter(store, wait_ms=29_000).acquire()
    with waiter(store) as lock:
        assert lock.is_held
    assert store.list("", recursive=True) == []


def test_a_lock_that_is_renewed_is_not_taken() -> None:
    times = itertools.count(1)
    store = MemoryStore(now_ms=lambda: next(times))
    content = elsewhere().to_bytes()
    store.create(LOCK, content)
    looks = itertools.count()

    def renew() -> None:
        if next(looks) % 250 == 0:  # every 25 of the 30 seconds
            assert store.refresh(LOCK, content)

    with pytest.raises(LockTimeoutError):
        waiter(store, wait_ms=600_000, between=renew).acquire()
    assert store.read(LOCK) == content


def test_a_waiter_that_was_stopped_itself_does_not_count_that_time() -> None:
    """The holder was perhaps stopped at the same time: a suspended machine, a frozen container."""
    store = MemoryStore()
    store.create(LOCK, elsewhere().to_bytes())
    now = [0.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        # The first sleep takes an hour: the machine was suspended.
        now[0] += seconds * 1000 if slept else 3_600_000
        slept.append(now[0])

    def lock(wait_ms: int) -> TableLock:
        now[0] = 0.0
        slept.clear()
        return TableLock(
            store, LockOptions(wait_ms_max=wait_ms, retry_ms_max=100), monotonic_ms=lambda: now[0], sleep_seconds=sleep
        )

    with pytest.raises(LockTimeoutError):
        lock(3_600_000 + 20_000).acquire()
    assert len(slept) > 100
    with lock(3_600_000 + 30_000) as held:
        assert held.is_held


@pytest.mark.parametrize("retry_ms", [100, 5_000, 15_000, 60_000])
def test_the_lock_of_a_dead_writer_ends_for_every_retry_interval(retry_ms: int) -> None:
    store = MemoryStore()
    store.create(LOCK, elsewhere().to_bytes())
    with waiter(store, retry_ms=retry_ms) as lock:
        assert lock.is_held


def test_failed_renewals_are_named_when_the_lock_is_lost() -> None:
    is_broken, renewed = threading.Event(), threading.Event()
    is_broken.set()

    class Refusing(MemoryStore):
        def refresh(self, path: str, expected: bytes) -> bool:
            renewed.set()
            if is_broken.is_set():
                raise StorageError("403 access is denied")
            return super().refresh(path, expected)

    def next_renewals() -> None:
        for _ in range(2):  # the result of the first is noted when the second begins
            renewed.clear()
            assert renewed.wait(5)

    store = Refusing()
    with TableLock(store, LockOptions(lease_ms=30)) as lock:
        next_renewals()
        ours = store.read(LOCK)
        store.replace(LOCK, elsewhere().to_bytes())
        with pytest.raises(CommitConflictError, match=r"renewals of the lock failed.*403 access is denied"):
            lock.ensure_held()
        store.replace(LOCK, ours)
        is_broken.clear()
        next_renewals()
        store.replace(LOCK, elsewhere().to_bytes())
        with pytest.raises(CommitConflictError, match="stopped for longer than its lease"):
            lock.ensure_held()


def test_a_holder_renews_its_lock(tmp_path: Path) -> None:
    for store in (MemoryStore(), LocalStore(tmp_path)):
        renewed = threading.Event()
        with TableLock(store, LockOptions(lease_ms=60)):
            first = store.head(LOCK)
            assert first is not None

            def changed(store: Store = store, first_ms: int = first.modified_ms) -> bool:
                info = store.head(LOCK)
                return info is not None and info.modified_ms > first_ms

            assert any(changed() or renewed.wait(0.01) for _ in range(500))
        assert store.head(LOCK) is None


def test_locks_of_earlier_releases_promise_no_renewal() -> None:
    store = MemoryStore()
    fields = json.loads(on_another_machine().to_bytes())
    del fields["installation"]
    store.create(LOCK, json.dumps(fields).encode())
    with pytest.raises(LockTimeoutError, match="delete the file"):
        waiter(store, wait_ms=600_000).acquire()


def test_a_lock_from_before_a_reboot_of_this_machine_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "boot_ms", lambda: 1_000_000)
    monkeypatch.setattr(process, "installation_identity", lambda: "this installation")
    before = replace(elsewhere(), machine="another-boot/pid:[1]", installation="this installation")
    assert before.ended_at_reboot(999_999, 15_000, 2_000_000)
    # A copy of this machine, which renewed its lock since; or which renews it, and this machine just started.
    assert not before.ended_at_reboot(1_000_000, 15_000, 2_000_000)
    assert not before.ended_at_reboot(999_999, 15_000, 1_014_999)
    assert before.ended_at_reboot(999_999, 15_000, 1_015_000)
    assert not replace(before, installation="").ended_at_reboot(999_999, 15_000, 2_000_000)
    assert not replace(before, installation="of another").ended_at_reboot(999_999, 15_000, 2_000_000)
    # A container on this machine: another process space of the same boot.
    boot = process.machine_identity().partition("/")[0]
    assert not replace(before, machine=f"{boot}/pid:[1]").ended_at_reboot(999_999, 15_000, 2_000_000)
    store = MemoryStore(now_ms=lambda: 999_999)
    store.create(LOCK, before.to_bytes())
    with waiter(store, wait_ms=0) as lock:
        assert lock.is_held


@pytest.mark.parametrize("content", [*HOSTILE, b"0" * 10_000_000], ids=lambda content: repr(content[:30]))
def test_hostile_locks_are_waited_for_and_named(content: bytes) -> None:
    store = MemoryStore()
    store.create(LOCK, content)
    with pytest.raises(LockTimeoutError, match=r"\.hoodie/lock is held by an unknown writer.*delete the file"):
        waiter(store, wait_ms=1000).acquire()
    store.set_modified_ms(LOCK, 1_000_000)
    with TableLock(store, LockOptions(wait_ms_max=0, expire_ms=60_000)) as lock:
        assert lock.is_held


def test_a_lock_that_is_a_folder_or_a_broken_link(tmp_path: Path) -> None:
    store, lock = LocalStore(tmp_path), tmp_path / LOCK
    lock.mkdir(parents=True)
    with pytest.raises(LockTimeoutError, match=r"/\.hoodie/lock: expected a lock file.*delete it"):
        waiter(store, wait_ms=2000).acquire()
    lock.rmdir()
    lock.symlink_to(tmp_path / "nothing")
    with pytest.raises(HoodieError, match=r"/\.hoodie/lock leads to nothing"):
        waiter(store, wait_ms=2000).acquire()


def test_takeovers_that_point_at_each_other_do_not_trap_a_writer(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    first, second = Owner.new(), Owner.new()  # of this process, not running
    store.create(LOCK, first.to_bytes())
    store.create(f"{LOCKS}/takeover-{first.token}", second.to_bytes())
    store.create(f"{LOCKS}/takeover-{second.token}", first.to_bytes())
    with pytest.raises(LockTimeoutError):
        waiter(store, wait_ms=500).acquire()


def test_the_next_holder_prevents_what_the_last_one_was_about_to_complete() -> None:
    """The holder is stopped at the last moment: after its check, before the file gets its name."""
    store = MemoryStore()
    last, following = waiter(store), waiter(store)
    last.acquire()

    class Stopped(MemoryStore):
        def move(self, source: str, target: str) -> None:
            store.delete(LOCK)
            with following:
                super().move(source, target)

    assert last._last is not None
    last._last = replace(last._last, store=Stopped(store.spec.uri.removeprefix("memory://")))
    with pytest.raises(CommitConflictError, match="not created"):
        last.create_last("completed", b"content")
    assert store.list("", recursive=True) == []


def test_who_lost_the_lock_creates_nothing() -> None:
    store = MemoryStore()
    with waiter(store) as lock:
        lock.create_last("first", b"1")
        lock.ensure_held()
        store.replace(LOCK, elsewhere().to_bytes())
        with pytest.raises(CommitConflictError, match="lock does not name this writer"):
            lock.create_last("second", b"2")
        with pytest.raises(CommitConflictError, match="run the operation again"):
            lock.ensure_held()
    assert [info.path for info in store.list("", recursive=True)] == [LOCK, "first"]
    assert store.read("first") == b"1"
    with pytest.raises(RuntimeError, match="not held"):
        lock.create_last("third", b"3")


def test_an_answer_that_got_lost_is_no_failure() -> None:
    class Retrying(MemoryStore):
        def move(self, source: str, target: str) -> None:
            super().move(source, target)
            super().move(source, target)

    store = Retrying()
    with waiter(store) as lock:
        lock.create_last("done", b"1")
    assert store.read("done") == b"1"


class Losing(MemoryStore):
    """A store whose `move` fails, before or after the step, and with it what `broken` names."""

    def __init__(self, error: Exception, *, is_done: bool, broken: str = "") -> None:
        super().__init__()
        self._error = error
        self._is_done = is_done
        self._broken = broken
        self._is_broken = False

    def move(self, source: str, target: str) -> None:
        if self._is_done:
            self.replace(target, self.read(source))
        self._is_broken = True
        raise self._error

    def read(self, path: str) -> bytes:
        if self._is_broken and "read" in self._broken:
            raise StorageError("no connection")
        return super().read(path)

    def delete(self, path: str) -> None:
        if self._is_broken and "delete" in self._broken and path != LOCK:
            raise StorageError("no connection")
        super().delete(path)


TIMEOUT = StorageError("the service did not answer in time")


@pytest.mark.parametrize("broken", ["", "delete"])
def test_a_last_step_whose_answer_is_lost_is_done(broken: str) -> None:
    store = Losing(TIMEOUT, is_done=True, broken=broken)
    with waiter(store) as lock:
        lock.create_last("done", b"1")
    assert store.read("done") == b"1"


def test_a_last_step_that_failed_left_nothing() -> None:
    store = Losing(TIMEOUT, is_done=False)
    with pytest.raises(StorageError, match="did not answer"), waiter(store) as lock:
        lock.create_last("done", b"1")
    assert store.list("", recursive=True) == []


@pytest.mark.parametrize(
    ("error", "is_done", "broken"),
    [
        (TIMEOUT, True, "read"),
        (TIMEOUT, False, "read"),
        (TIMEOUT, False, "delete"),  # the request may still be on its way
        (FileNotFoundError("gone"), False, "read"),
        (UnsyncedError("the folder cannot be synced"), True, ""),
    ],
)
def test_a_last_step_whose_outcome_is_not_known(error: Exception, is_done: bool, broken: str) -> None:
    store = Losing(error, is_done=is_done, broken=broken)
    with pytest.raises(CommitConflictError, match="outcome is not known") as caught, waiter(store) as lock:
        lock.create_last("done", b"1")
    assert caught.value.__cause__ is error
