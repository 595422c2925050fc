"""Build metadata partitions from the data files while writers write: column statistics, bloom filters.

A build reads the files of the newest file slices, without the lock, in rounds; then, under the table's lock, the files
of commits since the last round. It then writes the metadata partitions and names them in the table's properties. Until
then readers and writers do not use them. A build whose process died is completed or undone by the next call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

import pyarrow as pa

from hoodie.commit.begin import AbandonedFiles
from hoodie.commit.call import Call
from hoodie.commit.metadata_table import ensure_metadata_table, locked_table
from hoodie.commit.pending import PendingInstant
from hoodie.commit.steps import Step, reached
from hoodie.config import Option, indexes
from hoodie.errors import HoodieError, LockTimeoutError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.format.instants.commit_metadata import RuntimeStats, WriteStat
from hoodie.format.instants.service_metadata import IndexCommitMetadata, IndexPartitionInfo, IndexPlan
from hoodie.format.metadata_table.column_stats import StatsRow
from hoodie.format.metadata_table.metadata_record import RecordType
from hoodie.format.metadata_table.partition_names import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS
from hoodie.format.table import table_keys as keys
from hoodie.format.table.table_config import BaseFileFormat
from hoodie.metadata.delta_commit import base_file_to_bytes
from hoodie.metadata.folder import base_name
from hoodie.metadata.instants import build_time
from hoodie.metadata.kinds.column_stats import grouped_rows
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.kinds.registry import KINDS
from hoodie.metadata.paths import INDEX_DEFINITIONS, file_id_of, partition_folder
from hoodie.metadata.table import MetadataTable
from hoodie.progress import PhaseTimes
from hoodie.services.indexing.build import complete_alone
from hoodie.services.indexing.switch import beside_pending
from hoodie.services.results import ServiceResult
from hoodie.storage import Store
from hoodie.timeline import Action, State, delete_heartbeat, delete_instant_files, is_live
from hoodie.timeline.owner import Owner
from hoodie.view.statistics import OUR_BUILD, built_of_files
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


def write_stats_files(
    store: Store, kind: PartitionKind, rows: Mapping[str, StatsRow], *, groups: int, built_at: str
) -> list[WriteStat]:
    """Write one base file for each of `groups` file groups, also for one without rows; a retry writes the same files.

    Readers do not see the files until the build completes. Memory: the rows, and the files.
    """
    record_type = RecordType.COLUMN_STATS if kind.definition is not None else RecordType.PARTITION_STATS
    return [
        write_group_file(store, kind, number, keys, values, built_at=built_at)
        for number, (keys, values) in enumerate(grouped_rows(rows, record_type, groups))
    ]


def write_group_file(
    store: Store, kind: PartitionKind, number: int, keys: pa.Array, values: pa.Array, *, built_at: str
) -> WriteStat:
    """Write the base file of one file group in a build; `keys` ascend. A retry writes the same file."""
    file_id = file_id_of(kind.file_id_prefix, number)
    name = base_name(file_id, built_at)
    data = base_file_to_bytes(keys, values)
    store.replace(f"{partition_folder(kind.name)}/{name}", data)
    return WriteStat(
        file_id=file_id,
        path=f"{kind.name}/{name}",
        num_writes=len(keys),
        num_inserts=len(keys),
        total_write_bytes=len(data),
        file_size_bytes=len(data),
        partition_path=kind.name,
        runtime_stats=RuntimeStats(),
    )


_ROUNDS_MAX = 5
_SWITCHES: Final[Mapping[str, Option[bool]]] = {
    COLUMN_STATS: indexes.COLUMN_STATS_ENABLE,
    PARTITION_STATS: indexes.PARTITION_STATS_ENABLE,
    BLOOM_FILTERS: indexes.BLOOM_FILTERS_ENABLE,
}


class BuiltFiles(Protocol):
    """What a build reads of the data files, and the metadata partitions that it makes of it."""

    @property
    def kinds(self) -> tuple[PartitionKind, ...]:
        """The partitions that are built."""
        ...

    @property
    def replaced(self) -> tuple[str, ...]:
        """Names of the partitions that the build replaces; those that it does not build are dropped."""
        ...

    def catch_up(self, view: TableView) -> int:
        """Read the files that are new since the last call, and forget those that left; return how many were read."""
        ...

    def prepare(self, view: TableView, built_at: str) -> None:
        """Do before the lock is taken what makes `write` short."""
        ...

    def write(self, store: Store, kind: PartitionKind, *, groups: int, built_at: str) -> list[WriteStat]:
        """Write the base files of a partition; a retry writes the same files."""
        ...


@dataclass(slots=True)
class SwitchOn:
    """Complete a build: write its partitions and name them in the table's properties; see `Completion`."""

    built_at: str
    files: BuiltFiles
    stats: list[WriteStat] = field(default_factory=list)

    def check(self, now: TableView) -> None:
        """Refuse to replace partitions while a service of the metadata table is pending.

        Raises: CommitConflictError.
        """
        if {*self.files.replaced} & {*now.config.metadata_partitions}:
            MetadataTable(now.store, now.config).check_no_service_pending()

    def update_metadata_table(self, now: TableView) -> None:
        """Write the partitions, complete the build's delta commit, and name the partitions in the properties."""
        now.held_lock.ensure_held()
        if {*self.files.replaced} & {*now.config.metadata_partitions}:
            update_table_config(now.store, off_properties(now, self.files.replaced))
        metadata_table = MetadataTable(now.store, now.config)
        for kind in self.files.kinds:
            groups = kind.file_groups(now.config.raw)
            self.stats += self.files.write(now.store, kind, groups=groups, built_at=self.built_at)
            # The last call completes the instant with the files of all partitions.
            metadata_table.commit_build(kind, self.built_at, self.stats, locked_table(now))
        now.held_lock.ensure_held()
        update_table_config(now.store, _on_properties(now, self.files))

    def content(self, now: TableView) -> bytes:
        """The last instant whose files the partitions cover."""
        last = now.timeline.writes().completed().latest()
        infos = tuple(_info(kind.name, None if last is None else last.requested_time) for kind in self.files.kinds)
        return IndexCommitMetadata(index_partition_infos=infos).to_bytes()


