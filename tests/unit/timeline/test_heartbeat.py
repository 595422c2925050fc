from __future__ import annotations

import gc
import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hoodie.errors import CommitConflictError, StorageError
from hoodie.storage import LocalStore, MemoryStore, process
from hoodie.timeline import Heartbeat, delete_heartbeat, forget_all, is_live
from hoodie.timeline.heartbeat import _elapsed_ms
from hoodie.timeline.owner import Renewal
from tests.support.fault_store import CrashError, FaultStore
from tests.unit.timeline.writers import HOSTILE, Undeletable, forbid_threads, on_another_machine, other_process

T = "20261121123441258"
FILE = f".hoodie/.heartbeat/{T}"


def wait_until_changed(store: MemoryStore, modified_ms: int) -> None:
    for _ in range(500):
        info = store.head(FILE)
        assert info is not None
        if info.modified_ms > modified_ms:
            return
        time.sleep(0.01)
    pytest.fail("no beat in five seconds")


def test_a_writer_is_alive_from_start_to_stop() -> None:
    store = MemoryStore()
    heartbeat = Heartbeat(store, T)
    assert not is_live(store, T)
    with heartbeat:
        assert is_live(store, T)
        # Our own writer does not depend on the clock.
        assert is_live(store, T, now_ms=10**15)
        heartbeat.ensure_fresh()
        assert json.loads(store.read(FILE))["pid"] > 0
    assert not is_live(store, T)
    assert store.head(FILE) is None
    heartbeat.stop()
    with pytest.raises(RuntimeError, match="before"):
        heartbeat.start()


def test_the_file_is_refreshed_and_does_not_come_back() -> None:
    store = MemoryStore()
    heartbeat = Heartbeat(store, T, interval_ms=5)
    heartbeat.start()
    info = store.head(FILE)
    assert info is not None
    wait_until_changed(store, info.modified_ms)
    (thread,) = (found for found in threading.enumerate() if found.name == f"heartbeat-{T}")
    heartbeat.stop()
    thread.join(timeout=30)
    assert not thread.is_alive()
    assert store.head(FILE) is None


def test_a_failing_store_does_not_end_it() -> None:
    class Flaky(MemoryStore):
        fails = False

        def replace(self, path: str, data: bytes) -> None:
            if self.fails:
                self.fails = False
                raise OSError("network")
            super().replace(path, data)

    store = Flaky()
    with Heartbeat(store, T, interval_ms=5):
        store.fails = True
        info = store.head(FILE)
        assert info is not None
        wait_until_changed(store, info.modified_ms)


def test_a_writer_whose_heart_stopped_must_not_commit() -> None:
    now = [1_000_000]
    heartbeat = Heartbeat(MemoryStore(), T, now_ms=lambda: now[0])
    with heartbeat:
        now[0] += 120_000
        heartbeat.ensure_fresh()
        now[0] += 1
        with pytest.raises(CommitConflictError, match="120001 ms"):
            heartbeat.ensure_fresh()


def test_a_writer_that_was_silent_for_too_long_is_dead_for_good() -> None:
    """Another writer that found the file old may be about to roll the instant back: a later beat hides that."""
    store, elapsed = MemoryStore(), [5]
    heartbeat = Heartbeat(store, T, now_ms=lambda: 1_000_000, elapsed_ms=lambda: elapsed[0])
    with heartbeat:
        elapsed[0] += 120_000
        assert heartbeat._pulse.beat()
        elapsed[0] += 120_001
        store.delete(FILE)
        assert not heartbeat._pulse.beat()
        assert store.head(FILE) is None
        with pytest.raises(CommitConflictError, match="120001 ms"):
            heartbeat.ensure_fresh()


