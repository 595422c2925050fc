"""Remove what writers left that died: temporary files, heartbeats, half-changed properties. Nothing here holds rows.

Whoever begins the next write does it, under the table's lock: in two steps, since only the timeline tells which of the
folders that were there before it was loaded still belong to somebody.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from hoodie.files.markers import TEMP_FOLDER, delete_markers, read_markers
from hoodie.files.staging.staged import is_dead_stage_folder
from hoodie.files.table_properties import finish_update
from hoodie.storage import Store
from hoodie.timeline import HOODIE_FOLDER, Timeline, delete_dead_takeovers, delete_heartbeat, is_live

_HEARTBEAT_FOLDER = f"{HOODIE_FOLDER}/.heartbeat"


@dataclass(frozen=True, slots=True)
class AbandonedFiles:
    """Temporary things that lay there before the timeline was loaded: some of them belong to writers at work.

    `temp_folders` are paths; `heartbeats` are instant times.
    """

    temp_folders: tuple[str, ...]
    heartbeats: tuple[str, ...]

    @classmethod
    def find(cls, store: Store) -> AbandonedFiles:
        """List them, and finish what a writer began that died while it changed the table's properties.

        Call it under the table's lock, before the timeline is loaded: an instant exists before its markers do.
        """
        finish_update(store)
        beats = tuple(info.name for info in store.list(_HEARTBEAT_FOLDER))
        return cls(tuple(store.folders(TEMP_FOLDER)), beats)

    def remove(self, store: Store, timeline: Timeline) -> None:
        """Delete those that belong to no pending instant of the timeline, and to no writer that lives.

        Call it under the same lock, with the timeline as it is after dead writes were rolled back.
        """
        now_ms = time.time_ns() // 1_000_000
        for folder in self.temp_folders:
            name = folder.rpartition("/")[2]
            if name.isdigit():
                if not _is_pending(timeline, name):
                    _remove_markers(store, timeline, name)
            elif is_dead_stage_folder(store, folder, now_ms=now_ms):
                store.delete_folder(folder)
        for instant_time in self.heartbeats:
            # The JVM's heart beats before its instant exists.
            if not _is_pending(timeline, instant_time) and not is_live(store, instant_time):
                delete_heartbeat(store, instant_time)
        delete_dead_takeovers(store)


def _remove_markers(store: Store, timeline: Timeline, instant_time: str) -> None:
    """Remove an instant's markers, and what they announce if it is known that the instant never completed.

    Tasks of a cancelled Spark job may write files after their instant was undone. Of an instant older than the timeline
    it cannot be told whether it was archived; its files count as committed.
    """
    if not timeline.contains_or_before_start(instant_time):
        for marker in read_markers(store, instant_time) or []:
            store.delete(marker.path)
    delete_markers(store, instant_time)


def _is_pending(timeline: Timeline, instant_time: str) -> bool:
    return any(instant.requested_time == instant_time and not instant.is_completed for instant in timeline.instants)
