"""Facts of a table when a write began; each fact is read once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hoodie.view.table_view import TableView

_Fact = TypeVar("_Fact")


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Facts of the table when a write began. Several parts of the write may read the same fact."""

    view: TableView
    _facts: dict[Callable[[TableView], Any], Any] = field(default_factory=dict, init=False, repr=False)

    def read(self, function: Callable[[TableView], _Fact]) -> _Fact:
        """Return the result of a function of the view; each function is called once."""
        if function not in self._facts:
            self._facts[function] = function(self.view)
        found: _Fact = self._facts[function]
        return found
