"""A planned service: a kind of plans on the timeline, their schema, and the failures of several plans."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from hoodie.timeline import Action, Instant
from hoodie.view.columns import visible_schemas
from hoodie.view.table_view import TableSchema, TableView

PlanT = TypeVar("PlanT")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedService(Generic[PlanT]):
    """One planned service: compaction (with log compaction), or clustering.

    `stored_plan` returns the plan of a pending instant; None if its scheduler stopped before it stored the plan, or if
    the instant was deleted meanwhile. `partitions_of` returns the partitions in which the execution writes files.
    """

    name: str
    actions: frozenset[Action]
    stored_plan: Callable[[TableView, Instant], PlanT | None]
    partitions_of: Callable[[PlanT], Collection[str]]

    def pending_plans(self, view: TableView) -> list[Instant]:
        """Return the pending instants of the service, oldest first."""
        return [found for found in view.timeline.pending() if found.action in self.actions]


def schema_at(view: TableView, instant_time: str) -> TableSchema:
    """Return the schema of the files that the instant of a plan writes.

    If columns have ids, readers find the names in a file by its instant. So an instant that was planned before the
    columns changed writes the columns of that time.
    """
    return view.schema(as_of=instant_time if visible_schemas(view) else None)


class Failures:
    """The errors of the plans of one call. Errors of every library are kept, as those of Arrow or Spark."""

    def __init__(self) -> None:
        """Start without errors."""
        self._errors: list[Exception] = []

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the error of the body instead of raising it."""
        try:
            yield
        except Exception as error:
            self._errors.append(error)

    def keep(self, error: Exception) -> None:
        """Keep an error that the caller has caught."""
        self._errors.append(error)

    def raise_first(self) -> None:
        """Raise the first error, if there is one; its notes name the others."""
        if not self._errors:
            return
        first, *others = self._errors
        for other in others:
            first.add_note(f"another plan failed too: {type(other).__name__}: {other}")
        raise first
