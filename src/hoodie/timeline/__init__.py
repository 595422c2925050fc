"""Instants and their state changes: the only package that parses and creates instant files."""

from hoodie.timeline.archive import ArchiveLimits, Fence, TimelineArchive
from hoodie.timeline.archived import ArchivedTimeline, ArchiveLogs, ArchiveReader, archive_of
from hoodie.timeline.archiving import archive_instants
from hoodie.timeline.heartbeat import Heartbeat, delete_heartbeat, is_live
from hoodie.timeline.instant import Action, Instant, State
from hoodie.timeline.layout import HOODIE_FOLDER, Layout, LayoutV1, LayoutV2, layout_for, layout_of
from hoodie.timeline.locks.provider import LockOptions, is_lock_option
from hoodie.timeline.locks.table_lock import TableLock
from hoodie.timeline.owner import forget_all
from hoodie.timeline.timeline import InstantClock, Timeline, TimelineReader, load_timeline, read_instant
from hoodie.timeline.transitions import (
    CreateFile,
    create_completed,
    create_inflight,
    create_requested,
    delete_instant_files,
)
from hoodie.timeline.zone import (
    in_local_time,
    instant_time_of_ms,
    ms_of_instant_time,
    parse_instant_time,
    to_instant_time,
    wall_clock_time,
)

__all__ = [
    "HOODIE_FOLDER",
    "Action",
    "ArchiveLimits",
    "ArchiveLogs",
    "ArchiveReader",
    "ArchivedTimeline",
    "CreateFile",
    "Fence",
    "Heartbeat",
    "Instant",
    "InstantClock",
    "Layout",
    "LayoutV1",
    "LayoutV2",
    "LockOptions",
    "State",
    "TableLock",
    "Timeline",
    "TimelineArchive",
    "TimelineReader",
    "archive_instants",
    "archive_of",
    "create_completed",
    "create_inflight",
    "create_requested",
    "delete_heartbeat",
    "delete_instant_files",
    "forget_all",
    "in_local_time",
    "instant_time_of_ms",
    "is_live",
    "is_lock_option",
    "layout_for",
    "layout_of",
    "load_timeline",
    "ms_of_instant_time",
    "parse_instant_time",
    "read_instant",
    "to_instant_time",
    "wall_clock_time",
]
