"""Streams that threads of this process read ahead of their consumer, and readers that several threads may use."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import Any, Final, Generic, TypeVar

import pyarrow as pa

T = TypeVar("T")
_WAIT_SECONDS: Final = 0.1
"""How long a thread waits for room before it looks whether the consumer is gone."""
_IDLE_SECONDS: Final = 3.0
"""How long a thread waits for room before it ends; its stream goes on when the consumer reads again."""


def ahead(streams: Iterable[Callable[[], Iterator[T]]], *, threads: int, waiting: int) -> Iterator[T]:
    """Yield the items of all streams, in the order in which threads read them.

    Args:
        streams: functions that begin a stream; a thread calls one, reads it to its end, and takes the next one.
        threads: how many streams are read at once, at least 1.
        waiting: how many items wait for the consumer at most.

    The threads end with the iterator: at its end, at an error, and when it is closed; a few seconds after the consumer
    stopped to ask; and before the interpreter ends.

    Memory: `waiting` items, and one of each thread. Raises: the first error of a stream.

    >>> sorted(ahead([lambda: iter("ab"), lambda: iter("c")], threads=2, waiting=1))
    ['a', 'b', 'c']
    """
    work = _Work(iter(streams), Queue(waiting))
    for _ in range(threads):
        work.start()
    running = threads
    try:
        while running:
            found = work.take()
            if found is None:
                running -= 1
            elif isinstance(found, _Failed):
                raise found.error
            else:
                yield found.item
    finally:
        work.stop()


def reader_of(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
    """Return the batches as a reader that several threads may use: each batch comes once."""
    return pa.RecordBatchReader.from_batches(schema, _InTurn(batches))


class _InTurn(Iterator[T]):
    """An iterator whose items threads take in turn; a generator alone refuses two threads at once."""

    def __init__(self, items: Iterator[T]) -> None:
        self._items, self._taking = items, threading.Lock()

    def __next__(self) -> T:
        with self._taking:
            return next(self._items)


@dataclass(frozen=True, slots=True)
class _Item(Generic[T]):
    item: T


@dataclass(frozen=True, slots=True)
class _Failed:
    error: BaseException


_Found = _Item[T] | _Failed | None
_Parked = tuple[_Found[T], Iterator[T] | None]


class _Work(Generic[T]):
    """The streams that are left, and the queue of what threads have read; None: all streams of a thread ended."""

    def __init__(self, streams: Iterator[Callable[[], Iterator[T]]], queue: Queue[_Found[T]]) -> None:
        self._queue = queue
        self._streams, self._taking, self._stopped = streams, threading.Lock(), threading.Event()
        self._parked: list[_Parked[T]] = []
        self._threads: list[threading.Thread] = []
        _RUNNING.add(self)

    def start(self, parked: _Parked[T] | None = None) -> None:
        """Start a thread; `parked`: with what another thread has left."""
        thread = threading.Thread(target=self._run, args=(parked,), daemon=True, name="hoodie-read-ahead")
        self._threads = [*(one for one in self._threads if one.is_alive()), thread]
        thread.start()

    def take(self) -> _Found[T]:
        """Return what a thread has read next; streams that threads have left go on."""
        try:
            return self._queue.get_nowait()
        except Empty:
            with self._taking:
                parked, self._parked = self._parked, []
            for one in parked:
                self.start(one)
        while not self._stopped.is_set():
            try:
                return self._queue.get(timeout=_IDLE_SECONDS)
            except Empty:
                continue
        return _Failed(RuntimeError("the interpreter ends: the rows were not read to their end"))

    def stop(self) -> None:
        """End the threads after their current item."""
        self._stopped.set()
        try:
            while True:
                self._queue.get_nowait()
        except Empty:
            pass
        for thread in self._threads:
            # A thread that drops the last reference to a stream closes it.
            if thread is not threading.current_thread():
                thread.join()
        self._parked.clear()

    def _run(self, parked: _Parked[T] | None) -> None:
        stream: Iterator[T] | None = None
        try:
            if parked is not None:
                found, stream = parked
                if not self._put(found, stream) or not isinstance(found, _Item):
                    return
            while True:
                if stream is None:
                    begin = self._next()
                    if begin is None:
                        break
                    stream = begin()
                for item in stream:
                    if not self._put(_Item(item), stream):
                        return
                stream = None
            self._put(None, None)
        except BaseException as error:
            self._put(_Failed(error), None)

    def _next(self) -> Callable[[], Iterator[T]] | None:
        with self._taking:
            return None if self._stopped.is_set() else next(self._streams, None)

    def _put(self, found: _Found[T], stream: Iterator[T] | None) -> bool:
        """Return whether the thread goes on: not if the consumer is gone, or pauses and can resume the stream."""
        until = time.monotonic() + _IDLE_SECONDS
        while not self._stopped.is_set():
            try:
                self._queue.put(found, timeout=_WAIT_SECONDS)
                return True
            except Full:
                if time.monotonic() < until:
                    continue
            with self._taking:  # a consumer that finds the queue empty looks for parked streams after this
                try:
                    self._queue.put_nowait(found)
                    return True
                except Full:
                    self._parked.append((found, stream))
                    return False
        return False


_RUNNING: Final[weakref.WeakSet[_Work[Any]]] = weakref.WeakSet()


def _stop_all() -> None:
    """End all threads: a thread inside of Arrow would abort the process when the interpreter ends."""
    for work in [*_RUNNING]:
        work.stop()


atexit.register(_stop_all)
