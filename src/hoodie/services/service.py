"""What a table service is that can follow a write, and that `hoodie services run` runs.

Each service is one `TableService` in a module of its own package; `services/registry.py` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hoodie.commit.call import Call
from hoodie.results import OnResult
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True, kw_only=True)
class TableService:
    """A table service that can follow a write, or runs in a round.

    `about` is a sentence for help. `is_on` decides from the effective options alone; `is_due` decides from the
    timeline, without reading files where it can. `run` plans and executes, and reports each of its results; none if
    there was nothing to do after all.
    """

    name: str
    about: str
    is_on: Callable[[Mapping[str, str]], bool]
    is_due: Callable[[Call, TableView], bool]
    run: Callable[[Call, OnResult], None]
