"""Compare the record index with the data. Runs on workers, one task for each index file group."""

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
from hoodie.index.record.building.file_group_files import FileGroupEntries, StagedFileGroups
from hoodie.index.record.entries import DELETED, one_entry_per_key
from hoodie.index.record.file_groups import IndexFileGroup, read_file_group
from hoodie.index.record.look_up import LookUp, find, way_of
from hoodie.metadata.kinds.record_index import RecordIndexKind
from hoodie.storage import StoreSpec, open_store

_EXAMPLES_MAX = 3

Rows = npt.NDArray[np.int64]
FileGroup = tuple[str, str]


class IndexProblem(StrEnum):
    """A kind of difference between the record index and the data."""

    MISSING = "keys without an entry"
    EXTRA = "entries without a key"
    MISLOCATED = "entries of another file group"
    MISPLACED = "entries in a wrong bucket"
    DOUBLED = "rows whose key another row has"


@dataclass(frozen=True, slots=True)
class Example:
    """One key that differs; locations are texts of partition path and file id."""

    kind: IndexProblem
    key: str
    expected: str | None = None
    found: str | None = None


@dataclass(frozen=True, slots=True)
class FileGroupDiffers:
    """The number of compared keys and entries, and the differences; at most three examples of each kind."""

    keys: int
    entries: int
    problems: Mapping[IndexProblem, int]
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class _Task:
    store: StoreSpec
    entries: FileGroupEntries
    file_group: IndexFileGroup


def check_file_groups(
    engine: Engine, store: StoreSpec, staged: StagedFileGroups, file_groups: Sequence[IndexFileGroup]
) -> list[FileGroupDiffers]:
    """Compare all entries with all staged keys. Memory of a task: the keys and entries of one index file group."""
    # The function holds the arguments that the tasks share: it is serialised once, each task separately.
    return engine.run(partial(_check_all, locations=staged.locations), _tasks(store, staged, file_groups))


def check_entries(
    engine: Engine, store: StoreSpec, staged: StagedFileGroups, file_groups: Sequence[IndexFileGroup]
) -> list[FileGroupDiffers]:
    """Look up the staged keys: keys that were put must be found in their file group, deleted keys must not be found."""
    tasks = [task for task in _tasks(store, staged, file_groups) if task.entries.batches]
    return engine.run(partial(_check_some, locations=staged.locations), tasks)


def _tasks(store: StoreSpec, staged: StagedFileGroups, file_groups: Sequence[IndexFileGroup]) -> list[_Task]:
    return [_Task(store, staged.file_groups[file_group.number], file_group) for file_group in file_groups]


def _check_all(task: _Task, _context: TaskContext, *, locations: tuple[FileGroup, ...]) -> FileGroupDiffers:
    store = open_store(task.store)
    keys, codes = task.entries.read(store)
    content = read_file_group(store, task.file_group)
    entry_keys, _ = RecordIndexKind().compact(content, file_name="")
    entries = find(content, entry_keys, look_up=LookUp.SCAN)
    places, groups = _in_one_list(locations, entries)
    found = _Findings(groups)
    numbers = file_group_index(entry_keys, task.entries.file_group_count)
    misplaced = np.flatnonzero(numbers != task.file_group.number)
    found.add(IndexProblem.MISPLACED, entry_keys, misplaced, found=places, texts=_number_texts(numbers, misplaced))
    extra = np.flatnonzero(
        np.asarray(pc.invert(pc.is_in(entry_keys, value_set=keys))) & (numbers == task.file_group.number)
    )
    found.add(IndexProblem.EXTRA, entry_keys, extra, found=places)
    _compare_keys(found, keys, codes.astype(np.int64), entry_keys, places)
    return found.result(len(keys), len(entry_keys))


def compared(
    keys: pa.StringArray,
    codes: Rows,
    entry_keys: pa.StringArray,
    places: Rows,
    groups: Sequence[FileGroup],
) -> FileGroupDiffers:
    """Compare entries with keys of the data; `codes` and `places` are positions in `groups`, -1 for no location.

    The entries have each key once.
    """
    found = _Findings(groups)
    extra = np.flatnonzero(np.asarray(pc.invert(pc.is_in(entry_keys, value_set=keys))))
    found.add(IndexProblem.EXTRA, entry_keys, extra, found=places)
    _compare_keys(found, keys, codes, entry_keys, places)
    return found.result(len(keys), len(entry_keys))


