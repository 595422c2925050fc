"""Merge small logs on threads of this process, for engines that read base files on their own: decision 0020.

Such an engine leaves out the rows of base files that log files replace or delete: `Superseded` finds them. The files of
a slice never change, and their names are never used again: they contain a UUID of the file group, the instant and a
token of the attempt. So the results of the last merges are kept for later reads of the same slices, by the storage of
the table, the names and sizes of the files, and all rules of the read.
"""

from __future__ import annotations

import pickle
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.engine import LocalEngine, TaskContext
from hoodie.errors import UnsupportedError
from hoodie.files.merged_slice import SliceRead, split_slice, superseded_positions
from hoodie.files.slices import FileSlice
from hoodie.format.schema.conform import conform
from hoodie.format.table.merge_config import MergeMode
from hoodie.read.local import SliceScan
from hoodie.read.plan import ScanPlan
from hoodie.storage import Store

_Value = TypeVar("_Value")


class RecentResults(Generic[_Value]):
    """Keeps the results that were used last, up to `bytes_max` bytes and `entries_max` results. Thread-safe.

    The second limit bounds what the bytes do not count: keys, and objects of an engine.
    """

    def __init__(self, bytes_max: int, entries_max: int) -> None:
        self._bytes_max, self._entries_max = bytes_max, entries_max
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[_Value, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable | None) -> _Value | None:
        """Return the result with this key; None if it is not kept. Nothing is kept without a key."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def keep(self, key: Hashable | None, value: _Value, size_bytes: int) -> None:
        """Keep a result, and drop those that were used longest ago; a result above the limit is not kept."""
        if key is None or size_bytes > self._bytes_max:
            return
        with self._lock:
            if key in self._kept:
                self._bytes -= self._kept.pop(key)[1]
            self._kept[key] = value, size_bytes
            self._bytes += size_bytes
            while self._bytes > self._bytes_max or len(self._kept) > self._entries_max:
                self._bytes -= self._kept.popitem(last=False)[1][1]


Words = npt.NDArray[np.int64]
_WORD_BITS = 64


@dataclass(frozen=True, slots=True)
class Superseded:
    """Finds the superseded rows of the file slices of a scan. Picklable."""

    read: SliceRead

    @classmethod
    def of(cls, plan: ScanPlan) -> Superseded:
        """Create it for a scan whose engine filters rows of base files by the scan's condition, keys and instants."""
        try:
            names = [] if plan.where is None else sorted(plan.where.columns(plan.schema))
            names += [] if plan.keys is None else plan.keys.column_names
        except UnsupportedError:
            return cls(replace(plan.slice_read((), in_utc=False), base_filter=None, base_filter_on_keys=False))
        return cls(plan.slice_read(tuple(dict.fromkeys(names)), in_utc=False))

    def words(self, store: Store, found: FileSlice) -> Words:
        """Return a bit for each row of the slice's base file, up to the last superseded row: set if it is superseded.

        Row n is bit n % 64 (0 is the lowest) of word n // 64. The bits of rows that the scan's condition rules out may
        be wrong. Memory: two bytes for each row of the base file, and as `files.merged_slice`.
        """
        bits = _Bits()
        for positions in superseded_positions(store, found, self.read):
            bits.add(positions)
        return bits.words()


