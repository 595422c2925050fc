"""Build metadata partitions from the data files while writers write: column statistics, bloom filters.

A build reads the files of the newest file slices, without the lock, in rounds; then, under the table's lock, the files
of commits since the last round. It then writes the metadata partitions and names them in the table's properties. Until
then readers and writers do not use them. A build whose process died is completed or undone by the next call.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from hoodie.commit.call import Call
from hoodie.commit.metadata_table import drop_partitions, ensure_metadata_table, without_partitions
from hoodie.commit.pending import Completion
from hoodie.config import Option
from hoodie.errors import HoodieError, InvalidConfigError, LockTimeoutError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.table import table_keys as keys
from hoodie.format.table.table_config import BaseFileFormat
from hoodie.index.record.building.plan import IndexBuild
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.partition_kind import PartitionBuild, PartitionKind
from hoodie.metadata.kinds.registry import KINDS
from hoodie.metadata.paths import INDEX_DEFINITIONS
from hoodie.metadata.table import MetadataTable
from hoodie.progress import PhaseTimes
from hoodie.results import Finding, Report, ServiceResult, few_of_each_kind
from hoodie.services.indexing.life import end_dead_builds, locked_to_build, run_build, start_build
from hoodie.view.slices import data_table
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_TRIES = 3


def build_partition(call: Call, name: str, *, columns: Sequence[str] | None = None) -> ServiceResult:
    """Build the metadata partition `name`, and those that belong to it, or build them anew; writers can run meanwhile.

    `KINDS.builder` has `name`. `columns`: the columns that get statistics, besides the meta columns; by default the
    columns in the table's options, those that an earlier build was given, or the first 32 columns. The options
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
            view = call.load()
            table = data_table(view)
            _check_version(view, name)
            _check_files(view, kind.subject)
            kind = kind.with_columns(table, columns)
            followers = tuple(found for found in KINDS.followers(kind.name) if found.fits(table))
            kinds = (kind, *followers)
            files = kind.build(followers, held, table)
            names = tuple(one.name for one in kinds)
            with locked_to_build(call.state) as view:
                notes = end_dead_builds(view, of_records=False)
                pending = start_build(ensure_metadata_table(view.refreshed()), IndexBuild.of_files(names))
        building = _FileBuilding(call, kinds, files, IndexBuild.of_files(names, pending.instant_time))
        run_build(call, pending, building, times)
    return ServiceResult(
        operation=f"build {kind.subject}",
        instant=pending.instant_time,
        counts=files.counts,
        bytes_written=sum(stat.total_write_bytes for stat in building.stats),
        seconds=times.seconds(),
        notes=notes,
    )


def _check_version(view: TableView, name: str) -> None:
    kind, version = KINDS.find(name), view.config.version
    if kind is not None and not kind.is_written_in(version):
        raise UnsupportedError(f"{view.store.uri('')}: tables of version {version.value} have no partition {name}")


def verify_partition(call: Call, name: str) -> Report:
    """Compare a metadata partition that is built from files, and those that follow it, with the data files.

    Writers may run. Memory and problems: see `PartitionKind.compare` of the kind.

    Raises: InvalidConfigError if the table has no such partition; CorruptFileError.
    """
    started, kind = time.perf_counter(), _builder(name)
    for tries in range(_TRIES):
        view = TableView.load(call.state)
        report = _compared(view, kind, call, started)
        if report.ok or view.refreshed().timeline == view.timeline or tries == _TRIES - 1:
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


