"""Does a bucket of the record index say what the data says? Runs in workers, one task for each bucket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import Engine, TaskContext
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.metadata_table.record_location import LocationColumn
from hoodie.index.record.entries import DELETED, settled
from hoodie.index.record.staged_buckets import BucketEntries, StagedBuckets
from hoodie.metadata.record_index.buckets import Bucket, read_bucket
from hoodie.metadata.record_index.kind import RecordIndexKind
from hoodie.metadata.record_index.look_up import LookUp, find, way_of
from hoodie.storage import StoreSpec, open_store

_EXAMPLES_MAX = 3

Rows = npt.NDArray[np.int64]
FileGroup = tuple[str, str]


class BucketProblem(StrEnum):
    """What can be wrong with a key."""

    MISSING = "keys without an entry"
    EXTRA = "entries without a key"
    MISLOCATED = "entries of another file group"
    MISPLACED = "entries in a wrong bucket"
    DOUBLED = "rows whose key another row has"


@dataclass(frozen=True, slots=True)
class Example:
    """One key of which something is wrong; locations as partition path and file id."""

    kind: BucketProblem
    key: str
    expected: str | None = None
    found: str | None = None


@dataclass(frozen=True, slots=True)
class BucketDiffers:
    """What a task compared, and how often the two differed; at most three examples of each kind."""

    keys: int
    entries: int
    problems: Mapping[BucketProblem, int]
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class _Task:
    store: StoreSpec
    entries: BucketEntries
    bucket: Bucket


def check_buckets(
    engine: Engine, store: StoreSpec, staged: StagedBuckets, buckets: Sequence[Bucket]
) -> list[BucketDiffers]:
    """Compare all entries of all buckets with all staged keys. Memory of a task: a bucket's keys and its entries."""
    # The function has what tasks share, as they travel one by one.
    return engine.run(partial(_check_all, locations=staged.locations), _tasks(store, staged, buckets))


def check_entries(
    engine: Engine, store: StoreSpec, staged: StagedBuckets, buckets: Sequence[Bucket]
) -> list[BucketDiffers]:
    """Look the staged keys up: those that were put must be found there, those that were deleted must not be found."""
    tasks = [task for task in _tasks(store, staged, buckets) if task.entries.batches]
    return engine.run(partial(_check_some, locations=staged.locations), tasks)


def _tasks(store: StoreSpec, staged: StagedBuckets, buckets: Sequence[Bucket]) -> list[_Task]:
    return [_Task(store, staged.buckets[bucket.number], bucket) for bucket in buckets]


def _check_all(task: _Task, _context: TaskContext, *, locations: tuple[FileGroup, ...]) -> BucketDiffers:
    store = open_store(task.store)
    keys, codes = task.entries.read(store)
    content = read_bucket(store, task.bucket)
    entry_keys, _ = RecordIndexKind().compact(content, file_name="")
    entries = find(content, entry_keys, look_up=LookUp.SCAN)
    places, groups = _in_one_list(locations, entries)
    found = _Findings(groups)
    numbers = file_group_index(entry_keys, task.entries.bucket_count)
    misplaced = np.flatnonzero(numbers != task.bucket.number)
    found.add(BucketProblem.MISPLACED, entry_keys, misplaced, found=places, texts=_bucket_texts(numbers, misplaced))
    extra = np.flatnonzero(
        np.asarray(pc.invert(pc.is_in(entry_keys, value_set=keys))) & (numbers == task.bucket.number)
    )
    found.add(BucketProblem.EXTRA, entry_keys, extra, found=places)
    encoded = keys.dictionary_encode()
    distinct, of_row = encoded.dictionary, np.asarray(encoded.indices)
    entry_of = np.asarray(pc.fill_null(pc.index_in(distinct, value_set=entry_keys), -1)).astype(np.int64)
    stored = np.where(entry_of >= 0, places[np.maximum(entry_of, 0)] if len(places) else -1, -1)
    # A key that several rows have is located if one of them is where the entry says.
    is_located = np.zeros(len(distinct), np.bool_)
    np.logical_or.at(is_located, of_row, stored[of_row] == codes)
    last = np.zeros(len(distinct), np.int64)
    last[of_row] = codes
    found.add(BucketProblem.MISSING, distinct, np.flatnonzero(entry_of < 0), expected=last)
    wrong = np.flatnonzero((entry_of >= 0) & ~is_located)
    found.add(BucketProblem.MISLOCATED, distinct, wrong, expected=last, found=stored)
    rows_of = np.bincount(of_row, minlength=len(distinct))
    doubled = np.flatnonzero(rows_of > 1)
    found.add(BucketProblem.DOUBLED, distinct, doubled, expected=last, count=int((rows_of[doubled] - 1).sum()))
    return found.result(len(keys), len(entry_keys))