@dataclass(frozen=True, slots=True)
class _SwitchedOn:
    """Complete a build whose process died after it had named the partitions; see `Completion`."""

    names: tuple[str, ...]

    def check(self, now: TableView) -> None:
        """Check nothing: no change of another writer conflicts."""

    def update_metadata_table(self, now: TableView) -> None:
        """Do nothing: the metadata table has the partitions already."""

    def content(self, now: TableView) -> bytes:
        """The last instant whose files the partitions cover."""
        last = now.timeline.writes().completed().latest()
        upto = None if last is None else last.requested_time
        return IndexCommitMetadata(index_partition_infos=tuple(_info(name, upto) for name in self.names)).to_bytes()


def begin(call: Call, files: BuiltFiles) -> tuple[PendingInstant, tuple[str, ...]]:
    """Create a build on the timeline; a build whose process died is completed or undone first; return notes."""
    with call.state.table_lock() as lock:
        abandoned = AbandonedFiles.find(call.state.store)
        view = TableView.load(call.state, lock)
        abandoned.remove(call.state.store, view.timeline)
        notes = _end_builds(view)
        view = ensure_metadata_table(TableView.load(call.state, lock))
        last = view.timeline.writes().completed().latest()
        infos = tuple(_info(kind.name, None if last is None else last.requested_time) for kind in files.kinds)
        plan = IndexPlan(index_partition_infos=infos).to_bytes()
        pending = PendingInstant.start(view, Action.INDEXING, plan, Owner.new().to_bytes(), is_token=True)
    return pending, notes


def run(call: Call, pending: PendingInstant, files: BuiltFiles, times: PhaseTimes) -> list[WriteStat]:
    """Run a build to its end; return the write statistics of its files.

    After an error with which a second call would fail too, the build is undone.

    Raises: CommitConflictError if a JVM write did not end in time.
    """
    switch = SwitchOn(build_time(pending.instant_time), files)
    try:
        _run(call, pending, switch, times)
    except HoodieError as error:
        if not isinstance(error, LockTimeoutError):
            with suppress(Exception), call.state.table_lock() as lock:
                view = TableView.load(call.state, lock)
                pending.ensure_mine(view)
                names = tuple(kind.name for kind in files.kinds)
                if not _is_switched_on(view, pending.instant_time, names):
                    _cancel(view, pending.instant_time, names)
        raise
    finally:
        pending.end()
    return switch.stats


def _run(call: Call, pending: PendingInstant, switch: SwitchOn, times: PhaseTimes) -> None:
    reached(Step.BEGUN)
    with times.phase("build"):
        for _ in range(_ROUNDS_MAX):
            if not switch.files.catch_up(TableView.load(call.state)):
                break
        switch.files.prepare(TableView.load(call.state), switch.built_at)
    reached(Step.WRITTEN)

    def complete(view: TableView) -> None:
        switch.files.catch_up(view)
        pending.complete(view, switch)
        call.state.metadata_table = None

    complete_alone(call, pending, times, complete, switch.files.catch_up)


