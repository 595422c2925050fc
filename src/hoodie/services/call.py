"""The call of a table service: the table, the engines and the options of the call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hoodie.metadata.services.context import EngineFor, local_engine
from hoodie.view.table_state import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCall:
    """One call of a table service.

    `engine_for` chooses the engine for work on a number of bytes. `properties` are the options of the call: they take
    precedence over the properties of the table.
    """

    state: TableState
    engine_for: EngineFor = local_engine
    properties: Mapping[str, str] = field(default_factory=dict)
