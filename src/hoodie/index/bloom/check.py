"""Compare sorted keys with files: the key range, the bloom filter, and then the keys that a file really has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import TaskContext
from hoodie.files.merged_slice import logged_keys
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import StagedHits, StageReader, write_hits
from hoodie.format.hashes.bloom import BloomFilter
from hoodie.index.bloom.comparisons import BLOCK_ROWS, HASHES, ORDINAL, Comparisons
from hoodie.index.bloom.ranges import StoredKeys, read_stored_keys
from hoodie.index.key_search import Incoming, KeyRange, KeySearch, Routes, Rows
from hoodie.metadata.row_readers import FilterReader
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store, open_store

_HELD_ROWS = 1024 * 1024
"""Rows that may be in a file and are searched in it together."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckTask:
    """The comparisons of one task. Picklable. `slices` and `sources` have what the comparisons name by number.

    A source is the staged file of a sequence of sorted keys, and the number of its first block there.
    """

    search: KeySearch
    slices: Mapping[int, FileSlice]
    sources: Mapping[int, tuple[str, int]]
    comparisons: Comparisons
    filters: FilterReader | None
    """Reads the filters from the metadata table; None if they are read from the footers."""
    footers: Mapping[int, StoredKeys]
    """Footers of slices that are read already."""
    output: str


def check_keys(task: CheckTask, context: TaskContext) -> list[StagedHits]:
    """Return the staged rows whose keys are in the file slices. Runs on a worker.

    Memory: one filter, one block of keys, about a million rows that may be in a file, and the keys of one slice's logs.
    """
    store = open_store(task.search.store)
    found = []
    with StageReader(store) as reader:
        starts = np.flatnonzero(np.diff(task.comparisons.file, prepend=-1))
        for start, stop in zip(starts, [*starts[1:], len(task.comparisons.file)], strict=True):
            number = int(task.comparisons.file[start])
            file_slice, gate = task.slices[number], _Gate.open(store, number, task)
            batches = _batches(reader, task, int(start), int(stop))
            for rows, routes in _hits(store, batches, file_slice, gate, task.search):
                found.append((file_slice.partition_path, file_slice.file_id, rows, routes))
    return write_hits(store, f"{task.output}-{context.attempt}.arrow", found)


def _hits(
    store: Store, batches: Iterator[pa.RecordBatch], file_slice: FileSlice, gate: _Gate, search: KeySearch
) -> Iterator[tuple[Rows, Routes]]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        found = gate.may_have(batch)
        rows = batch.drop_columns(list(HASHES)).filter(pa.array(found))
        held += [rows] if rows.num_rows else []
        if sum(part.num_rows for part in held) >= _HELD_ROWS:
            yield from _search(store, file_slice, held, gate, search)
            held = []
    if held:
        yield from _search(store, file_slice, held, gate, search)


def _batches(reader: StageReader, task: CheckTask, start: int, stop: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows that elements `start` to `stop` of the comparisons compare, block by block."""
    for number in range(start, stop):
        path, first_block = task.sources[int(task.comparisons.sequence[number])]
        first, end = int(task.comparisons.first[number]), int(task.comparisons.stop[number])
        while first < end:
            block, offset = divmod(first, BLOCK_ROWS)
            rows = reader.read_batch(path, first_block + block).slice(offset, end - first)
            yield rows
            first += rows.num_rows


def _search(
    store: Store, file_slice: FileSlice, batches: list[pa.RecordBatch], gate: _Gate, search: KeySearch
) -> Iterator[tuple[Rows, Routes]]:
    """Yield the rows whose keys the slice has. Logs are read once, by the gate, unless records must be merged."""
    rows = pa.Table.from_batches(batches)
    rows = rows.filter(pa.array(gate.still_may_have(rows[RECORD_KEY])))
    if not search.is_global and gate.logged is not None:
        in_logs = pc.is_in(rows[RECORD_KEY], value_set=gate.logged)
        logged = np.sort(np.asarray(rows.filter(in_logs)[ORDINAL]))
        if len(logged):
            yield logged, np.zeros(len(logged), np.int8)
        rows = rows.filter(pc.invert(in_logs))
        file_slice = replace(file_slice, log_files=())
    ordinals = np.asarray(rows[ORDINAL].combine_chunks())
    found, routes = Incoming.of(search, rows, ordinals).find(store, file_slice)
    if len(found):
        yield found, routes


@dataclass(frozen=True, slots=True)
class _Gate:
    """Finds the keys that a file slice may have: keys that pass range and filter of its base file, and keys in logs."""

    stored: KeyRange
    bloom: BloomFilter | None
    has_base: bool
    logged: pa.StringArray | None

    @classmethod
    def open(cls, store: Store, number: int, task: CheckTask) -> _Gate:
        """Read range and filter of the base file, and the keys in the logs.

        The plan has already left out keys beyond the range, so only a footer that is read anyway gives it.

        Raises: CorruptFileError, MissingFileError.
        """
        file_slice = task.slices[number]
        base = file_slice.base_file
        stored, bloom = KeyRange(), None
        if base is not None and task.filters is not None:
            place = (base.partition_path, base.name)
            row = task.filters.rows_at(store, [place]).get(place)
            bloom = None if row is None else row.filter(path=store.uri(base.path))
        if base is not None and bloom is None:
            footer = task.footers.get(number) or read_stored_keys(store, base)
            stored, bloom = footer.range, footer.filter(path=store.uri(base.path))
        logged = logged_keys(store, file_slice, task.search.read) if file_slice.log_files else None
        return cls(stored, bloom, base is not None, logged)

    def may_have(self, rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Return for each sorted key whether the slice may have it, by the range and the first hashes."""
        keys = rows[RECORD_KEY]
        found = np.full(len(keys), self.has_base)
        if self.stored.low is not None and self.stored.high is not None:
            inside = pc.and_(pc.greater_equal(keys, self.stored.low), pc.less_equal(keys, self.stored.high))
            found &= np.asarray(inside)
        if self.bloom is not None and found.any():
            # The keys that a range lets pass are neighbours.
            first, stop = int(found.argmax()), len(found) - int(found[::-1].argmax())
            hashes = [np.asarray(rows[name])[first:stop] for name in HASHES]
            found[first:stop] = self.bloom.may_contain_hashed(hashes)
        return self._or_logged(found, keys)

    def still_may_have(self, keys: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Return for each key that `may_have` let pass whether it passes all hashes of the filter too."""
        if self.bloom is None:
            return np.ones(len(keys), np.bool_)
        return self._or_logged(self.bloom.may_contain(keys), keys)

    def _or_logged(self, found: npt.NDArray[np.bool_], keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        return found if self.logged is None else found | np.asarray(pc.is_in(keys, value_set=self.logged))
