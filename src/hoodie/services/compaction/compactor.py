"""Compact a table at intervals while writers write to it: schedule compactions that are due, execute pending plans.

A compactor runs in a thread of a long-lived writer or in its own process (`hoodie services run --compact`). Any number
of compactors may work on one table, on one machine or on several: exactly one compactor executes each plan.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from types import TracebackType

from hoodie.errors import HoodieError
from hoodie.services.compaction.run import CompactionCall, OnResult, compact_all
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.compaction.trigger import Trigger
from hoodie.services.result import ServiceResult
from hoodie.view.table_view import TableView

_RESULTS_KEPT = 100


def compact_once(
    call: CompactionCall,
    *,
    schedule: bool = True,
    report: OnResult | None = None,
    stopped: Callable[[], bool] | None = None,
) -> list[ServiceResult]:
    """Run one round: schedule a compaction if one is due, then execute every plan that no other process executes.

    The oldest plan is executed first.

    Raises: as `schedule_compaction` and `compact_all`.
    """
    if schedule:
        stored = TableView.load(call.state).config.raw
        trigger = Trigger.of({**stored, **call.properties})
        schedule_compaction(call.state, properties=call.properties, trigger=trigger)
    return compact_all(call, report=report, stopped=stopped)


class Compactor:
    """A thread that compacts a table until it is stopped. Use it as a context manager, or call `start` and `stop`.

    If a round fails, `last_error` stores the error, and the next round tries again. `results` stores the results of the
    last hundred plans that were executed.
    """

    def __init__(
        self,
        call: CompactionCall,
        *,
        interval_seconds: float = 60.0,
        schedule: bool = True,
        report: OnResult | None = None,
        on_error: Callable[[Exception], None] | None = None,
    ) -> None:
        """Store the settings; nothing runs before `start`.

        `report` is called with each result, and `on_error` with the error of each failed round, both in the thread of
        the compactor.
        """
        if interval_seconds <= 0:
            raise ValueError(f"interval_seconds: expected a number above 0, got {interval_seconds}")
        self._call = call
        self._interval_seconds = interval_seconds
        self._schedule = schedule
        self._report = report
        self._on_error = on_error
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self.results: list[ServiceResult] = []
        self.last_error: Exception | None = None

    @property
    def is_running(self) -> bool:
        """Whether the thread is running."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> Compactor:
        """Start a daemon thread, which begins the first round at once.

        Raises: RuntimeError if the compactor was started before.
        """
        if self._thread is not None:
            raise RuntimeError("the compactor was started before: create a new compactor")
        # A new context, so that progress of the compactor is not notified to the caller of `start`.
        self._thread = threading.Thread(
            target=contextvars.Context().run, args=(self._rounds,), name="hoodie-compactor", daemon=True
        )
        self._thread.start()
        return self

    def run_once(self) -> list[ServiceResult]:
        """Run one round in the caller's thread, instead of `start`. Raises: as `compact_once`."""
        try:
            return compact_once(self._call, schedule=self._schedule, report=self._take_down)
        finally:
            self._call.coordinator.close()

    def wake(self) -> None:
        """Begin the next round now instead of after the interval."""
        self._woken.set()

    def stop(self, *, wait: bool = True) -> None:
        """Stop the thread after the plan that it executes is completed. `wait`: return only when the thread ended."""
        self._stopped.set()
        self._woken.set()
        if wait and self._thread is not None:
            self._thread.join()
            self._call.coordinator.close()

    def __enter__(self) -> Compactor:
        return self if self._thread is not None else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _rounds(self) -> None:
        while not self._stopped.is_set():
            self._woken.clear()
            try:
                compact_once(self._call, schedule=self._schedule, report=self._take_down, stopped=self._stopped.is_set)
                self.last_error = None
            except (HoodieError, OSError) as error:
                # Another round may succeed: a lock was held, a store was unavailable, or another process claimed the
                # plan.
                self.last_error = error
                if self._on_error is not None:
                    self._on_error(error)
            if not self._stopped.is_set():
                self._woken.wait(self._interval_seconds)

    def _take_down(self, result: ServiceResult) -> None:
        self.results = [*self.results[1 - _RESULTS_KEPT :], result]
        if self._report is not None:
            self._report(result)
