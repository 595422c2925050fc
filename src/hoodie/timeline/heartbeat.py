"""Heartbeats: files by which other writers detect that a pending instant's writer still runs.

On-disk format: docs/format/table.md §10.3. The JVM checks only the age of the file and ignores its content. hoodie
stores the writer in the file, so that a writer that ended on this machine is detected at once (see `owner`).
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from hoodie.errors import CommitConflictError
from hoodie.storage import Store
from hoodie.timeline.layout import HOODIE_FOLDER
from hoodie.timeline.owner import Owner, Renewal, forget

INTERVAL_MS = 60_000
"""Default of `hoodie.client.heartbeat.interval_in_ms`."""

TOLERABLE_MISSES = 2
"""Default of `hoodie.client.heartbeat.tolerable.misses`."""


class Heartbeat:
    """Marks the writer of a pending instant as running from `start` to `stop`: a daemon thread refreshes the file.

    Use it as a context manager. The thread has no reference to this object and ends when the object is deleted without
    `stop`, so that an abandoned writer does not count as running for ever.
    """

    def __init__(
        self,
        store: Store,
        instant_time: str,
        *,
        interval_ms: int = INTERVAL_MS,
        tolerable_misses: int = TOLERABLE_MISSES,
        folder: str = HOODIE_FOLDER,
        now_ms: Callable[[], int] | None = None,
        elapsed_ms: Callable[[], int] | None = None,
    ) -> None:
        """Prepare the heartbeat; the file is first written by `start`.

        The clocks are arguments for tests: `now_ms` returns milliseconds since the epoch, `elapsed_ms` since any start.
        """
        self._owner = Owner.new()
        self._interval_ms = interval_ms
        self._valid_ms = interval_ms * tolerable_misses
        self._instant_time = instant_time
        path, content = heartbeat_path(instant_time, folder=folder), self._owner.to_bytes()
        self._pulse = _Pulse(store, path, content, self._valid_ms, now_ms or _now_ms, elapsed_ms or _elapsed_ms)
        self._renewal = Renewal(self._pulse.beat)
        weakref.finalize(self, forget, self._owner.token)

    def start(self) -> None:
        """Write the file and refresh it regularly. Call it after creating the requested file, before the inflight file.

        Raises: RuntimeError if this heartbeat was started before, or the thread that refreshes the file cannot start.
        """
        if self._pulse.was_written:
            raise RuntimeError(f"the heartbeat of {self._instant_time} was started before: create a new Heartbeat")
        stopped = self._owner.run()
        try:
            self._pulse.beat()
            self._renewal.start(f"heartbeat-{self._instant_time}", stopped, self._interval_ms / 1000)
        except BaseException:
            self._owner.forget()
            if self._pulse.was_written:
                with suppress(Exception):
                    self._pulse.end()
            raise

    def stop(self) -> None:
        """Delete the file. The writer counts as dead even if deleting fails. A second call is harmless."""
        self._owner.forget()
        self._pulse.end()

    def abandon(self) -> None:
        """End the heartbeat and keep the file: this process counts the writer as dead, others when the file is old.

        Makes no storage call, so it cannot fail.
        """
        self._owner.forget()

    def ensure_fresh(self) -> None:
        """Refuse to continue if other writers may count this writer as dead. Call it before completing the instant.

        Raises:
            CommitConflictError: the file was not refreshed for longer than other writers wait, now or once before:
                another writer that found it old may be about to roll the instant back.
        """
        silent_ms = self._pulse.silent_ms()
        if silent_ms > self._valid_ms:
            raise CommitConflictError(
                f"the heartbeat of {self._instant_time} was not refreshed for {silent_ms} ms; other writers roll the "
                f"instant back after {self._valid_ms} ms. Nothing was committed: run the write again. Last error: "
                f"{self._renewal.last_error!r}"
            )

    def __enter__(self) -> Heartbeat:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.stop()
        except Exception:
            # The user must see the first error.
            if kind is None:
                raise


def is_live(
    store: Store,
    instant_time: str,
    *,
    now_ms: int | None = None,
    interval_ms: int = INTERVAL_MS,
    tolerable_misses: int = TOLERABLE_MISSES,
    folder: str = HOODIE_FOLDER,
) -> bool:
    """Return whether the instant's writer (hoodie or JVM) runs; False if there is no heartbeat file.

    A writer of this process runs from `start` to `stop`. A writer whose process on this machine ended is dead. Any
    other writer counts as running while its file is at most `interval_ms * tolerable_misses` old at `now_ms` (epoch
    milliseconds, by default this machine's clock).
    """
    path = heartbeat_path(instant_time, folder=folder)
    info = store.head(path)
    if info is None:
        return False
    try:
        owner = Owner.read(store, path)
    except FileNotFoundError:
        return False
    running = None if owner is None else owner.is_running()
    if running is not None:
        return running
    now_ms = _now_ms() if now_ms is None else now_ms
    if owner is not None and owner.ended_at_reboot(info.modified_ms, interval_ms + interval_ms // 2, now_ms):
        return False
    return now_ms - info.modified_ms <= interval_ms * tolerable_misses


def delete_heartbeat(store: Store, instant_time: str, *, folder: str = HOODIE_FOLDER) -> None:
    """Delete the heartbeat file of a dead writer; call it after its instant was rolled back."""
    store.delete(heartbeat_path(instant_time, folder=folder))


def heartbeat_path(instant_time: str, *, folder: str = HOODIE_FOLDER) -> str:
    """Return the path of the instant's heartbeat file."""
    return f"{folder}/.heartbeat/{instant_time}"


@dataclass(slots=True, eq=False)
class _Pulse:
    """The heartbeat file; the `Heartbeat` object and the thread that refreshes the file share it."""

    store: Store
    path: str
    content: bytes
    valid_ms: int
    now_ms: Callable[[], int]
    """The clock that a machine shares with others. It counts pauses of a virtual machine, once it is set."""
    elapsed_ms: Callable[[], int]
    """The clock that cannot be set. It counts the time for which this machine was suspended."""
    was_written: bool = False
    _ended: bool = False
    _last_ms: tuple[int, int] = (0, 0)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def beat(self) -> bool:
        """Write the file and return True, unless the heartbeat is over.

        After `end`, a late refresh must not create the file again. A writer that found the file old may roll the
        instant back without a look at later refreshes.
        """
        with self._lock:
            now_ms = (self.now_ms(), self.elapsed_ms())
            is_over = self._ended or (self.was_written and now_ms[1] - self._last_ms[1] > self.valid_ms)
            if not is_over:
                # The time before the call: other writers count from the file's change time, which is later.
                self.store.replace(self.path, self.content)
                self._last_ms, self.was_written = now_ms, True
            return not is_over

    def silent_ms(self) -> int:
        """Return the milliseconds since the last refresh, by the clock that shows more of them."""
        now_ms, elapsed_ms = self._last_ms
        return max(self.now_ms() - now_ms, self.elapsed_ms() - elapsed_ms)

    def end(self) -> None:
        """Delete the file."""
        with self._lock:
            self._ended = True
            self.store.delete(self.path)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _elapsed_ms() -> int:
    # Where there is no CLOCK_BOOTTIME, as in macOS, CLOCK_MONOTONIC runs on in sleep, but `time.monotonic` may not.
    clock = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
    return (time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)) // 1_000_000
