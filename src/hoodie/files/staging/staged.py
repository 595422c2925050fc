"""Stage the incoming rows of one write in files; tasks of later steps read the rows that they need.

A write evaluates the caller's data exactly once. The rows are written to Arrow IPC files under `.hoodie/.temp`, split
into runs of one partition path each. Tasks that look up keys and write files read only their runs, in any order and any
number of times. The folder belongs to no instant, so that bad input is found before the timeline is changed. The name
of the folder identifies its writer, so that a later write can delete the staged files of a dead one.

If all of the write runs in this process, the rows of an Arrow table stay where they are, and a run is taken out of them
when it is read. Few other bytes are staged in the memory of the process, and those of a table in an object store on the
local disk: in the object store each file would cost requests. The path of a staged file contains its place.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.files.markers import TEMP_FOLDER
from hoodie.format.filenames import name_of
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.keys.sorting import HASH_END, spread
from hoodie.storage import (
    MemoryStore,
    Store,
    explained,
    kept_value,
    memory_folder,
    scratch_folder,
    scratch_input,
    scratch_output,
)
from hoodie.timeline.owner import Owner

STAGE_PREFIX: Final = "stage-"
_SCRATCH: Final = "scratch:"
_MEMORY: Final = "in-memory:"
_MEMORY_BYTES_MAX: Final = 16 * 1024 * 1024
"""Rows of so many bytes are staged in memory: files of them would take longer to open than to read."""
_HELD_BYTES_MAX: Final = 256 * 1024 * 1024
"""Rows of a table of so many bytes stay in memory, while what is made of them has no more bytes."""

_FLUSH_BYTES = 32 * 1024 * 1024

_OPEN_FILES_MAX = 200
"""A process may have about a thousand open files, and a write as many staged files as its data has tasks."""

_STAGE_AGE_MS_MAX = 24 * 60 * 60 * 1000

_HASHED_BYTES_MIN = 8 * 1024 * 1024
_HASH_SLICES = 16

HIT_SCHEMA = pa.schema([pa.field("row", pa.int64(), False), pa.field("route", pa.int8(), False)])


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRun:
    """Consecutive staged rows of one partition path: record batch number `batch` of the file `path`.

    `start` is the ordinal of its first row among all staged rows of the write.
    """

    path: str
    batch: int
    partition_path: str
    rows: int
    size_bytes: int
    start: int = 0
    hash_start: int = 0
    hash_end: int = HASH_END
    """The hashes of the run's keys (`records.keys.sorting.spread`) are in `[hash_start, hash_end)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedHits:
    """Staged rows whose keys an index found in one file group: record batch `batch` of the file `path`.

    The batch contains the ordinals of the rows, ascending from `first` to `last`, and the route of each row: 0 is an
    update (`updates` counts these), 1 is a move to another partition (`moves`), 2 drops the row (`drops`).
    """

    path: str
    batch: int
    partition_path: str
    file_id: str
    updates: int
    moves: int
    drops: int
    first: int
    last: int


@contextlib.contextmanager
def stage_folder(store: Store, *, in_process: bool = False, known_bytes: int | None = None) -> Iterator[str]:
    """Yield a new folder for one write's staged files, and delete it at the end; else a later write deletes it.

    `in_process`: all of the write runs on threads of this process, so that its staged files may be on the local disk,
    or in memory if the rows are few. `known_bytes`: the bytes of the rows; None if unknown.
    """
    if in_process and known_bytes is not None and known_bytes <= _MEMORY_BYTES_MAX:
        with memory_folder() as name:
            yield f"{_MEMORY}{name}"
        return
    if in_process and store.spec.is_remote:
        with scratch_folder() as root:
            yield f"{_SCRATCH}{root}"
        return
    owner = Owner.new()
    owner.run()
    folder = f"{TEMP_FOLDER}/{STAGE_PREFIX}{owner.short_name}"
    try:
        yield folder
    finally:
        owner.forget()
        with contextlib.suppress(Exception):
            store.delete_folder(folder)


