"""The results of workers: the files that they wrote, the record index entries of these files, and counts of rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.index.record import StagedEntries


@dataclass(slots=True, kw_only=True)
class RowCounts:
    """Counts of the rows of a batch that no write statistic counts; a task adds to its own."""

    ignored: int = 0
    """Rows that changed nothing: they lost against the stored row, or delete a key that the table does not have."""
    equal: int = 0
    """Rows that equal their stored row, in file groups that were not written."""
    duplicates: int = 0
    """Rows that were merged into another row of the batch with the same key."""
    undecided: int = 0
    """Rows logged for a known key, of which the ordering values decide at the next read whether they win."""
    unordered: int = 0
    """Ignored or undecided rows without an ordering value."""
    hidden: int = 0
    """Logged rows that reads will not show."""

    def __add__(self, other: RowCounts) -> RowCounts:
        """Return the sum of both counts."""
        return RowCounts(
            ignored=self.ignored + other.ignored,
            equal=self.equal + other.equal,
            duplicates=self.duplicates + other.duplicates,
            undecided=self.undecided + other.undecided,
            unordered=self.unordered + other.unordered,
            hidden=self.hidden + other.hidden,
        )


@dataclass(frozen=True, slots=True)
class Written:
    """Written files, staged entries and counts; all may be empty."""

    stats: tuple[WriteStat, ...] = ()
    entries: tuple[StagedEntries, ...] = ()
    counts: RowCounts = field(default_factory=RowCounts)

    @classmethod
    def of(cls, stats: Iterable[WriteStat], entries: StagedEntries | None, counts: RowCounts) -> Written:
        """Return the result of one task."""
        return cls(tuple(stats), () if entries is None else (entries,), counts)

    @classmethod
    def together(cls, parts: Iterable[Written]) -> Written:
        """Return the joined result of several tasks, in their order."""
        found = list(parts)
        return cls(
            tuple(stat for part in found for stat in part.stats),
            tuple(entries for part in found for entries in part.entries),
            sum((part.counts for part in found), RowCounts()),
        )