class _Bits:
    """Positions as bits. Memory: two bytes for each position up to the greatest."""

    def __init__(self) -> None:
        self._marked = np.zeros(0, np.bool_)
        self._end = 0

    def add(self, positions: npt.NDArray[np.int64]) -> None:
        """Set the bits of these positions (at least one)."""
        self._end = max(self._end, int(positions.max()) + 1)
        if self._end > len(self._marked):
            more = max(self._end, 2 * len(self._marked)) - len(self._marked)
            self._marked = np.concatenate([self._marked, np.zeros(more, np.bool_)])
        self._marked[positions] = True

    def words(self) -> Words:
        """Return the bits as in `Superseded.words`."""
        padded = np.zeros(-(-self._end // _WORD_BITS) * _WORD_BITS, np.bool_)
        padded[: self._end] = self._marked[: self._end]
        return np.packbits(padded, bitorder="little").view("<i8")


ROWS_BYTES_MAX = 64 * 1024 * 1024
"""Maximum bytes of rows that come from the logs of a read, as Arrow data, which are merged in this process."""
KEPT_BYTES_MAX = 64 * 1024 * 1024
"""Maximum bytes of merges that the process keeps."""
_KEPT_MAX = 10_000


@dataclass(frozen=True, slots=True)
class LocalMerge:
    """A merged slice: the superseded rows of its base file as in `Superseded.words`, and the rows from its logs.

    `key` identifies the files and the rules; None if the merge is not repeatable. `rows` is None if only the superseded
    rows were wanted.
    """

    key: Hashable | None
    words: Words
    rows: pa.Table | None

    @property
    def size_bytes(self) -> int:
        """Bytes in memory."""
        return self.words.nbytes + (0 if self.rows is None else self.rows.nbytes)


def key_of_all(merges: Iterable[LocalMerge]) -> Hashable | None:
    """Return the key of several merges; None if one of them is not repeatable."""
    keys = tuple(merge.key for merge in merges)
    return None if None in keys else keys


def merge_locally(
    store: Store, slices: Sequence[FileSlice], scan: SliceScan, schema: pa.Schema
) -> list[LocalMerge] | None:
    """Merge slices with log files on threads; the rows have this schema. None if they are more than `ROWS_BYTES_MAX`.

    Memory: the rows, and for each thread as `files.merged_slice`. Raises: as `files.merged_slice.read_file_slice`.
    """
    rules = _rules_key(scan)
    budget = _Budget(ROWS_BYTES_MAX)

    def merge(found: FileSlice, context: TaskContext) -> LocalMerge:
        key = None if rules is None else (store.spec, found, rules)
        kept = _merges.get(key)
        if kept is not None:
            budget.take(kept.size_bytes)
            return kept
        made = _merged(store, found, scan, schema, budget, key)
        _merges.keep(key, made, made.size_bytes)
        return made

    try:
        return LocalEngine().run(merge, slices)
    except _TooManyBytesError:
        return None


def superseded_locally(store: Store, slices: Sequence[FileSlice], superseded: Superseded) -> list[LocalMerge]:
    """Find the superseded rows of slices on threads. Memory and errors: as `Superseded.words`, for each thread."""
    rules = _rules_key(superseded)

    def find(found: FileSlice, context: TaskContext) -> LocalMerge:
        key = None if rules is None else (store.spec, found, rules)
        kept = _merges.get(key)
        if kept is not None:
            return kept
        made = LocalMerge(key, superseded.words(store, found), None)
        _merges.keep(key, made, made.size_bytes)
        return made

    return LocalEngine().run(find, slices)


def _merged(
    store: Store, found: FileSlice, scan: SliceScan, schema: pa.Schema, budget: _Budget, key: Hashable | None
) -> LocalMerge:
    assert scan.merge is not None
    bits, batches = _Bits(), []
    for rows, positions in split_slice(store, found, scan.merge):
        if positions is not None:
            bits.add(positions)
        if rows is not None:
            for batch in scan.filtered([rows]):
                conformed = conform(batch, schema, stored=True)
                budget.take(conformed.nbytes)
                batches.append(conformed)
    return LocalMerge(key, bits.words(), pa.Table.from_batches(batches, schema))


def _rules_key(rules: SliceScan | Superseded) -> bytes | None:
    """Return bytes that are equal only for equal rules; None for a function of the caller, which may change."""
    read = rules.merge if isinstance(rules, SliceScan) else rules.read
    if read is None or read.merger.mode is MergeMode.CUSTOM:
        return None
    return pickle.dumps(rules)


class _TooManyBytesError(Exception):
    """The rows do not fit into the budget."""


class _Budget:
    """Bytes that several threads share."""

    def __init__(self, bytes_max: int) -> None:
        self._left = bytes_max
        self._lock = threading.Lock()

    def take(self, size_bytes: int) -> None:
        """Take some of the bytes. Raises: _TooManyBytesError if fewer are left."""
        with self._lock:
            self._left -= size_bytes
            if self._left < 0:
                raise _TooManyBytesError


_merges: RecentResults[LocalMerge] = RecentResults(KEPT_BYTES_MAX, _KEPT_MAX)
