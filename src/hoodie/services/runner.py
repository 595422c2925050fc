"""Run the table services of one table beside its writers, once or at intervals (`hoodie services run`).

Any number of processes may serve one table, on one machine or on several: each service claims its work under the
table's lock, and exactly one process executes each plan.
"""

from __future__ import annotations

import contextvars
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from hoodie.arguments import check_methods
from hoodie.commit.call import Call, Occasion
from hoodie.errors import InvalidConfigError, TableNotFoundError
from hoodie.format.table.call_options import effective_options
from hoodie.results import OnResult, ServiceResult
from hoodie.services.compaction.compaction import compact_once
from hoodie.services.planned.coordination import Coordinator, TableCoordinator
from hoodie.services.registry import all_services
from hoodie.services.service import TableService
from hoodie.view.table_view import TableView

OnError = Callable[[str, Exception], None]


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did: the results of the services that ran, and the errors by the name of the service."""

    results: tuple[ServiceResult, ...] = ()
    errors: tuple[tuple[str, Exception], ...] = ()

    def __str__(self) -> str:
        errors = (f"{name} failed: {error}" for name, error in self.errors)
        return "\n".join([*map(str, self.results), *errors]) or "nothing was due"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceChoice:
    """The services that a round runs: those of `names`, by default those that the effective options turn on."""

    names: Collection[str] | None = None
    services: Sequence[TableService] = field(default_factory=all_services)

    def chosen(self) -> list[TableService]:
        """Return the services that may run, in the order of a round. Raises: InvalidConfigError for an unknown name."""
        if self.names is None:
            return list(self.services)
        known, wanted = [service.name for service in self.services], set(self.names)
        if unknown := sorted(wanted.difference(known)):
            raise InvalidConfigError(f"no service {unknown[0]!r}; expected some of {', '.join(map(repr, known))}")
        return [service for service in self.services if service.name in wanted]


def run_round(
    call: Call,
    choice: ServiceChoice,
    *,
    report: OnResult | None = None,
    on_error: OnError | None = None,
    stopped: Callable[[], bool] | None = None,
) -> Round:
    """Run each service that is due, once; a service that fails does not stop the others.

    `report` is called with each result, `on_error` with the name of a service and its error. `stopped` is called before
    each service; if it returns True, the round ends.

    Raises: InvalidConfigError for an unknown name; TableNotFoundError.
    """
    call = replace(call, occasion=Occasion.ROUND)
    results: list[ServiceResult] = []
    errors: list[tuple[str, Exception]] = []

    def take_down(result: ServiceResult) -> None:
        results.append(result)
        if report is not None:
            report(result)

    for service in choice.chosen():
        if stopped is not None and stopped():
            break
        try:
            view = TableView.load(call.state)
            effective = effective_options(view.config, call.properties)
            if (choice.names is None and not service.is_on(effective)) or not service.is_due(call, view):
                continue
            service.run(call, take_down)
        except TableNotFoundError:
            raise
        except Exception as error:
            # Another service, or another round, may succeed: a lock was held, or a store was unavailable.
            errors.append((service.name, error))
            if on_error is not None:
                on_error(service.name, error)
    return Round(tuple(results), tuple(errors))


_RESULTS_KEPT = 100


@check_methods
class _Background(ABC):
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

    def _close(self) -> None:
        """Release what the rounds used, when the thread ended; by default nothing."""
        return

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


class ServiceRunner(_Background):
    """A thread that serves a table until it is stopped. Use it as a context manager, or call `start` and `stop`.

    `results` has the last hundred results, `errors` the errors of the last round.
    """

    def __init__(
        self,
        call: Call,
        choice: ServiceChoice,
        *,
        interval_seconds: float = 60.0,
        report: OnResult | None = None,
        on_error: OnError | None = None,
    ) -> None:
        """Store the settings; nothing runs before `start`. `report` and `on_error` are called in the runner's thread.

        Raises: InvalidConfigError for an unknown service; ValueError for an interval that is not above 0.
        """
        super().__init__(name="hoodie-services", interval_seconds=interval_seconds, report=report)
        choice.chosen()
        self._call = call
        self._choice = choice
        self._on_error = on_error
        self.errors: tuple[tuple[str, Exception], ...] = ()

    def run_once(self) -> Round:
        """Run one round in the caller's thread, instead of `start`."""
        return self._run(None)

    def _round(self) -> None:
        self._run(self._stopped.is_set)

    def _run(self, stopped: Callable[[], bool] | None) -> Round:
        report, on_error = self._take_down, self._on_error
        done = run_round(self._call, self._choice, report=report, on_error=on_error, stopped=stopped)
        self.errors = done.errors
        return done

    def _failed(self, error: Exception) -> None:
        self.errors = (("table", error),)
        if self._on_error is not None:
            self._on_error("table", error)


class Compactor(_Background):
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
