"""Signals that end a command: the first one after the work that runs, the second one at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hoodie.cli.words import INTERRUPTED


@contextmanager
def interrupted() -> Iterator[threading.Event]:
    """Return an event that SIGINT or SIGTERM sets; the former signal handlers are restored at the end.

    A second signal ends the process with exit code 130: an exception would wait for the threads that work.
    """
    stopped = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def end(*_: object) -> None:
        if stopped.is_set():
            with suppress(OSError):
                os.write(2, b"hoodie: interrupted twice; a write that was not yet committed changed nothing\n")
            os._exit(INTERRUPTED)
        stopped.set()

    for number in before:
        signal.signal(number, end)
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
