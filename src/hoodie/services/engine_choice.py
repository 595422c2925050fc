"""Which engine does a service's work: threads of this process while it is little, the caller's engine for more."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hoodie import config as options
from hoodie.engine import Engine, LocalEngine
from hoodie.files.table_properties import read_table_config
from hoodie.metadata.services.context import EngineFor
from hoodie.storage import Store


def engine_by_size(store: Store, large: Callable[[], Engine], properties: Mapping[str, str] | None = None) -> EngineFor:
    """The choice by `hoodie.python.local.bytes.max`, of `properties` or as the table stores it."""
    engine = large()
    most = options.LOCAL_BYTES_MAX.get(properties or {}, read_table_config(store).raw)

    def engine_for(work_bytes: int) -> Engine:
        return LocalEngine() if work_bytes <= most else engine

    return engine_for
