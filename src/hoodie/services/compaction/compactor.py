"""Compact a table at intervals while writers write to it: schedule compactions that are due, execute pending plans.

A compactor runs in a thread of a long-lived writer or in its own process (`hoodie services run --compact`). Any number
of compactors may work on one table, on one machine or on several: exactly one compactor executes each plan.
"""

from __future__ import annotations

from collections.abc import Callable

from hoodie.commit.call import Call
from hoodie.services.background import Background
from hoodie.services.compaction.plan import Trigger, schedule_compaction
from hoodie.services.compaction.run import compact_all
from hoodie.services.planned.coordination import Coordinator, TableCoordinator
from hoodie.services.results import OnResult, ServiceResult
from hoodie.view.table_view import TableView


def compact_once(
    call: Call,
    *,
    coordinator: Coordinator | None = None,
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
    return compact_all(call, coordinator=coordinator, report=report, stopped=stopped)


class Compactor(Background):
    """A thread that compacts a table until it is stopped. Use it as a context manager, or call `start` and `stop`.

    If a round fails, `last_error` stores the error, and the next round tries again. `results` stores the results of the
    last hundred plans that were executed.
    """

    def __init__(
        self,
        call: Call,
        *,
        coordinator: Coordinator | None = None,
        interval_seconds: float = 60.0,
        schedule: bool = True,
        report: OnResult | None = None,
        on_error: Callable[[Exception], None] | None = None,
    ) -> None:
        """Store the settings; nothing runs before `start`.

        `report` is called with each result, and `on_error` with the error of each failed round, both in the thread of
        the compactor. `coordinator` grants claims if several machines share the work. Raises: ValueError for an
        interval that is not above 0.
        """
        super().__init__(name="hoodie-compactor", interval_seconds=interval_seconds, report=report)
        self._call = call
        self._coordinator = coordinator or TableCoordinator()
        self._schedule = schedule
        self._on_error = on_error
        self.last_error: Exception | None = None

    def run_once(self) -> list[ServiceResult]:
        """Run one round in the caller's thread, instead of `start`. Raises: as `compact_once`."""
        try:
            return self._compact()
        finally:
            self._close()

    def _round(self) -> None:
        self._compact(self._stopped.is_set)
        self.last_error = None

    def _compact(self, stopped: Callable[[], bool] | None = None) -> list[ServiceResult]:
        return compact_once(
            self._call,
            coordinator=self._coordinator,
            schedule=self._schedule,
            report=self._take_down,
            stopped=stopped,
        )

    def _failed(self, error: Exception) -> None:
        self.last_error = error
        if self._on_error is not None:
            self._on_error(error)

    def _close(self) -> None:
        self._coordinator.close()
