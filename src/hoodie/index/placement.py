"""Which file groups the inserts of a write go to: the contract between the write and the index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hoodie.files.slices import FileSlice


@dataclass(frozen=True, slots=True)
class HashRange:
    """Inserts whose key hash lies in `[start, end)`: rows of one key stay together, whatever batch brought them."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class InsertShare:
    """A part of a partition's inserts, about `rows`, and the file group that it goes to, which may be a new one."""

    file_id: str
    hash_range: HashRange
    rows: int


class Placement(Protocol):
    """Chooses the file groups of inserts."""

    def place(self, partition_path: str, rows: int, slices: Sequence[FileSlice]) -> Iterable[InsertShare]:
        """Share out about `rows` inserts of one partition (more than 0); the shares cover all key hashes once.

        `slices` are the latest slices of the partition's file groups that may take inserts. A share goes to one of
        these file groups, or opens a new one; no two shares go to one file group.
        """
        ...
