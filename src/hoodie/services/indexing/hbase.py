"""Build the HBase index of a table that has rows, give it up, and compare it with the data in both directions.

A build empties the HBase table and fills it from the data. The table stores the newest write of that data: an index is
incomplete if that write is taken back, as it is with every earlier one. While an existing index is built again, writes
are refused; during the first build, they use the index that the table has until then.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie import config as options
from hoodie.commit.call import Call
from hoodie.commit.steps import Step, reached
from hoodie.config import indexes
from hoodie.engine import EngineFor, TaskContext, local_engine
from hoodie.errors import (
    CommitConflictError,
    IndexIncompleteError,
    InvalidConfigError,
    RecordKeyError,
    UnsupportedError,
)
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import stage_folder
from hoodie.files.table_properties import update_table_config
from hoodie.format.table.call_options import effective_options
from hoodie.format.table.merge_config import MergeMode
from hoodie.format.table.table_config import TableType
from hoodie.index import GLOBAL_SIMPLE, HBASE, RECORD, index_of_view, partition_follows_columns, stored_index
from hoodie.index.hbase.client import HBaseClient, HBaseSettings, Row, new_identity
from hoodie.index.hbase.index import ENTRY_GROUPS, put_entries, rows_per_second
from hoodie.index.hbase.readiness import (
    check_owner,
    check_ready,
    finish_build,
    mark_unfinished,
    newest_write,
    prepare_table,
)
from hoodie.index.hbase.versions import IDENTITY_ROW, built_instant, committed_instants, versions_of
from hoodie.index.record.building.check import FileGroupDiffers, compared
from hoodie.index.record.differences import changes_between, stage_changes
from hoodie.index.record.entries import (
    ENTRY_BYTES,
    Batches,
    EntryStage,
    EntryWriter,
    StagedEntries,
    gathered,
    read_entries,
)
from hoodie.index.record.state import has_partitioned_index
from hoodie.progress import PhaseTimes
from hoodie.results import Finding, Report, ServiceResult
from hoodie.services.indexing.life import catch_up_in_rounds, foreign_write, locked_without_dead_writes
from hoodie.services.indexing.verify import report_of, while_files_stay
from hoodie.storage import StoreSpec, open_store
from hoodie.timeline import ms_of_instant_time
from hoodie.view.slices import list_slices
from hoodie.view.still_there import planned_again
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


def build_hbase_index(call: Call, properties: Mapping[str, str]) -> ServiceResult:
    """Build the HBase index from the data, and make it the index of the table.

    `properties` are options of the HBase index, which the table stores; with an existing index, those that change.
    Memory of a task: the keys of a few files, then a sixteenth of all keys.

    Raises:
        IndexUnavailableError: HBase cannot be used; the table is as before, or writes wait for another call.
        InvalidConfigError: no HBase table is named, or it has rows that are not an index of this table.
        RecordKeyError: several rows share a key.
        UnsupportedError: table version 6, a partitioned record index, or a Python merger on a merge-on-read table.
        CommitConflictError: a JVM write is running.
    """
    times = PhaseTimes()
    wanted = _wanted(call.state, properties)
    settings = HBaseSettings.of(wanted, {})
    with times.phase("plan"), HBaseClient(settings) as client:
        prepare_table(client)
        check_owner(client, TableView.load(call.state), settings)
        view = _begun(call.state, wanted)
        client.truncate_table()
        mark_unfinished(client, view, settings.identity)
    reached(Step.BEGUN)
    filling = _Filling(call, settings)
    with stage_folder(call.state.store) as folder:
        with times.phase("build"):
            catch_up_in_rounds(call.state, partial(filling.catch_up, folder))
        reached(Step.WRITTEN)
        with times.phase("switch"), locked_without_dead_writes(call.state, properties) as now:
            running = foreign_write(now)
            if running is not None:
                raise CommitConflictError(
                    f"{running} of another engine is running, and will not record its keys in the HBase index: build "
                    "the index again after that write ends"
                )
            filling.catch_up(folder, now)
            with HBaseClient(settings) as client:
                finish_build(client, now, settings.identity)
            now.held_lock.ensure_held()
            current = index_of_view(now)
            # A record index stays, and is kept up to date.
            moves = None if current in (RECORD, HBASE) else current.moves_option
            given_up = dict.fromkeys(option.key for option in (*current.own_options, *filter(None, (moves,))))
            update_table_config(call.state.store, {**given_up, **wanted, indexes.HBASE_BUILT.key: filling.newest})
    counts = {"entries": filling.entries, "files_read": filling.files}
    return ServiceResult(operation="build hbase index", counts=counts, seconds=times.seconds())


def drop_hbase_index(state: TableState) -> ServiceResult:
    """Give the HBase index up; the table then finds records by its record index, or by `global_simple`.

    Raises: InvalidConfigError if the table has no HBase index.
    """
    times = PhaseTimes()
    with TableView.locked(state) as view, times.phase("drop"):
        if stored_index(view.config) is not HBASE:
            raise InvalidConfigError(f"{state.store.uri('')} has no HBase index")
        raw = view.config.raw
        then = RECORD if RECORD.exists_in(view) else GLOBAL_SIMPLE
        moves = {} if then.moves_option is None else {then.moves_option.key: str(HBASE.moves_records(raw)).lower()}
        update_table_config(state.store, {**properties_to_remove(raw), **then.stored_properties(raw), **moves})
    note = f"the HBase table {indexes.HBASE_TABLE.get(raw)!r} is still there; drop it in the HBase shell"
    return ServiceResult(operation="drop hbase index", seconds=times.seconds(), notes=(note,))


def properties_to_remove(raw: Mapping[str, str]) -> dict[str, None]:
    """Return the stored properties of the HBase index, which a table without it does not have."""
    return dict.fromkeys(key for key in raw if key in _STORED)


_STORED = frozenset(key for key in options.OPTIONS if "hbase" in key)
"""Properties of the HBase index."""


@dataclass(slots=True)
class _Filling:
    """Puts the keys of the table in HBase, round by round; each round puts what changed since the one before."""

    call: Call
    settings: HBaseSettings
    slices: tuple[FileSlice, ...] = ()
    newest: str = ""
    """The write that completed last before the last round; empty for a table without one."""
    entries: int = 0
    files: int = 0
    rounds: int = 0

    def catch_up(self, folder: str, view: TableView) -> bool:
        """Put what changed up to a view, staged in a folder below `folder`; return whether anything did."""
        moment_ms = ms_of_instant_time(view.clock.next_time(view.timeline), view.layout.zone)
        slices = tuple(list_slices(view))
        changes = changes_between(self.slices, slices)
        self.newest = newest_write(view)
        if not changes:
            return False
        self.rounds += 1
        stage = EntryStage(f"{folder}/{self.rounds}", ENTRY_GROUPS)
        staged = stage_changes(self.call.engine_for, view.store.spec, changes, stage, view.slice_read())
        doubled = put_entries(
            self.call.engine_for,
            view.store.spec,
            self.settings,
            staged,
            instant_time=built_instant(self.settings.identity),
            moment_ms=moment_ms,
        )
        if doubled:
            raise RecordKeyError(
                f"{doubled:,} rows of {view.store.uri('')} have a key that another row has; the HBase index has one "
                'location for a key. Delete the duplicates, or give the index up with t.index.drop("hbase")'
            )
        self.slices = slices
        self.entries += sum(found.rows for found in staged)
        self.files += len(changes)
        return True


def _wanted(state: TableState, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of the table with the index, with a new identity. Raises: as `build_hbase_index`."""
    view = TableView.load(state)
    config = view.config
    options.check_options(properties)
    if has_partitioned_index(view):
        raise UnsupportedError(
            f"{state.store.uri('')} has a partitioned record index: its keys are unique in each partition only; the "
            "HBase index needs keys that are unique in the table"
        )
    is_custom = config.merge_rule.mode is MergeMode.CUSTOM
    if is_custom and config.table_type is TableType.MERGE_ON_READ:
        raise UnsupportedError(
            "an HBase index with a Python merger on a merge-on-read table: use index='global_simple'"
        )
    strange = sorted(properties.keys() - _STORED)
    if strange:
        raise InvalidConfigError(f"{strange}: expected options of the HBase index, {', '.join(sorted(_STORED))}")
    given = {key: value for key, value in effective_options(config, properties).items() if key in _STORED}
    moves = partition_follows_columns(config) and not is_custom
    stored = HBASE.stored_properties({**given, **new_identity(given)}, moves_by_default=moves)
    return {**given, **stored}