@contextlib.contextmanager
def rows_folder(folder: str, *, in_process: bool, known_bytes: int | None) -> Iterator[str | None]:
    """Yield the folder in memory where the rows of a write stay; None if they do not. Arguments as `stage_folder`."""
    if folder.startswith(_MEMORY):
        yield folder
    elif in_process and known_bytes is not None and known_bytes <= _HELD_BYTES_MAX:
        with memory_folder() as name:
            yield f"{_MEMORY}{name}"
    else:
        yield None


def staged_output(store: Store, path: str) -> pa.NativeFile:
    """Open a streaming writer of a new staged file."""
    if path.startswith(_MEMORY):
        memory, file = _in_memory(path)
        return memory.open_output(file)
    if not path.startswith(_SCRATCH):
        return store.open_output(path)
    return scratch_output(path.removeprefix(_SCRATCH))


@contextlib.contextmanager
def new_staged_file(store: Store, path: str) -> Iterator[pa.NativeFile]:
    """Open a streaming writer of a new staged file for the body. Raises: StorageError, for a full disk too."""
    with explained(store.uri(path)), staged_output(store, path) as sink:
        yield sink


def staged_input(store: Store, path: str) -> pa.NativeFile:
    """Open a random-access reader of a staged file."""
    if path.startswith(_MEMORY):
        memory, file = _in_memory(path)
        return memory.open_input(file)
    if not path.startswith(_SCRATCH):
        return store.open_input(path)
    return scratch_input(path.removeprefix(_SCRATCH))


def _in_memory(path: str) -> tuple[MemoryStore, str]:
    name, _, file = path.removeprefix(_MEMORY).partition("/")
    return MemoryStore(name), file


def is_dead_stage_folder(store: Store, folder: str, *, now_ms: int) -> bool:
    """Return whether the folder holds staged files of a dead write.

    For a writer on another machine, or in another process that runs, it is not known whether the writer still runs. Its
    write counts as dead if no staged file is younger than a day. A shorter time is not safe: a folder does not change
    while its writer writes other files.
    """
    name = name_of(folder)
    if not name.startswith(STAGE_PREFIX):
        return False
    owner = Owner.parse_short_name(name.removeprefix(STAGE_PREFIX))
    running = None if owner is None else owner.is_running()
    if running is not None:
        return not running
    newest_ms = max((info.modified_ms for info in store.list(folder, recursive=True)), default=now_ms)
    return now_ms - newest_ms > _STAGE_AGE_MS_MAX


def dead_stages(store: Store, *, now_ms: int) -> tuple[list[str], int]:
    """Return the folders with staged files of dead writes, and the bytes of these files."""
    folders = [folder for folder in store.folders(TEMP_FOLDER) if is_dead_stage_folder(store, folder, now_ms=now_ms)]
    return folders, sum(info.size_bytes for folder in folders for info in store.list(folder, recursive=True))


class RowListener(Protocol):
    """Receives staged rows in the order in which they are written."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns that it reads."""
        ...

    def add(self, batch: pa.RecordBatch, places: pa.Int64Array) -> None:
        """Receive the next rows of the file, and the position of each row in the writer's input."""
        ...

    def flush(self) -> None:
        """Write the received rows; the stage writer calls this when it has emptied its buffer."""
        ...


_SMALL_BYTES: Final = 1 << 20
"""Fewer bytes are compressed and decompressed by one thread: the threads of Arrow cost more than the work."""


def compressed_writer(sink: pa.NativeFile, schema: pa.Schema, size_bytes: int) -> pa.ipc.RecordBatchFileWriter:
    """Return a writer of an IPC file whose first rows have this size; a small size means that all rows are few."""
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=size_bytes >= _SMALL_BYTES)
    return pa.ipc.new_file(sink, schema, options=options)


