"""Begin a write: clean up after dead writers under the table's lock, then create the new instant on the timeline.

Dead writers leave temporary files and heartbeats, which hold no rows, and half-done changes of table properties. The
abandoned files are listed before the timeline is loaded; then those that belong to no pending instant of the timeline
are deleted.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from hoodie.commit.metadata_table import ensure_metadata_partitions, remove_unknown_index_logs
from hoodie.commit.pending import PendingInstant
from hoodie.commit.rollback import RolledBack, roll_back_dead_writes
from hoodie.commit.steps import Step, reached
from hoodie.commit.writable import check_no_exclusive_service
from hoodie.errors import CorruptFileError
from hoodie.files.markers import TEMP_FOLDER, delete_marked_files, delete_markers, read_markers
from hoodie.files.staging.staged import is_dead_stage_folder
from hoodie.files.table_properties import BACKUP, finish_update
from hoodie.format.filenames import BaseFileName, name_of
from hoodie.storage import Store, forget_answers
from hoodie.timeline import HOODIE_FOLDER, Action, TableLock, Timeline, delete_heartbeat, is_live
from hoodie.view.ahead import ask_for_creation, ask_for_view
from hoodie.view.listing import list_files, with_archived_between
from hoodie.view.pending_plans import rolled_back_logs
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_HEARTBEAT_FOLDER = f"{HOODIE_FOLDER}/.heartbeat"
_WAVE = (("head", BACKUP), ("list", _HEARTBEAT_FOLDER), ("folders", TEMP_FOLDER))
"""Requests of `AbandonedFiles.find`."""


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

    def remove(self, view: TableView) -> None:
        """Delete the files that belong to no pending instant of the timeline and to no running writer.

        Call it under the same lock, with the view as it is after dead writes were rolled back.
        """
        store = view.store
        marked = tuple(filter(str.isdigit, map(name_of, self.temp_folders)))
        timeline = with_archived_between(view, view.timeline, marked)
        now_ms = time.time_ns() // 1_000_000
        for folder in self.temp_folders:
            name = name_of(folder)
            if name.isdigit():
                if not _is_pending(timeline, name):
                    _remove_markers(view, timeline, name)
            elif is_dead_stage_folder(store, folder, now_ms=now_ms):
                store.delete_folder(folder)
        for instant_time in self.heartbeats:
            # The JVM creates a heartbeat before the instant.
            if not _is_pending(timeline, instant_time) and not is_live(store, instant_time):
                delete_heartbeat(store, instant_time)


def _remove_markers(view: TableView, timeline: Timeline, instant_time: str) -> None:
    """Remove an instant's markers, and the files that they announce and no commit names.

    Tasks of a cancelled Spark job may write files after their instant was undone. An instant older than the timeline
    may have been archived, so its files count as committed and are kept.
    """
    if not timeline.contains_or_before_start(instant_time):
        delete_marked_files(view.store, instant_time, keep=rolled_back_logs(view, instant_time))
        forget_answers()
    elif _delete_late_files(view, instant_time):
        forget_answers()
    delete_markers(view.store, instant_time)


def _delete_late_files(view: TableView, instant_time: str) -> bool:
    """Delete base files of a completed write that its commit does not name; return whether there are any.

    A second attempt at a task can end after the commit. The metadata table does not list its file, but a listing of the
    folders does. A file that the metadata table lists is kept: it was built from the folders since.
    """
    instant = view.timeline.get(instant_time)
    if instant is None or not instant.is_completed or not instant.action.writes_data:
        return False
    with contextlib.suppress(CorruptFileError):
        markers = read_markers(view.store, instant_time) or ()
        bases = {found.path: BaseFileName.parse(name_of(found.path)) for found in markers}
        own = {path for path, base in bases.items() if base is not None and base.instant_time == instant_time}
        if own:
            stats = view.commit_metadata(instant).write_stats()
            late = own - {path for stat in stats for path in (stat.path, *stat.sizes)}
            if late and view.config.has_metadata_table:
                listing = list_files(view, {path.rpartition("/")[0] for path in late})
                late -= {f"{folder}/{name}" if folder else name for folder, names in listing.items() for name in names}
            for path in late:
                view.store.delete(path)
            return bool(late)
    return False


def _is_pending(timeline: Timeline, instant_time: str) -> bool:
    return any(instant.requested_time == instant_time and not instant.is_completed for instant in timeline.instants)


def begin_write(
    state: TableState,
    action: Action,
    *,
    plan: bytes = b"",
    inflight: Callable[[TableView], bytes],
    properties: Mapping[str, str] | None = None,
    requested_time: str | None = None,
    reads: Collection[str] = (),
) -> tuple[PendingInstant, tuple[RolledBack, ...]]:
    """Roll back dead writes, then create the requested file (`plan`), the heartbeat and the inflight file.

    Returns the write that is inflight, and the dead writes that were rolled back.

    The table's lock is acquired once; `properties` are the options of the call. `requested_time`: as for
    `PendingInstant.start`. `reads`: the metadata partitions that the write reads next, each once; they are requested
    ahead. If an error is raised, the new instant is undone.

    Raises: CommitConflictError; UnsupportedError if an exclusive service is pending; LockTimeoutError.
    """
    reached(Step.PREPARED)
    pending: PendingInstant | None = None
    try:
        with state.table_lock(properties, ahead=_WAVE) as lock:
            view, rolled_back = prepare_table(state, lock, properties, reads)
            content = inflight(view)
            pending = PendingInstant.start(
                view, action, plan, content, properties=properties, requested_time=requested_time
            )
        reached(Step.BEGUN)
    except BaseException:
        if pending is not None:
            pending.undo()
        raise
    return pending, rolled_back


def prepare_table(
    state: TableState,
    lock: TableLock,
    properties: Mapping[str, str] | None = None,
    reads: Collection[str] = (),
) -> tuple[TableView, tuple[RolledBack, ...]]:
    """Clean up after dead writers, and prepare the metadata table for a write. Call it under the table's lock.

    Dead writes are rolled back and abandoned files are removed. `properties` and `reads` as for `begin_write`. Returns
    the view after these changes, and the writes that were rolled back.
    """
    abandoned = AbandonedFiles.find(state.store)
    # Not earlier: what was abandoned is listed before the timeline.
    ask_for_view(state, reads)
    ask_for_creation(state, lock)
    view = TableView.load(state, lock)
    if view.config.has_metadata_table:
        lock.forget_looks()  # another writer has created it since: nothing takes what was requested for the creation
    check_no_exclusive_service(view)
    rolled_back = tuple(roll_back_dead_writes(view))
    if rolled_back:
        forget_answers()
        view = view.refreshed()
    abandoned.remove(view)
    remove_unknown_index_logs(view)
    return ensure_metadata_partitions(view, properties, reads), rolled_back
