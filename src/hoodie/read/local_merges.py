"""Merge small logs on threads of this process, for engines that read base files themselves: decision 0020.

The files of a slice never change, and their names are never used again: they contain a UUID of the file group, the
instant and a token of the attempt. So the results of the last merges are kept for later reads of the same slices, by
the storage of the table, the names and sizes of the files, and all rules of the read.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.merged_slice import split_slice
from hoodie.files.slices import FileSlice
from hoodie.format.schema.conform import conform
from hoodie.format.table.merge_config import MergeMode
from hoodie.read.local import SliceScan
from hoodie.read.recent import RecentResults
from hoodie.read.superseded import Bits, Superseded, Words
from hoodie.storage import Store

ROWS_BYTES_MAX = 64 * 1024 * 1024
"""Maximum bytes of rows that come from the logs of a read, as Arrow data, which are merged in this process."""
KEPT_BYTES_MAX = 64 * 1024 * 1024
"""Maximum bytes of merges that the process keeps."""


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
    bits, batches = Bits(), []
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


_merges: RecentResults[LocalMerge] = RecentResults(KEPT_BYTES_MAX)
