"""What an index does for a write: say, for every staged row, which file group holds its key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import pyarrow as pa

from hoodie.engine import Engine
from hoodie.files.slices import FileSlice
from hoodie.files.staged import StagedHits, StagedRun
from hoodie.records.merge import RecordMerger
from hoodie.storage import StoreSpec


class Route(IntEnum):
    """What a staged row does to the file group in which its key was found."""

    UPDATE = 0
    """It is merged with the stored row there."""
    MOVE = 1
    """It deletes the stored row there, and is inserted in its own partition."""
    DROP = 2
    """It loses against the stored row of another partition, and goes nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRequest:
    """Everything an index needs to tag one write's rows."""

    store: StoreSpec
    schema: pa.Schema
    merger: RecordMerger
    runs: tuple[StagedRun, ...]
    slices: tuple[FileSlice, ...]
    stage_folder: str


class Index(Protocol):
    """An index of one table."""

    @property
    def name(self) -> str:
        """Name as in `index=`."""
        ...

    @property
    def is_global(self) -> bool:
        """Whether a key is unique in the table, not just in its partition."""
        ...

    @property
    def moves_records(self) -> bool:
        """Whether a record whose partition changed moves there."""
        ...

    def tag(self, engine: Engine, request: TagRequest) -> Sequence[StagedHits]:
        """Find the file groups that hold keys of the staged rows. Rows in no hit are inserts."""
        ...
