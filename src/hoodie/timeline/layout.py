"""Timeline layouts: the folder of instant files, and the parsing and making of their names.

There is one class per layout version.

On-disk format: docs/format/table.md §2.1.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from hoodie.format.table.table_config import TableConfig, TimelineZone
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
    """Base of all layout versions. `zone` is the time zone of the table's instant times."""

    zone: TimelineZone = TimelineZone.LOCAL
    folder: str = HOODIE_FOLDER
    """Folder of the table's own files; of the metadata table `.hoodie/metadata/.hoodie`."""

    @abstractmethod
    def instant_folder(self) -> str:
        """Return the folder of the active timeline's files."""

    @abstractmethod
    def stored_action(self, action: Action) -> Action:
        """Return the action in the names of this layout's pending files of `action`."""

    @abstractmethod
    def completed_names(self, requested_time: str, action: Action, completion_time: str | None) -> tuple[str, ...]:
        """Return the names that the completed file may have; writers use the first name."""

    def parse(self, info: FileInfo) -> Instant | None:
        """Return the instant, in the state of this file; None if it is not an instant file."""
        instant = self.parse_name(info.name)
        if instant is None or not instant.is_completed or instant.completion_time is not None:
            return instant
        return replace(instant, completion_time=instant_time_of_ms(info.modified_ms, self.zone))

    def parse_name(self, name: str) -> Instant | None:
        """Parse the name only; None if it is not the name of an instant file.

        The completion time is None if the name contains none: on version 6, and for completed instants whose files an
        upgrade did not rename.
        """
        return self.name_parser(name)

    @property
    def name_parser(self) -> Callable[[str], Instant | None]:
        """The function that `parse_name` calls, for many names."""
        return partial(_parse_name, may_name_completion=self.names_completion_time)

    def requested_name(self, requested_time: str, action: Action) -> str:
        """Return the name of the requested file."""
        return f"{requested_time}.{self.stored_action(action)}.requested"

    def inflight_name(self, requested_time: str, action: Action) -> str:
        """Return the name of the inflight file; the name of a commit's inflight file does not contain the action."""
        stored = self.stored_action(action)
        return f"{requested_time}.inflight" if stored is Action.COMMIT else f"{requested_time}.{stored}.inflight"

    def names(self, instant: Instant, state: State) -> tuple[str, ...]:
        """Return the names that the instant's file of `state` may have, the most likely name first.

        There can be several: a completed `commit` was requested as a commit or as a compaction.
        """
        time = instant.requested_time
        if state is State.COMPLETED:
            return self.completed_names(time, instant.action, instant.completion_time)
        name = self.requested_name if state is State.REQUESTED else self.inflight_name
        started_as = _STARTED_AS.get(instant.action, (instant.action,)) if instant.is_completed else (instant.action,)
        # A dict removes duplicates and keeps the order.
        return tuple(dict.fromkeys(name(time, action) for action in started_as))

    @property
    @abstractmethod
    def names_completion_time(self) -> bool:
        """Whether the names of completed files contain the completion time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutV1(Layout):
    """Layout of table version 6: instant files are in the folder of `hoodie.properties`.

    The completion time is the change time of the completed file.
    """

    def instant_folder(self) -> str:
        return self.folder

    def stored_action(self, action: Action) -> Action:
        """Return `replacecommit` for a clustering, whose pending files have that action; else the action."""
        return Action.REPLACE_COMMIT if action is Action.CLUSTERING else action

    def completed_names(self, requested_time: str, action: Action, completion_time: str | None) -> tuple[str, ...]:
        return (f"{requested_time}.{action.completed_as}",)

    @property
    def names_completion_time(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutV2(Layout):
    """Layout of table versions 8 and 9: a separate folder, and the completion time in the name."""

    timeline_path: str = "timeline"
    """The folder that `hoodie.timeline.path` names."""

    def instant_folder(self) -> str:
        return f"{self.folder}/{self.timeline_path}"

    def stored_action(self, action: Action) -> Action:
        return action

    def completed_names(self, requested_time: str, action: Action, completion_time: str | None) -> tuple[str, ...]:
        """Return `<requested time>_<completion time>.<action>`, and the name of a legacy instant without the latter."""
        legacy = f"{requested_time}.{action.completed_as}"
        if completion_time is None:
            return (legacy,)
        return (f"{requested_time}_{completion_time}.{action.completed_as}", legacy)

    @property
    def names_completion_time(self) -> bool:
        return True


def layout_for(
    version: TableVersion | int,
    timeline_path: str = "timeline",
    *,
    zone: TimelineZone = TimelineZone.LOCAL,
    folder: str = HOODIE_FOLDER,
) -> Layout:
    """Return the layout of a table version; `timeline_path` is `hoodie.timeline.path` (not used on version 6).

    Raises: UnsupportedError if the version is not 6, 8 or 9.
    """
    if TableVersion.of(version).has_completion_time_in_name:
        return LayoutV2(zone=zone, folder=folder, timeline_path=timeline_path)
    return LayoutV1(zone=zone, folder=folder)


def layout_of(config: TableConfig) -> Layout:
    """Return the layout of the timeline of a table with these properties."""
    return layout_for(config.version, config.timeline_path, zone=config.timezone)


@lru_cache(maxsize=1 << 14)
def _parse_name(name: str, may_name_completion: bool) -> Instant | None:
    """Parse a name. Cached, because every commit lists the whole timeline and only a few names are new."""
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
