"""What workers hand back: the files they wrote, and the entries of the record index that these files bring about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.index.record import StagedEntries


@dataclass(frozen=True, slots=True)
class Written:
    """Files, and staged entries; both may be none."""

    stats: tuple[WriteStat, ...] = ()
    entries: tuple[StagedEntries, ...] = ()

    @classmethod
    def of(cls, stats: Iterable[WriteStat], entries: StagedEntries | None) -> Written:
        """What one task wrote."""
        return cls(tuple(stats), () if entries is None else (entries,))

    @classmethod
    def together(cls, parts: Iterable[Written]) -> Written:
        """What several tasks wrote, in their order."""
        found = list(parts)
        return cls(
            tuple(stat for part in found for stat in part.stats),
            tuple(entries for part in found for entries in part.entries),
        )
