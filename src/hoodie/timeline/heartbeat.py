"""Heartbeats: how other writers know that a pending instant's writer is alive.

On-disk format: docs/format/table.md §10.3. The JVM goes by the age of the file alone, whatever it holds. Ours says
who writes, so that a writer that died on this machine is known to be dead at once (see `owner`).
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType

from hoodie.errors import CommitConflictError
from hoodie.storage import Store
from hoodie.timeline.layout import HOODIE_FOLDER
from hoodie.timeline.owner import Owner, forget

INTERVAL_MS = 60_000
"""Default of `hoodie.client.heartbeat.interval_in_ms`."""

TOLERABLE_MISSES = 2
"""Default of `hoodie.client.heartbeat.tolerable.misses`."""


class Heartbeat:
    """Keeps a pending instant alive from `start` to `stop`: a daemon thread refreshes its file.

    Use it as a context manager. It also ends when the object is dropped without `stop`: the thread holds no
    reference to it, so a writer that was abandoned does not live for ever.
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
    ) -> None:
        """Nothing beats before `start`."""
        self._owner = Owner.new()
        self._interval_ms = interval_ms
        self._valid_ms = interval_ms * tolerable_misses
        self._instant_time = instant_time
        self._now_ms = now_ms or _now_ms
        self._pulse = _Pulse(store, heartbeat_path(instant_time, folder=folder), self._owner.to_bytes(), self._now_ms)
        weakref.finalize(self, forget, self._owner.token)

    def start(self) -> None:
        """Write the file and keep it fresh. Call it after the requested file exists, before the inflight one does.

        Raises:
            RuntimeError: it was started before.
        """
        if self._pulse.last_ms:
            raise RuntimeError(f"the heartbeat of {self._instant_time} was started before: make a new one")
        stopped = self._owner.run()
        try:
            self._pulse.beat()
        except BaseException:
            self._owner.forget()
            raise
        threading.Thread(
            target=_keep_beating,
            args=(self._pulse, stopped, self._interval_ms / 1000),
            name=f"heartbeat-{self._instant_time}",
            daemon=True,
        ).start()

    def stop(self) -> None:
        """End it: dead from here on, even if deleting the file fails. A second call does no harm."""
        self._owner.forget()
        self._pulse.end()

    def ensure_fresh(self) -> None:
        """Refuse to go on if other writers may have declared this one dead. Call it before completing the instant.

        Raises:
            CommitConflictError: the file could not be refreshed for longer than others wait.
        """
        silent_ms = self._now_ms() - self._pulse.last_ms
        if silent_ms > self._valid_ms:
            raise CommitConflictError(
                f"the heartbeat of {self._instant_time} was silent for {silent_ms} ms, others wait {self._valid_ms} "
                f"ms before they roll the instant back; nothing was committed, try again. Last error: "
                f"{self._pulse.last_error!r}"
            )

    def __enter__(self) -> Heartbeat:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def is_live(
    store: Store,
    instant_time: str,
    *,
    now_ms: int | None = None,
    interval_ms: int = INTERVAL_MS,
    tolerable_misses: int = TOLERABLE_MISSES,
    folder: str = HOODIE_FOLDER,
) -> bool:
    """Whether the instant's writer is alive, ours or a JVM's; without a heartbeat file it is not.

    A writer of this process is alive from `start` to `stop`. One whose process on this machine ended is dead. All
    others are alive while their file is at most `interval_ms * tolerable_misses` old at `now_ms` (epoch
    milliseconds, by default this machine's clock).
    """
    path = heartbeat_path(instant_time, folder=folder)
    info = store.head(path)
    if info is None:
        return False
    try:
        owner = Owner.parse(store.read(path))
    except FileNotFoundError:
        return False
    running = None if owner is None else owner.is_running()
    if running is not None:
        return running
    return (_now_ms() if now_ms is None else now_ms) - info.modified_ms <= interval_ms * tolerable_misses


def delete_heartbeat(store: Store, instant_time: str, *, folder: str = HOODIE_FOLDER) -> None:
    """Delete what a dead writer left; call it when its instant was rolled back."""
    store.delete(heartbeat_path(instant_time, folder=folder))


def heartbeat_path(instant_time: str, *, folder: str = HOODIE_FOLDER) -> str:
    """Path of the instant's heartbeat file."""
    return f"{folder}/.heartbeat/{instant_time}"


class _Pulse:
    """The file, shared by the object that users hold and the thread that refreshes it."""

    def __init__(self, store: Store, path: str, content: bytes, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._path = path
        self._content = content
        self._now_ms = now_ms
        self._ended = False
        self._lock = threading.Lock()
        self.last_ms = 0
        self.last_error: Exception | None = None

    def beat(self) -> None:
        """Write the file, unless it ended: a beat that is late must not bring the file back."""
        with self._lock:
            if not self._ended:
                # The time before the call: others count from when the store received it, which is later.
                now_ms = self._now_ms()
                self._store.replace(self._path, self._content)
                self.last_ms = now_ms

    def end(self) -> None:
        """Delete the file."""
        with self._lock:
            self._ended = True
            self._store.delete(self._path)


def _keep_beating(pulse: _Pulse, stopped: threading.Event, interval_seconds: float) -> None:
    while not stopped.wait(interval_seconds):
        try:
            pulse.beat()
        except Exception as error:
            # One missed beat is none; after too many, others may take the instant and `ensure_fresh` says so.
            pulse.last_error = error


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
