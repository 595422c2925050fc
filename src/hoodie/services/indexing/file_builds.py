"""Build metadata partitions from the data files while writers write: column statistics, bloom filters.

A build reads the files of the newest file slices, without the lock, in rounds; then, under the table's lock, the files
of commits since the last round. It then writes the metadata partitions and names them in the table's properties. Until
then readers and writers do not use them. A build whose process died is completed or undone by the next call.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

from hoodie.commit.begin import AbandonedFiles
from hoodie.commit.call import Call
from hoodie.commit.metadata_table import ensure_metadata_table
from hoodie.commit.pending import PendingInstant
from hoodie.commit.steps import Step, reached
from hoodie.config import Option
from hoodie.engine import EngineFor
from hoodie.errors import HoodieError, InvalidConfigError, LockTimeoutError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.table import table_keys as keys
from hoodie.format.table.table_config import BaseFileFormat
from hoodie.index.record.building.plan import IndexBuild, build_of, pending_indexing
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import build_time, visible_instants
from hoodie.metadata.kinds.partition_kind import PartitionBuild, PartitionKind
from hoodie.metadata.kinds.registry import KINDS
from hoodie.metadata.paths import INDEX_DEFINITIONS
from hoodie.metadata.table import MetadataTable
from hoodie.progress import PhaseTimes
from hoodie.services.indexing.build import complete_alone
from hoodie.services.indexing.switch import cancel, end_dead, is_switched_on, pending_build_error
from hoodie.services.results import Finding, Report, ServiceResult, few_of_each_kind
from hoodie.timeline import Action, is_live
from hoodie.timeline.owner import Owner
from hoodie.view.slices import data_table
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_ROUNDS_MAX = 5
_TRIES = 3


def build_partition(call: Call, name: str, *, columns: Sequence[str] | None = None) -> ServiceResult:
    """Build the metadata partition `name`, and those that belong to it, or build them anew; writers can run meanwhile.

    `name` is one that `KINDS.builder` knows. `columns`: the columns that get statistics, besides the meta columns; by
    default those of the table's options, those that an earlier build was given, or the first 32 columns. The options
    that make JVM writers maintain the partition are stored in the table's properties. Memory of the driver: see the
    kind's build (10,000 files with statistics of 32 columns: 0.5 GB; bloom filters: 300 MiB).

    Raises:
        UnsupportedError: tables of a version in which this release does not write the partition, tables without meta
            fields, bootstrapped tables.
        SchemaMismatchError: the table does not have one of the columns, or its type has no statistics.
        CommitConflictError: another index is being built, or a JVM write did not end in time.
    """
    times, kind = PhaseTimes(), _builder(name)
    with ExitStack() as held:
        with times.phase("plan"):
            view = TableView.load(call.state)
            table = data_table(view)
            kind.check_buildable(table)
            _check_files(view, kind.subject)
            kind = kind.with_columns(table, columns)
            followers = tuple(found for found in KINDS.followers(kind.name) if found.fits(table))
            build = FileBuild((kind, *followers), kind.build(followers, held, table), call.engine_for)
            pending, notes = _begin(call, build)
        stats = _run(call, pending, build, times)
        counts = build.files.counts
    return ServiceResult(
        operation=f"build {kind.subject}",
        instant=pending.instant_time,
        counts=counts,
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        seconds=times.seconds(),
        notes=notes,
    )


def verify_partition(call: Call, name: str) -> Report:
    """Compare a metadata partition that is built from files, and those that follow it, with the data files.

    Writers may run. Memory and problems: see `PartitionKind.compare` of the kind.

    Raises: InvalidConfigError if the table has no such partition; CorruptFileError.
    """
    started, kind = time.perf_counter(), _builder(name)
    for tries in range(_TRIES):
        view = TableView.load(call.state)
        report = _compared(view, kind, call, started)
        if report.ok or TableView.load(call.state).timeline == view.timeline or tries == _TRIES - 1:
            break
    return report


def _builder(name: str) -> PartitionKind:
    kind = KINDS.builder(name)
    assert kind is not None, name
    return kind


def _compared(view: TableView, kind: PartitionKind, call: Call, started: float) -> Report:
    table, where = data_table(view, call.engine_for), view.store.uri("")
    if kind.name not in view.config.metadata_partitions or kind.is_outdated(table):
        raise InvalidConfigError(
            f'{where} has no {kind.subject} that this release maintains; build them with t.index.build("{kind.name}")'
        )
    followers = [found for found in KINDS.followers(kind.name) if found.name in view.config.metadata_partitions]
    timeline = visible_instants(MetadataFolder(view.store, view.config).existing_timeline(), view.whole_timeline())
    found = kind.compare(followers, table, timeline)
    counts = Counter(one.kind for one in found.differences)
    findings = (
        Finding(kind=one.kind, key=one.key, expected=one.expected, found=one.found) for one in found.differences
    )
    return Report(
        subject=f"{kind.subject} of {where}",
        checked=found.checked,
        problems={text: counts[text] for text in found.kinds},
        findings=few_of_each_kind(findings),
        seconds=time.perf_counter() - started,
    )


@dataclass(frozen=True, slots=True)
class FileBuild:
    """The partitions that a build makes, and what it has read of the data files."""

    kinds: tuple[PartitionKind, ...]
    """The first one leads: those that follow it and that the build does not make are dropped."""
    files: PartitionBuild
    engine_for: EngineFor

    @property
    def names(self) -> tuple[str, ...]:
        """The partitions that are built."""
        return tuple(kind.name for kind in self.kinds)

    @property
    def replaced(self) -> tuple[str, ...]:
        """The partitions that the build replaces or drops."""
        return tuple(sorted(KINDS.with_followers(self.names)))

    def catch_up(self, view: TableView) -> int:
        """Read the files that are new since the last call; return how many."""
        return self.files.catch_up(data_table(view, self.engine_for))


@dataclass(slots=True)
class SwitchOn:
    """Complete a build: write its partitions and name them in the table's properties; see `Completion`."""

    built_at: str
    build: FileBuild
    stats: list[WriteStat] = field(default_factory=list)

    def check(self, now: TableView) -> None:
        """Refuse to replace partitions while a service of the metadata table is pending.

        Raises: CommitConflictError.
        """
        if {*self.build.replaced} & {*now.config.metadata_partitions}:
            MetadataTable(now.store, now.config).check_no_service_pending()

    def update_metadata_table(self, now: TableView) -> None:
        """Write the partitions, complete the build's delta commit, and name the partitions in the properties."""
        now.held_lock.ensure_held()
        if {*self.build.replaced} & {*now.config.metadata_partitions}:
            update_table_config(now.store, _off_properties(now, self.build.replaced))
        metadata_table, table = MetadataTable(now.store, now.config), data_table(now)
        for kind in self.build.kinds:
            self.stats += self.build.files.write(table, kind, built_at=self.built_at)
            # The last call completes the instant with the files of all partitions.
            metadata_table.commit_build(kind, self.built_at, self.stats, table)
        now.held_lock.ensure_held()
        update_table_config(now.store, _on_properties(now, self.build))

    def content(self, now: TableView) -> bytes:
        """The last instant whose files the partitions cover."""
        return IndexBuild.of_files(self.build.names).metadata_to_bytes(now)


