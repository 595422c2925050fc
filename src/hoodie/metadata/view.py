"""The table as its timeline shows it now: configuration, instants, schema, file slices.

A view is loaded with one listing of the timeline and never changes; what it reads of completed instants, which do not
change either, is shared between the views of one table.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.files.slices import FileSlice, latest_slices
from hoodie.files.table_properties import read_table_config
from hoodie.format.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteOperation
from hoodie.format.service_metadata import CleanMetadata
from hoodie.format.table_config import TableConfig
from hoodie.format.table_schema import avro_to_arrow, without_meta_fields
from hoodie.metadata.listing import list_from_storage
from hoodie.metadata.table import MetadataTable
from hoodie.storage import Store
from hoodie.timeline import (
    Action,
    Instant,
    InstantClock,
    Layout,
    Timeline,
    TimelineZone,
    layout_for,
    load_timeline,
    read_instant,
)

_NO_SCHEMA_CHANGE = frozenset(
    {WriteOperation.COMPACT, WriteOperation.CLUSTER, WriteOperation.LOG_COMPACT, WriteOperation.INDEX}
)


@dataclass(slots=True)
class TableState:
    """What outlives one view of a table in this process: its store, its clock, and what was read of completed instants.

    Threads share it.
    """

    store: Store
    commits: dict[str, CommitMetadata] = field(default_factory=dict)
    metadata_table: MetadataTable | None = None
    clock: InstantClock | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Guards the metadata table's object, which keeps what it parsed."""


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The table's columns without Hudi's meta columns: as Arrow, and as the Avro text that commits store."""

    arrow: pa.Schema
    avro: str


@dataclass(frozen=True, slots=True)
class TableView:
    """One state of a table."""

    state: TableState
    config: TableConfig
    layout: Layout
    timeline: Timeline

    @classmethod
    def load(cls, state: TableState) -> TableView:
        """Read the properties and list the timeline.

        Raises: TableNotFoundError, CorruptFileError.
        """
        config = read_table_config(state.store)
        zone = TimelineZone(config.timezone.value)
        layout = layout_for(config.version.value, config.timeline_path, zone=zone)
        return cls(state, config, layout, load_timeline(state.store, layout))

    @property
    def store(self) -> Store:
        """The table's folder."""
        return self.state.store

    @property
    def clock(self) -> InstantClock:
        """The table's clock; one for all views, so that its times only grow."""
        if self.state.clock is None:
            self.state.clock = InstantClock(self.layout.zone)
        return self.state.clock

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """What a completed write instant did; read once."""
        known = self.state.commits.get(instant.requested_time)
        if known is None:
            content = read_instant(self.store, self.layout, instant)
            known = CommitMetadata.parse(content, path=self._path_of(instant))
            self.state.commits[instant.requested_time] = known
        return known

    def _path_of(self, instant: Instant) -> str:
        """Where the instant's file lies, for errors."""
        name = self.layout.names(instant, instant.state)[0]
        return self.store.uri(f"{self.layout.instant_folder()}/{name}")

    def completed_writes(self) -> list[Instant]:
        """Completed instants that wrote data, in the order in which they completed."""
        instants = self.timeline.writes().completed().instants
        return sorted(instants, key=lambda instant: (instant.completion_time or "", instant.requested_time))

    def has_archived_instants(self) -> bool:
        """Whether older instants were moved out of the active timeline."""
        if self.config.version.has_completion_time_in_name:
            folder = f"{self.layout.instant_folder()}/{self.config.history_path}"
        else:
            folder = f".hoodie/{self.config.archive_folder}"
        return bool(self.store.list(folder))

    def schema(self, *, as_of: str | None = None) -> TableSchema:
        """The schema of the newest commit that has one (requested at `as_of` or before), else that of the creation.

        Raises: InvalidConfigError if neither exists.
        """
        for instant in reversed(self.completed_writes()):
            if as_of is not None and instant.requested_time > as_of:
                continue
            metadata = self.commit_metadata(instant)
            text = metadata.extra_metadata.get(SCHEMA_KEY)
            if text and metadata.operation_type not in _NO_SCHEMA_CHANGE:
                return TableSchema(without_meta_fields(avro_to_arrow(text)), text)
        text = self.config.create_schema
        if text:
            return TableSchema(without_meta_fields(avro_to_arrow(text)), text)
        raise InvalidConfigError(
            f"{self.store.uri('')} has no schema yet: no commit and no hoodie.table.create.schema; write to it "
            "with the "
            "engine that created it, or create it with hoodie.create(path, schema)"
        )

    def listing(self, partitions: Collection[str] | None = None) -> Mapping[str, Mapping[str, int]]:
        """Files by partition path, from the metadata table if the table has one we read, else from storage."""
        if self.config.version.value >= 8 and self.config.has_metadata_table:
            with self.state.lock:
                if self.state.metadata_table is None:
                    self.state.metadata_table = MetadataTable.open(self.store, self.config)
                if self.state.metadata_table is not None:
                    return self.state.metadata_table.listing(self.timeline, partitions)
        listing = list_from_storage(self.store, self.config, self.timeline)
        return listing if partitions is None else {path: listing.get(path, {}) for path in partitions}

    def slices(self, partitions: Collection[str] | None = None, *, as_of: str | None = None) -> list[FileSlice]:
        """Latest committed file slices, of all or some partitions, now or as of a requested time (inclusive).

        Raises: UnsupportedError if the cleaner removed files that `as_of` needs.
        """
        if as_of is not None:
            self._check_not_cleaned(as_of)
        return latest_slices(self.listing(partitions), self.timeline, self._replaced(as_of), as_of=as_of)

    def _replaced(self, as_of: str | None) -> dict[str, set[str]]:
        """File ids that completed replace commits took away, by partition path."""
        gone: dict[str, set[str]] = {}
        for instant in self.timeline.completed().instants:
            if instant.action is Action.REPLACE_COMMIT and (as_of is None or instant.requested_time <= as_of):
                for path, file_ids in (self.commit_metadata(instant).partition_to_replace_file_ids or {}).items():
                    gone.setdefault(path, set()).update(file_ids)
        return gone

    def _check_not_cleaned(self, as_of: str) -> None:
        cleans = [found for found in self.timeline.completed().instants if found.action is Action.CLEAN]
        if not cleans:
            return
        content = read_instant(self.store, self.layout, cleans[-1])
        earliest = CleanMetadata.parse(content, path=self._path_of(cleans[-1])).earliest_commit_to_retain
        if earliest and as_of < earliest:
            raise UnsupportedError(
                f"{self.store.uri('')} as of {as_of}: the cleaner kept only what instants from {earliest} on need; "
                "ask for a later time, and raise hoodie.clean.commits.retained to keep more"
            )
