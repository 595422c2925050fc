"""The protocols of an index: it finds the file group of each staged row's key, and records where keys are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum, IntEnum, auto
from typing import TYPE_CHECKING, Protocol, Self

import pyarrow as pa

from hoodie.display import counted, size_text
from hoodie.engine import EngineFor
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import StagedHits, StagedRun
from hoodie.files.staging.staged_keys import KeyGroups, KeyStage, StagedKeys
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.records.merging.merge import RecordMerger
from hoodie.timeline import Instant
from hoodie.view.table_view import TableView

if TYPE_CHECKING:
    from hoodie.index.record.entries import EntryStage, StagedEntries, WrittenEntries


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


class Route(IntEnum):
    """The effect of a staged row on the file group in which its key was found."""

    UPDATE = 0
    """The row is merged with the stored row of the file group."""
    MOVE = 1
    """The row deletes the stored row of the file group, and is inserted into its own partition."""
    DROP = 2
    """The row loses against the stored row of another partition, and is not written."""


class Purpose(Enum):
    """How a write adds its rows to the table."""

    MERGE = auto()
    """Rows with known keys are merged with the stored rows, or delete them."""
    ADD = auto()
    """Rows are added, whatever keys the table has."""
    REPLACE = auto()
    """Rows replace the file groups of the table or of partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRequest:
    """The staged rows of one write. `keys` and `key_groups` are set if the index returned a `KeyStage`.

    With another `purpose` than `MERGE`, an index that places all rows (`IndexKind.places_rows`) does so. Others find
    only the rows whose records the table has.
    """

    schema: pa.Schema
    merger: RecordMerger
    runs: tuple[StagedRun, ...]
    keys: tuple[StagedKeys, ...]
    key_groups: KeyGroups | None
    stage_folder: str
    engine_for: EngineFor
    purpose: Purpose = Purpose.MERGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """The file groups in which an index found rows. Rows without a hit are inserts. `look_up` is the look-up's cost."""

    hits: tuple[StagedHits, ...] = ()
    slices: tuple[FileSlice, ...] = ()
    """Latest file slices of all partitions of the rows and hits."""
    look_up: LookUpCost | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUpCost:
    """The cost of a look-up in the record index: keys, found keys, searched buckets (index file groups), bytes."""

    keys: int = 0
    found: int = 0
    buckets_sought: int = 0
    buckets_scanned: int = 0
    bytes_read: int = 0

    def __add__(self, other: LookUpCost) -> LookUpCost:
        """Return the sum of both costs."""
        return LookUpCost(**{name: count + getattr(other, name) for name, count in asdict(self).items()})

    def __str__(self) -> str:
        parts = self.buckets_sought + self.buckets_scanned
        read = f": {counted(parts, 'file groups')} of the index read, {size_text(self.bytes_read)}" if parts else ""
        return f"{counted(self.keys, 'keys')} looked up in the record index, {self.found:,} found{read}"


class Index:
    """One index as one write uses it: it finds the file groups of keys.

    `view`: the table from which the write was prepared; from `at` on the table when the write began.
    """

    name: str
    """Name of the index, as in `index=`."""
    view: TableView
    is_global: bool = False
    """Whether a key is unique in the table, not just in its partition."""
    indexes_logs: bool = False
    """Whether the index finds keys that only log files hold. If so, inserts may be written to log files."""
    needs_exchange: bool = False
    """Whether rows must be exchanged by key before they are staged, so that one task has all rows of a key."""

    def key_stage(self, merger: RecordMerger) -> KeyStage | None:
        """Return what to stage of the keys, if the index reads staged keys; None if it reads the staged rows."""
        return None

    def at(self, view: TableView) -> Self:
        """Return the index for a write that began with this state of the table; nothing is read yet."""
        return replace(self, view=view)  # type: ignore[type-var]

    def check_placed(self, now: TableView) -> None:
        """Refuse the rows that `tag` placed if the rule that places rows is another one now, under the table's lock.

        Raises: CommitConflictError.
        """

    def tag(self, request: TagRequest) -> Tagged:
        """Find the file groups that hold keys of the staged rows.

        Raises: CommitConflictError if the index was exchanged between staging the rows and the begin of the write.
        """
        raise NotImplementedError

    def placement(self, default: Placement) -> Placement:
        """Return the placement that chooses the file groups of inserts: `default`, unless the index determines them.

        It is called after `tag`, if the write tags its rows.
        """
        return default


class IndexUpdate:
    """The update of an index by one write: the locations of the rows that it wrote, from its begin to its commit.

    The methods with the argument `now` run under the table's lock; `now` is the view loaded under it.
    """

    @property
    def stats(self) -> Sequence[WriteStat]:
        """Log files of the metadata table that were written for the commit; readers see them when it completes."""
        return ()

    @property
    def commit_entries(self) -> Mapping[str, str]:
        """Entries for the extra metadata of the commit."""
        return {}

    @property
    def stages_deletes(self) -> bool:
        """Whether `stage_deletes` stages the keys of file groups that the write removes from the table."""
        return False

    def entry_stage(self, folder: str) -> EntryStage | None:
        """Return where the writing tasks stage the locations of keys; None if the index records none."""
        raise NotImplementedError

    def stage_deletes(self, slices: Iterable[FileSlice], folder: str) -> tuple[StagedEntries, ...]:
        """Stage the deletion of every key in file groups that the write removes from the table."""
        return ()

    def note_locations(self, entries: Sequence[StagedEntries]) -> WrittenEntries:
        """Record the staged locations. Readers see them when the write completes."""
        raise NotImplementedError

    def retract(self, slices: Sequence[FileSlice], folder: str) -> None:
        """Withdraw what an earlier attempt at the same instant recorded for the keys of these file slices."""

    def was_replaced_or_dropped(self, now: TableView) -> bool:
        """Return whether the index for which entries were written was built anew or dropped since."""
        return False

    def refresh(self, now: TableView, metadata: CommitMetadata) -> None:
        """Adapt the update to an index that was built, rebuilt or dropped since the write began.

        Raises: CommitConflictError if that is not possible.
        """
        raise NotImplementedError

    def shares_keys_with(self, now: TableView, other: Instant) -> bool:
        """Return whether the completed write `other` changed the location of a key of this write; true if unknown."""
        raise NotImplementedError

    def would_lose_to(self, now: TableView, other: Instant) -> bool:
        """Return whether a location stored by `other` would replace one of this write, which completes later.

        Also true if a deletion of a key by this write would hide a location that `other` stored without a look-up.
        """
        raise NotImplementedError

    def discard(self) -> None:
        """Delete the files that were written for a commit that is abandoned."""