def _begin(call: Call, build: FileBuild) -> tuple[PendingInstant, tuple[str, ...]]:
    """Create a build on the timeline; a build whose process died is completed or undone first; return notes."""
    with call.state.table_lock() as lock:
        abandoned = AbandonedFiles.find(call.state.store)
        view = TableView.load(call.state, lock)
        abandoned.remove(call.state.store, view.timeline)
        notes = _end_builds(view)
        view = ensure_metadata_table(TableView.load(call.state, lock))
        plan = IndexBuild.of_files(build.names).plan_to_bytes(view)
        pending = PendingInstant.start(view, Action.INDEXING, plan, Owner.new().to_bytes(), is_token=True)
    return pending, notes


def _run(call: Call, pending: PendingInstant, build: FileBuild, times: PhaseTimes) -> list[WriteStat]:
    """Run a build to its end; return the write statistics of its files.

    After an error with which a second call would fail too, the build is undone.

    Raises: CommitConflictError if a JVM write did not end in time.
    """
    switch = SwitchOn(build_time(pending.instant_time), build)
    try:
        _read_and_switch(call, pending, switch, times)
    except HoodieError as error:
        if not isinstance(error, LockTimeoutError):
            with suppress(Exception), call.state.table_lock() as lock:
                view = TableView.load(call.state, lock)
                pending.ensure_mine(view)
                begun = IndexBuild.of_files(build.names, pending.instant_time)
                if not is_switched_on(view, begun):
                    cancel(view, begun)
        raise
    finally:
        pending.end()
    return switch.stats


