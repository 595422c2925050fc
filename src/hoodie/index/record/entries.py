"""Entries that a write adds to the record index: the tasks that write data files stage them; log files store them.

The log files are written before the write acquires the table's lock. Readers see them when the write has completed.
If a write deletes and inserts a key, as when a record moves, the insert counts.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Engine, TaskContext
from hoodie.files.staging.staged import StageReader, staged_output
from hoodie.files.staging.staged_keys import KeyGroups
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.format.metadata_table.record_location import RecordLocation, location_values
from hoodie.index.record.file_groups import partitioned_file_id
from hoodie.metadata.delta_commit import FileGroupDelta, stage_log, write_log
from hoodie.records.change import RECORD_KEY
from hoodie.records.keys.sorting import key_order
from hoodie.storage import Store, StoreSpec, explained, open_store

_FLUSH_BYTES = 8 * 1024 * 1024
DELETED = -1
"""Code of an entry that deletes its key."""
_SCHEMA = pa.schema([pa.field(RECORD_KEY, pa.string(), False), pa.field("location", pa.int32(), False)])

ENTRY_BYTES = 64
"""Approximate bytes of a staged entry, to estimate the amount of work."""

Codes = npt.NDArray[np.int32]
Batches = tuple[tuple[str, int, int], ...]
"""Staged record batches: path, number of the batch in the file, and the offset of the file's codes."""


@dataclass(frozen=True, slots=True)
class EntryStage:
    """The folder in which a write stages its entries, and the groups of index file groups. Picklable."""

    folder: str
    groups: KeyGroups | None
    """None for a partitioned record index: its entries are grouped by data partition."""


@dataclass(frozen=True, slots=True)
class StagedEntries:
    """Staged entries of one task. `groups` has the group of each record batch in the file `path`.

    The codes of the entries are positions in `locations`, which are pairs of partition path and file id. For a
    partitioned index, the groups are positions in `partitions`. `deletes`: how many of the rows are deletions.
    """

    path: str
    groups: tuple[int, ...]
    locations: tuple[tuple[str, str], ...]
    rows: int
    partitions: tuple[str, ...] = ()
    deletes: int = 0


class EntryWriter:
    """Stages the entries of one task. Memory: twice 8 MiB of keys. Without entries, no file is written.

    `stage`: None if the index of the table records no locations; then nothing is staged.
    """

    def __init__(self, store: Store, stage: EntryStage | None, context: TaskContext) -> None:
        self._store = store
        self._is_wanted, self._key_groups = stage is not None, stage.groups if stage is not None else None
        # The uuid makes the name unique: several jobs of one write stage entries, with the same task numbers.
        attempt = f"{context.partition}-{context.stage}-{context.attempt}-{uuid.uuid4().hex}"
        self._path = "" if stage is None else f"{stage.folder}/entries-{attempt}.arrow"
        self._sink: pa.NativeFile | None = None
        self._writer: pa.ipc.RecordBatchFileWriter | None = None
        self._pending: dict[str, list[pa.RecordBatch]] = {}
        self._pending_bytes = 0
        self._groups: list[int] = []
        self._partitions: dict[str, int] = {}
        self._locations: dict[tuple[str, str], int] = {}
        self._rows = 0
        self._deletes = 0

    def put(self, keys: pa.ChunkedArray | pa.Array, partition_path: str, file_id: str) -> None:
        """Stage the location of keys that are now in a file group."""
        code = self._locations.setdefault((partition_path, file_id), len(self._locations))
        self._add(keys, partition_path, code)

    def delete(self, keys: pa.ChunkedArray | pa.Array, partition_path: str) -> None:
        """Stage the deletion of keys of a data partition. If `put` stages a key for another file group, that counts."""
        self._deletes += len(keys)
        self._add(keys, partition_path, DELETED)

    def close(self) -> StagedEntries | None:
        """Finish the file and return its description; None if there were no entries."""
        self._flush()
        if self._writer is None or self._sink is None:
            return None
        with explained(self._store.uri(self._path)):
            self._writer.close()
            self._sink.close()
        found = tuple(self._groups), tuple(self._locations), self._rows, tuple(self._partitions)
        return StagedEntries(self._path, *found, self._deletes)

    def _add(self, keys: pa.ChunkedArray | pa.Array, partition_path: str, code: int) -> None:
        if not self._is_wanted or not len(keys):
            return
        flat = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
        codes = pa.array(np.full(len(flat), code, np.int32))
        batch = pa.RecordBatch.from_arrays([flat, codes], schema=_SCHEMA)
        # All partitions share the file groups of a global index.
        self._pending.setdefault(partition_path if self._key_groups is None else "", []).append(batch)
        self._pending_bytes += batch.nbytes
        self._rows += len(flat)
        if self._pending_bytes >= _FLUSH_BYTES:
            self._flush()

    def _flush(self) -> None:
        pending, self._pending, self._pending_bytes = self._pending, {}, 0
        if pending and self._writer is None:
            self._sink = staged_output(self._store, self._path)
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pa.ipc.new_file(self._sink, _SCHEMA, options=options)
        for partition_path, batches in pending.items():
            rows = pa.Table.from_batches(batches, _SCHEMA).combine_chunks()
            if self._key_groups is None:
                self._write(rows, self._partitions.setdefault(partition_path, len(self._partitions)))
                continue
            for group, members in self._key_groups.split(rows[RECORD_KEY].combine_chunks()):
                self._write(rows.take(pa.array(members)), group)

    def _write(self, rows: pa.Table, group: int) -> None:
        assert self._writer is not None
        with explained(self._store.uri(self._path)):
            self._writer.write_batch(rows.combine_chunks().to_batches()[0])
        self._groups.append(group)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenEntries:
    """The written log files: a write stat for each, and the number of duplicate inserts of a key in one write."""

    stats: tuple[WriteStat, ...] = ()
    duplicates: int = 0

    @classmethod
    def together(cls, parts: Sequence[WrittenEntries]) -> WrittenEntries:
        """Combine the results of several tasks."""
        stats = tuple(stat for part in parts for stat in part.stats)
        return cls(stats=stats, duplicates=sum(part.duplicates for part in parts))