class StageWriter:
    """Splits batches into runs by partition path and writes them to one IPC file. Memory: twice 32 MiB of rows.

    `memory`: a folder in memory (`rows_folder`), where the batches stay as they are, up to a share of 256 MiB and 4
    bytes a row; only those behind them are written. `by_hash`: large runs are split by key hash; otherwise the rows of
    a partition path keep their order. `flush_bytes`: Arrow bytes that are collected before they are split into runs.
    """

    def __init__(
        self,
        store: Store,
        path: str,
        schema: pa.Schema,
        keys: RowListener | None = None,
        *,
        by_hash: bool = True,
        flush_bytes: int = _FLUSH_BYTES,
        memory: str | None = None,
    ) -> None:
        self._store = store
        self._path = path
        self._by_hash = by_hash
        self._flush_bytes = flush_bytes
        self._keys = keys
        self._held_path = "" if memory is None else f"{memory}/held-{name_of(path)}"
        self._held: list[RowsOf] = []
        # Each task of this process has a thread, and about as many rows as the others.
        self._held_left = 0 if memory is None else _HELD_BYTES_MAX // (os.cpu_count() or 1)
        self._sink = staged_output(store, path) if memory is None else None
        self._writer: pa.ipc.RecordBatchFileWriter | None = None
        self._written = 0
        self._schema = schema
        self._buffer: list[pa.RecordBatch] = []
        self._buffered_bytes = 0
        self._paths = 1
        self._rows = 0
        self._runs: list[StagedRun] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Stage one batch of changes."""
        if batch.num_rows == 0:
            return
        self._buffer.append(batch)
        self._buffered_bytes += batch.nbytes
        if self._buffered_bytes >= self._wanted_bytes:
            self._flush()

    @property
    def _wanted_bytes(self) -> int:
        """The bytes that are split together. Batches that stay are not joined, unless their runs would be small."""
        if self._held_left <= 0 or self._by_hash:
            return self._flush_bytes
        return min(self._flush_bytes, _SMALL_BYTES * self._paths)

    def close(self) -> list[StagedRun]:
        """Finish the file and return its runs."""
        self._flush()
        if self._held:
            store, file = _in_memory(self._held_path)
            store.keep(file, self._held)
        if self._sink is not None:
            (self._writer or compressed_writer(self._sink, self._schema, 0)).close()
            self._sink.close()
        return self._runs

    def _flush(self) -> None:
        if not self._buffer:
            return
        rows, size_bytes = pa.Table.from_batches(self._buffer, self._schema), self._buffered_bytes
        self._buffer, self._buffered_bytes = [], 0
        step = rows.num_rows
        if size_bytes > 2 * _FLUSH_BYTES:  # one large batch: a reader has whole runs in memory
            step = max(1, rows.num_rows * _FLUSH_BYTES // size_bytes)
        is_held = size_bytes <= self._held_left
        self._held_left = self._held_left - size_bytes if is_held else 0
        if not is_held and self._writer is None:
            self._sink = self._sink or staged_output(self._store, self._path)
            self._writer = compressed_writer(self._sink, self._schema, size_bytes)
        for start in range(0, rows.num_rows, step):
            self._split(rows.slice(start, step), is_held=is_held)
        if self._keys is not None:
            self._keys.flush()

    def _split(self, rows: pa.Table, *, is_held: bool) -> None:
        start, self._rows = self._rows, self._rows + rows.num_rows
        parts = _by_partition(rows)
        for partition_path, part in parts:
            for hash_start, hash_end, piece in _slices_by_hash(part) if self._by_hash else ((0, HASH_END, part),):
                batch = None if is_held else piece.batch()
                run = StagedRun(
                    path=self._held_path if batch is None else self._path,
                    batch=len(self._held) if batch is None else self._written,
                    partition_path=partition_path,
                    rows=len(piece),
                    size_bytes=piece.size_bytes if batch is None else batch.nbytes,
                    hash_start=hash_start,
                    hash_end=hash_end,
                )
                self._runs.append(run)
                if batch is None:
                    self._held.append(piece)
                else:
                    assert self._writer is not None
                    self._writer.write_batch(batch)
                    self._written += 1
                if self._keys is not None:
                    keys = piece.batch(self._keys.columns) if batch is None else batch
                    self._keys.add(keys, pa.array(start + piece.places))
        self._paths = len(parts)


@dataclass(frozen=True, slots=True)
class RowsOf:
    """Some rows of a table, which are taken out of it when they are read.

    Record key and partition path often are columns of the caller's data: `sources` are the different columns, each in
    one chunk, and `columns` the place of each column of the table among them. `order`: the rows; None: all.
    """

    sources: pa.Table
    columns: Sequence[int]
    schema: pa.Schema
    row_bytes: float | npt.NDArray[np.float64]
    """Bytes of a row on average, or of each row of the table."""
    order: npt.NDArray[np.int32] | None = None

    @classmethod
    def all_of(cls, rows: pa.Table) -> RowsOf:
        """Return all rows of a table."""
        sources, columns = _distinct_columns(rows)
        return cls(sources, columns, rows.schema, _row_bytes(rows))

    def __len__(self) -> int:
        return self.sources.num_rows if self.order is None else len(self.order)

    @property
    def size_bytes(self) -> int:
        """The bytes of the rows; those of nested values on average."""
        if isinstance(self.row_bytes, float):
            return round(len(self) * self.row_bytes)
        return int((self.row_bytes if self.order is None else self.row_bytes[self.order]).sum())

    @property
    def places(self) -> npt.NDArray[np.int64]:
        """The places of the rows in the table."""
        return np.arange(len(self)) if self.order is None else self.order.astype(np.int64)

    def some(self, chosen: npt.NDArray[np.int64]) -> RowsOf:
        """Return some of these rows, by their numbers among them."""
        return replace(self, order=(chosen if self.order is None else self.order[chosen]).astype(np.int32))

    def table(self, names: Sequence[str] | None = None) -> pa.Table:
        """Return the rows, or some of their columns, in new memory; all rows are in the memory of the table."""
        schema = self.schema if names is None else pa.schema([self.schema.field(name) for name in names])
        wanted = [self.columns[self.schema.get_field_index(name)] for name in schema.names]
        distinct = {place: number for number, place in enumerate(dict.fromkeys(wanted))}
        found = self.sources.select([*distinct])
        if self.order is not None:
            found = found.take(pa.array(self.order))
        return pa.Table.from_arrays([found.column(distinct[place]) for place in wanted], schema=schema)

    def batch(self, names: Sequence[str] | None = None) -> pa.RecordBatch:
        """Return the rows as `table`, in one batch; there is a row."""
        return self.table(names).combine_chunks().to_batches()[0]


def _row_bytes(rows: pa.Table) -> float | npt.NDArray[np.float64]:
    """Return the bytes of a row: of each row if the rows have texts, and are not few."""
    size_bytes: int = rows.nbytes
    average = float(size_bytes / max(rows.num_rows, 1))
    if size_bytes < _SMALL_BYTES:
        return average
    texts = [column for column in rows.columns if pa.types.is_string(column.type) or pa.types.is_binary(column.type)]
    if not texts:
        return average
    lengths = [np.asarray(pc.fill_null(pc.binary_length(column), 0)) for column in texts]
    found: npt.NDArray[np.float64] = np.sum(lengths, axis=0, dtype=np.float64)
    others = float(size_bytes - found.sum()) / rows.num_rows
    return found + np.float64(others)


def _held(path: str, batch: int) -> RowsOf | None:
    """Return the rows of a run that stay in memory; None for a staged file."""
    if not path.startswith(_MEMORY):
        return None
    name, _, file = path.removeprefix(_MEMORY).partition("/")
    held: list[RowsOf] | None = kept_value(name, file)
    return None if held is None else held[batch]


def _slices_by_hash(rows: RowsOf) -> Iterator[tuple[int, int, RowsOf]]:
    """Split many rows by key hash, so that a reader of a hash range need not read all; each slice keeps the order."""
    if rows.size_bytes < _HASHED_BYTES_MIN:
        yield 0, HASH_END, rows
        return
    numbers = spread(rows.table([RECORD_KEY])[RECORD_KEY].combine_chunks()) // (HASH_END // _HASH_SLICES)
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(_HASH_SLICES + 1))
    for number in range(_HASH_SLICES):
        if bounds[number] < bounds[number + 1]:
            start = number * (HASH_END // _HASH_SLICES)
            yield start, start + HASH_END // _HASH_SLICES, rows.some(order[bounds[number] : bounds[number + 1]])


def split_by_partition(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Split rows into one table per partition path; each table keeps the order of its rows.

    The tables share no memory, so a small table that is kept does not keep the memory of the others.
    """
    names, orders = _orders(rows)
    if len(names) == 1:
        yield names[0], rows
        return
    whole = RowsOf.all_of(rows)
    for name, order in zip(names, orders, strict=True):
        yield name, whole.some(order).table()