def _read_and_switch(call: Call, pending: PendingInstant, switch: SwitchOn, times: PhaseTimes) -> None:
    build = switch.build
    reached(Step.BEGUN)
    with times.phase("build"):
        for _ in range(_ROUNDS_MAX):
            if not build.catch_up(TableView.load(call.state)):
                break
        build.files.prepare(data_table(TableView.load(call.state)), switch.built_at)
    reached(Step.WRITTEN)

    def complete(view: TableView) -> None:
        build.catch_up(view)
        pending.complete(view, switch)
        call.state.metadata_table = None

    complete_alone(call, pending, times, complete, build.catch_up)


def drop_partition(state: TableState, name: str) -> ServiceResult:
    """Drop a metadata partition that is built from files, and those that follow it; undo a build whose process died.

    Safe to repeat.

    Raises: CommitConflictError if a build is running; UnsupportedError for table version 6.
    """
    times, gone = PhaseTimes(), sorted(KINDS.with_followers([name]))
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
        update_table_config(state.store, _off_properties(view, gone))
        lock.ensure_held()
        MetadataTable(state.store, view.config).drop_partitions(gone)
        state.metadata_table = None
    return ServiceResult(
        operation=f"drop {' and '.join(gone)}", counts={"partitions": len(had)}, seconds=times.seconds(), notes=notes
    )


def _switches(names: Collection[str]) -> dict[str, Option[bool]]:
    return {name: kind.switch for name, kind in KINDS.maintained(names).items() if kind.switch is not None}


def _off_properties(view: TableView, gone: Sequence[str]) -> dict[str, str | None]:
    """Return the properties of a table after these partitions were dropped."""
    named = {*view.config.metadata_partitions} - {*gone}
    found: dict[str, str | None] = {keys.METADATA_PARTITIONS: ",".join(sorted(named))}
    return {**found, **{switch.key: "false" for switch in _switches(gone).values()}}


def _on_properties(view: TableView, build: FileBuild) -> dict[str, str | None]:
    names = build.names
    found: dict[str, str | None] = {
        keys.METADATA_PARTITIONS: ",".join(sorted({*view.config.metadata_partitions, *names})),
        # A stored false makes JVM writers fail that pass true, and a table without partitions has no use for it.
        **{switch.key: "true" if name in names else None for name, switch in _switches(build.replaced).items()},
    }
    is_defined = any(kind.definition is not None for kind in build.kinds)
    if is_defined and view.config.index_definitions_path is None:
        found[keys.INDEX_DEFINITIONS_PATH] = INDEX_DEFINITIONS
    return found


def _check_files(view: TableView, what: str) -> None:
    """Refuse tables from whose files this release builds no metadata partition. Raises: UnsupportedError."""
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
    builds = [build_of(view, found) for found in pending_indexing(view)]
    if not builds or any(
        build is None or build.is_of_records or is_live(state.store, build.requested_time) for build in builds
    ):
        return ()
    with state.table_lock() as lock:
        return _end_builds(TableView.load(state, lock))


def _end_builds(view: TableView) -> tuple[str, ...]:
    """Complete or undo builds of this kind whose process died; return notes. Call it under the table's lock.

    Raises: CommitConflictError if an index is being built; UnsupportedError if the JVM builds one.
    """
    notes = []
    for instant in pending_indexing(view):
        build = build_of(view, instant)
        if build is None or build.is_of_records or is_live(view.store, instant.requested_time):
            raise pending_build_error(view, instant)
        notes.append(end_dead(view, build))
    return tuple(notes)
