"""The placement of inserts in file groups: the contract between the write and the index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import StagedHits


@dataclass(frozen=True, slots=True)
class HashRange:
    """Inserts whose key hash is in `[start, end)`. Rows of one key are in one range, whatever batch they are in."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Inserts that an index assigned to one file group: the rows of `hits`. Rows of one key are in one file group."""

    hits: tuple[StagedHits, ...]


@dataclass(frozen=True, slots=True)
class InsertShare:
    """A part of a partition's inserts, about `rows`, and the file group that it is written to, which may be new."""

    file_id: str
    part: HashRange | PlacedRows
    rows: int


class Placement(Protocol):
    """Chooses the file groups of inserts."""

    def place(self, partition_path: str, rows: int, slices: Sequence[FileSlice]) -> Iterable[InsertShare]:
        """Divide about `rows` inserts of one partition (more than 0) into shares that have each insert once.

        `slices` are the latest slices of the partition's file groups that accept inserts. A share is written to one of
        these file groups or to a new file group. Each file group gets at most one share.
        """
        ...
