"""Streams that threads of this process read ahead of their consumer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import Final, Generic, TypeVar

T = TypeVar("T")
_WAIT_SECONDS: Final = 0.1
"""How long a thread waits for room before it looks whether the consumer is gone."""


def ahead(streams: Iterable[Callable[[], Iterator[T]]], *, threads: int, waiting: int) -> Iterator[T]:
    """Yield the items of all streams, in the order in which threads read them.

    Args:
        streams: functions that begin a stream; a thread calls one, reads it to its end, and takes the next one.
        threads: how many streams are read at once, at least 1.
        waiting: how many items wait for the consumer at most.

    The threads end with the iterator: at its end, at an error, and when it is closed.

    Memory: `waiting` items, and one of each thread. Raises: the first error of a stream.

    >>> sorted(ahead([lambda: iter("ab"), lambda: iter("c")], threads=2, waiting=1))
    ['a', 'b', 'c']
    """
    work = _Work(iter(streams), Queue(waiting))
    readers = [threading.Thread(target=work.run, daemon=True, name="hoodie-read-ahead") for _ in range(threads)]
    for reader in readers:
        reader.start()
    running = threads
    try:
        while running:
            found = work.queue.get()
            if found is None:
                running -= 1
            elif isinstance(found, _Failed):
                raise found.error
            else:
                yield found.item
    finally:
        work.stop()
        for reader in readers:
            reader.join()


@dataclass(frozen=True, slots=True)
class _Item(Generic[T]):
    item: T


@dataclass(frozen=True, slots=True)
class _Failed:
    error: BaseException


class _Work(Generic[T]):
    """The streams that are left, and the queue of what threads have read; None: a thread is done."""

    def __init__(self, streams: Iterator[Callable[[], Iterator[T]]], queue: Queue[_Item[T] | _Failed | None]) -> None:
        self.queue = queue
        self._streams, self._taking, self._stopped = streams, threading.Lock(), threading.Event()

    def run(self) -> None:
        try:
            while (begin := self._next()) is not None:
                for item in begin():
                    if not self._put(_Item(item)):
                        return
        except BaseException as error:
            self._put(_Failed(error))
            return
        self._put(None)

    def stop(self) -> None:
        """Let the threads end after their current item."""
        self._stopped.set()
        try:
            while True:
                self.queue.get_nowait()
        except Empty:
            return

    def _next(self) -> Callable[[], Iterator[T]] | None:
        with self._taking:
            return None if self._stopped.is_set() else next(self._streams, None)

    def _put(self, found: _Item[T] | _Failed | None) -> bool:
        """Return whether the consumer can get it."""
        while not self._stopped.is_set():
            try:
                self.queue.put(found, timeout=_WAIT_SECONDS)
                return True
            except Full:
                continue
        return False
