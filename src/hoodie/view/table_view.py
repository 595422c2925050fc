"""The table as its timeline shows it now: configuration, instants, schema, file slices.

A view is loaded with one listing of the timeline and never changes; what it reads of completed instants, which do not
change either, is shared between the views of one table.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hoodie.config import INDEX_TYPE_KEY
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.files.merged_slice import SliceRead
from hoodie.files.slices import FileSlice, latest_slices
from hoodie.files.table_properties import KEEP_FOLDER, read_table_config
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.instants.service_metadata import CleanMetadata
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.format.schema.table_schema import avro_to_arrow, with_meta_fields, without_meta_fields
from hoodie.format.table.table_config import TableConfig
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.record_index.buckets import RecordIndexState
from hoodie.metadata.record_index.index_view import IndexView
from hoodie.metadata.record_index.kind import is_partitioned_record_index
from hoodie.metadata.record_index.partitioned import partitioned_state
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
from hoodie.view.commit_cache import CommitCache, CommitFacts
from hoodie.view.listing import list_from_storage
from hoodie.view.rules import slice_read


@dataclass(slots=True)
class TableState:
    """What outlives one view of a table in this process: its store, its clock, and what was read of completed instants.

    Threads share it.
    """

    store: Store
    commits: CommitCache = field(default_factory=CommitCache)
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
    """One state of a table.

    `timeline` holds the instants that count. `later` are completed instants that do not, in a view of the past.
    """

    state: TableState
    config: TableConfig
    layout: Layout
    timeline: Timeline
    later: tuple[Instant, ...] = ()

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

    def as_completed_by(self, completion_time: str) -> TableView:
        """The table as it was at that time: without the instants that completed later, whenever they were requested."""

        def is_later(instant: Instant) -> bool:
            return instant.is_completed and (instant.completion_time or instant.requested_time) > completion_time

        later = tuple(filter(is_later, self.timeline.instants))
        return replace(self, timeline=self.timeline.filter(lambda instant: not is_later(instant)), later=later)

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """What a completed write instant did; read once."""
        known = self.state.commits.get(instant.requested_time)
        if known is None:
            content = read_instant(self.store, self.layout, instant)
            known = CommitMetadata.parse(content, path=self._path_of(instant))
            self.state.commits[instant.requested_time] = known
        return known

    def commit_facts(self, instant: Instant) -> CommitFacts:
        """The schema, and the replaced file ids, of a completed write instant; remembered for all of them."""
        return self.state.commits.facts(instant.requested_time) or CommitFacts.of(self.commit_metadata(instant))

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
        return any(info.name != KEEP_FOLDER for info in self.store.list(folder))

    def schema(self, *, as_of: str | None = None) -> TableSchema:
        """The schema of the newest commit that has one (requested at `as_of` or before), else that of the creation.

        Before the oldest commit that the active timeline still has, it is that commit's: the nearest one known.

        Raises: InvalidConfigError if neither exists.
        """
        text = None
        for instant in (*reversed(self.later), *reversed(self.completed_writes())):
            if not instant.action.writes_data:
                continue
            facts = self.commit_facts(instant)
            if facts.schema and facts.changes_schema:
                text = facts.schema
                if instant not in self.later and (as_of is None or instant.requested_time <= as_of):
                    break
        if text:
            return TableSchema(without_meta_fields(avro_to_arrow(text)), text)
        text = self.config.create_schema
        if text:
            return TableSchema(without_meta_fields(avro_to_arrow(text)), text)
        raise InvalidConfigError(
            f"{self.store.uri('')} has no schema yet: no commit and no hoodie.table.create.schema; write to it "
            "with the engine that created it, or create it with hoodie.create(path, schema)"
        )

    def listing(self, partitions: Collection[str] | None = None) -> Mapping[str, Mapping[str, int]]:
        """Files by partition path, from the metadata table if the table has one we read, else from storage."""
        if self.config.version.value >= 8 and self.config.has_metadata_table:
            with self.state.lock:
                if self.state.metadata_table is None:
                    self.state.metadata_table = MetadataTable.open(self.store, self.config)
                if self.state.metadata_table is not None:
                    return self.state.metadata_table.listing(self._whole_timeline(), partitions)
        listing = list_from_storage(self.store, self.config, self._whole_timeline())
        return listing if partitions is None else {path: listing.get(path, {}) for path in partitions}

    def record_index(self, *, as_of: str | None = None) -> RecordIndexState | None:
        """The buckets of the record index, now or as of a requested time (inclusive); None if the table has none.

        Raises: UnsupportedError if the index no longer tells its state of that time.
        """
        found = self.index_view()
        return None if found is None else found.state(as_of=as_of)

    def partitioned_index(self) -> Mapping[str, RecordIndexState] | None:
        """The buckets of each data partition, where the record index is a partitioned one; else None."""
        if not self.has_partitioned_index():
            return None
        return partitioned_state(MetadataFolder(self.store, self.config), self._whole_timeline())

    def has_partitioned_index(self) -> bool:
        """Whether the table has a record index with buckets of their own for each data partition."""
        if RECORD_INDEX not in self.config.metadata_partitions or self.config.version.value < 8:
            return False
        stored = self.config.raw.get(INDEX_TYPE_KEY, "").upper()
        if stored in ("RECORD_INDEX", "RECORD_LEVEL_INDEX"):
            return stored == "RECORD_LEVEL_INDEX"
        return is_partitioned_record_index(self.store)

    def index_view(self) -> IndexView | None:
        """What of the global record index this view believes; None if the table has none."""
        if RECORD_INDEX not in self.config.metadata_partitions or self.config.version.value < 8:
            return None
        if self.has_partitioned_index():
            return None
        later = frozenset(instant.requested_time for instant in self.later)
        return IndexView(MetadataFolder(self.store, self.config), self._whole_timeline(), later)

    def _whole_timeline(self) -> Timeline:
        """All instants: what decides which files exist."""
        if not self.later:
            return self.timeline
        return replace(self.timeline, instants=Timeline.of((*self.timeline, *self.later)).instants)

    def slices(self, partitions: Collection[str] | None = None, *, as_of: str | None = None) -> list[FileSlice]:
        """Latest committed file slices, of all or some partitions, now or as of a requested time (inclusive).

        Raises: UnsupportedError if the cleaner removed files that `as_of` needs.
        """
        if as_of is not None:
            self._check_not_cleaned(as_of)
        elif any(instant.action.writes_data for instant in self.later):
            first = min(instant.requested_time for instant in self.later if instant.action.writes_data)
            before = (instant.requested_time for instant in self.timeline if instant.requested_time < first)
            self._check_not_cleaned(max(before, default=""))
        listing = self.listing(partitions)
        version = self.config.version
        return latest_slices(listing, self.timeline, self._replaced(as_of), as_of=as_of, version=version)

    def slice_read(self) -> SliceRead:
        """How its newest file slices are read, all columns.

        Raises: as `rules.table_merger`, on merge-on-read tables; as `schema`.
        """
        read = slice_read(self.config, with_meta_fields(self.schema().arrow))
        return read if self.config.version.value >= 8 else replace(read, timeline=self._whole_timeline())

    def _replaced(self, as_of: str | None) -> dict[str, set[str]]:
        """File ids that completed replace commits took away, by partition path."""
        gone: dict[str, set[str]] = {}
        for instant in self.timeline.completed().instants:
            if instant.action is Action.REPLACE_COMMIT and (as_of is None or instant.requested_time <= as_of):
                for path, file_ids in self.commit_facts(instant).replaced.items():
                    gone.setdefault(path, set()).update(file_ids)
        return gone

    def _check_not_cleaned(self, as_of: str) -> None:
        cleans = (found for found in (*self.timeline, *self.later) if found.action is Action.CLEAN)
        earliest = max((self._clean_bound(found) for found in cleans if found.is_completed), default="")
        if as_of < earliest:
            raise UnsupportedError(
                f"{self.store.uri('')} as of {as_of or 'its beginning'}: the cleaner kept only what instants from "
                f"{earliest} on need; ask for a later time, and raise hoodie.clean.commits.retained to keep more"
            )

    def _clean_bound(self, clean: Instant) -> str:
        """Requested time before which the clean left no whole snapshot; read once.

        A clean that kept so many versions of each file names no instant to retain: before the last commit that it saw,
        any file may have lost the version that counted.
        """
        known = self.state.commits.clean_bounds.get(clean.requested_time)
        if known is None:
            content = read_instant(self.store, self.layout, clean)
            done = CleanMetadata.parse(content, path=self._path_of(clean))
            known = done.earliest_commit_to_retain or done.last_completed_commit_timestamp
            self.state.commits.clean_bounds[clean.requested_time] = known
        return known