def drop_built(state: TableState, gone: Sequence[str]) -> ServiceResult:
    """Drop metadata partitions of this kind; undo a build whose process died. Safe to repeat.

    Raises: CommitConflictError if a build is running; UnsupportedError for table version 6.
    """
    times = PhaseTimes()
    with state.table_lock() as lock, times.phase("drop"):
        view = TableView.load(state, lock)
        if not view.config.version.has_known_metadata_table:
            raise UnsupportedError(
                f"{state.store.uri('')} has table version 6: this release does not write its metadata table; drop "
                f"{' and '.join(gone)} with JVM Hudi"
            )
        notes = _end_builds(view)
        view = TableView.load(state, lock)
        had = [found for found in gone if found in view.config.metadata_partitions]
        update_table_config(state.store, off_properties(view, gone))
        lock.ensure_held()
        MetadataTable(state.store, view.config).drop_partitions(gone)
        state.metadata_table = None
    return ServiceResult(
        operation=f"drop {' and '.join(gone)}", counts={"partitions": len(had)}, seconds=times.seconds(), notes=notes
    )


def off_properties(view: TableView, gone: Sequence[str]) -> dict[str, str | None]:
    """Return the properties of a table after these partitions were dropped."""
    named = {*view.config.metadata_partitions} - {*gone}
    found: dict[str, str | None] = {keys.METADATA_PARTITIONS: ",".join(sorted(named))}
    return {**found, **{_SWITCHES[name].key: "false" for name in gone}}


def _on_properties(view: TableView, files: BuiltFiles) -> dict[str, str | None]:
    names = [kind.name for kind in files.kinds]
    found: dict[str, str | None] = {
        keys.METADATA_PARTITIONS: ",".join(sorted({*view.config.metadata_partitions, *names})),
        # A stored false makes JVM writers fail that pass true, and a table without partitions has no use for it.
        **{_SWITCHES[name].key: "true" if name in names else None for name in files.replaced},
    }
    is_defined = any(kind.definition is not None for kind in files.kinds)
    if is_defined and view.config.index_definitions_path is None:
        found[keys.INDEX_DEFINITIONS_PATH] = INDEX_DEFINITIONS
    return found


def check_buildable(view: TableView, what: str) -> None:
    """Refuse tables of which this release does not build metadata partitions from files; `what` is built.

    Raises: UnsupportedError.
    """
    config, where = view.config, view.store.uri("")
    is_plain = config.bootstrap_base_path is None and config.base_file_format is BaseFileFormat.PARQUET
    if not (is_plain and config.populates_meta_fields):
        raise UnsupportedError(
            f"{where}: this release builds the {what} of tables with meta fields and Parquet base files, not of "
            "bootstrapped tables; build them with JVM Hudi"
        )


def end_dead_builds(view: TableView) -> tuple[str, ...]:
    """Complete or undo a pending build of this kind whose process died; return notes. Takes the lock for one only."""
    state = view.state
    pending = [found for found in view.timeline.pending() if found.action is Action.INDEXING]
    if not pending or any(
        not built_of_files(view, found) or is_live(state.store, found.requested_time) for found in pending
    ):
        return ()
    with state.table_lock() as lock:
        return _end_builds(TableView.load(state, lock))


def _end_builds(view: TableView) -> tuple[str, ...]:
    """Complete or undo builds of this kind whose process died; return notes. Call it under the table's lock.

    Raises: CommitConflictError if an index is being built; UnsupportedError if the JVM builds one.
    """
    notes = []
    for instant in [found for found in view.timeline.pending() if found.action is Action.INDEXING]:
        names = built_of_files(view, instant)
        if not names or is_live(view.store, instant.requested_time):
            raise beside_pending(view, instant)
        if _is_switched_on(view, instant.requested_time, names):
            PendingInstant.resume(view, instant).complete(view, _SwitchedOn(names))
            delete_heartbeat(view.store, instant.requested_time)
            notes.append(f"completed the build at {instant.requested_time}, whose process had died")
        else:
            _cancel(view, instant.requested_time, names)
            notes.append(f"rolled back the build at {instant.requested_time}, whose process had died")
    return tuple(notes)


def _is_switched_on(view: TableView, requested_time: str, names: Sequence[str]) -> bool:
    if names[0] not in view.config.metadata_partitions:
        return False
    return MetadataTable(view.store, view.config).has_build(build_time(requested_time))


def _cancel(view: TableView, requested_time: str, names: Sequence[str]) -> None:
    """Undo a build that is not switched on: delete its files and its instants. Call it under the table's lock."""
    metadata_table = MetadataTable(view.store, view.config)
    for kind in KINDS.maintained(names).values():
        metadata_table.undo_build(kind, build_time(requested_time), locked_table(view))
    states = (State.INFLIGHT, State.REQUESTED)
    delete_instant_files(view.store, view.layout, requested_time, Action.INDEXING, *states)
    delete_heartbeat(view.store, requested_time)


def _info(name: str, upto: str | None) -> IndexPartitionInfo:
    return IndexPartitionInfo(metadata_partition_path=name, index_upto_instant=upto, extra_metadata={OUR_BUILD: "true"})
