"""Timeline layouts: where instant files lie, and file names to instants and back. One class per layout version.

On-disk format: docs/format/table.md §2.1.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache

from hoodie.format.table.table_config import TimelineZone
from hoodie.format.table.versions import TableVersion
from hoodie.storage import FileInfo
from hoodie.timeline.instant import Action, Instant, State
from hoodie.timeline.zone import instant_time_of_ms

HOODIE_FOLDER = ".hoodie"
"""Folder of a table's own files, relative to its base path."""

_ACTIONS = {action.value: action for action in Action}
_NAME = re.compile(r"(\d+)(?:_(\d+))?\.([a-z]+)(?:\.(requested|inflight))?", re.ASCII)
_STARTED_AS = {
    Action.COMMIT: (Action.COMMIT, Action.COMPACTION),
    Action.DELTA_COMMIT: (Action.DELTA_COMMIT, Action.LOG_COMPACTION),
    Action.REPLACE_COMMIT: (Action.REPLACE_COMMIT, Action.CLUSTERING),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout(ABC):
    """What is common to all layout versions. `zone` is that of the table's instant times."""

    zone: TimelineZone = TimelineZone.LOCAL

    @abstractmethod
    def instant_folder(self, folder: str = HOODIE_FOLDER) -> str:
        """The folder of the active timeline's files; `folder` is `.hoodie` or `.hoodie/metadata/.hoodie`."""

    @abstractmethod
    def stored_action(self, action: Action) -> Action:
        """The action that the pending files of this layout name for `action`."""

    @abstractmethod
    def completed_names(self, requested_time: str, action: Action, completion_time: str | None) -> tuple[str, ...]:
        """Names that the completed file may have; the first is the one to write."""

    def parse(self, info: FileInfo) -> Instant | None:
        """The instant and state that a file stands for, or None if it is not an instant file."""
        instant = self.parse_name(info.name)
        if instant is None or not instant.is_completed or instant.completion_time is not None:
            return instant
        return replace(instant, completion_time=instant_time_of_ms(info.modified_ms, self.zone))

    def parse_name(self, name: str) -> Instant | None:
        """As `parse`, by the name alone: without a completion time in it there is none.

        So it is on version 6, and with instants that an upgrade left as they were.
        """
        return _parse_name(name, self.names_completion_time)

    def requested_name(self, requested_time: str, action: Action) -> str:
        """Name of the requested file."""
        return f"{requested_time}.{self.stored_action(action)}.requested"

    def inflight_name(self, requested_time: str, action: Action) -> str:
        """Name of the inflight file; that of a commit does not say so."""
        stored = self.stored_action(action)
        return f"{requested_time}.inflight" if stored is Action.COMMIT else f"{requested_time}.{stored}.inflight"

    def names(self, instant: Instant, state: State) -> tuple[str, ...]:
        """Names that the instant's file of `state` may have, the likeliest first.

        More than one, as a completed `commit` may have begun as a commit or as a compaction.
        """
        time = instant.requested_time
        if state is State.COMPLETED:
            return self.completed_names(time, instant.action, instant.completion_time)
        name = self.requested_name if state is State.REQUESTED else self.inflight_name
        started_as = _STARTED_AS.get(instant.action, (instant.action,)) if instant.is_completed else (instant.action,)
        # A dict drops doubles and keeps the order.
        return tuple(dict.fromkeys(name(time, action) for action in started_as))

    @property
    @abstractmethod
    def names_completion_time(self) -> bool:
        """Whether the names of completed files tell when they were completed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutV1(Layout):
    """Layout of table version 6: instants beside `hoodie.properties`, completion time from the change time."""

    def instant_folder(self, folder: str = HOODIE_FOLDER) -> str:
        """`.hoodie` itself."""
        return folder

    def stored_action(self, action: Action) -> Action:
        """A clustering is pending under the name of a replace commit."""
        return Action.REPLACE_COMMIT if action is Action.CLUSTERING else action

    def completed_names(self, requested_time: str, action: Action, completion_time: str | None) -> tuple[str, ...]:
        """`<requested time>.<action>`."""
        return (f"{requested_time}.{action.completed_as}",)

    @property
    def names_completion_time(self) -> bool:
        """No."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutV2(Layout):
    """Layout of table versions 8 and 9: a folder of its own, completion time in the name."""

    timeline_path: str = "timeline"

    def instant_folder(self, folder: str = HOODIE_FOLDER) -> str:
        """`.hoodie/timeline`, or as `hoodie.timeline.path` says."""
        return f"{folder}/{self.timeline_path}"

    def stored_action(self, action: Action) -> Action:
        """The action itself."""
        return action

    def completed_names(self, requested_time: str, action: Action, completion_time: str | None) -> tuple[str, ...]:
        """`<requested time>_<completion time>.<action>`, or without the completion time if it is a legacy instant."""
        legacy = f"{requested_time}.{action.completed_as}"
        if completion_time is None:
            return (legacy,)
        return (f"{requested_time}_{completion_time}.{action.completed_as}", legacy)

    @property
    def names_completion_time(self) -> bool:
        """Yes."""
        return True


def layout_for(
    version: TableVersion | int, timeline_path: str = "timeline", *, zone: TimelineZone = TimelineZone.LOCAL
) -> Layout:
    """The layout of a table version; `timeline_path` is `hoodie.timeline.path` (version 6 has none).

    Raises:
        UnsupportedError: not version 6, 8 or 9.
    """
    if TableVersion.of(version).has_completion_time_in_name:
        return LayoutV2(zone=zone, timeline_path=timeline_path)
    return LayoutV1(zone=zone)


@lru_cache(maxsize=1 << 14)
def _parse_name(name: str, may_name_completion: bool) -> Instant | None:
    """Remembered, as every commit lists the whole timeline, of which a few names are new."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    requested_time, completion_time, suffix, pending = match.groups()
    if pending is None and suffix == "inflight":
        suffix, pending = Action.COMMIT.value, suffix
    action = _ACTIONS.get(suffix)
    if action is None or (completion_time is not None and (pending or not may_name_completion)):
        return None
    if pending:
        state = State.REQUESTED if pending == "requested" else State.INFLIGHT
        return Instant(requested_time=requested_time, action=action, state=state)
    if action.completed_as is not action:
        return None
    return Instant(requested_time=requested_time, action=action, state=State.COMPLETED, completion_time=completion_time)