def test_the_clock_of_a_heartbeat_runs_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC counts sleep, and `time.monotonic` does not."""
    monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: clock * 1_000_000)
    monkeypatch.setattr(time, "CLOCK_BOOTTIME", 7, raising=False)
    monkeypatch.setattr(time, "CLOCK_MONOTONIC", 6, raising=False)
    assert _elapsed_ms() == 7
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    assert _elapsed_ms() == 6
    monkeypatch.delattr(time, "CLOCK_MONOTONIC")
    assert _elapsed_ms() > 7


def test_a_failed_renewal_is_soon_repeated() -> None:
    waited = list[float]()

    class Stopped(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout or 0)
            return len(waited) > 3

    errors = [StorageError("no network"), None, None]

    def renew() -> bool:
        error = errors.pop(0)
        if error is not None:
            raise error
        return True

    Renewal(renew, monotonic=lambda: 5.0)._run(Stopped(), 60)
    assert waited == [60, 6, 60, 60]


def test_a_slow_renewal_does_not_end_the_heartbeat() -> None:
    """It counts from its start: a full pause after its end would make the writer silent for too long."""
    clock, waited = [0.0], list[float]()

    class Stopped(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout or 0)
            clock[0] += waited[-1]
            return len(waited) > 4

    class Slow(MemoryStore):
        def replace(self, path: str, data: bytes) -> None:
            clock[0] += 61 if clock[0] == 60 else 20
            super().replace(path, data)

    def ms() -> int:
        return round(clock[0] * 1000)

    heartbeat = Heartbeat(Slow(), T, now_ms=ms, elapsed_ms=ms)
    heartbeat._pulse._last_ms, heartbeat._pulse.was_written = (0, 0), True
    Renewal(heartbeat._pulse.beat, monotonic=lambda: clock[0])._run(Stopped(), 60)
    assert waited == [60, 1, 40, 40, 40]
    heartbeat.ensure_fresh()


def test_a_crashed_writer_is_dead_at_once() -> None:
    inner = MemoryStore()
    store = FaultStore(inner, 2)

    def write() -> None:
        with Heartbeat(store, T):
            assert is_live(inner, T)
            store.create("data", b"")

    with pytest.raises(CrashError):
        write()
    assert inner.head(FILE) is not None
    assert not is_live(inner, T)
    delete_heartbeat(inner, T)
    assert inner.head(FILE) is None


def test_a_writer_that_cannot_start_is_dead() -> None:
    with pytest.raises(CrashError):
        Heartbeat(FaultStore(MemoryStore(), 1), T).start()


def test_an_abandoned_writer_is_dead() -> None:
    store = MemoryStore()
    heartbeat = Heartbeat(store, T)
    heartbeat.start()
    assert is_live(store, T)
    del heartbeat
    gc.collect()
    assert store.head(FILE) is not None
    assert not is_live(store, T)


def test_forget_all_kills_the_writers_of_this_process() -> None:
    store = MemoryStore()
    heartbeat = Heartbeat(store, T)
    heartbeat.start()
    forget_all()
    assert not is_live(store, T)
    heartbeat.stop()


@pytest.mark.parametrize(
    "content", [b"", on_another_machine().to_bytes(), *HOSTILE], ids=lambda content: repr(content[:30])
)
def test_writers_elsewhere_live_by_the_age_of_their_file(content: bytes) -> None:
    store = MemoryStore(now_ms=lambda: 1_000_000)
    store.create(FILE, content)
    assert is_live(store, T, now_ms=1_000_000 + 120_000)
    assert not is_live(store, T, now_ms=1_000_000 + 120_001)
    assert not is_live(store, T, now_ms=1_000_000 + 31, interval_ms=10, tolerable_misses=3)


def test_a_killed_process_is_dead_at_once(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with other_process(tmp_path, f"beat = Heartbeat(store, '{T}')\nbeat.start()"):
        assert is_live(store, T)
        info = store.head(FILE)
        assert info is not None
        assert not is_live(store, T, now_ms=info.modified_ms + 120_001)
    assert store.head(FILE) is not None
    assert not is_live(store, T)


def test_a_writer_on_a_copy_of_this_machine_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """It wrote its file before this machine was started, but not longer ago than a running writer may have."""
    now_ms = 1_000_000_000
    monkeypatch.setattr(process, "installation_identity", lambda: "the image")
    writer = replace(on_another_machine(), machine="another-boot/pid:[1]", installation="the image")
    store = MemoryStore()
    store.create(FILE, writer.to_bytes())

    def lives(silent_ms: int, booted_ms: int) -> bool:
        monkeypatch.setattr(process, "boot_ms", lambda: now_ms - booted_ms)
        store.set_modified_ms(FILE, now_ms - silent_ms)
        return is_live(store, T, now_ms=now_ms)

    assert lives(silent_ms=70_000, booted_ms=20_000)
    assert lives(silent_ms=70_000, booted_ms=80_000)
    assert not lives(silent_ms=100_000, booted_ms=20_000)  # its last beat is too long ago: it ended with the reboot
    assert lives(silent_ms=100_000, booted_ms=110_000)


def test_a_heartbeat_whose_thread_cannot_start_is_not_left(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    heartbeat = Heartbeat(store, T)
    forbid_threads(monkeypatch)
    with pytest.raises(RuntimeError, match="new thread"):
        heartbeat.start()
    assert store.head(FILE) is None


def test_a_failed_stop_does_not_hide_the_first_error() -> None:
    with pytest.raises(KeyError), Heartbeat(Undeletable(), T):
        raise KeyError
    with pytest.raises(StorageError), Heartbeat(Undeletable(), T):
        pass


def test_the_metadata_table_has_its_own() -> None:
    store = MemoryStore()
    with Heartbeat(store, T, folder=".hoodie/metadata/.hoodie"):
        assert is_live(store, T, folder=".hoodie/metadata/.hoodie")
        assert not is_live(store, T)
