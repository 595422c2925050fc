"""Sizes of the files that readers need, and the log files that a compaction would merge. No data file is opened.

The files are those of the newest file slices. Partitions are read part by part (`parts`), so that memory is bounded.
"""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from statistics import median
from typing import Any, Final

import pyarrow as pa

from hoodie.config.writes import SMALL_FILE_BYTES
from hoodie.display import counted
from hoodie.errors import HoodieError
from hoodie.files.slices import FileSlice
from hoodie.read.inspect.files import RowCounts, by_partition
from hoodie.read.inspect.parts import slice_parts
from hoodie.read.report import report_schema
from hoodie.view.table_view import TableView

BACKLOG_SCHEMA = report_schema(
    "partition_path string, file_id string, base_instant string, log_files int64, log_size_bytes int64, "
    "base_size_bytes int64, cost_bytes int64"
)
_FIRST_BOUND: Final = 4_000
_FACTOR: Final = 4
_COUNTED_SLICES_MAX: Final = 20_000
"""File slices whose rows are counted: each commit that wrote one of them is read."""


def table_sizes(view: TableView) -> dict[str, Any]:
    """Return numbers, bytes and rows of the files, their histogram, and how the partitions differ.

    `rows` are those of base files as their commits recorded them; None if some of these commits are archived (then
    `rows_note` has the sum of the others), or if the table has more than 20,000 file slices. `small_files` are base
    files below `small_below_bytes`. `histogram`: files from `from_bytes` (inclusive) to `to_bytes` (exclusive), from 0
    on without a gap. `largest_ratio`: bytes of the largest partition : median; None without files.
    """
    sums = _Sums(SMALL_FILE_BYTES.get(view.config.raw))
    rows = _Rows(RowCounts(view))
    for slices in slice_parts(view):
        for _, found in by_partition(slices):
            sums.add(found)
        rows.add(slices)
    return {**sums.to_dict(), **rows.to_dict(has_logs=bool(sums.log_files))}


@dataclass(slots=True)
class _Sums:
    """Adds up file slices, partition by partition. Memory: 8 bytes for each partition."""

    small_below_bytes: int
    base_files: int = 0
    log_files: int = 0
    log_bytes: int = 0
    file_groups: int = 0
    small_files: int = 0
    partition_bytes: array[int] = field(default_factory=lambda: array("q"))
    files_by_bound: Counter[int] = field(default_factory=Counter)
    bytes_by_bound: Counter[int] = field(default_factory=Counter)

    def add(self, slices: list[FileSlice]) -> None:
        """Add all slices of a partition."""
        logs = [log.size_bytes for found in slices for log in found.log_files]
        bases = [found.base_file.size_bytes for found in slices if found.base_file is not None]
        self.log_files += len(logs)
        self.log_bytes += sum(logs)
        self.base_files += len(bases)
        self.small_files += sum(size < self.small_below_bytes for size in bases)
        for size in chain(bases, logs):
            # Bar 0 is below 4 kB, bar 1 below 16 kB, and so on.
            number = ((size // _FIRST_BOUND).bit_length() + 1) // 2
            self.files_by_bound[number] += 1
            self.bytes_by_bound[number] += size
        self.file_groups += len(slices)
        self.partition_bytes.append(sum(bases) + sum(logs))

    def to_dict(self) -> dict[str, Any]:
        middle = median(self.partition_bytes) if self.partition_bytes else 0
        return {
            "files": self.base_files + self.log_files,
            "base_files": self.base_files,
            "log_files": self.log_files,
            "bytes": sum(self.partition_bytes),
            "log_bytes": self.log_bytes,
            "partitions": len(self.partition_bytes),
            "file_groups": self.file_groups,
            "small_files": self.small_files,
            "small_below_bytes": self.small_below_bytes,
            "histogram": [
                {
                    "from_bytes": _FIRST_BOUND * _FACTOR ** (number - 1) if number else 0,
                    "to_bytes": _FIRST_BOUND * _FACTOR**number,
                    "files": self.files_by_bound[number],
                    "bytes": self.bytes_by_bound[number],
                }
                for number in range(max(self.files_by_bound, default=-1) + 1)
            ],
            "largest_ratio": round(max(self.partition_bytes) / middle, 2) if middle else None,
        }


@dataclass(slots=True)
class _Rows:
    """Counts the rows of base files, until there are too many slices or a commit is damaged."""

    counts: RowCounts
    rows: int = 0
    base_files: int = 0
    known: int = 0
    slices: int = 0
    problem: str = ""

    def add(self, slices: list[FileSlice]) -> None:
        self.slices += len(slices)
        if self.problem or self.slices > _COUNTED_SLICES_MAX:
            return
        try:
            for base in (found.base_file for found in slices if found.base_file is not None):
                count = self.counts.get(base.instant_time, base.path)
                self.base_files += 1
                self.known += count is not None
                self.rows += count or 0
        except HoodieError as error:
            self.problem = str(error)

    def to_dict(self, *, has_logs: bool) -> dict[str, Any]:
        if self.problem:
            return {"rows": None, "rows_note": f"not counted: {self.problem}"}
        if self.slices > _COUNTED_SLICES_MAX:
            note = f"not counted, in {self.slices:,} file slices; `hoodie count` counts them"
            return {"rows": None, "rows_note": note}
        notes = []
        if self.known < self.base_files:
            files = counted(self.base_files, "base files")
            notes.append(
                f"{counted(self.rows, 'rows')} in {self.known:,} of {files}; the commits of the others are archived"
            )
        if has_logs:
            notes.append("without the changes in log files")
        return {
            "rows": self.rows if self.known == self.base_files else None,
            "rows_note": "; ".join([*notes, *(["`hoodie count` counts all"] if notes else [])]),
        }


def log_backlog(view: TableView, limit: int) -> pa.Table:
    """Return the file slices with the most bytes of log files, at most `limit`, the largest first.

    `cost_bytes`: bytes that a compaction of the slice reads and writes, as Hudi's plans estimate them; a slice without
    a base file writes as much as its log files have. Memory: a part of the slices, and `limit` rows.
    """
    largest: list[tuple[int, str, str, FileSlice]] = []
    for slices in slice_parts(view) if limit else ():
        logged = (
            (sum(log.size_bytes for log in found.log_files), found.partition_path, found.file_id, found)
            for found in slices
            if found.log_files
        )
        largest = heapq.nlargest(limit, (*largest, *logged), key=lambda row: row[:3])
    return pa.Table.from_pylist([_backlog_row(found, size) for size, _, _, found in largest], schema=BACKLOG_SCHEMA)


def _backlog_row(found: FileSlice, log_bytes: int) -> Mapping[str, Any]:
    base_bytes = 0 if found.base_file is None else found.base_file.size_bytes
    return {
        "partition_path": found.partition_path,
        "file_id": found.file_id,
        "base_instant": found.base_instant_time,
        "log_files": len(found.log_files),
        "log_size_bytes": log_bytes,
        "base_size_bytes": base_bytes,
        "cost_bytes": log_bytes + base_bytes + (base_bytes or log_bytes),
    }
