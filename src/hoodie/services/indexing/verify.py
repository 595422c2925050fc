"""Verify the record index: compare the keys of the data and the entries of the index, in both directions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable

from hoodie.engine import EngineFor, local_engine
from hoodie.errors import HoodieError, MetadataPartitionMissingError, MetadataTableMissingError
from hoodie.files.staging.staged import stage_folder
from hoodie.files.staging.staged_keys import KeyGroups
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.index import lost_record_index
from hoodie.index.record.building.check import FileGroupDiffers, IndexProblem, check_entries, check_file_groups
from hoodie.index.record.building.file_group_files import StagedFileGroups
from hoodie.index.record.differences import changes_between, stage_changes
from hoodie.index.record.entries import ENTRY_BYTES, EntryStage
from hoodie.index.record.state import IndexedState, consistent_state
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.paths import METADATA_FOLDER
from hoodie.metadata.slices import check_recorded_logs
from hoodie.results import Finding, Report, few_of_each_kind
from hoodie.view.slices import list_slices
from hoodie.view.still_there import check_files_stay, planned_again
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_MISSING = "missing index"


def verify_record_index(state: TableState, engine_for: EngineFor = local_engine) -> Report:
    """Compare all entries of the index with all keys of the data; other writers may write at the same time.

    The problems are: a key without an entry; an entry without a key; an entry with a wrong file group; an entry in a
    wrong index file group; a key of several rows; an index that is missing. Memory of a task: the keys and entries of
    one index file group.

    Raises:
        InvalidConfigError: the table has no record index.
        UnsupportedError: the table has a partitioned record index.
        ViewOvertakenError: cleans, rollbacks or restores deleted files that each of three attempts was reading.
        CorruptFileError: a file of the table or of the index is damaged or missing; the delta commits of the metadata
            table are read to find missing log files of the index.
    """
    started = time.perf_counter()
    lost = lost_record_index(TableView.load(state))
    if lost is not None:
        return _report_of_lost(state, lost, seconds=time.perf_counter() - started)
    try:
        return planned_again(
            lambda: consistent_state(state),
            lambda found: while_files_stay(found.view, lambda: _compared(found, None, engine_for, started)),
        )
    except (MetadataPartitionMissingError, MetadataTableMissingError) as error:
        return _report_of_lost(state, str(error), seconds=time.perf_counter() - started)


def verify_changes(state: TableState, since: str, engine_for: EngineFor = local_engine) -> Report:
    """Compare the index with the changes of commits that completed after `since`; cheap enough to run at intervals.

    A key that was added to a file group must have an entry that names this file group. A key that was removed from a
    file group must have no entry, unless the key is in another file group.

    Raises: as `verify_record_index`; UnsupportedError if the cleaner deleted files of the table as of `since`.
    """
    started = time.perf_counter()
    return planned_again(
        lambda: consistent_state(state),
        lambda found: while_files_stay(found.view, lambda: _compared(found, since, engine_for, started)),
    )


def _compared(found: IndexedState, since: str | None, engine_for: EngineFor, started: float) -> Report:
    """Compare the index with the data of one state of the table, or with its changes since another state."""
    view, groups = found.view, found.index.file_groups
    store = view.store
    if since is None:
        _check_recorded(found)
    changes = changes_between([] if since is None else list_slices(view.as_completed_by(since)), found.slices)
    with stage_folder(store) as folder:
        stage = EntryStage(folder, KeyGroups(len(groups)))
        staged = stage_changes(engine_for, store.spec, changes, stage, view.slice_read())
        by_bucket = StagedFileGroups.of(staged, len(groups))
        if since is None:
            work_bytes = sum(group.size_bytes for group in groups) + sum(one.rows for one in staged) * ENTRY_BYTES
            parts = check_file_groups(engine_for(work_bytes), store.spec, by_bucket, groups)
        else:
            engine = engine_for(sum(change.size_bytes for change in changes))
            parts = check_entries(engine, store.spec, by_bucket, groups)
    return report_of(
        f"record index of {store.uri('')}" + ("" if since is None else f", changes since {since}"),
        {"files" if since is None else "file_groups": len(changes), "buckets": len(parts)},
        parts,
        seconds=time.perf_counter() - started,
    )


def while_files_stay(view: TableView, compare: Callable[[], Report]) -> Report:
    """Return the report of `compare`, unless others took files of the view meanwhile, which causes false findings.

    Raises: ViewOvertakenError; as `compare`.
    """
    try:
        report = compare()
    except HoodieError:
        check_files_stay(view)
        raise
    if not report.ok:
        check_files_stay(view)
    return report


def _check_recorded(found: IndexedState) -> None:
    """Check that all log files of the index exist. Raises: CorruptFileError."""
    folder = MetadataFolder(found.view.store, found.view.config)
    timeline = visible_instants(folder.timeline(), found.view.whole_timeline())
    slices = [group.file_slice for group in found.index.file_groups]
    check_recorded_logs(folder.store, {RECORD_INDEX: slices}, timeline)


def _report_of_lost(state: TableState, lost: str, *, seconds: float) -> Report:
    """Report an index that another writer dropped."""
    finding = Finding(kind=_MISSING, key=state.store.uri(METADATA_FOLDER), found=lost)
    subject = f"record index of {state.store.uri('')}"
    return Report(subject=subject, problems={_MISSING: 1}, findings=(finding,), seconds=seconds)


def report_of(subject: str, checked: dict[str, int], parts: Iterable[FileGroupDiffers], *, seconds: float) -> Report:
    """Return one report of the outcomes of all index file groups."""
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
