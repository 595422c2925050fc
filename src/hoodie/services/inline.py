"""The shape of a table service that can follow a write, and that `hoodie services run` runs.

Each service is one object of `InlineService` in a module of its own package; `services/registry.py` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hoodie.commit.call import Call
from hoodie.services.results import ServiceResult
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineService:
    """A table service that can follow a write.

    `is_on` decides from the effective options alone; `is_due` decides from the timeline, without reading files where it
    can. `run` plans and executes; it returns None if there was nothing to do after all.
    """

    name: str
    is_on: Callable[[Mapping[str, str]], bool]
    is_due: Callable[[Call, TableView], bool]
    run: Callable[[Call], ServiceResult | None]
