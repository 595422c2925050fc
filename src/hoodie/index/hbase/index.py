"""The HBase index: keys are looked up in an HBase table, one row for each key, and each write puts its locations there.

The locations are put before the commit, each version with the instant of the write: until the completed file exists
they do not count, and after a rollback they never will. Nothing in HBase is deleted: then older locations count again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final

from hoodie.config import indexes
from hoodie.engine import EngineFor, TaskContext
from hoodie.errors import CommitConflictError
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged_keys import KeyGroups, KeyStage, StagedKeys
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.index.api import Index, IndexUpdate, Tagged, TagRequest
from hoodie.index.hbase.client import Cells, HBaseClient, HBaseSettings, new_identity
from hoodie.index.hbase.readiness import RECORDED_KEY, check_ready, check_recorded
from hoodie.index.hbase.tag import KeyTask, fetch, resolve
from hoodie.index.hbase.versions import (
    VOID,
    Version,
    committed_instants,
    deleted_cells,
    location_cells,
    row_keys,
    versions_of,
)
from hoodie.index.kind import IndexKind
from hoodie.index.record.differences import FileGroupChange, stage_changes
from hoodie.index.record.entries import (
    DELETED,
    ENTRY_BYTES,
    Batches,
    EntryStage,
    StagedEntries,
    WrittenEntries,
    gathered,
    one_entry_per_key,
    read_entries,
)
from hoodie.index.record.moves import tagged_by_entries
from hoodie.records.merging.merge import RecordMerger
from hoodie.storage import StoreSpec, open_store
from hoodie.timeline import Instant, ms_of_instant_time
from hoodie.view.table_view import TableView

ENTRY_GROUPS = KeyGroups(16)
"""Staged keys and entries are divided in these groups; one task has one or more of them."""


@dataclass
class HBaseUpdate(IndexUpdate):
    """The update of one write. `view`: the table when the write began.

    Locations of a write that does not complete do not count, nor do those in a file group that does not exist any more:
    nothing is discarded, and no deletes are staged.
    """

    view: TableView
    instant_time: str
    engine_for: EngineFor
    settings: HBaseSettings
    _entries: list[StagedEntries] = field(default_factory=list, init=False)

    @classmethod
    def begin(
        cls, view: TableView, instant_time: str, engine_for: EngineFor, properties: Mapping[str, str]
    ) -> HBaseUpdate:
        """Begin the update of a write with these options; nothing is read yet."""
        return cls(view, instant_time, engine_for, HBaseSettings.of(view.config.raw, properties))

    @property
    def commit_entries(self) -> Mapping[str, str]:
        """The mark of a commit that recorded its keys in this index."""
        return {RECORDED_KEY: self.settings.identity}

    def entry_stage(self, folder: str) -> EntryStage:
        """Return where the writing tasks stage entries. Raises: as `readiness.check_ready`, at the first call."""
        self._ready  # noqa: B018 - checks the index before data files are written
        return EntryStage(folder, ENTRY_GROUPS)

    def note_locations(self, entries: Sequence[StagedEntries]) -> WrittenEntries:
        """Put the staged locations. Memory of a task: the entries of its group, and the objects of one request.

        Raises: IndexUnavailableError; RecordKeyError for a key that HBase cannot have. Locations that are put already
        do not count, as the write is not committed.
        """
        if not entries:
            return WrittenEntries()
        self._ready  # noqa: B018
        self._entries += entries
        return WrittenEntries(duplicates=self._put(entries))

    def retract(self, slices: Sequence[FileSlice], folder: str) -> None:
        """Replace what an earlier attempt at this instant may have put for the keys of these file slices.

        Raises: IndexUnavailableError.
        """
        changes = [FileGroupChange(found.partition_path, found.file_id, None, found) for found in slices]
        stage, read = EntryStage(folder, ENTRY_GROUPS), self.view.slice_read()
        self._put(stage_changes(self.engine_for, self.view.store.spec, changes, stage, read), is_void=True)

    def refresh(self, now: TableView, metadata: CommitMetadata) -> None:
        """Check that the index is still the one in which the locations are, and that no other write is missing in it.

        Nothing is checked if the table gave the index up. Raises: CommitConflictError if it was built again;
        IndexIncompleteError.
        """
        if now.config.raw.get(indexes.INDEX_TYPE_KEY, "").upper() not in HBASE.types:
            return
        if indexes.HBASE_IDENTITY.get(now.config.raw) != self.settings.identity:
            raise CommitConflictError(
                f"the HBase index of {now.store.uri('')} was built again or replaced while this write ran; nothing was "
                "committed, try again"
            )
        check_recorded(now, self.settings)

    def shares_keys_with(self, now: TableView, other: Instant) -> bool:
        """See `IndexUpdate`. Reads the rows of the keys of this write again, once."""
        return other.requested_time in self._times_of_keys[0]

    def would_lose_to(self, now: TableView, other: Instant) -> bool:
        """See `IndexUpdate`: the version of the later instant counts.

        Reads as `shares_keys_with`, unless the other write is older and this one deletes no key.
        """
        if other.requested_time > self.instant_time:
            return self.shares_keys_with(now, other)
        return any(found.deletes for found in self._entries) and other.requested_time in self._times_of_keys[1]

    @cached_property
    def _ready(self) -> bool:
        check_ready(self.view, self.settings)
        return True

    @cached_property
    def _times_of_keys(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the instants of all versions of the keys for which this write has entries.

        The second set has the instants whose locations a deletion of this write hides.
        """
        tasks, _ = _tasks(self._entries)
        engine = self.engine_for(sum(found.rows for found in self._entries) * ENTRY_BYTES)
        rate = rows_per_second(self.settings, len(tasks))
        own = Version(self.instant_time, None)
        read = partial(_read_times, store=self.view.store.spec, settings=self.settings, rate=rate, deletion=own)
        found = engine.run(read, tasks)
        return frozenset[str]().union(*(times for times, _ in found)), frozenset[str]().union(
            *(hid for _, hid in found)
        )

    def _put(self, entries: Sequence[StagedEntries], *, is_void: bool = False) -> int:
        view = self.view
        return put_entries(
            self.engine_for,
            view.store.spec,
            self.settings,
            entries,
            instant_time=self.instant_time,
            moment_ms=ms_of_instant_time(self.instant_time, view.layout.zone),
            is_void=is_void,
        )


