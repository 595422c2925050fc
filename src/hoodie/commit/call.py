"""The call of a write or of a table service: the table, the engine, the options, and what the caller knew before."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum

from hoodie.config import writes
from hoodie.engine import Engine, LocalEngine, engine_beside
from hoodie.format.table.call_options import check_call_options
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

ChoosePartitions = Callable[[TableView], Collection[str]]
"""Returns the partitions to remove from the table as it is when the write begins."""


def _cannot_remove(_call: Call, _choose: ChoosePartitions) -> str | None:
    raise RuntimeError("this call cannot remove partitions: pass remove_partitions=")


class Occasion(Enum):
    """Why a table service runs."""

    CALL = "call"
    """A person or a program called this service."""
    ROUND = "round"
    """A round of services runs at intervals, beside writers."""
    AFTER_WRITE = "after write"
    """The service follows a write, which waits for it."""


@dataclass(frozen=True, slots=True)
class Wait:
    """How the build or switch of an index waits for a write of another engine that does not update the new index.

    `seconds`: how long it waits in all. `retry_seconds`: the interval between two checks.
    """

    seconds: float = 600.0
    retry_seconds: float = 1.0
    sleep: Callable[[float], None] = time.sleep


_WAIT = Wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a write or a service.

    `engine`: the engine of the caller's data or session, for work above `hoodie.python.local.bytes.max`. `properties`
    are the options of the call: they take precedence over the properties of the table. `extra_metadata` is stored in
    the commit of a write.
    """

    state: TableState
    engine: Engine = field(default_factory=LocalEngine)
    properties: Mapping[str, str] = field(default_factory=dict)
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    occasion: Occasion = Occasion.CALL
    wait: Wait = _WAIT
    baseline: TableView | None = None
    """The view from which the caller read the rows that it now writes; None if it read no rows."""
    seen: TableView | None = None
    """The table as the caller loaded it just now; None: the call loads it."""
    guard: Callable[[TableView], None] | None = None
    """Raises an error if the table, as it is at the begin or at the commit of the write, must not get the rows."""
    late_entries: Callable[[TableView], Mapping[str, str]] | None = None
    """Returns further entries of the extra metadata, at the commit of the write, under the table's lock. An error that
    it raises refuses the commit."""
    remove_partitions: Callable[[Call, ChoosePartitions], str | None] = _cannot_remove
    """Removes the chosen partitions in one replace commit and returns its instant; None if none is chosen. Time to live
    calls it: the room `write` has this function, and services are below it."""

    def __post_init__(self) -> None:
        """Check the option that chooses the engine, before any work begins. Raises: InvalidConfigError."""
        writes.LOCAL_BYTES_MAX.get(self.properties)

    @property
    def is_in_process(self) -> bool:
        """Whether all work of the call runs on threads of this process, however large it is."""
        return isinstance(self.engine, LocalEngine)

    def engine_for(self, work_bytes: int) -> Engine:
        """Return the engine for work on so many bytes: threads of this process for small work, else `engine`.

        Little work in an object store gets more threads: they mostly wait. The limit is an option of the call, else of
        the table as it was loaded last.
        """
        bytes_max = writes.LOCAL_BYTES_MAX.get(self.properties, self.state.last_config().raw)
        if work_bytes > bytes_max:
            return self.engine
        return engine_beside(self.state.store.spec, work_bytes)

    def view(self) -> TableView:
        """Return the table as the caller has seen it, if its properties did not change since; else load it."""
        seen = self.seen
        return seen if seen is not None and seen.config is self.state.last_config() else self.load()

    def load(self) -> TableView:
        """Load the table as it is now. Raises: as `TableView.load`."""
        return TableView.load(self.state)

    def checked_view(self) -> TableView:
        """Load the table, and check the options of the call against it.

        Raises: InvalidConfigError for an option that is unknown, or that only the table's properties may have.
        """
        view = self.load()
        check_call_options(self.properties, view.config)
        return view
