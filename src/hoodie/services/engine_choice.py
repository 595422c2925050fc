"""Choose the engine of a table service: threads of this process for small work, the caller's engine for large work."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hoodie.config import writes
from hoodie.engine import Engine, EngineFor, LocalEngine
from hoodie.view.table_state import TableState


def engine_by_size(
    state: TableState, large: Callable[[], Engine], properties: Mapping[str, str] | None = None
) -> EngineFor:
    """Return a function that chooses the engine for a number of bytes by `hoodie.python.local.bytes.max`.

    The option is taken from `properties`, else from the table's properties as the service loaded them last. `large`
    returns the engine for work above the limit.

    Raises: InvalidConfigError for a wrong value in `properties`.
    """
    engine, given = large(), properties or {}
    # Raises for a wrong value of the caller now, before any work begins.
    writes.LOCAL_BYTES_MAX.get(given)

    def engine_for(work_bytes: int) -> Engine:
        bytes_max = writes.LOCAL_BYTES_MAX.get(given, state.last_config().raw)
        return LocalEngine() if work_bytes <= bytes_max else engine

    return engine_for
