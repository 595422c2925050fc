"""Entries of the record index that a write makes: staged by those who write files, then written bucket by bucket.

The log files of the buckets are written before the table's lock is taken, and believed once the write has completed.
Of one key that a write deletes and inserts, as when a record moves, the insert counts.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Engine, TaskContext
from hoodie.files.staged import StageReader
from hoodie.files.staged_keys import KeyGroups
from hoodie.format.commit_metadata import WriteStat
from hoodie.format.java_hash import file_group_index
from hoodie.format.record_location import RecordLocation, location_values
from hoodie.metadata.delta_commit import FileGroupDelta, write_log
from hoodie.metadata.partitioned_index import partitioned_file_id
from hoodie.metadata.record_index import PARTITION
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store, StoreSpec, open_store

_FLUSH_BYTES = 8 * 1024 * 1024
DELETED = -1
"""Code of an entry that says that its key lies nowhere."""
_SCHEMA = pa.schema([pa.field(RECORD_KEY, pa.string(), False), pa.field("location", pa.int32(), False)])

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class EntryStage:
    """Where a write stages its entries, and for which buckets. Picklable."""

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
        # All partitions share the buckets of a global index.
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
    """The entries of one group of buckets: record batches by path, and where the codes of a file begin."""

    file_ids: tuple[str, ...]
    numbers: tuple[int, ...]
    """The buckets of the group."""
    batches: tuple[tuple[str, int, int], ...]


def write_entries(
    engine: Engine,
    store: StoreSpec,
    staged: Sequence[StagedEntries],
    *,
    instant_time: str,
    instant_ms: int,
    file_ids: Sequence[str],
) -> WrittenEntries:
    """Write one log file for each bucket that has entries; `file_ids` are those of all buckets, by number.

    One task for each group of buckets; memory of a task: its entries, twice. Safe to repeat: the files have the same
    names and bytes.
    """
    batches: dict[int, list[tuple[str, int, int]]] = {}
    locations: list[tuple[str, str]] = []
    for entries in staged:
        for batch, group in enumerate(entries.groups):
            batches.setdefault(group, []).append((entries.path, batch, len(locations)))
        locations += entries.locations
    count = KeyGroups(len(file_ids)).count
    tasks = [
        _LogTask(tuple(file_ids), tuple(range(group, len(file_ids), count)), tuple(found))
        for group, found in sorted(batches.items())
    ]
    write = _WriteGroup(store, instant_time, instant_ms, tuple(locations))
    return WrittenEntries.together(engine.run(write, tasks))


def write_partitioned_entries(
    engine: Engine,
    store: StoreSpec,
    staged: Sequence[StagedEntries],
    *,
    instant_time: str,
    instant_ms: int,
    file_ids: Mapping[str, Sequence[str]],
) -> WrittenEntries:
    """As `write_entries`, for a partitioned index: `file_ids` are the buckets of each data partition, by number.

    A data partition without any gets its first one.

    Raises: PartitionPathError for a data partition that cannot have buckets.
    """
    batches: dict[str, list[tuple[str, int, int]]] = {}
    locations: list[tuple[str, str]] = []
    for entries in staged:
        for batch, group in enumerate(entries.groups):
            batches.setdefault(entries.partitions[group], []).append((entries.path, batch, len(locations)))
        locations += entries.locations
    tasks: list[_LogTask] = []
    for partition_path, found in sorted(batches.items()):
        own = tuple(file_ids.get(partition_path) or [partitioned_file_id(partition_path, 0)])
        tasks.append(_LogTask(own, tuple(range(len(own))), tuple(found)))
    write = _WriteGroup(store, instant_time, instant_ms, tuple(locations))
    return WrittenEntries.together(engine.run(write, tasks))


@dataclass(frozen=True, slots=True)
class _WriteGroup:
    """Callable for `Engine.run`: writes the log files of a group. It has what tasks share: they travel one by one."""

    store: StoreSpec
    instant_time: str
    instant_ms: int
    locations: tuple[tuple[str, str], ...]

    def __call__(self, task: _LogTask, _context: TaskContext) -> WrittenEntries:
        store = open_store(self.store)
        keys, codes = _entries_of(store, task)
        numbers = file_group_index(keys, len(task.file_ids))
        stats: list[WriteStat] = []
        duplicates = 0
        for number in task.numbers:
            mine = np.flatnonzero(numbers == number)
            if not len(mine):
                continue
            own_keys, own_codes, doubled = settled(keys.take(pa.array(mine)), codes[mine])
            duplicates += doubled
            is_live = own_codes != DELETED
            delta = FileGroupDelta(
                partition=PARTITION,
                file_id=task.file_ids[number],
                keys=own_keys.filter(pa.array(is_live)),
                values=self._values(own_codes[is_live]),
                deleted_keys=own_keys.filter(pa.array(~is_live)),
            )
            stats.append(write_log(store, self.instant_time, delta, overwrite=True))
        return WrittenEntries(stats=tuple(stats), duplicates=duplicates)

    def _values(self, codes: Codes) -> pa.BinaryArray:
        used, places = np.unique(codes, return_inverse=True)
        named = (self.locations[code] for code in used.tolist())
        return location_values([RecordLocation(path, file_id, self.instant_ms) for path, file_id in named], places)


def _entries_of(store: Store, task: _LogTask) -> tuple[pa.StringArray, Codes]:
    """Keys, and the places of their locations."""
    keys: list[pa.StringArray] = []
    codes: list[Codes] = []
    with StageReader(store) as reader:
        for path, found in itertools.groupby(task.batches, key=lambda batch: batch[0]):
            for _, batch, first in found:
                rows = reader.read_batch(path, batch)
                keys.append(rows.column(RECORD_KEY))
                local = np.asarray(rows.column("location"))
                codes.append(np.where(local == DELETED, local, local + np.int32(first)))
    return pa.concat_arrays(keys), np.concatenate(codes)


def settled(keys: pa.StringArray, codes: Codes) -> tuple[pa.StringArray, Codes, int]:
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
