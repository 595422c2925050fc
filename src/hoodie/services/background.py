"""A thread that runs a table service at intervals: the life that compactors and service runners share."""

from __future__ import annotations

import contextvars
import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from hoodie.arguments import check_methods
from hoodie.errors import InvalidConfigError
from hoodie.services.results import OnResult, ServiceResult

_RESULTS_KEPT = 100


@check_methods
class Background(ABC):
    """A thread that runs rounds until it is stopped. Use it as a context manager, or call `start` and `stop`.

    `results` stores the last hundred results. An error of a round does not end the thread: the next round tries again.
    """

    def __init__(self, *, name: str, interval_seconds: float, report: OnResult | None) -> None:
        """Store the settings; nothing runs before `start`. `report` is called with each result, in the thread.

        Raises: InvalidConfigError for an interval that is not above 0, or above 292 years.
        """
        if not 0 < interval_seconds <= threading.TIMEOUT_MAX:
            raise InvalidConfigError(f"interval: expected seconds above 0, and no ages, found {interval_seconds}")
        self._name = name
        self._interval_seconds = interval_seconds
        self._report = report
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self.results: list[ServiceResult] = []

    @property
    def is_running(self) -> bool:
        """Whether the thread is running."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> Self:
        """Start a daemon thread, which begins the first round at once. Raises: InvalidConfigError after a start."""
        if self._thread is not None:
            raise InvalidConfigError(f"{self._name}: expected one start; it was started before; create a new one")
        # A new context, so that the progress of services is not notified to the caller of `start`.
        self._thread = threading.Thread(
            target=contextvars.Context().run, args=(self._rounds,), name=self._name, daemon=True
        )
        self._thread.start()
        return self

    def wake(self) -> None:
        """Begin the next round now instead of after the interval."""
        self._woken.set()

    def stop(self, *, wait: bool = True) -> None:
        """Stop the thread after the service that it runs. `wait`: return only when the thread ended."""
        self._stopped.set()
        self._woken.set()
        if wait and self._thread is not None:
            self._thread.join()
            self._close()

    def __enter__(self) -> Self:
        return self if self._thread is not None else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    def _round(self) -> None:
        """Run one round, and end it early if `_stopped` is set. Raises: whatever failed."""

    @abstractmethod
    def _failed(self, error: Exception) -> None:
        """Store and report the error of a round."""

    @abstractmethod
    def _close(self) -> None:
        """Release what the rounds used, when the thread ended."""

    def _take_down(self, result: ServiceResult) -> None:
        self.results = [*self.results[1 - _RESULTS_KEPT :], result]
        if self._report is not None:
            self._report(result)

    def _rounds(self) -> None:
        while not self._stopped.is_set():
            self._woken.clear()
            try:
                self._round()
            except Exception as error:
                # A thread must not end unseen, whatever fails.
                self._failed(error)
            if not self._stopped.is_set():
                self._woken.wait(self._interval_seconds)
