"""A merge as the caller wrote it: its condition `on` and its clauses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from hoodie.records.sql.clock import Clock


class Group(Enum):
    """The rows that a clause is about; the values are the words of SQL."""

    MATCHED = "when matched"
    NOT_MATCHED = "when not matched"
    BY_SOURCE = "when not matched by source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One clause. `values`: an SQL expression for each column to set; None for all columns. `condition`: in SQL."""

    group: Group
    deletes: bool = False
    values: Mapping[str, str] | None = None
    condition: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A merge as the caller wrote it. `target` and `source` are the names by which expressions call both sides."""

    on: str
    clauses: tuple[Clause, ...]
    target: str = "t"
    source: str = "s"
    clock: Clock = field(default_factory=Clock)

    def of(self, group: Group) -> list[Clause]:
        """Return the clauses of a group, in their order."""
        return [clause for clause in self.clauses if clause.group is group]

    @property
    def is_upsert(self) -> bool:
        """Whether the merge updates and inserts all source rows, with all columns and without conditions."""
        whole = all(not c.deletes and c.values is None and c.condition is None for c in self.clauses)
        return whole and [c.group for c in self.clauses] in (
            [Group.MATCHED, Group.NOT_MATCHED],
            [Group.NOT_MATCHED, Group.MATCHED],
        )

    @property
    def takes_duplicates(self) -> bool:
        """Whether several source rows may meet one stored row: the merge only deletes, without a condition."""
        return all(c.deletes and c.condition is None for c in self.clauses)
