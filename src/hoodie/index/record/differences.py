"""What the record index must learn of file groups that changed: their keys before and after are compared.

For indexes that did not follow the writers: while one is built, and for writes that began before it was there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Engine, TaskContext
from hoodie.errors import UnsupportedError
from hoodie.files.base_file import read_base_file
from hoodie.files.chunks import chunks
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.format.commit_metadata import CommitMetadata
from hoodie.format.filenames import BaseFileName
from hoodie.format.table_schema import with_meta_fields
from hoodie.index.record.entries import EntryStage, EntryWriter, StagedEntries
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store, StoreSpec, open_store

_TASK_BYTES_MIN = 16 * 1024 * 1024
_TASKS_PER_SLOT = 4
_BATCH_ROWS = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileGroupChange:
    """A file group's base file before and after; None: the file group was not there, or is gone."""

    partition_path: str
    file_id: str
    old: BaseFile | None
    new: BaseFile | None

    @property
    def size_bytes(self) -> int:
        """Bytes of both files."""
        return sum(file.size_bytes for file in (self.old, self.new) if file is not None)


def changes_between(old: Iterable[FileSlice], new: Iterable[FileSlice]) -> list[FileGroupChange]:
    """The file groups that differ between two states of a table, whatever happened in between.

    Raises: UnsupportedError for file slices with log files: which keys those add or remove is not in their base files.
    """
    before = {(found.partition_path, found.file_id): _only_base(found) for found in old}
    after = {(found.partition_path, found.file_id): _only_base(found) for found in new}
    return [
        FileGroupChange(*group, before.get(group), after.get(group))
        for group in sorted({*before, *after})
        if before.get(group) != after.get(group)
    ]


def changes_of(metadata: CommitMetadata, replaced: Iterable[FileSlice] = ()) -> list[FileGroupChange]:
    """The file groups that a commit wrote. `replaced` are those that it takes out of the table."""
    changes = [FileGroupChange(found.partition_path, found.file_id, _only_base(found), None) for found in replaced]
    for stat in metadata.write_stats():
        path = stat.partition_path or ""
        old = _base_file(path, stat.prev_base_file, 0) if stat.prev_base_file else None
        new = _base_file(path, (stat.path or "").rpartition("/")[2], stat.file_size_bytes)
        changes.append(FileGroupChange(path, stat.file_id, old, new))
    return changes


def stage_changes(
    engine_for: Callable[[int], Engine], store: StoreSpec, changes: Sequence[FileGroupChange], stage: EntryStage
) -> list[StagedEntries]:
    """Stage what the index must learn: keys that came to a file group, keys that left it. One task for a few files.

    Memory of a task: one file's keys if the file group is new or gone, else both files' keys.
    """
    total_bytes = sum(change.size_bytes for change in changes)
    engine = engine_for(total_bytes)
    limit = max(total_bytes // (engine.parallelism * _TASKS_PER_SLOT), _TASK_BYTES_MIN)
    tasks = [_Task(store, stage, found) for found in chunks(changes, limit)]
    return [staged for staged in engine.run(_stage, tasks) if staged is not None]


@dataclass(frozen=True, slots=True)
class _Task:
    store: StoreSpec
    stage: EntryStage
    changes: tuple[FileGroupChange, ...]


def _stage(task: _Task, context: TaskContext) -> StagedEntries | None:
    store = open_store(task.store)
    entries = EntryWriter(store, task.stage, context)
    for change in task.changes:
        if change.old is not None and change.new is not None:
            before, after = _all_keys(store, change.old), _all_keys(store, change.new)
            entries.put(_without(after, before), change.partition_path, change.file_id)
            entries.delete(_without(before, after), change.partition_path)
        elif change.new is not None:
            for keys in _keys(store, change.new):
                entries.put(keys, change.partition_path, change.file_id)
        elif change.old is not None:
            for keys in _keys(store, change.old):
                entries.delete(keys, change.partition_path)
    return entries.close()


def _keys(store: Store, file: BaseFile) -> Iterator[pa.StringArray]:
    schema = with_meta_fields(pa.schema([]))
    for rows in read_base_file(store, file.path, schema, columns=[RECORD_KEY], batch_rows=_BATCH_ROWS):
        yield rows[RECORD_KEY].combine_chunks()


def _all_keys(store: Store, file: BaseFile) -> pa.StringArray:
    return pa.concat_arrays([pa.array([], pa.string()), *_keys(store, file)])


def _without(keys: pa.StringArray, others: pa.StringArray) -> pa.StringArray:
    return keys.filter(pc.invert(pc.is_in(keys, value_set=others)))


def _only_base(found: FileSlice) -> BaseFile | None:
    if found.log_files:
        raise UnsupportedError(
            f"file group {found.partition_path}/{found.file_id} has log files ({found.log_files[0].name}), whose keys "
            "this release cannot compare; compact the table first (JVM Hudi does), or build the index with JVM Hudi"
        )
    return found.base_file


def _base_file(partition_path: str, name: str, size_bytes: int) -> BaseFile:
    parsed = BaseFileName.parse(name)
    if parsed is None:
        raise UnsupportedError(f"{partition_path}/{name} is no base file: its keys cannot be compared")
    return BaseFile(partition_path, name, parsed.file_id, parsed.instant_time, size_bytes)
