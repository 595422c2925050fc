"""Instants: an action, its requested and completion time, and its state.

On-disk format: docs/format/table.md §2.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Action(StrEnum):
    """Action of an instant. On disk (suffix of the file name): do not change."""

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

    # Attributes, not properties: every load of a timeline reads them of each instant.
    completed_as: Action
    """The action in the name of the completed file; for example, a compaction completes as `commit`."""
    is_planned: bool
    """Whether the action is a compaction, log compaction or clustering: its plan waits until a process executes it."""
    writes_data: bool
    """Whether the action is part of the write timeline, that is, adds or removes data files."""


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
for _action in Action:
    _action.completed_as = _COMPLETED_AS.get(_action, _action)
    _action.is_planned = _action in _COMPLETED_AS
    _action.writes_data = _action in _WRITE_ACTIONS


class State(IntEnum):
    """State of an instant."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """One instant in its highest state.

    `action` is the action in the name of that state's file: a completed compaction has `commit`.
    `completion_time` is set only if `state` is COMPLETED (version 6: the file's change time).
    """

    requested_time: str
    action: Action
    state: State
    completion_time: str | None = None

    @property
    def is_completed(self) -> bool:
        """Whether the instant is completed, so that readers count it as committed."""
        return self.state is State.COMPLETED

    def __str__(self) -> str:
        """Return text such as `20261121123616628.commit (completed)`."""
        return f"{self.requested_time}.{self.action} ({self.state.name.lower()})"