def _by_partition(rows: pa.Table) -> list[tuple[str, RowsOf]]:
    """Return the partition paths of rows, and the rows of each in their order."""
    names, orders = _orders(rows)
    whole = RowsOf.all_of(rows)
    if len(names) == 1:
        return [(names[0], whole)]
    return [(name, whole.some(order)) for name, order in zip(names, orders, strict=True)]


def _orders(rows: pa.Table) -> tuple[list[str], Iterator[npt.NDArray[np.int64]]]:
    """Return the partition paths of rows, and of each the numbers of its rows, ascending."""
    codes = rows[PARTITION_PATH].combine_chunks().dictionary_encode()
    names = codes.dictionary.to_pylist()
    numbers = np.asarray(codes.indices)
    bounds = [0, *np.cumsum(np.bincount(numbers)).tolist()]

    def orders() -> Iterator[npt.NDArray[np.int64]]:
        # NumPy sorts small numbers by counting them.
        order = np.argsort(numbers.astype(np.uint16) if len(names) <= 1 << 16 else numbers, kind="stable")
        for number in range(len(names)):
            yield order[bounds[number] : bounds[number + 1]]

    return names, orders()


def _distinct_columns(rows: pa.Table) -> tuple[pa.Table, list[int]]:
    """Return the different columns, each in one chunk, and the place of each column of `rows` among them.

    Rows taken from a column of several chunks would join these each time.
    """
    places: dict[object, int] = {}
    found: list[int] = []
    firsts: list[int] = []
    for number, column in enumerate(rows.columns):
        found.append(places.setdefault(_memory(column, number), len(places)))
        if found[-1] == len(firsts):
            firsts.append(number)
    names = [str(place) for place in range(len(places))]
    return pa.Table.from_arrays([rows.column(first) for first in firsts], names=names).combine_chunks(), found


