"""Entries of the record index that a write makes: staged by the tasks that write files, then written to log files.

The log files are written before the table's lock is taken. They count when the write has completed.
Of one key that a write deletes and inserts, as when a record moves, the insert counts.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Engine, TaskContext
from hoodie.files.staging.staged import StageReader
from hoodie.files.staging.staged_keys import KeyGroups
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.format.metadata_table.record_location import RecordLocation, location_values
from hoodie.index.record.partition_file_groups import partitioned_file_id
from hoodie.metadata.delta_commit import FileGroupDelta, write_log
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store, StoreSpec, open_store

_FLUSH_BYTES = 8 * 1024 * 1024
DELETED = -1
"""Code of an entry that says that its key lies nowhere."""
_SCHEMA = pa.schema([pa.field(RECORD_KEY, pa.string(), False), pa.field("location", pa.int32(), False)])

ENTRY_BYTES = 64
"""About what a staged entry takes, to tell how much work there is."""

Codes = npt.NDArray[np.int32]
Batches = tuple[tuple[str, int, int], ...]
"""Staged record batches: path, number, and where the codes of their file begin."""


@dataclass(frozen=True, slots=True)
class EntryStage:
    """Where a write stages its entries, and for which file groups. Picklable."""

    folder: str
    groups: KeyGroups | None
    """None: a partitioned record index, whose entries are grouped by their data partitions."""


@dataclass(frozen=True, slots=True)
class StagedEntries:
    """Entries of one task: for each record batch of `path` its group. Their codes are places in `locations`.

    `locations` are partition paths and file ids. Of a partitioned index the groups are places in `partitions`.
    """

    path: str
    groups: tuple[int, ...]
    locations: tuple[tuple[str, str], ...]
    rows: int
    partitions: tuple[str, ...] = ()


class EntryWriter:
    """Stages the entries of one task. Memory: 8 MiB of keys, twice. No file is made for no entries."""

    def __init__(self, store: Store, stage: EntryStage, context: TaskContext) -> None:
        self._store = store
        self._stage = stage
        # Several jobs of one write stage entries, and threads of this process number their tasks as a cluster does.
        attempt = f"{context.partition}-{context.stage}-{context.attempt}-{uuid.uuid4().hex}"
        self._path = f"{stage.folder}/entries-{attempt}.arrow"
        self._sink: pa.NativeFile | None = None
        self._writer: pa.ipc.RecordBatchFileWriter | None = None
        self._pending: dict[str, list[pa.RecordBatch]] = {}
        self._pending_bytes = 0
        self._groups: list[int] = []
        self._partitions: dict[str, int] = {}
        self._locations: dict[tuple[str, str], int] = {}
        self._rows = 0

    def put(self, keys: pa.ChunkedArray | pa.Array, partition_path: str, file_id: str) -> None:
        """These keys lie in this file group now."""
        code = self._locations.setdefault((partition_path, file_id), len(self._locations))
        self._add(keys, partition_path, code)

    def delete(self, keys: pa.ChunkedArray | pa.Array, partition_path: str) -> None:
        """These keys of this data partition lie nowhere any more, unless they are put elsewhere."""
        self._add(keys, partition_path, DELETED)

    def close(self) -> StagedEntries | None:
        """Finish; None if there were no entries."""
        self._flush()
        if self._writer is None or self._sink is None:
            return None
        self._writer.close()
        self._sink.close()
        found = tuple(self._groups), tuple(self._locations), self._rows, tuple(self._partitions)
        return StagedEntries(self._path, *found)

    def _add(self, keys: pa.ChunkedArray | pa.Array, partition_path: str, code: int) -> None:
        if not len(keys):
            return
        flat = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
        codes = pa.array(np.full(len(flat), code, np.int32))
        batch = pa.RecordBatch.from_arrays([flat, codes], schema=_SCHEMA)
        # All partitions share the file groups of a global index.
        self._pending.setdefault(partition_path if self._stage.groups is None else "", []).append(batch)
        self._pending_bytes += batch.nbytes
        self._rows += len(flat)
        if self._pending_bytes >= _FLUSH_BYTES:
            self._flush()

    def _flush(self) -> None:
        pending, self._pending, self._pending_bytes = self._pending, {}, 0
        if pending and self._writer is None:
            self._sink = self._store.open_output(self._path)
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pa.ipc.new_file(self._sink, _SCHEMA, options=options)
        for partition_path, batches in pending.items():
            rows = pa.Table.from_batches(batches, _SCHEMA).combine_chunks()
            if self._stage.groups is None:
                self._write(rows, self._partitions.setdefault(partition_path, len(self._partitions)))
                continue
            for group, members in self._stage.groups.split(rows[RECORD_KEY].combine_chunks()):
                self._write(rows.take(pa.array(members)), group)

    def _write(self, rows: pa.Table, group: int) -> None:
        assert self._writer is not None
        self._writer.write_batch(rows.combine_chunks().to_batches()[0])
        self._groups.append(group)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenEntries:
    """What the index got: a statistic for each log file, and keys that one write inserted more than once."""

    stats: tuple[WriteStat, ...] = ()
    duplicates: int = 0

    @classmethod
    def together(cls, parts: Sequence[WrittenEntries]) -> WrittenEntries:
        """What several tasks wrote."""
        stats = tuple(stat for part in parts for stat in part.stats)
        return cls(stats=stats, duplicates=sum(part.duplicates for part in parts))


@dataclass(frozen=True, slots=True)
class _LogTask:
    """The entries of one group of file groups: record batches by path, and where the codes of a file begin."""

    file_ids: tuple[str, ...]
    numbers: tuple[int, ...]
    """The file groups of the group."""
    batches: Batches


def write_entries(
    engine: Engine,
    store: StoreSpec,
    staged: Sequence[StagedEntries],
    *,
    instant_time: str,
    instant_ms: int,
    file_ids: Sequence[str],
) -> WrittenEntries:
    """Write one log file for each file group that has entries; `file_ids` are those of all file groups, by number.

    One task for each group of file groups; memory of a task: its entries, twice. Safe to repeat: the files have the
    same names and bytes.
    """
    batches, locations = gathered(staged)
    count = KeyGroups(len(file_ids)).count
    tasks = [
        _LogTask(tuple(file_ids), tuple(range(group, len(file_ids), count)), found)
        for group, found in sorted(batches.items())
    ]
    return _write_groups(engine, store, tasks, locations, instant_time, instant_ms)


def write_partitioned_entries(
    engine: Engine,
    store: StoreSpec,
    staged: Sequence[StagedEntries],
    *,
    instant_time: str,
    instant_ms: int,
    file_ids: Mapping[str, Sequence[str]],
) -> WrittenEntries:
    """As `write_entries`, for a partitioned index: `file_ids` are the file groups of each data partition, by number.

    A data partition without any gets its first one.

    Raises: PartitionPathError for a data partition that cannot have file groups.
    """
    batches, locations = gathered(staged)
    tasks: list[_LogTask] = []
    for partition_path, found in sorted(batches.items()):
        own = tuple(file_ids.get(partition_path) or [partitioned_file_id(partition_path, 0)])
        tasks.append(_LogTask(own, tuple(range(len(own))), found))
    return _write_groups(engine, store, tasks, locations, instant_time, instant_ms)


def _write_groups(
    engine: Engine,
    store: StoreSpec,
    tasks: Sequence[_LogTask],
    locations: Sequence[tuple[str, str]],
    instant_time: str,
    instant_ms: int,
) -> WrittenEntries:
    told = tuple(RecordLocation(path, file_id, instant_ms) for path, file_id in locations)
    return WrittenEntries.together(engine.run(_WriteGroup(store, instant_time, told), tasks))


@dataclass(frozen=True, slots=True)
class _WriteGroup:
    """Callable for `Engine.run`: writes the log files of a group. What tasks share is here, serialised once."""

    store: StoreSpec
    instant_time: str
    locations: tuple[RecordLocation, ...]

    def __call__(self, task: _LogTask, _context: TaskContext) -> WrittenEntries:
        store = open_store(self.store)
        keys, codes = read_entries(store, task.batches)
        numbers = file_group_index(keys, len(task.file_ids))
        stats: list[WriteStat] = []
        duplicates = 0
        for number in task.numbers:
            mine = np.flatnonzero(numbers == number)
            if not len(mine):
                continue
            own_keys, own_codes, doubled = one_entry_per_key(keys.take(pa.array(mine)), codes[mine])
            duplicates += doubled
            delta = delta_of(task.file_ids[number], own_keys, own_codes, self.locations)
            stats.append(write_log(store, self.instant_time, delta, overwrite=True))
        return WrittenEntries(stats=tuple(stats), duplicates=duplicates)


def gathered(staged: Sequence[StagedEntries]) -> tuple[dict[Any, Batches], tuple[tuple[str, str], ...]]:
    """Where the entries of each group are, by its number or data partition; and the locations that their codes name."""
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
    """Keys, and for each the place of its location, or `DELETED`; of `wanted` keys only, if that is given."""
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
    """The delta of an index file group, of entries as `one_entry_per_key` gives them."""
    is_live = codes != DELETED
    return FileGroupDelta(
        partition=RECORD_INDEX,
        file_id=file_id,
        keys=keys.filter(pa.array(is_live)),
        values=values_of(locations, codes[is_live]),
        deleted_keys=keys.filter(pa.array(~is_live)),
    )


def values_of(locations: Sequence[RecordLocation], codes: Codes) -> pa.BinaryArray:
    """Values of the codes; only locations that occur are encoded."""
    used, places = np.unique(codes, return_inverse=True)
    return location_values([locations[code] for code in used.tolist()], places)


def one_entry_per_key(keys: pa.StringArray, codes: Codes) -> tuple[pa.StringArray, Codes, int]:
    """One entry for each key, ascending by UTF-8 bytes; an insert beats a deletion, and the last insert the others.

    The third value is how many inserts lost.
    """
    encoded = keys.dictionary_encode()
    place = np.asarray(encoded.indices)
    last = np.full(len(encoded.dictionary), DELETED, np.int32)
    puts = codes != DELETED
    # Ascending codes, so that the same one wins whatever the order of the tasks' results.
    np.maximum.at(last, place[puts], codes[puts])
    order = np.asarray(pc.sort_indices(encoded.dictionary))
    inserted = int(puts.sum()) - int((last != DELETED).sum())
    return encoded.dictionary.take(pa.array(order)), last[order], inserted
