"""Run the table services of one table beside its writers, once or at intervals (`hoodie services run`).

Any number of processes may serve one table: each service claims its work under the table's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from hoodie.commit.call import Call, Occasion
from hoodie.errors import InvalidConfigError, TableNotFoundError
from hoodie.services.background import Background
from hoodie.services.registry import RunnableService, all_services
from hoodie.services.results import OnResult, ServiceResult
from hoodie.view.table_view import TableView

OnError = Callable[[str, Exception], None]


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did: the results of the services that ran, and the errors by the name of the service."""

    results: tuple[ServiceResult, ...] = ()
    errors: tuple[tuple[str, Exception], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceChoice:
    """The services that a round runs: those of `names`, by default those that the effective options turn on."""

    names: Collection[str] | None = None
    services: Sequence[RunnableService] = field(default_factory=all_services)

    def chosen(self) -> list[RunnableService]:
        """Return the services that may run, in the order of a round. Raises: InvalidConfigError for an unknown name."""
        return _chosen(self.names, self.services)


def _chosen(names: Collection[str] | None, services: Sequence[RunnableService]) -> list[RunnableService]:
    if names is None:
        return list(services)
    known = {service.name: service for service in services}
    unknown = sorted(set(names) - known.keys())
    if unknown:
        raise InvalidConfigError(f"no service {unknown[0]!r}; expected some of {', '.join(map(repr, known))}")
    return [service for service in services if service.name in names]


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
            effective = {**view.config.raw, **call.properties}
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


class ServiceRunner(Background):
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
        done = run_round(self._call, self._choice, report=self._take_down, on_error=self._on_error)
        self.errors = done.errors
        return done

    def _round(self) -> None:
        done = run_round(
            self._call, self._choice, report=self._take_down, on_error=self._on_error, stopped=self._stopped.is_set
        )
        self.errors = done.errors

    def _failed(self, error: Exception) -> None:
        self.errors = (("table", error),)
        if self._on_error is not None:
            self._on_error("table", error)

    def _close(self) -> None:
        """Release nothing: each service of a round closes what it opened."""