@dataclass(slots=True)
class _FileBuilding(Completion):
    """The partitions that a build makes, and what it has read of the data files; see `Building`."""

    call: Call
    kinds: tuple[PartitionKind, ...]
    """The first one leads: those that follow it and that the build does not make are dropped."""
    files: PartitionBuild
    build: IndexBuild
    stats: list[WriteStat] = field(default_factory=list)

    @property
    def replaced(self) -> tuple[str, ...]:
        """The partitions that the build replaces or drops."""
        return tuple(sorted(KINDS.with_followers(self.build.names)))

    def read(self) -> None:
        self.catch_up(self.call.load())

    def catch_up(self, view: TableView) -> int:
        """Read the files that are new since the last call; return how many."""
        return self.files.catch_up(data_table(view, self.call.engine_for))

    def prepare(self) -> None:
        """Write what the kind can write before the lock is acquired."""
        self.files.prepare(data_table(self.call.load()), self.build.build_time)

    def completion(self, now: TableView) -> _FileBuilding:
        """Return the build: its own methods complete it."""
        return self

    def can_go_on(self, error: HoodieError) -> bool:
        """Return whether a second call may succeed: after a lock timeout."""
        return isinstance(error, LockTimeoutError)

    def check(self, now: TableView) -> None:
        """Refuse to replace partitions while a service of the metadata table is pending."""
        if {*self.replaced} & {*now.config.metadata_partitions}:
            MetadataTable(now.store, now.config).check_no_service_pending()

    def update_metadata_table(self, now: TableView) -> None:
        """Write the partitions, complete the build's delta commit, and name the partitions in the properties."""
        now.held_lock.ensure_held()
        if {*self.replaced} & {*now.config.metadata_partitions}:
            update_table_config(now.store, {**without_partitions(now, self.replaced), **off_properties(self.replaced)})
        metadata_table, table = MetadataTable(now.store, now.config), data_table(now)
        for kind in self.kinds:
            self.stats += self.files.write(table, kind, built_at=self.build.build_time)
            # The last call completes the instant with the files of all partitions.
            metadata_table.commit_build(kind, self.build.build_time, self.stats, table)
        now.held_lock.ensure_held()
        update_table_config(now.store, self._on_properties(now))

    def content(self, now: TableView) -> bytes:
        return self.build.metadata_to_bytes(now)

    def _on_properties(self, now: TableView) -> dict[str, str | None]:
        names = self.build.names
        found: dict[str, str | None] = {
            keys.METADATA_PARTITIONS: ",".join(sorted({*now.config.metadata_partitions, *names})),
            # A stored false makes JVM writers fail that pass true, and a table without partitions has no use for it.
            **{switch.key: "true" if name in names else None for name, switch in _switches(self.replaced).items()},
        }
        is_defined = any(kind.definition is not None for kind in self.kinds)
        if is_defined and now.config.index_definitions_path is None:
            found[keys.INDEX_DEFINITIONS_PATH] = INDEX_DEFINITIONS
        return found


def drop_partition(state: TableState, name: str) -> ServiceResult:
    """Drop a metadata partition that is built from files, and those that follow it; undo a build whose process died.

    Safe to repeat.

    Raises: CommitConflictError if a build is running.
    """
    times, gone = PhaseTimes(), sorted(KINDS.with_followers([name]))
    with TableView.locked(state) as view, times.phase("drop"):
        notes = end_dead_builds(view, of_records=False)
        view = view.refreshed()
        had = [found for found in gone if found in view.config.metadata_partitions]
        drop_partitions(view, gone, off_properties(gone))
        state.metadata_table = None
    return ServiceResult(
        operation=f"drop {' and '.join(gone)}", counts={"partitions": len(had)}, seconds=times.seconds(), notes=notes
    )


def _switches(names: Collection[str]) -> dict[str, Option[bool]]:
    return {name: kind.switch for name, kind in KINDS.maintained(names).items() if kind.switch is not None}


def off_properties(gone: Collection[str]) -> dict[str, str]:
    """Return the properties by which writers do not ask for these partitions any more."""
    return {switch.key: "false" for switch in _switches(gone).values()}


def _check_files(view: TableView, what: str) -> None:
    """Refuse tables from whose files this release builds no metadata partition. Raises: UnsupportedError."""
    config, where = view.config, view.store.uri("")
    is_plain = config.bootstrap_base_path is None and config.base_file_format is BaseFileFormat.PARQUET
    if not (is_plain and config.populates_meta_fields):
        raise UnsupportedError(
            f"{where}: this release builds the {what} of tables with meta fields and Parquet base files, not of "
            "bootstrapped tables; build them with JVM Hudi"
        )
