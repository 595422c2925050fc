"""Blocking work of requests in threads: equal requests that run at once are computed once, a slow table waits alone."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

_THREADS: Final = 32
_THREADS_OF_A_TABLE: Final = 4
_THREADS_OF_DATA: Final = 2
DATA: Final = "data"
"""The kind of work that reads rows: one request may read a whole table."""


@dataclass(slots=True)
class _Job:
    """A function that waits for its turn or runs, and how many requests wait for it."""

    task: asyncio.Task[Any] = field(init=False)
    waiting: int = 0
    has_turn: bool = False


class Work:
    """Runs functions in threads, at most 4 of a table and kind at once, 2 of the kind `data`. For one event loop."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="hoodie-ui")
        self._turns: dict[tuple[str, str], asyncio.Semaphore] = {}
        self._jobs: dict[Hashable, _Job] = {}
        self._threads: set[Future[Any]] = set()
        self._changes: defaultdict[str, int] = defaultdict(int)

    @property
    def is_busy(self) -> bool:
        """Whether a function still runs in a thread, even if no request waits for it."""
        return bool(self._threads)

    def note_change(self, table_id: str) -> None:
        """Note that the table changed: later requests do not get what earlier ones began to compute."""
        self._changes[table_id] += 1

    async def run(self, table_id: str, request: Hashable, function: Callable[[], Any], kind: str = "") -> Any:
        """Return the result of the function, or of an equal request of the table that runs already.

        A function that still waits for its turn when the last such request is cancelled does not run.
        """
        key = (table_id, kind, self._changes[table_id], request)
        job = self._jobs.get(key)
        if job is None:
            most = _THREADS_OF_DATA if kind == DATA else _THREADS_OF_A_TABLE
            turns = self._turns.setdefault((table_id, kind), asyncio.Semaphore(most))
            job = self._jobs[key] = _Job()
            job.task = asyncio.create_task(self._turn(key, job, turns, function))
            # An error counts as seen, even if no request waits for it any more.
            job.task.add_done_callback(lambda done: done.cancelled() or done.exception())
        job.waiting += 1
        try:
            return await asyncio.shield(job.task)
        finally:
            job.waiting -= 1
            if not job.waiting and not job.has_turn:
                self._jobs.pop(key, None)
                job.task.cancel()

    async def _turn(self, key: Hashable, job: _Job, turns: asyncio.Semaphore, function: Callable[[], Any]) -> Any:
        async with turns:
            job.has_turn = True
            try:
                thread = self._pool.submit(function)
                self._threads.add(thread)
                thread.add_done_callback(self._threads.discard)
                return await asyncio.wrap_future(thread)
            finally:
                del self._jobs[key]

    def close(self) -> None:
        """Start nothing more, and wait for nothing."""
        self._pool.shutdown(wait=False, cancel_futures=True)