def put_entries(
    engine_for: EngineFor,
    store: StoreSpec,
    settings: HBaseSettings,
    entries: Sequence[StagedEntries],
    *,
    instant_time: str,
    moment_ms: int,
    is_void: bool = False,
) -> int:
    """Put staged entries with the time stamp `moment_ms`; return the number of duplicate inserts.

    `is_void`: put versions that are no location in their place. Raises: IndexUnavailableError.
    """
    tasks, locations = _tasks(entries)
    engine = engine_for(sum(entry.rows for entry in entries) * ENTRY_BYTES)
    cells = tuple(VOID if is_void else location_cells(instant_time, *place) for place in locations)
    put = PutEntries(store, settings, instant_time, moment_ms, cells, len(tasks))
    return sum(engine.run(put, tasks))


@dataclass(frozen=True, slots=True)
class PutEntries:
    """Callable for `Engine.run`: puts the entries of a group. Tasks share its fields, which are serialised once."""

    store: StoreSpec
    settings: HBaseSettings
    instant_time: str
    moment_ms: int
    cells: tuple[Cells, ...]
    tasks: int

    def __call__(self, batches: Batches, _context: TaskContext) -> int:
        """Put the entries, each key once; return the number of duplicate inserts."""
        keys, codes = read_entries(open_store(self.store), batches)
        keys, codes, duplicates = one_entry_per_key(keys, codes)
        gone = deleted_cells(self.instant_time)
        with HBaseClient(self.settings, rows_per_second(self.settings, self.tasks)) as client:
            entries = zip(row_keys(keys), codes.tolist(), strict=True)
            client.put(((key, gone if code == DELETED else self.cells[code]) for key, code in entries), self.moment_ms)
        return duplicates


def rows_per_second(settings: HBaseSettings, tasks: int) -> float:
    """Return the limit of one of so many tasks that run at once; 0 for none. Raises: IndexUnavailableError."""
    if not settings.qps_max:
        return 0.0
    with HBaseClient(settings) as client:
        return settings.qps_max * max(client.region_servers(), 1) / max(tasks, 1)


