"""Remove the temporary files and heartbeats of dead writers, and complete their half-done change of table properties.

The abandoned files hold no rows. The next writer removes them under the table's lock, in two steps: it lists them
before it loads the timeline, and then deletes those that belong to no pending instant of the timeline.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from hoodie.commit.attempt_files import delete_marked_files
from hoodie.files.markers import TEMP_FOLDER, delete_markers
from hoodie.files.staging.staged import is_dead_stage_folder
from hoodie.files.table_properties import finish_update
from hoodie.format.filenames import name_of
from hoodie.storage import Store
from hoodie.timeline import HOODIE_FOLDER, Timeline, delete_heartbeat, is_live

_HEARTBEAT_FOLDER = f"{HOODIE_FOLDER}/.heartbeat"


@dataclass(frozen=True, slots=True)
class AbandonedFiles:
    """Temporary folders and heartbeats that existed before the timeline was loaded.

    Some of them may belong to running writers. `temp_folders` are paths; `heartbeats` are instant times.
    """

    temp_folders: tuple[str, ...]
    heartbeats: tuple[str, ...]

    @classmethod
    def find(cls, store: Store) -> AbandonedFiles:
        """List the files, and complete a change of the table's properties that a dead writer did not complete.

        Call it under the table's lock, before the timeline is loaded: an instant exists before its markers do.
        """
        finish_update(store)
        beats = tuple(info.name for info in store.list(_HEARTBEAT_FOLDER))
        return cls(tuple(store.folders(TEMP_FOLDER)), beats)

    @property
    def instants(self) -> tuple[str, ...]:
        """The instants whose markers are in the temporary folders."""
        return tuple(filter(str.isdigit, (name_of(folder) for folder in self.temp_folders)))

    def remove(self, store: Store, timeline: Timeline) -> None:
        """Delete the files that belong to no pending instant of the timeline and to no running writer.

        Call it under the same lock, with the timeline as it is after dead writes were rolled back; it tells which of
        `instants` are archived (`with_archived_between`).
        """
        now_ms = time.time_ns() // 1_000_000
        for folder in self.temp_folders:
            name = name_of(folder)
            if name.isdigit():
                if not _is_pending(timeline, name):
                    _remove_markers(store, timeline, name)
            elif is_dead_stage_folder(store, folder, now_ms=now_ms):
                store.delete_folder(folder)
        for instant_time in self.heartbeats:
            # The JVM creates a heartbeat before the instant.
            if not _is_pending(timeline, instant_time) and not is_live(store, instant_time):
                delete_heartbeat(store, instant_time)


def _remove_markers(store: Store, timeline: Timeline, instant_time: str) -> None:
    """Remove an instant's markers, and the files that they announce if the instant is known to be uncommitted.

    Tasks of a cancelled Spark job may write files after their instant was undone. An instant older than the timeline
    may have been archived, so its files count as committed and are kept.
    """
    if not timeline.contains_or_before_start(instant_time):
        delete_marked_files(store, instant_time)
    delete_markers(store, instant_time)


def _is_pending(timeline: Timeline, instant_time: str) -> bool:
    return any(instant.requested_time == instant_time and not instant.is_completed for instant in timeline.instants)
