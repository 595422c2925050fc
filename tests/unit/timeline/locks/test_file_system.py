from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hoodie.errors import CommitConflictError, LockTimeoutError
from hoodie.storage import LocalStore, MemoryStore, Store
from hoodie.storage.api import FileVersion
from hoodie.timeline import LockOptions, TableLock, forget_all
from hoodie.timeline.locks.file_system import FileSystemLock
from hoodie.timeline.locks.holder import Holder
from hoodie.timeline.locks.provider import LockSite
from hoodie.timeline.owner import Owner
from tests.support.disks import ForgetfulDisk
from tests.support.fault_store import CrashError, CrashPoint, FaultStore
from tests.unit.timeline.writers import Undeletable, forbid_threads, on_another_machine, other_process, take_turns

LOCK = ".hoodie/lock"


def impatient(store: Store, expire_ms: int = 0) -> TableLock:
    return TableLock(store, LockOptions(wait_ms_max=0, expire_ms=expire_ms))


def assert_free(store: Store) -> None:
    """The lock can be had at once, and afterwards nothing is left of it."""
    with impatient(store) as lock:
        assert lock.is_held
    assert store.head(LOCK) is None


def leave_a_dead_lock(store: Store) -> None:
    store.create(LOCK, Owner.new().to_bytes())  # a writer of this process that is not running


def test_one_at_a_time() -> None:
    store = MemoryStore()
    with impatient(store) as lock:
        assert lock.is_held
        with pytest.raises(LockTimeoutError, match=r"held by process \d+ on .*wait_time_ms above"):
            impatient(store).acquire()
        with pytest.raises(RuntimeError, match="already"):
            lock.acquire()
    assert not lock.is_held
    lock.release()
    assert_free(store)
    lock.acquire()
    lock.release()


def test_released_after_an_error() -> None:
    store = MemoryStore()
    with pytest.raises(KeyError), impatient(store):
        raise KeyError
    assert_free(store)


def test_a_failed_release_is_no_error_of_the_work_under_the_lock() -> None:
    store = Undeletable()
    with pytest.raises(CommitConflictError, match="first"), impatient(store):
        raise CommitConflictError("the first error")
    assert_free(MemoryStore(store.uri("").removeprefix("memory://")))
    with impatient(store):
        pass
    assert_free(MemoryStore(store.uri("").removeprefix("memory://")))
    lock = impatient(store)
    lock.acquire()
    assert lock.release(), "it was held, and ends as the lock of a dead writer"