@dataclass(frozen=True, slots=True)
class _LogTask:
    """The staged entries of one group of index file groups; `file_ids` are those of all file groups, by number."""

    file_ids: tuple[str, ...]
    numbers: tuple[int, ...]
    """Numbers of the file groups in the group."""
    batches: Batches


def write_entries(
    engine: Engine,
    store: StoreSpec,
    staged: Sequence[StagedEntries],
    *,
    instant_time: str,
    instant_ms: int,
    file_ids: Sequence[str],
    folder: str | None = None,
) -> WrittenEntries:
    """Write one log file for each file group that has entries; `file_ids` has all file groups, by number.

    With `folder`, the log files are staged there (`delta_commit.stage_log`). One task runs for each group of file
    groups. Memory of a task: twice its entries. Safe to repeat: the files have the same names and bytes.
    """
    batches, locations = gathered(staged)
    located = tuple(RecordLocation(*location, instant_ms) for location in locations)
    count = KeyGroups(len(file_ids)).count
    tasks = [
        _LogTask(tuple(file_ids), tuple(range(group, len(file_ids), count)), found)
        for group, found in sorted(batches.items())
    ]
    rows = sum(entries.rows for entries in staged)
    return _write_groups(engine, _WriteGroup(store, instant_time, located, folder), tasks, rows)


def write_partitioned_entries(
    engine: Engine,
    store: StoreSpec,
    staged: Sequence[StagedEntries],
    *,
    instant_time: str,
    instant_ms: int,
    file_ids: Mapping[str, Sequence[str]],
) -> WrittenEntries:
    """Write log files as `write_entries`, for a partitioned index: `file_ids` has the file groups by data partition.

    A data partition without index file groups gets its first one.

    Raises: PartitionPathError for a partition path that file ids cannot contain.
    """
    batches, locations = gathered(staged)
    located = tuple(RecordLocation(*location, instant_ms) for location in locations)
    tasks: list[_LogTask] = []
    for partition_path, found in sorted(batches.items()):
        own = tuple(file_ids.get(partition_path) or [partitioned_file_id(partition_path, 0)])
        tasks.append(_LogTask(own, tuple(range(len(own))), found))
    rows = sum(entries.rows for entries in staged)
    return _write_groups(engine, _WriteGroup(store, instant_time, located), tasks, rows)


def _write_groups(engine: Engine, write: _WriteGroup, tasks: Sequence[_LogTask], rows: int) -> WrittenEntries:
    batch_bytes = ENTRY_BYTES * rows // max(sum(len(task.batches) for task in tasks), 1)
    sizes = [len(task.batches) * batch_bytes for task in tasks]
    return WrittenEntries.together(engine.run(write, tasks, sizes))


