"""The data table as the holder of its lock found it: what changes of the metadata table depend on."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.format.table.table_config import TableConfig
from hoodie.metadata.services.context import EngineFor, local_engine
from hoodie.timeline import InstantClock, Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedTable:
    """The data table while the caller holds its lock. `config` and `timeline` were read under that lock."""

    config: TableConfig
    timeline: Timeline
    """The whole active timeline, pending instants too."""
    clock: InstantClock
    engine_for: EngineFor = local_engine
    """Which engine does work on so many bytes, such as a compaction of the metadata table."""
