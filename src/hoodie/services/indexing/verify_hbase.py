"""Compare the HBase index of a table with its data, in both directions, beside writers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.engine import EngineFor, TaskContext, local_engine
from hoodie.errors import HoodieError, IndexIncompleteError, InvalidConfigError
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import stage_folder
from hoodie.index import HBASE, stored_index
from hoodie.index.hbase.client import HBaseClient, HBaseSettings, Row
from hoodie.index.hbase.index import ENTRY_GROUPS, rows_per_second
from hoodie.index.hbase.readiness import check_ready
from hoodie.index.hbase.versions import IDENTITY_ROW, committed_instants, versions_of
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
from hoodie.services.indexing.verify import report_of
from hoodie.services.results import Finding, Report
from hoodie.storage import StoreSpec, open_store
from hoodie.view.slices import list_slices
from hoodie.view.still_there import check_files_stay, planned_again
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

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
        lambda found: _while_files_stay(_Check(found, settings, engine_for, subject, started)),
    )


def _while_files_stay(check: _Check) -> Report:
    """Return the report, unless others took files of the view meanwhile. Raises: ViewOvertakenError."""
    try:
        report = check.report()
    except HoodieError:
        check_files_stay(check.view)
        raise
    if not report.ok:
        check_files_stay(check.view)
    return report


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
            tasks, groups = _tasks(data, index)
            engine = self.engine_for(sum(found.rows for found in (*data, *index)) * ENTRY_BYTES)
            parts = engine.run(partial(_compare, store=view.store.spec, groups=groups), tasks)
        seconds = time.perf_counter() - self.started
        return report_of(self.subject, {"files": len(changes)}, parts, seconds=seconds)

    def _staged_locations(self, stage: EntryStage, slices: Sequence[FileSlice]) -> list[StagedEntries]:
        """Stage the newest committed location of each row of HBase whose file group exists."""
        current = {(found.partition_path, found.file_id) for found in slices}
        writer = EntryWriter(self.view.store, stage, TaskContext(partition=0, stage=0, attempt=0))
        with HBaseClient(self.settings, rows_per_second(self.settings, 1)) as client:
            for rows in _chunks(client.scan() if client.has_table() else iter(())):
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


@dataclass(frozen=True, slots=True)
class _Task:
    data: Batches
    index: Batches


def _tasks(
    data: Sequence[StagedEntries], index: Sequence[StagedEntries]
) -> tuple[list[_Task], tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]]:
    """Return a task for each group of keys, and the locations of the staged entries of both sides."""
    of_data, data_groups = gathered(data)
    of_index, index_groups = gathered(index)
    tasks = [_Task(of_data.get(group, ()), of_index.get(group, ())) for group in sorted({*of_data, *of_index})]
    return tasks, (data_groups, index_groups)


def _compare(
    task: _Task,
    _context: TaskContext,
    *,
    store: StoreSpec,
    groups: tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]],
) -> FileGroupDiffers:
    opened = open_store(store)
    number = {group: place for place, group in enumerate(dict.fromkeys((*groups[0], *groups[1])))}
    keys, codes = read_entries(opened, task.data)
    entry_keys, places = read_entries(opened, task.index)
    of_data = np.array([*(number[group] for group in groups[0]), -1], np.int64)
    of_index = np.array([*(number[group] for group in groups[1]), -1], np.int64)
    return compared(keys, of_data[codes], entry_keys, of_index[places], list(number))


def _chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    chunk: list[Row] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) >= _SCAN_ROWS:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