def _compare_keys(
    found: _Findings, keys: pa.StringArray, codes: Rows, entry_keys: pa.StringArray, places: Rows
) -> None:
    """Add the keys without an entry, with an entry of another file group, and of several rows."""
    encoded = keys.dictionary_encode()
    distinct, of_row = encoded.dictionary, np.asarray(encoded.indices)
    entry_of = np.asarray(pc.fill_null(pc.index_in(distinct, value_set=entry_keys), -1)).astype(np.int64)
    stored = np.where(entry_of >= 0, places[np.maximum(entry_of, 0)] if len(places) else -1, -1)
    # A key of several rows is located correctly if one of the rows is in the file group of the entry.
    is_located = np.zeros(len(distinct), np.bool_)
    np.logical_or.at(is_located, of_row, stored[of_row] == codes)
    last = np.zeros(len(distinct), np.int64)
    last[of_row] = codes
    found.add(IndexProblem.MISSING, distinct, np.flatnonzero(entry_of < 0), expected=last)
    wrong = np.flatnonzero((entry_of >= 0) & ~is_located)
    found.add(IndexProblem.MISLOCATED, distinct, wrong, expected=last, found=stored)
    rows_of = np.bincount(of_row, minlength=len(distinct))
    doubled = np.flatnonzero(rows_of > 1)
    found.add(IndexProblem.DOUBLED, distinct, doubled, expected=last, count=int((rows_of[doubled] - 1).sum()))


def _check_some(task: _Task, _context: TaskContext, *, locations: tuple[FileGroup, ...]) -> FileGroupDiffers:
    store = open_store(task.store)
    keys, codes, _ = one_entry_per_key(*task.entries.read(store))
    content = read_file_group(store, task.file_group)
    entries = find(content, keys, look_up=way_of(len(keys), content))
    places, groups = _in_one_list(locations, entries)
    found = _Findings(groups)
    is_put, is_there = codes != DELETED, places >= 0
    expected = codes.astype(np.int64)
    found.add(IndexProblem.MISSING, keys, np.flatnonzero(is_put & ~is_there), expected=expected)
    found.add(IndexProblem.EXTRA, keys, np.flatnonzero(~is_put & is_there), found=places)
    wrong = np.flatnonzero(is_put & is_there & (places != expected))
    found.add(IndexProblem.MISLOCATED, keys, wrong, expected=expected, found=places)
    return found.result(len(keys), int(is_there.sum()))


def _in_one_list(locations: Sequence[FileGroup], entries: LocationColumn) -> tuple[Rows, list[FileGroup]]:
    """Return the position of each entry's file group in a list that begins with `locations`; -1 for no location.

    `locations` has each file group once: a task stages a file group once, and no file group is in two tasks.
    """
    groups = {group: place for place, group in enumerate(locations)}
    own = [groups.setdefault((found.partition_path, found.file_id), len(groups)) for found in entries.locations]
    places = np.array([*own, -1], np.int64)
    return places[entries.codes], list(groups)


def _number_texts(numbers: npt.NDArray[np.int32], rows: Rows) -> list[str]:
    return [f"bucket {numbers[row]}" for row in rows[:_EXAMPLES_MAX].tolist()]


class _Findings:
    """Collects the number of differences of each kind, and a few examples."""

    def __init__(self, groups: Sequence[FileGroup]) -> None:
        self._groups = groups
        self._problems: dict[IndexProblem, int] = {}
        self._examples: list[Example] = []

    def add(
        self,
        kind: IndexProblem,
        keys: pa.StringArray,
        rows: Rows,
        *,
        expected: Rows | None = None,
        found: Rows | None = None,
        texts: Sequence[str] | None = None,
        count: int | None = None,
    ) -> None:
        """Add a problem of these rows of `keys`; `expected` and `found`: file groups; `texts` replaces `expected`."""
        self._problems[kind] = len(rows) if count is None else count
        for place, row in enumerate(rows[:_EXAMPLES_MAX].tolist()):
            wanted = texts[place] if texts is not None else self._text(expected, row)
            self._examples.append(Example(kind, keys[row].as_py(), wanted, self._text(found, row)))

    def result(self, keys: int, entries: int) -> FileGroupDiffers:
        """Return all findings."""
        return FileGroupDiffers(keys, entries, self._problems, tuple(self._examples))

    def _text(self, places: Rows | None, row: int) -> str | None:
        if places is None or places[row] < 0:
            return None
        path, file_id = self._groups[places[row]]
        return f"{path}/{file_id}" if path else file_id