def _memory(column: pa.ChunkedArray, number: int) -> object:
    """Return a key that is equal for text columns in the same memory; columns of other types have their number."""
    if not pa.types.is_string(column.type):
        return number
    return tuple(
        (chunk.offset, len(chunk), *(0 if part is None else part.address for part in chunk.buffers()))
        for chunk in column.chunks
    )


class StageReader:
    """Reads runs and hits, and keeps up to `open_files_max` IPC files open. Use as a context manager."""

    def __init__(
        self, store: Store, columns: Sequence[str] | None = None, *, open_files_max: int = _OPEN_FILES_MAX
    ) -> None:
        self._store = store
        self._columns = columns
        self._open_files_max = open_files_max
        self._open: dict[str, tuple[pa.NativeFile, pa.ipc.RecordBatchFileReader]] = {}

    def __enter__(self) -> StageReader:
        return self

    def __exit__(self, *_: object) -> None:
        for source, _reader in self._open.values():
            source.close()

    def read(self, run: StagedRun | StagedHits) -> pa.RecordBatch:
        """Return the batch of a run or of hits; of a run only the reader's columns, if it has any."""
        return self.read_batch(run.path, run.batch, self._columns if isinstance(run, StagedRun) else None)

    def read_some(self, run: StagedRun, numbers: npt.NDArray[np.int64]) -> pa.Table:
        """Return some rows of a run, by their numbers in it."""
        held = _held(run.path, run.batch)
        if held is not None:
            return held.some(numbers).table(self._columns)
        return pa.Table.from_batches([self.read(run)]).take(pa.array(numbers))

    def read_batch(self, path: str, batch: int, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """Return one batch of a staged file; the `columns` of the first call for a file apply to all its calls."""
        held = _held(path, batch)
        if held is not None:
            return held.batch(columns)
        if path not in self._open:
            if len(self._open) >= self._open_files_max:
                self._open.pop(next(iter(self._open)))[0].close()
            source = staged_input(self._store, path)
            options = pa.ipc.IpcReadOptions(use_threads=source.size() >= _SMALL_BYTES)
            if columns is not None:
                places = {name: place for place, name in enumerate(pa.ipc.open_file(source).schema.names)}
                options.included_fields = [places[name] for name in columns]
                source.seek(0)
            self._open[path] = (source, pa.ipc.open_file(source, options=options))
        return self._open[path][1].get_batch(batch)


def keys_of_rows(store: Store, runs: Sequence[StagedRun], ordinals: npt.NDArray[np.int64]) -> list[str]:
    """Return the record keys of a few staged rows."""
    keys: dict[int, str] = {}
    with StageReader(store, [RECORD_KEY]) as reader:
        for run in runs:
            mine = ordinals[(ordinals >= run.start) & (ordinals < run.start + run.rows)]
            if len(mine):
                found = reader.read(run).column(RECORD_KEY).take(pa.array(mine - run.start))
                keys.update(zip(mine.tolist(), found.to_pylist(), strict=True))
    return [keys[ordinal] for ordinal in ordinals.tolist()]


def write_hits(
    store: Store, path: str, found: Iterable[tuple[str, str, npt.NDArray[np.int64], npt.NDArray[np.int8]]]
) -> list[StagedHits]:
    """Write `(partition path, file id, ordinals ascending, routes)` of several file groups to one file."""
    hits: list[StagedHits] = []
    with new_staged_file(store, path) as sink, pa.ipc.new_file(sink, HIT_SCHEMA) as writer:
        for partition_path, file_id, rows, routes in found:
            writer.write_batch(pa.record_batch([pa.array(rows), pa.array(routes)], schema=HIT_SCHEMA))
            updates = int((routes == 0).sum())
            moves = int((routes == 1).sum())
            hit = StagedHits(
                path=path,
                batch=len(hits),
                partition_path=partition_path,
                file_id=file_id,
                updates=updates,
                moves=moves,
                drops=len(rows) - updates - moves,
                first=int(rows[0]) if len(rows) else 0,
                last=int(rows[-1]) if len(rows) else -1,
            )
            hits.append(hit)
    return hits


def staged_rows(
    store: Store, runs: Sequence[StagedRun], ordinals: npt.NDArray[np.int64], columns: Sequence[str]
) -> pa.Table:
    """Return columns of the staged rows with these ordinals (at least one, ascending), in their order.

    Memory: the rows, and one run.
    """
    parts: list[pa.Table] = []
    with StageReader(store, columns) as reader:
        for run in runs:
            first, last = np.searchsorted(ordinals, [run.start, run.start + run.rows])
            if first < last:
                parts.append(reader.read_some(run, ordinals[first:last] - run.start).select(list(columns)))
    return pa.concat_tables(parts)
