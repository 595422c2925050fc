"""The data table, as the metadata table and the kinds of its partitions see it: they stand below the table's views."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.engine import EngineFor, local_engine
from hoodie.files.slices import FileSlice
from hoodie.format.table.table_config import TableConfig
from hoodie.storage import Store
from hoodie.timeline import CreateFile, InstantClock, Timeline

FilesByPartition = Mapping[str, Mapping[str, int]]
"""Partition path of the data table -> file name -> size in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTable:
    """One state of the data table. `view.slices.data_table` makes it; the functions read the storage when called.

    A change of the metadata table needs the table's lock: `config` and `timeline` were read under it, and `create_last`
    and `ensure_held` are those of the lock. Without the lock both raise RuntimeError.
    """

    store: Store
    config: TableConfig
    timeline: Timeline
    """The whole active timeline, with pending instants."""
    clock: InstantClock
    create_last: CreateFile
    """Creates a completed file; fails if the caller lost the table's lock (`TableLock.create_last`)."""
    prepare: Callable[[bytes], None] = lambda content: None
    """Prepares the content of one later `create_last` (`TableLock.prepare`)."""
    ask_if_held: Callable[[bytes], None] = lambda content: None
    """Requests the check of the lock that `create_last` needs, if the content is prepared (`TableLock.ask_if_held`)."""
    ask_next: Callable[[], None] = lambda: None
    """Requests what the last step of the data table needs, beside the last step of the metadata table."""
    ensure_held: Callable[[], None]
    """Raises CommitConflictError if the caller lost the lock: call it before the files to delete are listed."""
    columns: Callable[[], pa.Schema]
    """The table's columns, without meta columns."""
    moved_columns: Callable[[], Collection[str]] = tuple
    """Columns that older files have under another name, or whose name they have for another column."""
    has_archived_instants: Callable[[], bool]
    list_files: Callable[[], FilesByPartition]
    """Lists the committed files from storage. Expensive."""
    slices: Callable[[Collection[str] | None], Sequence[FileSlice]]
    """The newest file slices of these partitions, or of all."""
    engine_for: EngineFor = local_engine
    """Returns the engine for work on a number of bytes, such as a compaction of the metadata table."""

    @property
    def has_writes(self) -> bool:
        """Whether a write ever completed. The archive is listed only if the active timeline has no write."""
        return bool(self.timeline.writes().completed().instants) or self.has_archived_instants()

    @property
    def named_partitions(self) -> frozenset[str]:
        """The metadata partitions that the properties name, also those that are being built."""
        return frozenset({*self.config.metadata_partitions, *self.config.metadata_partitions_inflight})
