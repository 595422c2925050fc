"""A thread that renews the file of a writer: the lock file or a heartbeat file."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Renewal:
    """Calls `renew` regularly, until it returns False or the writer ends.

    `renew` must not refer to the lock or the heartbeat that uses this object: the thread would keep an abandoned writer
    alive for ever.
    """

    renew: Callable[[], bool]
    last_error: Exception | None = None
    """The error of the last renewal; None if it succeeded. One failed renewal is harmless."""

    def start(self, name: str, stopped: threading.Event, every_seconds: float) -> None:
        """Start the daemon thread; it ends when `stopped` is set. Raises: RuntimeError if no thread can start."""
        threading.Thread(target=self._run, args=(stopped, every_seconds), name=name, daemon=True).start()

    def _run(self, stopped: threading.Event, every_seconds: float) -> None:
        while not stopped.wait(every_seconds):
            try:
                if not self.renew():
                    return
                self.last_error = None
            except Exception as error:
                self.last_error = error
