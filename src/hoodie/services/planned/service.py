"""Describe a planned service to the code that claims, lists and rolls back its plans."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

from hoodie.timeline import Action, Instant
from hoodie.view.table_view import TableView

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