def _begun(state: TableState, wanted: Mapping[str, str]) -> TableView:
    """Return the table when the build begins; an HBase index that it has gets the new identity, so that writes wait."""
    view = TableView.load(state)
    if stored_index(view.config) is not HBASE:
        return view
    with TableView.locked(state) as view:
        changed = (indexes.HBASE_IDENTITY.key, indexes.HBASE_TABLE.key)
        update_table_config(state.store, {key: wanted[key] for key in changed})
        return view


INCOMPLETE: Final = "incomplete index"
_SCAN_ROWS = 50_000
"""Rows of HBase that are resolved at once."""


def verify_hbase_index(state: TableState, engine_for: EngineFor = local_engine) -> Report:
    """Compare all locations in HBase with all keys of the data; other writers may write at the same time.

    Locations of later commits are left out, so that index and data are of one state. Memory of a task: the keys and
    locations of a sixteenth of the table.

    Raises: InvalidConfigError if the table has no HBase index; IndexUnavailableError.
    """
    started = time.perf_counter()
    view = TableView.load(state)
    if stored_index(view.config) is not HBASE:
        raise InvalidConfigError(f"{state.store.uri('')} has no HBase index")
    settings = HBaseSettings.of(view.config.raw, {})
    subject = f"HBase index {settings.table} of {state.store.uri('')}"
    try:
        check_ready(view, settings, creates=False)
    except IndexIncompleteError as error:
        finding = Finding(kind=INCOMPLETE, key=settings.table, found=str(error), remedy='t.index.build("hbase")')
        seconds = time.perf_counter() - started
        return Report(subject=subject, problems={INCOMPLETE: 1}, findings=(finding,), seconds=seconds)
    return planned_again(
        lambda: TableView.load(state),
        lambda found: while_files_stay(found, _Check(found, settings, engine_for, subject, started).report),
    )


