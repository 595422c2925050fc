"""The results of workers: the files that they wrote, and the record index entries of these files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.index.record import StagedEntries


@dataclass(frozen=True, slots=True)
class Written:
    """Written files and staged entries; both may be empty. `hidden_rows`: written rows that the merge will hide."""

    stats: tuple[WriteStat, ...] = ()
    entries: tuple[StagedEntries, ...] = ()
    hidden_rows: int = 0

    @classmethod
    def of(cls, stats: Iterable[WriteStat], entries: StagedEntries | None, *, hidden_rows: int = 0) -> Written:
        """Return the result of one task."""
        return cls(tuple(stats), () if entries is None else (entries,), hidden_rows)

    @classmethod
    def together(cls, parts: Iterable[Written]) -> Written:
        """Return the joined result of several tasks, in their order."""
        found = list(parts)
        return cls(
            tuple(stat for part in found for stat in part.stats),
            tuple(entries for part in found for entries in part.entries),
            sum(part.hidden_rows for part in found),
        )
