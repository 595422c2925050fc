"""Blocking work of requests in threads: equal requests that run at once are computed once, a slow table waits alone."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

_THREADS: Final = 32
_THREADS_OF_A_TABLE: Final = 4


class Work:
    """Runs functions in threads, at most 4 of a table at once. For one event loop."""

    def __init__(self) -> None:
        """Start no thread yet."""
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="hoodie-ui")
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(_THREADS_OF_A_TABLE))
        self._running: dict[Hashable, asyncio.Task[Any]] = {}
        self._threads: set[Future[Any]] = set()
        self._changes: defaultdict[str, int] = defaultdict(int)

    @property
    def is_busy(self) -> bool:
        """Whether a function still runs in a thread, even if no request waits for it."""
        return bool(self._threads)

    def note_change(self, table_id: str) -> None:
        """Note that the table changed: later requests do not get what earlier ones began to compute."""
        self._changes[table_id] += 1

    async def run(self, table_id: str, request: Hashable, function: Callable[[], Any]) -> Any:
        """Return the result of the function, or of an equal request of the table that runs already."""
        key = (table_id, self._changes[table_id], request)
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.create_task(self._turn(table_id, function))

            def forget(done: asyncio.Task[Any]) -> None:
                del self._running[key]
                if not done.cancelled():
                    done.exception()  # It counts as seen, even if no request waits for it any more.

            task.add_done_callback(forget)
        return await asyncio.shield(task)

    async def _turn(self, table_id: str, function: Callable[[], Any]) -> Any:
        async with self._turns[table_id]:
            thread = self._pool.submit(function)
            self._threads.add(thread)
            thread.add_done_callback(self._threads.discard)
            return await asyncio.wrap_future(thread)

    def close(self) -> None:
        """Start nothing more, and wait for nothing."""
        self._pool.shutdown(wait=False, cancel_futures=True)
