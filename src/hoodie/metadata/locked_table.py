"""The state of the data table that a change of the metadata table needs, read under the table's lock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hoodie.engine import EngineFor, local_engine
from hoodie.format.table.table_config import TableConfig
from hoodie.timeline import CreateFile, InstantClock, Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedTable:
    """The data table while the caller holds its lock. `config` and `timeline` were read under that lock."""

    config: TableConfig
    timeline: Timeline
    """The whole active timeline, with pending instants."""
    clock: InstantClock
    create_last: CreateFile
    """Creates a completed file; fails if the caller lost the table's lock (`TableLock.create_last`)."""
    ensure_held: Callable[[], None]
    """Raises CommitConflictError if the caller lost the lock: call it before the files to delete are listed."""
    engine_for: EngineFor = local_engine
    """Returns the engine for work on a number of bytes, such as a compaction of the metadata table."""
