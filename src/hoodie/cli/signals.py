"""Signals that end a command: the first one after the work that runs, the second one at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupted() -> Iterator[threading.Event]:
    """Return an event that SIGINT or SIGTERM sets; the former signal handlers are restored at the end.

    A second signal restores them, and raises KeyboardInterrupt in the main thread.
    """
    stopped = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def end(*_: object) -> None:
        if stopped.is_set():
            restore()
            raise KeyboardInterrupt
        stopped.set()

    for number in before:
        signal.signal(number, end)
    try:
        yield stopped
    finally:
        restore()