def test_a_lock_whose_thread_cannot_start_is_not_left(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    with monkeypatch.context() as patch:
        forbid_threads(patch)
        with pytest.raises(RuntimeError, match="new thread"):
            impatient(store).acquire()
    assert store.head(LOCK) is None
    assert_free(store)


def test_a_lock_from_before_a_power_failure_is_never_empty(tmp_path: Path) -> None:
    """An empty lock file would count as the lock of a running JVM. The table is not durable."""
    root = tmp_path / "table"
    root.mkdir()
    disk = ForgetfulDisk(root)
    store = LocalStore(root, disk=disk)
    lost = 0
    with impatient(store):
        owner = Owner.new()
        store.create(f".hoodie/.locks/takeover-{owner.token}", owner.to_bytes())
        for seed in range(20):
            after = tmp_path / str(seed)
            disk.survivors(after, seed=seed, chance=0.5)
            left = [*after.glob(LOCK), *after.glob(".hoodie/.locks/takeover-*")]
            assert all(path.stat().st_size > 0 for path in left)
            lost += len(left) < 2
    assert 0 < lost < 20
    assert not [call for call in disk.calls if call.operation == "sync_folder"]


def test_it_waits_as_long_as_it_was_told() -> None:
    store = MemoryStore()
    store.create(LOCK, b"")
    slept: list[float] = []

    def refused(wanted: LockOptions) -> str:
        slept.clear()
        lock = TableLock(
            store,
            wanted,
            # `sum` rounds floats in another way from Python 3.12 on; whole milliseconds are exact.
            monotonic_ms=lambda: sum(round(1000 * one) for one in slept),
            sleep_seconds=slept.append,
        )
        with pytest.raises(LockTimeoutError) as caught:
            lock.acquire()
        return str(caught.value)

    assert "another writer" in refused(LockOptions(wait_ms_max=1_000))
    assert slept == pytest.approx([0.1, 0.2, 0.4, 0.3])
    assert "waited 6000 ms" in refused(LockOptions(wait_ms_max=6_000, retry_ms=1_000, retry_ms_max=16_000))
    assert slept == pytest.approx([1, 2, 3])
    refused(LockOptions(attempts_max=3))
    assert slept == pytest.approx([0.1, 0.2, 0.4])
    assert "waited 5300 ms" in refused(LockOptions(wait_ms_max=150, rounds=2, pause_ms=5_000))
    assert slept == pytest.approx([0.1, 0.05, 5, 0.1, 0.05])


def test_it_gets_the_lock_when_it_is_released() -> None:
    store = MemoryStore()
    holder = impatient(store)
    holder.acquire()
    with TableLock(store, sleep_seconds=lambda _: holder.release()) as lock:
        assert lock.is_held


def test_a_foreign_lock_is_waited_for_or_expires() -> None:
    for content in (b"", on_another_machine().to_bytes()):
        store = MemoryStore()
        store.create(LOCK, content)
        store.set_modified_ms(LOCK, 1_000_000)
        with pytest.raises(LockTimeoutError):
            impatient(store).acquire()
        with pytest.raises(LockTimeoutError):
            impatient(store, expire_ms=10**15).acquire()
        with impatient(store, expire_ms=60_000) as lock:
            assert lock.is_held
        assert store.list("", recursive=True) == []


def test_a_lock_of_this_process_does_not_expire() -> None:
    store = MemoryStore()
    with impatient(store):
        store.set_modified_ms(LOCK, 1_000_000)
        with pytest.raises(LockTimeoutError):
            impatient(store, expire_ms=1).acquire()


def test_release_leaves_the_lock_of_another() -> None:
    store = MemoryStore()
    lock = impatient(store)
    lock.acquire()
    store.replace(LOCK, b"")  # somebody thought that we were dead
    assert not lock.is_held
    lock.release()
    assert store.read(LOCK) == b""


def test_forget_all_frees_the_locks_of_this_process() -> None:
    store = MemoryStore()
    impatient(store).acquire()
    forget_all()
    assert_free(store)


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with other_process(tmp_path, "TableLock(store).acquire()"), pytest.raises(LockTimeoutError):
        impatient(store).acquire()
    assert_free(store)


@pytest.mark.parametrize("crash_point", list(CrashPoint))
@pytest.mark.parametrize("count_reads", [False, True])
@pytest.mark.parametrize("dead_lock", ["", "memory", "local"])
def test_a_holder_may_die_at_any_call(
    crash_point: CrashPoint, count_reads: bool, dead_lock: str, tmp_path: Path
) -> None:
    for fail_at in itertools.count(1):
        inner: Store = LocalStore(tmp_path / str(fail_at)) if dead_lock == "local" else MemoryStore()
        if dead_lock:
            leave_a_dead_lock(inner)
        store = FaultStore(inner, fail_at, count_reads=count_reads, crash_point=crash_point)
        with suppress(CrashError), impatient(store):
            pass
        if store.crashed:
            # The second contender finds what the first left: at worst a takeover file, which it must check first.
            TableLock(inner, LockOptions(wait_ms_max=1000, retry_ms=1)).acquire()
            continue
        assert fail_at > 2
        break


@pytest.mark.parametrize("is_local", [False, True])
def test_contenders_for_a_dead_lock_take_turns(is_local: bool, tmp_path: Path) -> None:
    store: Store = LocalStore(tmp_path) if is_local else MemoryStore()

    def die(lock: TableLock) -> None:
        assert lock._owner is not None
        lock._owner.forget()

    take_turns(lambda: TableLock(store, LockOptions(retry_ms=1)), end=die)


def test_a_slow_contender_does_not_remove_a_new_lock() -> None:
    store = MemoryStore()
    leave_a_dead_lock(store)
    slow = FileSystemLock(LockSite(store=store))
    seen = Holder.read(store, LOCK)
    assert seen is not None
    with impatient(store) as winner:
        slow._remove(LOCK, seen)
        assert winner.is_held
    assert store.list("", recursive=True) == []


@pytest.mark.parametrize("error", [FileExistsError, OSError])
def test_an_answer_that_gets_lost_blocks_nobody(error: type[OSError]) -> None:
    class Forgetful(MemoryStore):
        def create(self, path: str, data: bytes) -> None:
            super().create(path, data)
            raise error(path)

    store = Forgetful("test_lock_forgetful")
    if error is FileExistsError:
        with impatient(store) as lock:
            assert lock.is_held
    else:
        with pytest.raises(OSError, match="lock"):
            impatient(store).acquire()
    assert store.head(LOCK) is None


def test_the_takeover_leaves_the_lock_of_a_writer_that_came_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder was stopped for longer than its lease, and wakes up when another writer has found it dead."""

    class Waking(MemoryStore):
        wake: Callable[[], None] | None = None

        def replace_version(self, path: str, data: bytes, version: FileVersion | None) -> FileVersion | None:
            wake, self.wake = self.wake, None
            if wake is not None:
                wake()
            return super().replace_version(path, data, version)

    store = Waking()
    stopped, following = impatient(store), impatient(store)
    stopped.acquire()
    token = Owner.read(store, LOCK)
    assert token is not None

    def is_stopped(_lock: FileSystemLock, _path: str, holder: Holder) -> bool:
        return holder.identity == token.token

    monkeypatch.setattr(FileSystemLock, "may_remove", is_stopped)

    def wake() -> None:
        stopped.release()
        following.acquire()

    store.wake = wake
    with pytest.raises(LockTimeoutError):
        impatient(store).acquire()
    assert store.wake is None
    assert following.is_held
    following.release()
    assert_free(store)
