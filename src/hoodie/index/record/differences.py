"""Find the record index entries of file groups that changed, by comparing their keys before and after.

Used if the writing tasks staged no entries: while an index is built, and for writes that began before it existed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import EngineFor, TaskContext
from hoodie.engine.packing import chunks
from hoodie.errors import UnsupportedError
from hoodie.files.base_file import read_base_file
from hoodie.files.merged_slice import SliceRead, read_file_slice
from hoodie.files.slices import BaseFile, FileSlice, written_file
from hoodie.format.filenames import name_of
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.index.record.entries import EntryStage, EntryWriter, StagedEntries
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store, StoreSpec, open_store

_TASK_BYTES_MIN = 16 * 1024 * 1024
_TASKS_PER_SLOT = 4
_BATCH_ROWS = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileGroupChange:
    """A file group's newest slice before and after a change; None if the file group does not exist then."""

    partition_path: str
    file_id: str
    old: FileSlice | None
    new: FileSlice | None

    @property
    def size_bytes(self) -> int:
        """Bytes of both slices."""
        return sum(found.size_bytes for found in (self.old, self.new) if found is not None)


def changes_between(old: Iterable[FileSlice], new: Iterable[FileSlice]) -> list[FileGroupChange]:
    """Return the file groups that differ between two states of a table."""
    before, after = _by_group(old), _by_group(new)
    return [
        FileGroupChange(*group, before.get(group), after.get(group))
        for group in sorted({*before, *after})
        if before.get(group) != after.get(group)
    ]


def changes_of(metadata: CommitMetadata, current: Iterable[FileSlice]) -> list[FileGroupChange]:
    """Return the file groups that a commit will change. `current`: the newest slices of the partitions it touches."""
    before = _by_group(current)
    changes = [
        FileGroupChange(path, file_id, before.get((path, file_id)), None)
        for path, file_ids in (metadata.partition_to_replace_file_ids or {}).items()
        for file_id in file_ids
    ]
    for stat in metadata.write_stats():
        older = before.get(stat.group)
        changes.append(FileGroupChange(*stat.group, older, _with_file(older, stat)))
    return changes


def stage_changes(
    engine_for: EngineFor,
    store: StoreSpec,
    changes: Sequence[FileGroupChange],
    stage: EntryStage,
    read: SliceRead,
) -> list[StagedEntries]:
    """Stage the entries of changed file groups: a put for each added key, a delete for each removed key.

    One task reads a few files. `read` has the options to merge slices with log files. Memory of a task: the memory of
    `read_file_slice`, and the keys of both slices if the file group exists before and after the change.
    """
    total_bytes = sum(change.size_bytes for change in changes)
    engine = engine_for(total_bytes)
    limit = max(total_bytes // (engine.parallelism * _TASKS_PER_SLOT), _TASK_BYTES_MIN)
    keys_only = replace(read, columns=(RECORD_KEY,), with_keys=True)
    stage_some = partial(_stage, spec=store, stage=stage, read=keys_only)
    return [staged for staged in engine.run(stage_some, list(chunks(changes, limit))) if staged is not None]


def _stage(
    changes: tuple[FileGroupChange, ...], context: TaskContext, *, spec: StoreSpec, stage: EntryStage, read: SliceRead
) -> StagedEntries | None:
    store = open_store(spec)
    entries = EntryWriter(store, stage, context)
    for change in changes:
        if change.old is not None and change.new is not None:
            before, after = _all_keys(store, change.old, read), _all_keys(store, change.new, read)
            entries.put(_without(after, before), change.partition_path, change.file_id)
            entries.delete(_without(before, after), change.partition_path)
        elif change.new is not None:
            for keys in _keys(store, change.new, read):
                entries.put(keys, change.partition_path, change.file_id)
        elif change.old is not None:
            for keys in _keys(store, change.old, read):
                entries.delete(keys, change.partition_path)
    return entries.close()


def _keys(store: Store, found: FileSlice, read: SliceRead) -> Iterator[pa.StringArray]:
    if found.log_files or read.stored.makes_keys:
        for rows in read_file_slice(store, found, read):
            yield rows[RECORD_KEY].combine_chunks()
    elif found.base_file is not None:
        schema = with_meta_fields(pa.schema([]))
        for rows in read_base_file(store, found.base_file, schema, columns=[RECORD_KEY], batch_rows=_BATCH_ROWS):
            yield rows[RECORD_KEY].combine_chunks()


def _all_keys(store: Store, found: FileSlice, read: SliceRead) -> pa.StringArray:
    return pa.concat_arrays([pa.array([], pa.string()), *_keys(store, found, read)])


def _without(keys: pa.StringArray, others: pa.StringArray) -> pa.StringArray:
    return keys.filter(pc.invert(pc.is_in(keys, value_set=others)))


def _by_group(slices: Iterable[FileSlice]) -> dict[tuple[str, str], FileSlice]:
    return {file_slice.group: file_slice for file_slice in slices}


def _with_file(before: FileSlice | None, stat: WriteStat) -> FileSlice:
    """Return the file group's newest slice after adding the file of a write statistic."""
    file, path = written_file(stat), stat.partition_path or ""
    if isinstance(file, BaseFile):
        return FileSlice(path, file.file_id, file.instant_time, file)
    if file is None:
        name = name_of(stat.path or "")
        raise UnsupportedError(f"{path}/{name} is neither a base nor a log file: its keys cannot be compared")
    begun = FileSlice(path, file.name.file_id, file.name.instant_time, None) if before is None else before
    return replace(begun, log_files=(*begun.log_files, file))