def _check_some(task: _Task, _context: TaskContext, *, locations: tuple[FileGroup, ...]) -> BucketDiffers:
    store = open_store(task.store)
    keys, codes, _ = settled(*task.entries.read(store))
    content = read_bucket(store, task.bucket)
    entries = find(content, keys, look_up=way_of(len(keys), content))
    places, groups = _in_one_list(locations, entries)
    found = _Findings(groups)
    is_put, is_there = codes != DELETED, places >= 0
    expected = codes.astype(np.int64)
    found.add(BucketProblem.MISSING, keys, np.flatnonzero(is_put & ~is_there), expected=expected)
    found.add(BucketProblem.EXTRA, keys, np.flatnonzero(~is_put & is_there), found=places)
    wrong = np.flatnonzero(is_put & is_there & (places != expected))
    found.add(BucketProblem.MISLOCATED, keys, wrong, expected=expected, found=places)
    return found.result(len(keys), int(is_there.sum()))


def _in_one_list(locations: Sequence[FileGroup], entries: LocationColumn) -> tuple[Rows, list[FileGroup]]:
    """The place of each entry's file group in a list that begins with the locations of the data; -1 for none.

    Files of one task name each of their file groups once, and no file group is in two tasks.
    """
    groups = {group: place for place, group in enumerate(locations)}
    own = [groups.setdefault((found.partition_path, found.file_id), len(groups)) for found in entries.locations]
    places = np.array([*own, -1], np.int64)
    return places[entries.codes], list(groups)


def _bucket_texts(numbers: npt.NDArray[np.int32], rows: Rows) -> list[str]:
    return [f"bucket {numbers[row]}" for row in rows[:_EXAMPLES_MAX].tolist()]


class _Findings:
    """Counts, and a few examples, of what was found."""

    def __init__(self, groups: Sequence[FileGroup]) -> None:
        self._groups = groups
        self._problems: dict[BucketProblem, int] = {}
        self._examples: list[Example] = []

    def add(
        self,
        kind: BucketProblem,
        keys: pa.StringArray,
        rows: Rows,
        *,
        expected: Rows | None = None,
        found: Rows | None = None,
        texts: Sequence[str] | None = None,
        count: int | None = None,
    ) -> None:
        """Problems of these rows of `keys`; `expected` and `found` are file groups, `texts` stand for the former."""
        self._problems[kind] = len(rows) if count is None else count
        for place, row in enumerate(rows[:_EXAMPLES_MAX].tolist()):
            wanted = texts[place] if texts is not None else self._text(expected, row)
            self._examples.append(Example(kind, keys[row].as_py(), wanted, self._text(found, row)))

    def result(self, keys: int, entries: int) -> BucketDiffers:
        """All of it."""
        return BucketDiffers(keys, entries, self._problems, tuple(self._examples))

    def _text(self, places: Rows | None, row: int) -> str | None:
        if places is None or places[row] < 0:
            return None
        path, file_id = self._groups[places[row]]
        return f"{path}/{file_id}" if path else file_id
