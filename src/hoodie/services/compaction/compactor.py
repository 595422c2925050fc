"""A compactor beside the writers: looks for plans at intervals, schedules what is due, and carries out what is pending.

For a thread of a long-lived writer, and for a process of its own (`hoodie services run --compact`). Any number of them
may work on one table, on one machine or several: each plan is carried out by one.
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
    """One round: schedule a compaction if one is due, then carry out every plan that nobody else does, oldest first.

    Raises: as `schedule_compaction` and `compact_all`.
    """
    if schedule:
        stored = TableView.load(call.state).config.raw
        trigger = Trigger.of({**stored, **call.properties})
        schedule_compaction(call.state, properties=call.properties, trigger=trigger)
    return compact_all(call, report=report, stopped=stopped)


class Compactor:
    """A thread that compacts a table until it is stopped. Use as a context manager, or `start` and `stop`.

    A round that fails does not end it: `last_error` says why, and the next round tries again. `results` are those of
    the last hundred plans it carried out.
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
        """Nothing runs before `start`. `report` gets each result, `on_error` why a round failed, in its thread."""
        if interval_seconds <= 0:
            raise ValueError(f"the interval between rounds is some seconds, got {interval_seconds}")
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
        """Whether the thread lives."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> Compactor:
        """Begin the first round at once, in a daemon thread.

        Raises: RuntimeError if it was started before.
        """
        if self._thread is not None:
            raise RuntimeError("the compactor was started before: make a new one")
        # Not this thread's context: its progress reports are not for who started it.
        self._thread = threading.Thread(
            target=contextvars.Context().run, args=(self._rounds,), name="hoodie-compactor", daemon=True
        )
        self._thread.start()
        return self

    def run_once(self) -> list[ServiceResult]:
        """One round in this thread, instead of `start`. Raises: as `compact_once`."""
        try:
            return compact_once(self._call, schedule=self._schedule, report=self._take_down)
        finally:
            self._call.coordinator.close()

    def wake(self) -> None:
        """Begin the next round now instead of after the interval."""
        self._woken.set()

    def stop(self, *, wait: bool = True) -> None:
        """End it; the plan it is carrying out is finished first. `wait`: until it is."""
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
                # Another round may succeed: a lock was held, a store was not to be reached, another took the plan.
                self.last_error = error
                if self._on_error is not None:
                    self._on_error(error)
            if not self._stopped.is_set():
                self._woken.wait(self._interval_seconds)

    def _take_down(self, result: ServiceResult) -> None:
        self.results = [*self.results[1 - _RESULTS_KEPT :], result]
        if self._report is not None:
            self._report(result)
