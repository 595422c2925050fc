"""What an index does for a write: it tells for every staged row which file group holds its key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import pyarrow as pa

from hoodie.engine import Engine
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import StagedHits, StagedRun
from hoodie.files.staging.staged_keys import KeyGroups, KeyStage, StagedKeys
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.index.placement import Placement
from hoodie.index.table_facts import TableFacts
from hoodie.records.merging.merge import RecordMerger
from hoodie.timeline import Instant
from hoodie.view.table_view import TableView


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
    """The staged rows of one write. `keys`, in `key_groups`, are there if the index asked for them."""

    schema: pa.Schema
    merger: RecordMerger
    runs: tuple[StagedRun, ...]
    keys: tuple[StagedKeys, ...]
    key_groups: KeyGroups | None
    stage_folder: str
    engine_for: Callable[[int], Engine]
    """The engine for work on so many bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """Where an index found rows; those in no hit are inserts. `notes` tell a person how the look-up went."""

    hits: tuple[StagedHits, ...] = ()
    slices: tuple[FileSlice, ...] = ()
    """Latest file slices of all partitions that rows or hits name."""
    look_up: LookUpCost | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUpCost:
    """What a look-up in the record index took: keys looked for, keys found, buckets that were sought in or scanned."""

    keys: int = 0
    found: int = 0
    buckets_sought: int = 0
    buckets_scanned: int = 0
    bytes_read: int = 0

    def __add__(self, other: LookUpCost) -> LookUpCost:
        """The cost of both."""
        return LookUpCost(
            keys=self.keys + other.keys,
            found=self.found + other.found,
            buckets_sought=self.buckets_sought + other.buckets_sought,
            buckets_scanned=self.buckets_scanned + other.buckets_scanned,
            bytes_read=self.bytes_read + other.bytes_read,
        )

    def __str__(self) -> str:
        ways = ((self.buckets_sought, "by seek"), (self.buckets_scanned, "by scan"))
        used = " and ".join(f"{count} {way}" for count, way in ways if count) or "no"
        looked_up = f"{self.keys:,} keys looked up, {self.found:,} found"
        return f"{looked_up}: {used} buckets of the record index, {self.bytes_read / 1e6:,.1f} MB"


class Tagger(Protocol):
    """The index that serves one write, with what it knew of the table when the write began."""

    def tag(self, request: TagRequest) -> Tagged:
        """Find the file groups that hold keys of the staged rows.

        Raises: CommitConflictError if the index was exchanged between the staging of the rows and the begin.
        """
        ...

    def placement(self, default: Placement) -> Placement:
        """What chooses the file groups of inserts: `default`, unless the index dictates them."""
        ...


class Index(Protocol):
    """An index as one write uses it."""

    @property
    def name(self) -> str:
        """Name as in `index=`."""
        ...

    @property
    def is_global(self) -> bool:
        """Whether a key is unique in the table, not just in its partition."""
        ...

    @property
    def indexes_logs(self) -> bool:
        """Whether it finds keys of which log files hold the only record, so that inserts may go to logs."""
        ...

    @property
    def needs_exchange(self) -> bool:
        """Whether rows of one key must meet before they are staged, as partitions alone do not bring them together."""
        ...

    def key_stage(self, view: TableView, merger: RecordMerger) -> KeyStage | None:
        """What the index wants staged of the keys, if it looks at those instead of rows."""
        ...

    def begin(self, facts: TableFacts) -> Tagger:
        """Begin to serve a write; `facts` are those of the table as the write found it."""
        ...


class IndexUpdate(Protocol):
    """What one write tells an index of the rows that it wrote, from the begin of the write to its commit.

    The methods that take `now` run under the table's lock, with the table as it is then.
    """

    @property
    def stats(self) -> Sequence[WriteStat]:
        """Log files of the metadata table that were written for the commit; they count when it completes."""
        ...

    def refresh(self, now: TableView, metadata: CommitMetadata) -> None:
        """Bring the update up to date with an index that was built, rebuilt or dropped since the write began.

        Raises: CommitConflictError if that is not possible.
        """
        ...

    def shares_keys_with(self, now: TableView, other: Instant) -> bool:
        """Whether `other`, a completed write, changed the location of a key of this write; true if nothing can tell."""
        ...

    def would_lose_to(self, now: TableView, other: Instant) -> bool:
        """Whether a location that `other` stored would count in place of one of this write, which completes later."""
        ...

    def discard(self) -> None:
        """Delete what was written for a commit that does not happen."""
        ...