@dataclass(frozen=True, slots=True)
class _WriteGroup:
    """Callable for `Engine.run`: writes the log files of a group. Tasks share its fields, which are serialised once."""

    store: StoreSpec
    instant_time: str
    locations: tuple[RecordLocation, ...]
    folder: str | None = None
    """Where log files are staged; None writes them to their places."""

    def __call__(self, task: _LogTask, _context: TaskContext) -> WrittenEntries:
        store = open_store(self.store)
        keys, codes = read_entries(store, task.batches)
        stats: list[WriteStat] = []
        duplicates = 0
        for number, some_keys, some_codes in _by_file_group(task, keys, codes):
            own_keys, own_codes, doubled = one_entry_per_key(some_keys, some_codes)
            duplicates += doubled
            delta = delta_of(task.file_ids[number], own_keys, own_codes, self.locations)
            if self.folder is None:
                stats.append(write_log(store, self.instant_time, delta))
            else:
                stats.append(stage_log(store, self.instant_time, delta, self.folder))
        return WrittenEntries(stats=tuple(stats), duplicates=duplicates)


def _by_file_group(task: _LogTask, keys: pa.StringArray, codes: Codes) -> Iterator[tuple[int, pa.StringArray, Codes]]:
    """Yield the number of each file group of the task that has entries, with its keys and codes."""
    if len(task.numbers) == 1 and len(keys):
        yield task.numbers[0], keys, codes
        return
    numbers = file_group_index(keys, len(task.file_ids))
    for number in task.numbers:
        mine = np.flatnonzero(numbers == number)
        if len(mine):
            yield number, keys.take(pa.array(mine)), codes[mine]


def gathered(staged: Sequence[StagedEntries]) -> tuple[dict[Any, Batches], tuple[tuple[str, str], ...]]:
    """Return the staged batches by group number or data partition, and the locations to which the codes refer."""
    batches: dict[Any, list[tuple[str, int, int]]] = {}
    locations: list[tuple[str, str]] = []
    for entries in staged:
        for batch, group in enumerate(entries.groups):
            name = entries.partitions[group] if entries.partitions else group
            batches.setdefault(name, []).append((entries.path, batch, len(locations)))
        locations += entries.locations
    return {name: tuple(found) for name, found in batches.items()}, tuple(locations)


def read_entries(
    store: Store, batches: Batches, wanted: Callable[[pa.StringArray], npt.NDArray[np.bool_]] | None = None
) -> tuple[pa.StringArray, Codes]:
    """Return keys, and for each key the position of its location, or `DELETED`; `wanted` selects the keys."""
    keys: list[pa.StringArray] = [pa.array([], pa.string())]
    codes: list[Codes] = [np.zeros(0, np.int32)]
    with StageReader(store) as reader:
        for path, batch, first in batches:
            rows = reader.read_batch(path, batch)
            if wanted is not None:
                rows = rows.filter(pa.array(wanted(rows.column(RECORD_KEY))))
            keys.append(rows.column(RECORD_KEY))
            local = np.asarray(rows.column("location"))
            codes.append(np.where(local == DELETED, local, local + np.int32(first)))
    return pa.concat_arrays(keys), np.concatenate(codes)


def delta_of(file_id: str, keys: pa.StringArray, codes: Codes, locations: Sequence[RecordLocation]) -> FileGroupDelta:
    """Return the delta of an index file group, from entries that `one_entry_per_key` returned."""
    is_live = codes != DELETED
    return FileGroupDelta(
        partition=RECORD_INDEX,
        file_id=file_id,
        keys=keys.filter(pa.array(is_live)),
        values=values_of(locations, codes[is_live]),
        deleted_keys=keys.filter(pa.array(~is_live)),
    )


def values_of(locations: Sequence[RecordLocation], codes: Codes) -> pa.BinaryArray:
    """Return the encoded value of each code; only locations that occur are encoded."""
    used, places = np.unique(codes, return_inverse=True)
    return location_values([locations[code] for code in used.tolist()], places)


def one_entry_per_key(keys: pa.StringArray, codes: Codes) -> tuple[pa.StringArray, Codes, int]:
    """Keep one entry for each key, ascending by UTF-8 bytes: an insert before a deletion, the last of several inserts.

    The third result is the number of inserts that were removed.
    """
    # The greatest code wins, so that the result does not depend on the order of the tasks' results.
    order = key_order(keys)
    ordered, last = keys.take(pa.array(order)), codes[order]
    is_first = np.ones(len(keys), np.bool_)
    is_first[1:] = np.asarray(pc.not_equal(ordered[1:], ordered[:-1]))
    starts = np.flatnonzero(is_first)
    if len(starts) == len(keys):
        return ordered, last, 0
    last = np.maximum.reduceat(last, starts)
    inserted = int((codes != DELETED).sum()) - int((last != DELETED).sum())
    return ordered.take(pa.array(starts)), last, inserted
