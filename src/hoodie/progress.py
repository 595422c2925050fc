"""How far a write got: phases and finished tasks, for whoever listens. By default nobody does, and nothing is done.

A listener belongs to the thread (more exactly, the context) that opened it. Operations name their phases, engines count
the tasks of the phase; neither knows who listens. `PhaseTimes` adds up the seconds of each phase for the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """One report: `tasks_done` of `tasks_total` tasks of a phase; 0 of 0 when the phase begins or has no tasks."""

    phase: str
    tasks_done: int = 0
    tasks_total: int = 0


Listener = Callable[[Progress], None]

_listener: ContextVar[Listener | None] = ContextVar("hoodie_progress_listener", default=None)
_phase: ContextVar[str] = ContextVar("hoodie_progress_phase", default="")


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send the reports of every write in the body to the listener, in the thread that writes.

    >>> import hoodie, pyarrow as pa
    >>> from hoodie.progress import listening
    >>> rows = pa.table({"id": ["a", "b"]})
    >>> t = hoodie.create("memory://doc-progress", rows.schema, record_key="id")
    >>> phases = []
    >>> with listening(lambda report: phases.append(report.phase)):
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
    """Whether anybody listens: ask before work that only serves a report."""
    return _listener.get() is not None


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Name what the body does."""
    token = _phase.set(name)
    report(0, 0)
    try:
        yield
    finally:
        _phase.reset(token)


def report(tasks_done: int, tasks_total: int) -> None:
    """Tell the listener how many tasks of the current phase are done."""
    listener = _listener.get()
    if listener is not None:
        listener(Progress(_phase.get(), tasks_done, tasks_total))


class PhaseTimes:
    """Seconds by phase of an operation that begins now; `phases` are counted even if they never come."""

    def __init__(self, *phases: str) -> None:
        self._started = time.perf_counter()
        self._seconds = dict.fromkeys(phases, 0.0)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time of the body to a phase, and tell who listens that it began."""
        started = time.perf_counter()
        try:
            with phase(name):
                yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - started

    def seconds(self) -> dict[str, float]:
        """All phases and the total so far."""
        return {**self._seconds, "total": time.perf_counter() - self._started}