@dataclass(frozen=True, slots=True)
class _Check:
    view: TableView
    settings: HBaseSettings
    engine_for: EngineFor
    subject: str
    started: float

    def report(self) -> Report:
        """Stage the keys of the data and the locations of HBase in the same groups, and compare the groups."""
        view = self.view
        slices = list_slices(view)
        changes = changes_between([], slices)
        with stage_folder(view.store) as folder:
            stage = EntryStage(folder, ENTRY_GROUPS)
            data = stage_changes(self.engine_for, view.store.spec, changes, stage, view.slice_read())
            index = self._staged_locations(stage, slices)
            (of_data, data_groups), (of_index, index_groups) = gathered(data), gathered(index)
            tasks = [(of_data.get(group, ()), of_index.get(group, ())) for group in sorted({*of_data, *of_index})]
            engine = self.engine_for(sum(found.rows for found in (*data, *index)) * ENTRY_BYTES)
            compare = partial(_compare, store=view.store.spec, data_groups=data_groups, index_groups=index_groups)
            parts = engine.run(compare, tasks)
        seconds = time.perf_counter() - self.started
        return report_of(self.subject, {"files": len(changes)}, parts, seconds=seconds)

    def _staged_locations(self, stage: EntryStage, slices: Sequence[FileSlice]) -> list[StagedEntries]:
        """Stage the newest committed location of each row of HBase whose file group exists."""
        current = {found.group for found in slices}
        writer = EntryWriter(self.view.store, stage, TaskContext(partition=0, stage=0, attempt=0))
        with HBaseClient(self.settings, rows_per_second(self.settings, 1)) as client:
            scanned = client.scan() if client.has_table() else iter(())
            while rows := list(islice(scanned, _SCAN_ROWS)):
                by_group: dict[tuple[str, str], list[str]] = {}
                for key, location in self._located(rows):
                    if location in current:
                        by_group.setdefault(location, []).append(key)
                for (path, file_id), keys in by_group.items():
                    writer.put(pa.array(keys, pa.string()), path, file_id)
        staged = writer.close()
        return [] if staged is None else [staged]

    def _located(self, rows: Sequence[Row]) -> Iterator[tuple[str, tuple[str, str]]]:
        versions = {row.row.decode(): versions_of(row) for row in rows if row.row != IDENTITY_ROW}
        times = {version.instant_time for found in versions.values() for version in found}
        committed = committed_instants(self.view, times, self.settings.identity)
        for key, found in versions.items():
            newest = next((version for version in found if version.instant_time in committed), None)
            if newest is not None and newest.location is not None:
                yield key, newest.location


def _compare(
    task: tuple[Batches, Batches],
    _context: TaskContext,
    *,
    store: StoreSpec,
    data_groups: Sequence[tuple[str, str]],
    index_groups: Sequence[tuple[str, str]],
) -> FileGroupDiffers:
    """Compare the staged entries of the data and of HBase in one group of keys."""
    opened = open_store(store)
    number = {group: place for place, group in enumerate(dict.fromkeys((*data_groups, *index_groups)))}
    keys, codes = read_entries(opened, task[0])
    entry_keys, places = read_entries(opened, task[1])
    of_data = np.array([*(number[group] for group in data_groups), -1], np.int64)
    of_index = np.array([*(number[group] for group in index_groups), -1], np.int64)
    return compared(keys, of_data[codes], entry_keys, of_index[places], list(number))
