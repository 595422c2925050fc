"""Files of an index build: the base file of each index file group, then log files with the changes made meanwhile.

Readers ignore the files until the delta commit of the build completes. There is one task for each index file group; it
reads the staged entries of its group, and every attempt writes the same bytes to the same path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Engine, TaskContext
from hoodie.files.staging.staged_keys import KeyGroups
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.instants.commit_metadata import RuntimeStats, WriteStat
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.format.metadata_table.record_location import RecordLocation
from hoodie.index.record.entries import (
    DELETED,
    Batches,
    Codes,
    StagedEntries,
    delta_of,
    gathered,
    one_entry_per_key,
    read_entries,
    values_of,
)
from hoodie.index.record.file_groups import IndexFileGroup, read_file_group
from hoodie.index.record.look_up import find, way_of
from hoodie.metadata.delta_commit import base_file_to_bytes, initial_log_to_bytes, write_log
from hoodie.metadata.folder import base_name, log_name
from hoodie.metadata.kinds.record_index import FILE_ID_PREFIX
from hoodie.metadata.paths import file_id_of, partition_folder
from hoodie.metadata.slices import read_base
from hoodie.storage import FileInfo, Store, StoreSpec, open_store


@dataclass(frozen=True, slots=True)
class FileGroupEntries:
    """The staged record batches of one index file group. Picklable.

    A batch may also have entries of other index file groups; `read` leaves them out.
    """

    number: int
    file_group_count: int
    batches: Batches

    def read(self, store: Store) -> tuple[pa.StringArray, Codes]:
        """Return keys, and for each the position of its location, or `DELETED`. Memory: these keys, and one batch."""
        return read_entries(
            store, self.batches, lambda keys: file_group_index(keys, self.file_group_count) == self.number
        )


@dataclass(frozen=True, slots=True)
class StagedFileGroups:
    """Staged entries of all index file groups, by number. `locations`: partition path and file id of each code."""

    file_groups: tuple[FileGroupEntries, ...]
    locations: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, staged: Sequence[StagedEntries], file_group_count: int) -> StagedFileGroups:
        """Arrange staged entries by index file group. If a group has no entries, its file groups have no batches."""
        batches, locations = gathered(staged)
        groups = KeyGroups(file_group_count).count
        file_groups = (
            FileGroupEntries(number, file_group_count, batches.get(number % groups, ()))
            for number in range(file_group_count)
        )
        return cls(tuple(file_groups), locations)


EXAMPLES_MAX = 3


@dataclass(frozen=True, slots=True)
class WrittenFileGroup:
    """The result of one task: the number of entries added to the file group, and the write stat of the file, if any.

    `duplicates` is the number of rows whose key another row also has; if it is not 0, no base file was written.
    `examples` are such keys.
    """

    number: int
    entries: int
    stat: WriteStat | None
    duplicates: int = 0
    examples: tuple[str, ...] = ()


def write_base_files(
    engine: Engine,
    store: StoreSpec,
    staged: StagedFileGroups,
    numbers: Sequence[int],
    locations: Sequence[RecordLocation],
    *,
    instant_time: str,
) -> list[WrittenFileGroup]:
    """Write the base files of index file groups; `locations` are those of `staged`, with the times of their files.

    Memory of a task: a few times a file group's keys. A file group without keys gets no base file. Each file group gets
    the empty log file that creates it.
    """
    # The function holds the arguments that the tasks share: it is serialised once, each task separately.
    write = partial(_write_base, spec=store, locations=tuple(locations), instant_time=instant_time)
    return engine.run(write, [staged.file_groups[number] for number in numbers])


def _write_base(
    entries: FileGroupEntries,
    _context: TaskContext,
    *,
    spec: StoreSpec,
    locations: tuple[RecordLocation, ...],
    instant_time: str,
) -> WrittenFileGroup:
    store = open_store(spec)
    number = entries.number
    file_id = file_id_of(FILE_ID_PREFIX, number)
    # This file creates the file group, even without a key. It is written first: then a base file shows that both exist.
    log = f"{partition_folder(RECORD_INDEX)}/{log_name(file_id, instant_time)}"
    store.replace(log, initial_log_to_bytes(instant_time))
    keys, codes = entries.read(store)
    order = np.asarray(pc.sort_indices(keys))
    keys, codes = keys.take(pa.array(order)), codes[order]
    repeated = pc.equal(keys[1:], keys[:-1]) if len(keys) > 1 else pa.array([], pa.bool_())
    if pc.any(repeated).as_py():
        found = keys[1:].filter(repeated)
        return WrittenFileGroup(number, len(keys), None, len(found), tuple(found.unique().to_pylist()[:EXAMPLES_MAX]))
    if not len(keys):
        return WrittenFileGroup(number, 0, None)
    content = base_file_to_bytes(keys, values_of(locations, codes))
    name = base_name(file_id, instant_time)
    store.replace(f"{partition_folder(RECORD_INDEX)}/{name}", content)
    return WrittenFileGroup(number, len(keys), base_stat(file_id, name, entries=len(keys), size_bytes=len(content)))


def count_entries(engine: Engine, store: StoreSpec, files: Mapping[int, FileInfo]) -> list[WrittenFileGroup]:
    """Return the results that `write_base_files` returned when it wrote these base files, given by file group."""
    return engine.run(partial(_count, store=store), sorted(files.items()))


def _count(numbered: tuple[int, FileInfo], _context: TaskContext, *, store: StoreSpec) -> WrittenFileGroup:
    number, file = numbered
    entries = len(read_base(open_store(store), file.path))
    stat = base_stat(file_id_of(FILE_ID_PREFIX, number), file.name, entries=entries, size_bytes=file.size_bytes)
    return WrittenFileGroup(number, entries, stat)


def base_stat(file_id: str, name: str, *, entries: int, size_bytes: int) -> WriteStat:
    """Return the write stat of a base file, for the delta commit."""
    return WriteStat(
        file_id=file_id,
        path=f"{RECORD_INDEX}/{name}",
        num_writes=entries,
        num_inserts=entries,
        total_write_bytes=size_bytes,
        file_size_bytes=size_bytes,
        partition_path=RECORD_INDEX,
        runtime_stats=RuntimeStats(),
    )


def write_file_group_logs(
    engine: Engine,
    store: StoreSpec,
    staged: StagedFileGroups,
    file_groups: Sequence[IndexFileGroup | None],
    locations: Sequence[RecordLocation],
    *,
    instant_time: str,
    version: int,
) -> list[WrittenFileGroup]:
    """Write one log file with this version for every file group with entries.

    `file_groups` are the file groups as already written. Each result has the number of keys by which its file group
    grew (negative if it shrank); counting takes a look-up of the staged keys.
    """
    tasks = [(entries, file_groups[entries.number]) for entries in staged.file_groups if entries.batches]
    write = partial(_write_log, spec=store, locations=tuple(locations), instant_time=instant_time, version=version)
    return engine.run(write, tasks)


def _write_log(
    task: tuple[FileGroupEntries, IndexFileGroup | None],
    _context: TaskContext,
    *,
    spec: StoreSpec,
    locations: tuple[RecordLocation, ...],
    instant_time: str,
    version: int,
) -> WrittenFileGroup:
    entries, file_group = task
    store, number = open_store(spec), entries.number
    keys, codes, _ = one_entry_per_key(*entries.read(store))
    if not len(keys):
        return WrittenFileGroup(number, 0, None)
    is_live = codes != DELETED
    was_there = np.zeros(len(keys), np.bool_)
    if file_group is not None:
        content = read_file_group(store, file_group)
        was_there = find(content, keys, look_up=way_of(len(keys), content)).codes >= 0
    delta = delta_of(file_id_of(FILE_ID_PREFIX, number), keys, codes, locations)
    stat = write_log(store, instant_time, delta, version=version)
    return WrittenFileGroup(number, int((is_live & ~was_there).sum()) - int((~is_live & was_there).sum()), stat)
