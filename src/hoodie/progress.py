"""Progress of a write: its phases and finished tasks, sent to a listener. Without a listener nothing is done.

A listener belongs to the thread (more exactly, to the context) that set it. Operations name their phases. Engines count
the tasks of a phase. `PhaseTimes` adds up the seconds of each phase for the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """One notification: `tasks_done` of `tasks_total` tasks of a phase are done.

    Both are 0 when the phase begins, and if it has no tasks.
    """

    phase: str
    tasks_done: int = 0
    tasks_total: int = 0


Listener = Callable[[Progress], None]

_listener: ContextVar[Listener | None] = ContextVar("hoodie_progress_listener", default=None)
_phase: ContextVar[str] = ContextVar("hoodie_progress_phase", default="")


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Notify the listener of the progress of every write in the body, in the thread that writes.

    >>> import hoodie, pyarrow as pa
    >>> from hoodie.progress import listening
    >>> rows = pa.table({"id": ["a", "b"]})
    >>> t = hoodie.create("memory://doc-progress", rows.schema, record_key="id")
    >>> phases = []
    >>> with listening(lambda progress: phases.append(progress.phase)):
    ...     inserted = t.upsert(rows).inserted
    >>> sorted(set(phases))
    ['commit', 'index', 'stage', 'tag', 'write']
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def is_heard() -> bool:
    """Return whether there is a listener. Call it before work that only a notification needs."""
    return _listener.get() is not None


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Set the current phase during the body, and notify the listener that the phase begins."""
    token = _phase.set(name)
    report(0, 0)
    try:
        yield
    finally:
        _phase.reset(token)


def report(tasks_done: int, tasks_total: int) -> None:
    """Notify the listener how many tasks of the current phase are done."""
    listener = _listener.get()
    if listener is not None:
        listener(Progress(_phase.get(), tasks_done, tasks_total))


class PhaseTimes:
    """Seconds by phase of an operation that begins now; `phases` are in the result even if they never begin."""

    def __init__(self, *phases: str) -> None:
        self._started = time.perf_counter()
        self._seconds = dict.fromkeys(phases, 0.0)
        self._inner = 0.0
        """Seconds of the phases inside of the phase that runs."""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the body, without the phases inside of it, to a phase, and notify the listener."""
        started, outer = time.perf_counter(), self._inner
        self._inner = 0.0
        try:
            with phase(name):
                yield
        finally:
            elapsed = time.perf_counter() - started
            self._seconds[name] = self._seconds.get(name, 0.0) + elapsed - self._inner
            self._inner = outer + elapsed

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each phase, and the total so far."""
        return {**self._seconds, "total": time.perf_counter() - self._started}
