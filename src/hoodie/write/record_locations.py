"""Keep the record index up to date with a write: stage its entries, and write them before the write is committed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from hoodie.commit.transaction import Transaction
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged_keys import KeyGroups
from hoodie.index.record import (
    EntryStage,
    StagedEntries,
    WrittenEntries,
    write_entries,
    write_partitioned_entries,
)
from hoodie.index.record.differences import FileGroupChange, stage_changes
from hoodie.timeline import ms_of_instant_time
from hoodie.write.setup import WriteSetup

_ENTRY_BYTES = 64


def entry_stage(write: Transaction, folder: str) -> EntryStage | None:
    """Where the workers of a write stage entries; None if the table has no record index."""
    if write.partitioned_index is not None:
        return EntryStage(folder, None)
    state = write.record_index
    return None if state is None else EntryStage(folder, KeyGroups(len(state.buckets)))


def write_record_locations(setup: WriteSetup, write: Transaction, entries: Sequence[StagedEntries]) -> WrittenEntries:
    """Write the staged entries to the record index; nobody believes them before the commit."""
    state, partitioned = write.record_index, write.partitioned_index
    if not entries or (state is None and partitioned is None):
        return WrittenEntries()
    write.announce_index_files()
    engine = setup.engine_for(sum(found.rows for found in entries) * _ENTRY_BYTES)
    store = write.view.store.spec
    instant_ms = ms_of_instant_time(write.instant_time, write.view.layout.zone)
    when = _When(instant_time=write.instant_time, instant_ms=instant_ms)
    if partitioned is not None:
        buckets = {path: found.file_ids for path, found in partitioned.items()}
        return write_partitioned_entries(engine, store, entries, **when, file_ids=buckets)
    assert state is not None
    return write_entries(engine, store, entries, **when, file_ids=state.file_ids)


class _When(TypedDict):
    instant_time: str
    instant_ms: int


def forget_slices(
    setup: WriteSetup, write: Transaction, slices: Iterable[FileSlice], folder: str
) -> tuple[StagedEntries, ...]:
    """Stage the deletion of every key in file groups that a write takes out of the table."""
    stage = entry_stage(write, folder)
    if stage is None:
        return ()
    changes = [FileGroupChange(found.partition_path, found.file_id, found, None) for found in slices]
    return tuple(stage_changes(setup.engine_for, write.view.store.spec, changes, stage, write.view.slice_read()))