def _tasks(entries: Sequence[StagedEntries]) -> tuple[list[Batches], tuple[tuple[str, str], ...]]:
    """Return the staged batches of each task, and the locations to which their codes refer.

    All entries of a key are in one task: entries that are staged by data partition are in one.
    """
    batches, locations = gathered(entries)
    if any(entry.partitions for entry in entries):
        return [tuple(batch for found in batches.values() for batch in found)], locations
    return [found for _, found in sorted(batches.items())], locations


def _read_times(
    batches: Batches,
    _context: TaskContext,
    *,
    store: StoreSpec,
    settings: HBaseSettings,
    rate: float,
    deletion: Version,
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the instants of all versions of keys, and of the locations of those keys that have the version `deletion`.

    Memory: the answer to one batch of keys, and the instants.
    """
    times, hidden = set[str](), set[str]()
    keys, _ = read_entries(open_store(store), batches)
    with HBaseClient(settings, rate) as client:
        for row in client.get(row_keys(keys.unique())):
            versions = versions_of(row)
            times.update(version.instant_time for version in versions)
            if deletion in versions:
                hidden.update(version.instant_time for version in versions if version.location is not None)
    return frozenset(times), frozenset(hidden)


_KEYS_TOGETHER = 20_000
"""Number of keys up to which one task looks up all keys."""


@dataclass(frozen=True, slots=True)
class HBaseIndex(Index):
    """Index that looks keys up in HBase, by requests of many keys. A row has the file group, not the file.

    Memory of a task: a sixteenth of the write's keys with their versions, and Python objects of one request.
    """

    view: TableView
    settings: HBaseSettings
    update_partition_path: bool = False
    name = "hbase"
    is_global = True
    indexes_logs = True

    def key_stage(self, merger: RecordMerger) -> KeyStage:
        """Return how to stage keys. An index that cannot be used is found before the caller's data is read."""
        check_ready(self.view, self.settings)
        return KeyStage(ENTRY_GROUPS, merger.batch_ordering)

    def tag(self, request: TagRequest) -> Tagged:
        """See `Index.tag`. Raises: as `readiness.check_ready`; IndexUnavailableError."""
        check_ready(self.view, self.settings)
        engine = request.engine_for(sum(keys.rows for keys in request.keys) * ENTRY_BYTES)
        tasks = list(self._tasks(request, engine.parallelism))
        fetched = engine.run(fetch, tasks)
        times = frozenset[str]().union(*(part.instant_times for part in fetched))
        committed = committed_instants(self.view, times, self.settings.identity) if times else set()
        parts = engine.run(resolve, [(part, part.instant_times & committed) for part in fetched])
        return tagged_by_entries(self.view, request, parts, may_move=self.update_partition_path)

    def _tasks(self, request: TagRequest, parallelism: int) -> Iterator[KeyTask]:
        by_group: dict[int, list[StagedKeys]] = {}
        for keys in request.keys:
            by_group.setdefault(keys.group, []).append(keys)
        is_small = sum(keys.rows for keys in request.keys) <= _KEYS_TOGETHER
        together = len(by_group) if is_small else 1
        groups = sorted(by_group)
        chunks = [groups[start : start + together] for start in range(0, len(groups), max(together, 1))]
        rate = rows_per_second(self.settings, min(parallelism, max(len(chunks), 1)))
        for number, members in enumerate(chunks):
            yield KeyTask(
                store=self.view.store.spec,
                settings=self.settings,
                merger=request.merger,
                keys=tuple(keys for group in members for keys in by_group[group]),
                moves_records=self.update_partition_path,
                rows_per_second=rate,
                output=f"{request.stage_folder}/hbase-{number}",
            )


HBASE: Final[IndexKind] = IndexKind(
    name="hbase",
    types=("HBASE",),
    make=lambda view, properties: HBaseIndex(
        view, HBaseSettings.of(view.config.raw, properties), HBASE.moves_records(properties)
    ),
    is_global=True,
    moves_option=indexes.HBASE_UPDATE_PARTITION_PATH,
    stores_moves=True,
    own_properties=new_identity,
    update=HBaseUpdate.begin,
)
