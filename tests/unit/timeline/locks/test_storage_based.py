"""The storage-based lock: the file of the JVM, byte by byte, and everything that can happen between two of its puts."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable

import obstore.store
import pytest

from hoodie.errors import CommitConflictError, InvalidConfigError, LockTimeoutError, StorageError, UnsupportedError
from hoodie.storage import FileVersion, LocalStore, MemoryStore, ObjectStore, Store, StoreSpec
from hoodie.timeline import LockOptions, TableLock
from hoodie.timeline.locks.provider import LockSite
from hoodie.timeline.locks.storage_based import NAME, StorageBasedLock
from hoodie.timeline.owner import Owner

PATH = ".hoodie/.locks/table_lock.json"
NOW = 1_700_000_000_000


class Clock:
    """A clock for both kinds of time; sleeping moves it."""

    def __init__(self) -> None:
        self.ms = NOW

    def __call__(self) -> int:
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


def lock_of(
    store: Store, clock: Clock | None = None, *, wait_ms: int = 0, settings: dict[str, str] | None = None
) -> TableLock:
    clock = clock or Clock()
    wanted = LockOptions(wait_ms_max=wait_ms, provider=NAME, settings=settings or {})
    return TableLock(store, wanted, now_ms=clock, monotonic_ms=clock, sleep_seconds=clock.sleep)


def content(store: Store) -> dict[str, object]:
    found = json.loads(store.read(PATH))
    assert isinstance(found, dict)
    return found


def of_a_jvm(valid_until_ms: int, *, expired: bool = False) -> bytes:
    return b'{"expired":%s,"validUntil":%d,"owner":"6f8b2d0e-3b7e-4b1c-9c59-1d7f4f2f9c11"}' % (
        str(expired).lower().encode(),
        valid_until_ms,
    )


@pytest.fixture(params=["memory", "objects"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        return MemoryStore()
    return ObjectStore(obstore.store.MemoryStore(), StoreSpec("s3://not/there"))


def test_the_file_is_that_of_the_jvm(store: Store) -> None:
    with lock_of(store) as lock:
        text = store.read(PATH).decode()
        owner = json.loads(text)["owner"]
        assert text == f'{{"expired":false,"validUntil":{NOW + 300_000},"owner":"{owner}"}}'
        assert str(uuid.UUID(owner)) == owner
        assert lock.is_held
        with pytest.raises(LockTimeoutError, match=rf"held by the writer {owner} until 2023.*ends in 300 s"):
            lock_of(store).acquire()
    assert store.read(PATH).decode() == text.replace("false", "true")
    assert not lock.is_held
    with lock_of(store):
        assert content(store)["owner"] != owner


def test_a_lock_of_a_jvm_is_waited_for_until_it_ends(store: Store) -> None:
    store.create(PATH, of_a_jvm(NOW + 10_000))
    clock = Clock()
    with pytest.raises(LockTimeoutError, match="6f8b2d0e"):
        lock_of(store, clock, wait_ms=10_400).acquire()
    assert clock.ms == NOW + 10_400
    with lock_of(store, clock, wait_ms=200) as lock:
        assert lock.is_held
        assert clock.ms > NOW + 10_500  # half a second for clocks that differ


def test_a_released_lock_of_a_jvm_is_free_at_once(store: Store) -> None:
    store.create(PATH, of_a_jvm(NOW + 300_000, expired=True))
    with lock_of(store) as lock:
        assert lock.is_held


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"[" * 4000,
        b'{"expired":0,"validUntil":1,"owner":"x"}',
        b'{"expired":true,"validUntil":true,"owner":""}',
        b'{"expired":true,"validUntil":1e400,"owner":"x"}',
        b'{"expired":true,"validUntil":1,"owner":"\\u0007"}',
    ],
)
def test_a_file_that_is_no_lock_is_not_overwritten(data: bytes) -> None:
    store = MemoryStore()
    store.create(PATH, data)
    with pytest.raises(LockTimeoutError, match="expected JSON with expired, validUntil and owner"):
        lock_of(store).acquire()
    assert store.read(PATH) == data


def test_a_writer_that_was_stopped_for_longer_than_the_validity(store: Store) -> None:
    clock = Clock()
    first, second = lock_of(store, clock), lock_of(store, clock)
    first.acquire()
    clock.ms += 300_501
    with second:
        assert not first.is_held
        with pytest.raises(CommitConflictError, match="stopped for longer than its lease"):
            first.create_last("done", b"1")
        assert store.list(".hoodie/.locks") == [store.head(PATH)]
        first.release()
        assert second.is_held
    assert store.head("done") is None


def test_a_validity_that_is_over_is_renewed_if_nobody_took_the_lock(store: Store) -> None:
    clock = Clock()
    with lock_of(store, clock) as lock:
        clock.ms += 400_000
        lock.create_last("done", b"1")
        assert content(store)["validUntil"] == clock.ms + 300_000
        with pytest.raises(LockTimeoutError):
            lock_of(store, clock).acquire()
    assert store.read("done") == b"1"


def test_the_next_holder_prevents_what_the_last_one_was_about_to_complete() -> None:
    """The holder is stopped at the last moment: after its check, before the file gets its name."""
    clock = Clock()

    class Stopped(MemoryStore):
        def move(self, source: str, target: str) -> None:
            clock.ms += 300_501
            with lock_of(MemoryStore("stopped-holder"), clock):
                super().move(source, target)

    with pytest.raises(CommitConflictError, match="not created"), lock_of(Stopped("stopped-holder"), clock) as lock:
        lock.create_last("done", b"1")
    assert MemoryStore("stopped-holder").head("done") is None


class Forgetful(MemoryStore):
    """Loses the answers to puts of the lock: it says that the file changed, as a client that repeated the put."""

    lose: Callable[[], bool] = staticmethod(lambda: False)

    def replace_version(self, path: str, data: bytes, version: FileVersion | None) -> FileVersion | None:
        written = super().replace_version(path, data, version)
        return None if self.lose() else written


@pytest.mark.parametrize("number", range(1, 5))
def test_answers_that_get_lost(number: int) -> None:
    store, clock, calls = Forgetful(), Clock(), 0

    def lose() -> bool:
        nonlocal calls
        calls += 1
        return calls == number

    store.lose = lose
    with lock_of(store, clock) as lock:
        assert lock.is_held
        provider = lock._provider
        assert lock._owner is not None
        assert provider.renew(lock._owner)
        assert lock.is_held
    assert calls >= 3
    assert content(store)["expired"] is True
    with lock_of(store):
        pass


def test_a_holder_renews_its_lock() -> None:
    store, clock = MemoryStore(), Clock()
    owner = Owner.new()
    provider = StorageBasedLock(LockSite(store=store, now_ms=clock))
    assert provider.renew_seconds == 30
    assert provider.take(owner) is None
    clock.ms += 250_000
    assert provider.renew(owner)
    assert content(store)["validUntil"] == clock.ms + 300_000
    store.replace(PATH, of_a_jvm(clock.ms + 1))
    assert not provider.renew(owner)
    assert not provider.is_held(owner)
    provider.give_back(owner)
    assert store.read(PATH) == of_a_jvm(clock.ms + 1)


def test_a_failed_put_leaves_no_lock() -> None:
    class Failing(MemoryStore):
        def replace_version(self, path: str, data: bytes, version: FileVersion | None) -> FileVersion | None:
            written = super().replace_version(path, data, version)
            if b"false" in data:
                raise StorageError("timeout")
            return written

    store = Failing()
    with pytest.raises(StorageError):
        lock_of(store).acquire()
    assert content(store)["expired"] is True


def test_refused_options(tmp_path: object) -> None:
    seconds = "hoodie.write.lock.storage.validity.timeout.secs"
    with pytest.raises(InvalidConfigError, match="at least 10, and 10 times"):
        lock_of(MemoryStore(), settings={seconds: "299"})
    lock_of(MemoryStore(), settings={seconds: "10", "hoodie.write.lock.storage.renew.interval.secs": "1"})
    with pytest.raises(UnsupportedError, match="expected an object store"):
        lock_of(LocalStore(str(tmp_path))).acquire()
