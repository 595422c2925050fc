"""The call of a table service: the table, the engines and the options of the call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum

from hoodie.engine import EngineFor, local_engine
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

RemovePartitions = Callable[[Callable[[TableView], Collection[str]]], str | None]


def _cannot_remove(choose: Callable[[TableView], Collection[str]]) -> str | None:
    raise RuntimeError("this call of a table service cannot write: pass remove_partitions=")


class Occasion(Enum):
    """Why a table service runs."""

    CALL = "call"
    """A person or a program called this service."""
    ROUND = "round"
    """A round of services runs at intervals, beside writers."""
    AFTER_WRITE = "after write"
    """The service follows a write, which waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCall:
    """One call of a table service.

    `engine_for` chooses the engine for work on a number of bytes. `properties` are the options of the call: they take
    precedence over the properties of the table.
    """

    state: TableState
    engine_for: EngineFor = local_engine
    properties: Mapping[str, str] = field(default_factory=dict)
    occasion: Occasion = Occasion.CALL
    remove_partitions: RemovePartitions = _cannot_remove
    """Removes the partitions that a function chooses, in one replace commit, and returns its instant; None if there are
    none. The room `write` has this function, and services are below it."""
