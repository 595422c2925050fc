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


_Task = tuple[FileGroupEntries, IndexFileGroup]


def check_file_groups(
    engine: Engine, store: StoreSpec, staged: StagedFileGroups, file_groups: Sequence[IndexFileGroup]
) -> list[FileGroupDiffers]:
    """Compare all entries with all staged keys. Memory of a task: the keys and entries of one index file group."""
    # The function holds the arguments that the tasks share: it is serialised once, each task separately.
    return engine.run(partial(_check_all, spec=store, locations=staged.locations), _tasks(staged, file_groups))


def check_entries(
    engine: Engine, store: StoreSpec, staged: StagedFileGroups, file_groups: Sequence[IndexFileGroup]
) -> list[FileGroupDiffers]:
    """Look up the staged keys: keys that were put must be found in their file group, deleted keys must not be found."""
    tasks = [(entries, file_group) for entries, file_group in _tasks(staged, file_groups) if entries.batches]
    return engine.run(partial(_check_some, spec=store, locations=staged.locations), tasks)


def _tasks(staged: StagedFileGroups, file_groups: Sequence[IndexFileGroup]) -> list[_Task]:
    return [(staged.file_groups[file_group.number], file_group) for file_group in file_groups]


def _check_all(
    task: _Task, _context: TaskContext, *, spec: StoreSpec, locations: tuple[FileGroup, ...]
) -> FileGroupDiffers:
    (staged, file_group), store = task, open_store(spec)
    keys, codes = staged.read(store)
    content = read_file_group(store, file_group)
    entry_keys, _ = RecordIndexKind().compact(content, file_name="")
    entries = find(content, entry_keys, look_up=LookUp.SCAN)
    places, groups = _in_one_list(locations, entries)
    found = _Findings(groups)
    numbers = file_group_index(entry_keys, staged.file_group_count)
    misplaced = np.flatnonzero(numbers != file_group.number)
    texts = [f"bucket {numbers[row]}" for row in misplaced[:_EXAMPLES_MAX].tolist()]
    found.add(IndexProblem.MISPLACED, entry_keys, misplaced, found=places, texts=texts)
    is_extra = np.asarray(pc.invert(pc.is_in(entry_keys, value_set=keys)))
    extra = np.flatnonzero(is_extra & (numbers == file_group.number))
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


def _check_some(
    task: _Task, _context: TaskContext, *, spec: StoreSpec, locations: tuple[FileGroup, ...]
) -> FileGroupDiffers:
    (staged, file_group), store = task, open_store(spec)
    keys, codes, _ = one_entry_per_key(*staged.read(store))
    content = read_file_group(store, file_group)
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
