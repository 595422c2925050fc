"""Decide whether a compaction is due. Only the timeline is read (except by `log_size`), so each write can check it.

The strategies are those of Hudi's `CompactionTriggerStrategy`; only this library has `log_size`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.config import compaction
from hoodie.timeline import Action, Instant, Timeline, parse_instant_time
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """The rule of one table or write that decides when a compaction is due."""

    strategy: str = compaction.COMPACT_TRIGGER.default
    delta_commits: int = compaction.COMPACT_DELTA_COMMITS.default
    delta_seconds: int = compaction.COMPACT_DELTA_SECONDS.default
    delta_bytes: int = compaction.COMPACT_DELTA_BYTES.default

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Trigger:
        """Return the rule that these properties define. Raises: InvalidConfigError if a value does not parse."""
        return cls(
            strategy=compaction.COMPACT_TRIGGER.get(properties),
            delta_commits=compaction.COMPACT_DELTA_COMMITS.get(properties),
            delta_seconds=compaction.COMPACT_DELTA_SECONDS.get(properties),
            delta_bytes=compaction.COMPACT_DELTA_BYTES.get(properties),
        )

    def is_due(self, view: TableView, *, now_seconds: float | None = None) -> bool:
        """Return whether a compaction should be scheduled now. `log_size` reads commit metadata that is not cached."""
        timeline = view.timeline
        if self.strategy == "num_commits_after_last_request":
            return len(deltas_since_request(timeline)) >= self.delta_commits
        deltas = deltas_since_compaction(timeline)
        if not deltas:
            return False
        if self.strategy == "log_size":
            return self._is_large(view, deltas)
        is_many = len(deltas) >= self.delta_commits
        if self.strategy == "num_commits" or (is_many and self.strategy == "num_or_time"):
            return is_many
        if not is_many and self.strategy == "num_and_time":
            return False
        began = _seconds_of(view, _last_compaction(timeline) or deltas[0])
        return (time.time() if now_seconds is None else now_seconds) - began >= self.delta_seconds

    def _is_large(self, view: TableView, deltas: list[Instant]) -> bool:
        """Return whether the delta commits since the last compaction logged at least `delta_bytes` bytes."""
        total = 0
        for instant in reversed(deltas):
            stats = view.commit_metadata(instant).write_stats()
            total += sum(stat.file_size_bytes for stat in stats if stat.is_log_append)
            if total >= self.delta_bytes:
                return True
        return False


def deltas_since_compaction(timeline: Timeline) -> list[Instant]:
    """Return the completed delta commits that no completed compaction includes, oldest first."""
    last = _last_compaction(timeline)
    return _deltas_after(timeline, "" if last is None else last.requested_time)


def deltas_since_request(timeline: Timeline) -> list[Instant]:
    """Return the completed delta commits that no completed or pending compaction includes, oldest first."""
    compactions = (found for found in timeline if found.action is Action.COMPACTION or _is_compaction(found))
    return _deltas_after(timeline, max((found.requested_time for found in compactions), default=""))


def _last_compaction(timeline: Timeline) -> Instant | None:
    return timeline.filter(_is_compaction).latest()


def _is_compaction(instant: Instant) -> bool:
    """Return whether the instant is a completed compaction: other writes of merge-on-read tables are delta commits."""
    return instant.is_completed and instant.action is Action.COMMIT


def _deltas_after(timeline: Timeline, requested_time: str) -> list[Instant]:
    """Return the delta commits that completed after `requested_time`: a plan includes only earlier completed ones."""
    return [
        found
        for found in timeline.completed()
        if found.action is Action.DELTA_COMMIT and (found.completion_time or "") > requested_time
    ]


def _seconds_of(view: TableView, instant: Instant) -> float:
    """Return the requested time of the instant in seconds since the epoch."""
    return parse_instant_time(instant.requested_time, view.layout.zone).timestamp()
