"""The metadata table: listings for readers, and one delta commit for every commit of the data table.

docs/format/metadata.md §3. All of its content can be rebuilt from the data files. Only this class changes it: it adds
and drops partitions, writes the rows of commits, and rolls commits back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain

from hoodie.errors import CommitConflictError, MetadataTableMissingError
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.table.table_config import TableConfig
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.definitions import drop_definitions
from hoodie.metadata.delta_commit import write_delta_commit
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import fills_a_partition, is_build, is_of_data_table, visible_instants
from hoodie.metadata.kinds.files import FilesListing, WantedPartitions
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.kinds.registry import KINDS, KindRegistry
from hoodie.metadata.memory import FolderMemory
from hoodie.metadata.partitions import (
    clear_metadata_table,
    commit_build,
    create_metadata_properties,
    fill_partitions,
    undo_build,
)
from hoodie.metadata.paths import METADATA_FOLDER, metadata_layout, partition_folder
from hoodie.metadata.rollback import can_roll_back, discard, roll_back
from hoodie.metadata.services.archiving import archive_if_due
from hoodie.metadata.services.cleaning import clean_if_due, finish_clean
from hoodie.metadata.services.compaction import compact_if_due, finish_compaction
from hoodie.metadata.services.context import ServiceContext, ServiceLimits
from hoodie.storage import Store, together
from hoodie.storage.waves import forget_answers, forget_unordered, taking_unordered
from hoodie.timeline import Action, State, Timeline

_Service = Callable[[ServiceContext], bool]
_TO_FINISH: tuple[_Service, ...] = (finish_compaction, finish_clean)
_WHEN_DUE: tuple[_Service, ...] = (archive_if_due, clean_if_due, compact_if_due)
# Each service makes the service before it due, so no service is postponed forever.


def run_services(context: ServiceContext) -> Timeline:
    """Finish pending services and run one service that is due. Returns the metadata table's timeline after that.

    Only one service runs, so that all commits cost about the same; the other services run at later commits. (The JVM
    runs all services that are due.) Call it under the table's lock. If a service is interrupted at any step, the next
    call finishes it. No file is read or written if no service is due.

    Raises:
        CorruptFileError: a file of the metadata table does not parse.
        CommitConflictError: another process runs the same service without holding the lock.
    """
    for finish in _TO_FINISH:
        if finish(context):
            context = context.reloaded()
    for service in _WHEN_DUE:
        if service(context):
            return context.reloaded().metadata_timeline
    return context.metadata_timeline


class MetadataTable:
    """The metadata table of one data table. Thread-safe; changes also need the table's lock.

    Files are parsed once per object. A listing costs one listing of the metadata timeline, one listing of the
    partition's folder, and reads of the files that are new since the last call.
    """

    def __init__(self, store: Store, config: TableConfig, *, kinds: KindRegistry = KINDS) -> None:
        """Create a handle; nothing is read, and the metadata table need not exist. `config` is of the data table."""
        self.folder = MetadataFolder(store, config, FolderMemory(store, metadata_layout(config)))
        """The folder of the metadata table, with what this object remembers of it."""
        self._kinds = kinds
        self._listing = FilesListing(store, config.version, files=self.folder.files)
        self._lock = threading.RLock()
        self.recorded: Mapping[str, str] = {}
        """The completed delta commits that the last listing found: requested time -> order time."""
        self._last_completion = ""

    @classmethod
    def open(cls, store: Store, config: TableConfig) -> MetadataTable | None:
        """Open the metadata table; None if readers do not use a metadata table.

        Nothing is read yet.
        """
        if not config.has_metadata_table:
            return None
        return cls(store, config)

    @classmethod
    def create(
        cls, table: DataTable, added: Sequence[PartitionKind] = (), *, kinds: KindRegistry = KINDS
    ) -> MetadataTable:
        """Create the metadata table with the required partitions and those of `added`. Its folder is deleted first.

        Readers ignore the result until the caller has added the partitions to `hoodie.table.metadata.partitions`. If
        the process stops before that, call it again.
        """
        # Before anything is deleted: a listing that fails leaves the table as it is.
        files = table.list_files()
        clear_metadata_table(table)
        created = cls(table.store, table.config, kinds=kinds)
        properties = partial(create_metadata_properties, table.store, table.config)
        listed = replace(table, list_files=lambda: files)
        fill_partitions(created.folder, (*kinds.required, *added), listed, Timeline(), properties)
        return created

    def listing(self, data_timeline: Timeline, partitions: WantedPartitions | None = None) -> dict[str, dict[str, int]]:
        """Return the committed files: partition path (`""` if the table has none) -> file name -> size in bytes.

        `data_timeline` is the whole active timeline of the data table, with pending instants. With `partitions`,
        exactly these partitions are returned; unknown partitions are empty. A function chooses them among all.

        Raises:
            MetadataTableMissingError: the metadata table does not exist.
            CorruptFileError: a file of the metadata table does not parse or is missing.
        """
        with self._lock:
            timeline = self._timeline_of(data_timeline)
            commits = [found for found in timeline.completed() if found.action is Action.DELTA_COMMIT]
            named = self.folder.names_base_instants
            self.recorded = {
                found.requested_time: found.requested_time if named else found.completion_time or ""
                for found in commits
                if is_of_data_table(found.requested_time)
            }
            self._last_completion = max((found.completion_time or "" for found in commits), default="")
            try:
                return self._listing.read(visible_instants(timeline, data_timeline), partitions)
            finally:
                forget_unordered()

    def _timeline_of(self, data_timeline: Timeline) -> Timeline:
        """Return the metadata timeline, of the time when the data timeline was loaded or later."""
        with taking_unordered() as taken, suppress(MetadataTableMissingError):
            timeline = self.folder.existing_timeline()
            if not taken or _has_newest(timeline, data_timeline):
                return timeline
        forget_answers()
        return self.folder.existing_timeline()

    def is_newer_than(self, data_timeline: Timeline) -> bool:
        """Return whether the last listing may have seen a commit that the data timeline does not have as completed.

        The delta commit of an instant completes before the instant, and under the lock.
        """
        return self._last_completion > max(
            (found.completion_time or "" for found in data_timeline.completed()), default=""
        )

    def commit(self, instant_time: str, changes: MetadataChanges, table: DataTable) -> None:
        """Write the delta commit of a data instant, before that instant completes.

        Every metadata partition makes its rows from `changes`. Table services that are due run first. Files of an
        earlier attempt at the same instant are deleted, except `changes.written_logs`.

        Raises:
            MetadataTableMissingError: the metadata table does not exist.
            UnsupportedError: the metadata table has partitions that this release cannot maintain.
            CommitConflictError: another process writes the same instant, or removed the metadata table or a partition
                that has log files in `changes`.
        """
        config = table.config
        if not config.has_metadata_table:
            where = self.folder.store.uri("")
            raise CommitConflictError(f"{where}: the metadata table was removed while this write ran; write again")
        kinds = self._kinds.all_of({*config.metadata_partitions, *config.metadata_partitions_inflight})
        timeline = self.folder.existing_timeline()
        changes.check_partitions(kinds)
        if timeline.get(instant_time, Action.DELTA_COMMIT) is not None:
            kept = {stat.path or "" for stat in changes.written_logs}
            self.folder.undo(instant_time, Action.DELTA_COMMIT, keep=kept)
            timeline = self.folder.timeline()
        timeline = run_services(
            ServiceContext(
                folder=self.folder,
                kinds=kinds,
                table=table,
                metadata_timeline=timeline,
                limits=ServiceLimits.of(config.raw),
                unfinished=frozenset(config.metadata_partitions_inflight),
            )
        )
        visible = visible_instants(timeline, table.timeline)
        pending = (found.requested_time for found in table.timeline.writes().pending())
        changes = replace(changes, is_overlapped=any(time < instant_time for time in pending))
        rows = [kind.rows_of(changes, table, visible) for kind in kinds.values()]
        write_delta_commit(
            self.folder,
            instant_time,
            chain.from_iterable(rows),
            table,
            written=changes.written_logs,
            metadata_timeline=timeline,
        )

    def can_roll_back(self, target_instant: str, *, was_completed: bool) -> bool:
        """Return whether `rollback` removes all rows of a data instant; otherwise build the metadata table anew.

        Call it before anything of the instant is deleted; `was_completed`: the data instant is completed.
        """
        return can_roll_back(self.folder, target_instant, was_completed=was_completed)

    def rollback(self, target_instant: str, *, rollback_instant: str, table: DataTable) -> None:
        """Roll back the delta commit of a data instant that is rolled back, under the table's lock.

        If that instant has no delta commit, the log files that its tasks wrote are deleted. Safe to repeat after an
        interruption.

        Raises:
            UnsupportedError: the instant was compacted into a base file; the metadata table must be built anew.
        """
        roll_back(self.folder, target_instant, rollback_time=rollback_instant, table=table)

    def take_back(self, instant_time: str) -> None:
        """Delete the delta commit of a data instant that is still pending, under the table's lock; no reader saw it.

        Safe to repeat. Does nothing if the instant has no delta commit.
        """
        if self.folder.timeline().get(instant_time, Action.DELTA_COMMIT) is not None:
            self.folder.undo(instant_time, Action.DELTA_COMMIT)

    def discard(self, instant_time: str) -> None:
        """Delete the log files of an instant that has no delta commit; no reader saw them."""
        discard(self.folder, instant_time)

    def add_partitions(self, kinds: Sequence[PartitionKind], table: DataTable) -> None:
        """Add partitions with their first rows, under the table's lock. Their folders are deleted first.

        Readers ignore the result until the caller has added the partitions to `hoodie.table.metadata.partitions`. If
        the process stops before that, call it again.
        """
        if kinds:
            together(self.folder.store, *(partial(self.clear_partition, kind) for kind in kinds))
            timeline = self.folder.timeline()
            times = {found.requested_time for found in timeline.pending()}
            # A process died while it filled partitions. The instants would keep later ones out of the archive.
            dead = {time for time in times if fills_a_partition(time) and not is_build(time)}
            for time in dead:
                self.folder.forget(time, Action.DELTA_COMMIT, State.INFLIGHT, State.REQUESTED)
            timeline = timeline.filter(lambda instant: instant.requested_time not in dead)
            fill_partitions(self.folder, kinds, table, timeline)

    def clear_partition(self, kind: PartitionKind) -> None:
        """Delete the folder of a partition that is not in use, before it is built."""
        self.folder.store.delete_folder(partition_folder(kind.name))

    def drop_partitions(self, names: Collection[str]) -> None:
        """Delete partitions and their index definitions; delete the whole metadata table if one of them is required.

        Remove the names from `hoodie.table.metadata.partitions` first: readers use that property. All other files of
        the metadata table stay, including its timeline.

        Raises: CorruptFileError if the index definitions do not parse.
        """
        store = self.folder.store
        for name in sorted(names):
            store.delete_folder(partition_folder(name))
        if any(kind.name in names for kind in self._kinds.required):
            store.delete_folder(METADATA_FOLDER)
        drop_definitions(store, names)

    def check_no_service_pending(self) -> None:
        """Refuse to exchange a partition while a service of the metadata table is pending: it reads its file groups.

        Raises: CommitConflictError.
        """
        for instant in self.folder.timeline().pending():
            if instant.action in _SERVICES:
                raise CommitConflictError(
                    f"the metadata table of {self.folder.store.uri('')} has a pending {instant}, which works on the "
                    "file groups that the build replaces; write to the table to finish it, then run the build again"
                )

    def commit_build(self, kind: PartitionKind, built_at: str, stats: Sequence[WriteStat], table: DataTable) -> None:
        """Make the files of a build the partition, under the table's lock; files of other instants are deleted.

        `built_at` is the instant of the build in the metadata table. `stats` are the write statistics of its files.
        Safe to repeat after a crash. `hoodie.table.metadata.partitions` must not contain the partition meanwhile.
        """
        commit_build(self.folder, kind, built_at, stats, table)

    def has_build(self, built_at: str) -> bool:
        """Return whether the instant of a build is completed."""
        found = self.folder.timeline().get(built_at, Action.DELTA_COMMIT)
        return found is not None and found.is_completed

    def undo_build(self, kind: PartitionKind, built_at: str, table: DataTable) -> None:
        """Delete the instant and the files of a build, under the lock; a partition in use keeps its other files."""
        table.ensure_held()
        undo_build(self.folder, kind, built_at, is_in_use=kind.name in table.config.metadata_partitions)


_SERVICES = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLEAN})
_WITHOUT_DELTA = (Action.SAVEPOINT, Action.INDEXING)


def _has_newest(metadata_timeline: Timeline, data_timeline: Timeline) -> bool:
    """Return whether the metadata table has the newest completed instant of the data timeline, and so all before it."""
    done = (found for found in data_timeline.completed() if found.action not in _WITHOUT_DELTA)
    newest = max(done, key=lambda found: found.completion_time or "", default=None)
    found = None if newest is None else metadata_timeline.get(newest.requested_time, Action.DELTA_COMMIT)
    return newest is None or (found is not None and found.is_completed)
