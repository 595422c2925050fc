"""Plan the file tasks of a write: updates go to their file groups, inserts to the file groups that a placement chooses.

The plan is a pure function of the staged runs, the index's hits and the file slices: the workload profile of
docs/format/table.md §9.1. On copy-on-write tables a changed file group gets a new base file. On merge-on-read tables
updates are appended to log files, and new file groups start with a base file; inserts are appended to log files only if
the index finds keys in log files.

The default placement of inserts, `SizePlacement`, follows the sizes of the files. It estimates the bytes of a record
from earlier commits, else from the data of the write.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from hoodie.config import writes
from hoodie.errors import UnsupportedError
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.files.staging.staged import StagedHits, StagedRun
from hoodie.format.bootstrap_index import INSTANT
from hoodie.format.filenames import new_file_id
from hoodie.index.api import HashRange, InsertShare, PlacedRows, Placement
from hoodie.records.keys.sorting import HASH_END
from hoodie.view.table_view import TableView
from hoodie.write.files.context import FileSizing


class Storage(Enum):
    """How changes of existing file groups are stored."""

    REWRITE = auto()
    """Copy-on-write: updates and inserts are merged into a new base file."""
    APPEND_UPDATES = auto()
    """Merge-on-read, with an index that does not find keys in log files.

    Updates are appended to log files; inserts are merged into base files of slices without log files.
    """
    APPEND = auto()
    """Merge-on-read, with an index that finds keys in log files: all changes are appended to log files."""


@dataclass(frozen=True, slots=True)
class TaggedRows:
    """All staged rows of a write and their hits in the index. Serialised once per job; tasks are serialised separately.

    `is_global`: a row may hit a file of another partition.
    """

    runs: tuple[StagedRun, ...]
    hits: tuple[StagedHits, ...]
    is_global: bool = False

    def runs_for(self, partition_path: str) -> tuple[StagedRun, ...]:
        """Return the runs that may contain rows for the files of a partition."""
        return tuple(run for run in self.runs if self.is_global or run.partition_path == partition_path)

    def hits_for(self, partition_path: str) -> tuple[StagedHits, ...]:
        """Return the hits that may contain rows with this partition path."""
        return tuple(hit for hit in self.hits if self.is_global or hit.partition_path == partition_path)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTask:
    """All changes of one file group in one write.

    If `file_slice` is None, the task creates the file group `file_id`. `hits` are its updates. `inserts` is its share
    of the partition's inserts: the staged rows with this partition path without a hit. `appends`: the changes are
    appended to a log file; otherwise a new base file is written.
    """

    partition_path: str
    file_id: str
    file_slice: FileSlice | None
    hits: tuple[StagedHits, ...]
    inserts: HashRange | PlacedRows | None
    insert_rows: int
    appends: bool = False

    @property
    def base_file(self) -> BaseFile | None:
        """Return the existing base file; None if there is none."""
        return None if self.file_slice is None else self.file_slice.base_file

    @property
    def size_bytes(self) -> int:
        """Return the bytes of the file group that the task reads."""
        return self.base_file.size_bytes if self.base_file is not None and not self.appends else 0

    @property
    def changed_rows(self) -> int:
        """Return the number of staged rows that the task writes."""
        return self.insert_rows + sum(hit.updates + hit.moves for hit in self.hits)


def plan_files(
    runs: Sequence[StagedRun],
    hits: Sequence[StagedHits],
    slices: Sequence[FileSlice],
    *,
    placement: Placement,
    known_only: bool = False,
    storage: Storage = Storage.REWRITE,
    closed: Collection[tuple[str, str]] = (),
) -> list[FileTask]:
    """Return one task for each file group that changes, sorted by partition path.

    `slices` are the latest file slices of every partition in `runs` or `hits`. `known_only`: rows without a hit are
    ignored, because they have nothing to delete or to update. `closed` file groups (partition path and file id) take no
    inserts.
    """
    slices_of: dict[str, list[FileSlice]] = {}
    for found in slices:
        if found.base_file is not None or storage is not Storage.REWRITE:
            slices_of.setdefault(found.partition_path, []).append(found)
    rows_of: Counter[str] = Counter()
    for run in runs:
        rows_of[run.partition_path] += run.rows
    hits_of: dict[str, list[StagedHits]] = {}
    for hit in hits:
        hits_of.setdefault(hit.partition_path, []).append(hit)
    tasks: list[FileTask] = []
    for path in sorted({*rows_of, *hits_of}):
        own, own_hits = slices_of.get(path, []), hits_of.get(path, [])
        # An estimate: a key that the table contains twice has two hits, and with a global index rows hit other
        # partitions. Above zero rows are expected if there may be inserts.
        unknown = rows_of[path] - sum(hit.updates for hit in own_hits)
        expected = 0 if known_only or path not in rows_of else max(unknown, 1)
        open_to_inserts = [
            found
            for found in own
            if (path, found.file_id) not in closed and _takes_inserts(found, storage, unknown_rows=unknown)
        ]
        shares = list(placement.place(path, expected, open_to_inserts)) if expected > 0 else []
        _check_open(shares, own, open_to_inserts)
        tasks += _tasks(path, own_hits, own, shares, storage)
    return tasks


def _check_open(shares: Sequence[InsertShare], own: Sequence[FileSlice], open_to_inserts: Sequence[FileSlice]) -> None:
    """Refuse a placement of inserts in file groups that accept none in this write.

    Such inserts are neither appended nor merged, so their base file would hide the logged records of the file group.
    """
    closed = {found.file_id for found in own} - {found.file_id for found in open_to_inserts}
    wrong = [share.file_id for share in shares if share.file_id in closed]
    if wrong:
        raise UnsupportedError(f"inserts were placed in the file groups {wrong}, which accept no inserts in this write")


def _takes_inserts(found: FileSlice, storage: Storage, *, unknown_rows: int) -> bool:
    """Return whether inserts may be placed in the file group.

    With `Storage.APPEND_UPDATES`, inserts require a rewrite of the base file, whereas updates alone are appended. So a
    file group accepts inserts only if it has no log files and the number of rows shows that there are inserts.
    """
    return storage is not Storage.APPEND_UPDATES or (not found.log_files and unknown_rows > 0)


def _tasks(
    path: str, own_hits: list[StagedHits], slices: list[FileSlice], shares: list[InsertShare], storage: Storage
) -> Iterator[FileTask]:
    """Join updates and insert shares of a partition by file group."""
    share_of = {share.file_id: share for share in shares}
    hits_of: dict[str, list[StagedHits]] = {}
    for hit in own_hits:
        hits_of.setdefault(hit.file_id, []).append(hit)
    for found in slices:
        share, hits = share_of.pop(found.file_id, None), tuple(hits_of.get(found.file_id, ()))
        if share is None and not hits:
            continue
        yield FileTask(
            partition_path=path,
            file_id=found.file_id,
            file_slice=found,
            hits=hits,
            inserts=share.part if share else None,
            insert_rows=share.rows if share else 0,
            appends=storage is Storage.APPEND or (storage is Storage.APPEND_UPDATES and share is None),
        )
    for share in share_of.values():
        yield FileTask(
            partition_path=path,
            file_id=share.file_id,
            file_slice=None,
            hits=(),
            inserts=share.part,
            insert_rows=share.rows,
        )


@dataclass(frozen=True, slots=True)
class SizePlacement:
    """Fill small file groups first, the smallest first, then distribute the other rows evenly over new file groups.

    `record_bytes` is the expected size of a record in a base file.
    """

    sizing: FileSizing
    record_bytes: float
    new_id: Callable[[], uuid.UUID] = uuid.uuid4

    @classmethod
    def of(cls, view: TableView, runs: Sequence[StagedRun], options: Mapping[str, str]) -> SizePlacement:
        """Return the placement of the rows of a write."""
        return cls(FileSizing.of(options), _record_bytes(view, runs, options))

    def place(self, partition_path: str, rows: int, slices: Sequence[FileSlice]) -> Iterator[InsertShare]:
        """Choose file groups for the inserts of a partition; see `Placement.place`."""
        placed: list[tuple[FileSlice | None, int]] = []
        left = rows
        for found in sorted(slices, key=lambda found: (found.size_bytes, found.file_id)):
            room = int((self.sizing.max_file_bytes - found.size_bytes) / self.record_bytes)
            if left <= 0 or found.size_bytes >= self.sizing.small_file_bytes:
                break
            if room > 0:
                placed.append((found, min(room, left)))
                left -= min(room, left)
        if left > 0:
            count = -(-left // max(int(self.sizing.max_file_bytes / self.record_bytes), 1))
            placed += [(None, -(-left // count))] * count
        total = sum(share for _, share in placed)
        before = 0
        for file_slice, share in placed:
            start, end = before * HASH_END // total, (before + share) * HASH_END // total
            before += share
            file_id = new_file_id(self.new_id(), 0) if file_slice is None else file_slice.file_id
            yield InsertShare(file_id, HashRange(start, end), share)


_COMMITS_ASKED = 5
_ROWS_ENOUGH = 1000
_PARQUET_SHARE = 0.5
"""Bytes of a Parquet file per byte of Arrow data; used before any commit has written a base file."""
_DEFAULT_BYTES = 1024.0


def _record_bytes(view: TableView, runs: Sequence[StagedRun], stored: Mapping[str, str]) -> float:
    """Return the expected bytes of one record: the option, else an average of the newest commits, else a default.

    Without a suitable commit the result is a share of the Arrow size of the staged rows; without rows it is 1024.
    """
    known = known_record_bytes(view, stored)
    if known is not None:
        return known
    rows = sum(run.rows for run in runs)
    if not rows:
        return _DEFAULT_BYTES
    return max(sum(run.size_bytes for run in runs) / rows * _PARQUET_SHARE, 1.0)


def known_record_bytes(view: TableView, stored: Mapping[str, str]) -> float | None:
    """Return the bytes of one record from the option or the newest commits; None if neither has them."""
    fixed = writes.RECORD_BYTES.get(stored)
    if fixed:
        return float(fixed)
    for instant in reversed(view.completed_writes()[-_COMMITS_ASKED:]):
        if instant.requested_time == INSTANT:
            continue  # skeleton files have only the meta columns
        rows, size_bytes = view.written_bytes(instant, rows_enough=_ROWS_ENOUGH)
        if rows >= _ROWS_ENOUGH:
            return max(size_bytes / rows, 1.0)
    return None
