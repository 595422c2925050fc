"""Prove that the record index and the data are the same: every key, both ways, with its location and its bucket."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hoodie.errors import InvalidConfigError
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import stage_folder
from hoodie.files.staging.staged_keys import KeyGroups
from hoodie.index.record.building.check import FileGroupDiffers, IndexProblem, check_entries, check_file_groups
from hoodie.index.record.building.staged_file_groups import StagedFileGroups
from hoodie.index.record.differences import changes_between, stage_changes
from hoodie.index.record.entries import ENTRY_BYTES, EntryStage
from hoodie.index.record.file_groups import RecordIndexState
from hoodie.index.record.state import record_index
from hoodie.metadata.services.context import EngineFor, local_engine
from hoodie.services.report import Finding, Report, few_of_each_kind
from hoodie.timeline import TableLock
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_TRIES = 3


@dataclass(frozen=True, slots=True)
class IndexedState:
    """A table and its record index at one moment."""

    view: TableView
    index: RecordIndexState
    slices: Sequence[FileSlice] = field(repr=False)


def verify_record_index(state: TableState, engine_for: EngineFor = local_engine) -> Report:
    """Compare all entries with all keys, bucket by bucket; writers may go on meanwhile.

    A problem is a key without an entry, an entry without a key, an entry that names another file group than the one
    that holds the key, an entry in a wrong bucket, or a key that several rows have. Memory of a task: a bucket's keys
    and entries.

    Raises:
        InvalidConfigError: the table has no record index.
        UnsupportedError: an index with buckets for each partition.
    """
    started = time.perf_counter()
    found = consistent_state(state)
    changes = changes_between([], found.slices)
    with stage_folder(state.store) as folder:
        stage = EntryStage(folder, KeyGroups(len(found.index.file_groups)))
        staged = stage_changes(engine_for, state.store.spec, changes, stage, found.view.slice_read())
        by_bucket = StagedFileGroups.of(staged, len(found.index.file_groups))
        size_bytes = sum(bucket.size_bytes for bucket in found.index.file_groups)
        work_bytes = size_bytes + sum(entries.rows for entries in staged) * ENTRY_BYTES
        parts = check_file_groups(engine_for(work_bytes), state.store.spec, by_bucket, found.index.file_groups)
    return report_of(
        f"record index of {state.store.uri('')}",
        {"files": len(changes), "buckets": len(parts)},
        parts,
        seconds=time.perf_counter() - started,
    )


def verify_changes(state: TableState, since: str, engine_for: EngineFor = local_engine) -> Report:
    """Compare the entries of commits that completed after `since` with the index; cheap enough to run at intervals.

    Keys that came to a file group must have an entry that names it, keys that left one must have none, unless they
    are elsewhere. Raises: as `verify_record_index`; UnsupportedError if the cleaner removed files of that time.
    """
    started = time.perf_counter()
    found = consistent_state(state)
    old = found.view.as_completed_by(since).slices()
    changes = changes_between(old, found.slices)
    with stage_folder(state.store) as folder:
        stage = EntryStage(folder, KeyGroups(len(found.index.file_groups)))
        staged = stage_changes(engine_for, state.store.spec, changes, stage, found.view.slice_read())
        by_bucket = StagedFileGroups.of(staged, len(found.index.file_groups))
        engine = engine_for(sum(change.size_bytes for change in changes))
        parts = check_entries(engine, state.store.spec, by_bucket, found.index.file_groups)
    return report_of(
        f"record index of {state.store.uri('')}, changes since {since}",
        {"file_groups": len(changes), "buckets": len(parts)},
        parts,
        seconds=time.perf_counter() - started,
    )


def consistent_state(state: TableState) -> IndexedState:
    """The table and its index as of the same commits; under the table's lock if writers are too quick.

    Raises: InvalidConfigError if there is no record index.
    """
    for _ in range(_TRIES):
        found = _load(state)
        again = TableView.load(state)
        if (
            again.timeline == found.view.timeline
            and again.config.metadata_partitions == found.view.config.metadata_partitions
        ):
            return found
    with TableLock(state.store):
        return _load(state)


def _load(state: TableState) -> IndexedState:
    view = TableView.load(state)
    index = record_index(view)
    if index is None:
        raise InvalidConfigError(f'{state.store.uri("")} has no record index; build it with t.index.build("record")')
    return IndexedState(view, index, view.slices())


def report_of(subject: str, checked: dict[str, int], parts: Iterable[FileGroupDiffers], *, seconds: float) -> Report:
    """The report of all buckets together."""
    totals: Counter[str] = Counter()
    problems: Counter[str] = Counter({kind.value: 0 for kind in IndexProblem})
    findings: list[Finding] = []
    for part in parts:
        totals.update(keys=part.keys, entries=part.entries)
        problems.update({kind.value: count for kind, count in part.problems.items()})
        findings += [
            Finding(kind=found.kind.value, key=found.key, expected=found.expected, found=found.found)
            for found in part.examples
        ]
    return Report(
        subject=subject,
        checked={**checked, "keys": totals["keys"], "entries": totals["entries"]},
        problems=dict(problems),
        findings=few_of_each_kind(findings),
        seconds=seconds,
    )
