"""A table as a write found it, and what its indexes read of it, once each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hoodie.view.table_view import TableView

_Fact = TypeVar("_Fact")


@dataclass(frozen=True, slots=True)
class BegunTable:
    """The table when a write began. Several parts of the write may ask for the same fact; it is read once."""

    view: TableView
    _facts: dict[Callable[[TableView], Any], Any] = field(default_factory=dict, init=False, repr=False)

    def read(self, function: Callable[[TableView], _Fact]) -> _Fact:
        """The result of a function of the view, from the first call with this function."""
        if function not in self._facts:
            self._facts[function] = function(self.view)
        found: _Fact = self._facts[function]
        return found
