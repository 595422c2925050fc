"""Requests to an object store that do not wait for each other: calls that run together, and requests sent ahead.

Each request to an object store is a round trip. Requests that do not need each other's answers go out together, as one
wave. A store on a disk or in memory answers at once: there the calls run one after the other, in their order, and no
request is sent ahead. docs/decisions/0021-waves-of-requests.md.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

from hoodie.storage.api import Store

T = TypeVar("T")
UNORDERED: Final = "unordered "
"""Begins the kind of a request whose answer may be older than what the caller has: only `taking_unordered` takes it."""
REQUESTS_MAX: Final = 16
"""How many requests this process sends at once, besides those of tasks."""
_SENT_MAX: Final = 12
"""How many files `Sending` sends at once: a record index has ten file groups by default."""


class Answers:
    """The answers to the requests that one thread sent to one or more stores: each is taken once."""

    def __init__(self) -> None:
        self._asked: dict[tuple[AsksAhead, str, str], list[tuple[str, Future[Any]]]] = {}

    def put(self, key: tuple[AsksAhead, str, str], path: str, answer: Future[Any]) -> None:
        """Keep an answer; `path` is the file or the folder of the request."""
        self._asked.setdefault(key, []).append((path, answer))

    def take(self, key: tuple[AsksAhead, str, str]) -> Future[Any] | None:
        """Return the oldest answer of the key; None if there is none."""
        found = self._asked.get(key)
        return found.pop(0)[1] if found else None

    def has(self, key: tuple[AsksAhead, str, str]) -> bool:
        """Return whether there is an answer of the key."""
        return bool(self._asked.get(key))

    def changed(self, path: str) -> None:
        """Forget the answers that a change of the file or folder makes out of date."""
        for asked in self._asked.values():
            asked[:] = [(of, answer) for of, answer in asked if not (is_within(path, of) or is_within(of, path))]

    def forget_unordered(self) -> None:
        """Forget the answers that only `taking_unordered` takes."""
        for key in [key for key in self._asked if key[1].startswith(UNORDERED)]:
            del self._asked[key]

    def end(self) -> None:
        """Forget all answers; no request goes on afterwards."""
        left = [answer for asked in self._asked.values() for _, answer in asked]
        wait([answer for answer in left if not answer.cancel()])
        self._asked.clear()


class AsksAhead:
    """A store whose requests are round trips: `ask` sends a request ahead, and the store keeps its answer.

    A request is a method and a path; `ask` lists them. The store calls `_answer` where it would send a request, and
    `_changes` before it changes files.
    """

    def ask(self, kind: str, path: str) -> None:
        """Send a request; the next call of this thread that is the same takes its answer."""
        asked = _local.answers
        if asked is not None:
            request = partial(self._request, kind.removeprefix(UNORDERED), path)
            asked.put((self, kind, path), path, send(request))

    def _request(self, kind: str, path: str) -> Any:
        """Send the request and return its answer."""
        raise NotImplementedError

    def _answer(self, kind: str, path: str) -> Any:
        """Return the answer that this thread has requested ahead; else send a request."""
        asked = _local.answers
        answer = None if asked is None else asked.take((self, kind, path))
        if asked is not None and answer is None and _local.unordered is not None:
            answer = asked.take((self, f"{UNORDERED}{kind}", path))
            _local.unordered += [] if answer is None else [path]
        return self._request(kind, path) if answer is None else answer.result()

    def _changes(self, *paths: str) -> None:
        """Forget the answers that this thread has requested and that a change makes out of date."""
        asked = _local.answers
        if asked is not None:
            for path in paths:
                asked.changed(path)


def is_within(path: str, folder: str) -> bool:
    """Return whether a path is the folder or below it."""
    return not folder or path == folder or path.startswith(f"{folder}/")


class _Local(threading.local):
    answers: Answers | None = None
    unordered: list[str] | None = None
    """The paths of the answers that `taking_unordered` took."""
    later: list[Future[Any]]

    def __init__(self) -> None:
        self.later = []


_local = _Local()


@contextmanager
def asking_ahead() -> Iterator[None]:
    """Let the operation of this thread ask for answers ahead, and do small things `later`.

    At its end the answers that were not taken are forgotten, and nothing runs any more. Inside of another one
    it does nothing. Also a decorator.
    """
    if _local.answers is not None:
        yield
        return
    answers = _local.answers = Answers()
    try:
        yield
    finally:
        _local.answers = None  # first: an interrupt while it waits must not leave answers for later operations
        try:
            settle()
        finally:
            answers.end()


@contextmanager
def taking_unordered() -> Iterator[list[str]]:
    """Let calls take answers to `UNORDERED` requests; the caller checks that they are new enough.

    It yields the list that gets the paths of those that were taken.
    """
    taken = _local.unordered = []
    try:
        yield taken
    finally:
        _local.unordered = None


def asks_ahead(store: Store) -> bool:
    """Return whether `ask` sends requests now: within `asking_ahead`, on an object store."""
    return _local.answers is not None and isinstance(store, AsksAhead)


def ask(store: Store, *requests: tuple[str, str]) -> None:
    """Send requests to an object store now; the calls that need them take the answers later, each once.

    A request is a kind and a path: `list`, `list_all` (recursive), `folders`, `head`, `read`, or `range START LENGTH`.
    It does nothing outside of `asking_ahead`, and for other stores. An error is raised where the answer is taken. An
    answer is as old as the request: ask under the lock for what must be seen under the lock.
    """
    if _local.answers is not None and isinstance(store, AsksAhead):
        for kind, path in requests:
            store.ask(kind, path)


def is_asked(store: Store, kind: str, path: str) -> bool:
    """Return whether this thread has an answer to the request that was not taken."""
    return _local.answers is not None and isinstance(store, AsksAhead) and _local.answers.has((store, kind, path))


def forget_answers(folder: str = "") -> None:
    """Forget the answers of this thread about a folder that were not taken: what follows must see later states."""
    if _local.answers is not None:
        _local.answers.changed(folder)


def forget_unordered() -> None:
    """Forget the answers to `UNORDERED` requests of this thread."""
    if _local.answers is not None:
        _local.answers.forget_unordered()


def together(store: Store, *calls: Callable[[], Any]) -> list[Any]:
    """Run calls that do not need each other; return their results.

    For an object store they run at the same time and all to their end; for other stores one after the other, up to the
    first error. Raises: the error of the first of them that failed.
    """
    if not store.spec.is_remote or len(calls) < 2:
        return [call() for call in calls]
    futures = [send(call) for call in calls[1:]]
    try:
        first = calls[0]()
    finally:
        wait(futures)
    return [first, *(future.result() for future in futures)]


def later(store: Store, call: Callable[[], Any]) -> None:
    """Do something that nothing else waits for, and whose errors do not matter: for an object store beside other work.

    It is done at the end of `asking_ahead`, and before this thread takes the table's lock again. Outside of
    `asking_ahead`, and for other stores, it is done when this call returns.
    """
    if _local.answers is not None and store.spec.is_remote:
        _local.later.append(_run_in(_pool("later"), call))
    else:
        with suppress(Exception):
            call()


def settle() -> None:
    """Wait for what this thread does `later`."""
    waiting, _local.later = _local.later, []
    wait(waiting)


class Started:
    """Calls that do not need each other, beside other work: for an object store they run from now on.

    For other stores they run one after the other in `finish`.
    """

    def __init__(self, store: Store, *calls: Callable[[], Any]) -> None:
        self._calls = () if store.spec.is_remote else calls
        self._sent = [send(call) for call in calls] if store.spec.is_remote else []

    def finish(self) -> None:
        """Return when all calls are done. Raises: the error of the first of them that failed."""
        calls, self._calls = self._calls, ()
        for call in calls:
            call()
        wait(self._sent)
        for sent in self._sent:
            sent.result()

    def drop(self) -> bool:
        """Return when nothing runs any more: what the calls do is not needed. False if one of them failed."""
        wait(self._sent)
        return all(sent.exception() is None for sent in self._sent)


class Sending:
    """A context manager that sends calls that do not need each other; it ends when all are done.

    For an object store a few run at the same time; for other stores each runs when it is sent. Raises: at the end the
    error of the first call that failed.
    """

    def __init__(self, store: Store) -> None:
        self.results: list[Any] = []
        """What the calls returned, in their order, once all are done."""
        self._is_remote = store.spec.is_remote
        self._sent: list[Future[Any]] = []
        self._running: list[Future[Any]] = []

    def send(self, call: Callable[[], Any]) -> None:
        """Run a call. It waits while `_SENT_MAX` others run: what they send is in memory."""
        if not self._is_remote:
            self.results.append(call())
            return
        self._sent.append(send(call))
        self._running = [found for found in (*self._running, self._sent[-1]) if not found.done()]
        if len(self._running) >= _SENT_MAX:
            wait(self._running, return_when=FIRST_COMPLETED)

    def __enter__(self) -> Sending:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        wait(self._sent)
        if kind is None:
            self.results += [sent.result() for sent in self._sent]


def send(call: Callable[[], T]) -> Future[T]:
    """Run a call in a thread of this process."""
    return _run_in(_pool("request"), call)


def _run_in(pool: ThreadPoolExecutor, call: Callable[[], T]) -> Future[T]:
    try:
        return pool.submit(call)
    except RuntimeError:  # the main thread has ended: no thread can start any more
        done = Future[T]()
        try:
            done.set_result(call())
        except BaseException as error:
            done.set_exception(error)
        return done


_pools: dict[tuple[int, str], ThreadPoolExecutor] = {}
"""The threads by process and use: a fork does not have those of its parent. A lock is released while files are sent."""
_pools_lock = threading.Lock()


def _pool(use: str) -> ThreadPoolExecutor:
    key = (os.getpid(), use)
    with _pools_lock:
        if key not in _pools:
            _pools[key] = ThreadPoolExecutor(REQUESTS_MAX, thread_name_prefix=f"hoodie-{use}")
        return _pools[key]
