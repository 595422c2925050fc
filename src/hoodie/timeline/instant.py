"""Instants: what happened (action), when (requested and completion time), and how far it got (state).

On-disk format: docs/format/table.md §2.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Action(StrEnum):
    """What an instant does. On disk (file name suffix): do not change."""

    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    COMPACTION = "compaction"
    LOG_COMPACTION = "logcompaction"
    REPLACE_COMMIT = "replacecommit"
    CLUSTERING = "clustering"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    RESTORE = "restore"
    SAVEPOINT = "savepoint"
    INDEXING = "indexing"

    @property
    def completed_as(self) -> Action:
        """The action in the name of the completed file (compaction completes as commit, …)."""
        return _COMPLETED_AS.get(self, self)

    @property
    def writes_data(self) -> bool:
        """Whether the action belongs to the write timeline: it adds or removes data files."""
        return self in _WRITE_ACTIONS


_COMPLETED_AS = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}
_WRITE_ACTIONS = frozenset(
    {
        Action.COMMIT,
        Action.DELTA_COMMIT,
        Action.COMPACTION,
        Action.LOG_COMPACTION,
        Action.REPLACE_COMMIT,
        Action.CLUSTERING,
    }
)


class State(IntEnum):
    """How far an instant got."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """One instant in its highest state.

    `action` is the action as the file of that state names it: a completed compaction is a `commit`.
    `completion_time` is set exactly when `state` is COMPLETED (version 6: from the file's change time).
    """

    requested_time: str
    action: Action
    state: State
    completion_time: str | None = None

    @property
    def is_completed(self) -> bool:
        """Whether readers may believe it."""
        return self.state is State.COMPLETED

    def __str__(self) -> str:
        """`20261121123616628.commit (completed)`."""
        return f"{self.requested_time}.{self.action} ({self.state.name.lower()})"
