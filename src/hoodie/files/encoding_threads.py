"""Threads that encode row groups of several base files while one thread goes on reading and preparing rows."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Semaphore
from typing import TypeVar

T = TypeVar("T")


class EncodingThreads:
    """Runs calls on `count` threads; at most one more than that waits, which bounds the row groups in memory.

    A context manager: at its end it waits for all calls.

    >>> with EncodingThreads(2) as threads:
    ...     found = [threads.submit(lambda number=number: number + 1) for number in range(3)]
    >>> [one.result() for one in found]
    [1, 2, 3]
    """

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="hoodie-encode")
        self._room = Semaphore(count + 1)

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Begin a call as soon as fewer than `count + 1` others are not done."""
        self._room.acquire()
        future = self._pool.submit(call)
        future.add_done_callback(lambda _: self._room.release())
        return future

    def __enter__(self) -> EncodingThreads:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()
