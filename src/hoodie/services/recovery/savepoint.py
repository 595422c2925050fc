"""Create and delete savepoints (docs/format/table.md §9.5).

A savepoint names the files of the table as of a commit. Cleans and archiving leave them alone, so that a restore to the
commit stays possible.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from hoodie.commit.pending import Completion, PendingInstant
from hoodie.commit.writable import check_no_exclusive_service
from hoodie.config.option import checked_text
from hoodie.errors import HistoryLostError, InstantNotFoundError, UnsupportedError
from hoodie.format.filenames import name_of
from hoodie.format.instants.service_metadata import SavepointMetadata, SavepointPartitionMetadata
from hoodie.progress import PhaseTimes
from hoodie.results import ServiceResult
from hoodie.timeline import Action, Instant, State, archive_instants, delete_instant_files
from hoodie.view.history import oldest_readable_instant, savepointed_instants
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

OPERATION = "savepoint"


def plan_savepoint(view: TableView, commit: str, *, user: str = "", comment: str = "") -> SavepointMetadata:
    """Return the content of a savepoint: the files of the newest slices when `commit` completed.

    A restore takes back what completed later. So the files of a write that was requested before the commit, and
    completed after it, are not named. Nor are, in version 6, the log files of a file slice that began later: their
    names alone do not show that no block of them counts.

    Raises: UnsupportedError if a clean deleted files of that state; InstantNotFoundError.
    """
    names: dict[str, list[str]] = {}
    kept = _commit(view, commit)
    try:
        slices = list_slices(view.as_completed_by(view.order_time(kept)))
    except HistoryLostError as error:
        raise UnsupportedError(
            f"{view.store.uri('')} cannot keep {commit}: a clean deleted files of the table as it was when {commit} "
            f"completed; create a savepoint of a later commit ({error})"
        ) from error
    is_of_version_6 = view.config.version.log_name_has_base_instant
    for found in slices:
        if is_of_version_6 and found.base_file is None and found.base_instant_time > kept.requested_time:
            continue
        names.setdefault(found.partition_path, []).extend(map(name_of, found.paths))
    return SavepointMetadata(
        savepointed_by=user,
        savepointed_at=time.time_ns() // 1_000_000,
        comments=comment,
        partition_metadata={
            path: SavepointPartitionMetadata(partition_path=path, savepoint_data_file=tuple(files))
            for path, files in names.items()
        },
    )


def create_savepoint(
    state: TableState, instant: str | None = None, *, user: str = "", comment: str = ""
) -> ServiceResult:
    """Create a savepoint of a completed commit, by default the last completed. An existing savepoint is kept.

    A savepoint whose process died before the last step is completed.

    Raises: as `Table.savepoint`.
    """
    times = PhaseTimes()
    user, comment = checked_text("user", user), checked_text("comment", comment)
    with times.phase(OPERATION), TableView.locked(state) as view:
        check_no_exclusive_service(view)
        commit = _commit(view, instant).requested_time
        if commit in savepointed_instants(view):
            notes = (f"the savepoint {commit} exists already and was kept",)
            return ServiceResult(operation=OPERATION, instant=commit, seconds=times.seconds(), notes=notes)
        _check_not_cleaned(view, commit)
        saved = plan_savepoint(view, commit, user=user, comment=comment)
        found = view.timeline.get(commit, Action.SAVEPOINT)
        begun = Instant(
            requested_time=commit,
            action=Action.SAVEPOINT,
            state=State.REQUESTED if found is None else State.INFLIGHT,
        )
        PendingInstant.resume(view, begun).complete(view.refreshed(), _Created(saved, commit))
    parts = saved.partition_metadata.values()
    counts = {"partitions": len(parts), "files": sum(len(part.savepoint_data_file) for part in parts)}
    return ServiceResult(operation=OPERATION, instant=commit, counts=counts, seconds=times.seconds())


def delete_savepoint(state: TableState, instant: str) -> ServiceResult:
    """Delete a savepoint, even a half-done one; its files stay until a clean finds them obsolete.

    If commits after it are archived (`hoodie.archive.beyond.savepoint`), its commit is archived first.

    Raises: as `Table.delete_savepoint`.
    """
    times = PhaseTimes()
    with times.phase("delete savepoint"), TableView.locked(state) as view:
        check_no_exclusive_service(view)
        if not any(found.action is Action.SAVEPOINT and found.requested_time == instant for found in view.timeline):
            raise InstantNotFoundError(
                f"{view.store.uri('')} has no savepoint {instant}; t.savepoints() returns the savepoints: "
                f"{', '.join(savepointed_instants(view)) or 'none'}"
            )
        _archive_commit(view, instant)
        view.held_lock.ensure_held()
        states = (State.COMPLETED, State.INFLIGHT)
        delete_instant_files(view.store, view.layout, instant, Action.SAVEPOINT, *states)
    return ServiceResult(
        operation="delete savepoint", instant=instant, counts={"savepoints": 1}, seconds=times.seconds()
    )


def how_to_finish(instant: Instant) -> str:
    """Return the calls that finish a half-done savepoint, or give it up: a rollback would take back its commit."""
    time = instant.requested_time
    return f"t.savepoint('{time}') completes it, t.delete_savepoint('{time}') removes it"


def _archive_commit(view: TableView, instant: str) -> None:
    """Archive the commit of a savepoint that is deleted, if commits after it are archived.

    Without its savepoint the commit would be the first of the active timeline, and the commits between it and the next
    one would count as not completed.
    """
    start, commit = view.timeline.start, view.timeline.writes().get(instant)
    if start is None or commit is None or start <= instant:
        return
    if view.archive().newest_time() <= instant:
        return
    archive_instants(view.store, view.layout, [commit], archive_name=view.config.archive_name, fence=view.held_lock)


@dataclass(frozen=True, slots=True)
class _Created(Completion):
    """The completion of a savepoint; the metadata table has no rows of savepoints."""

    saved: SavepointMetadata
    commit: str

    def check(self, now: TableView) -> None:
        """Refuse if an exclusive service is pending, or if a clean was planned since: of a JVM without a lock."""
        check_no_exclusive_service(now)
        _check_not_cleaned(now, self.commit)

    def content(self, now: TableView) -> bytes:
        return self.saved.to_bytes()


def _commit(view: TableView, instant: str | None) -> Instant:
    if instant is None:
        found = next(reversed(view.completed_writes()), None)
    else:
        found = view.timeline.writes().completed().get(instant)
    if found is None:
        what = "no completed commit" if instant is None else f"no completed commit {instant} on its active timeline"
        raise InstantNotFoundError(
            f"{view.store.uri('')} has {what}: a savepoint keeps the files of a completed commit; "
            "t.timeline.completed() returns the commits"
        )
    return found


def _check_not_cleaned(view: TableView, commit: str) -> None:
    oldest = oldest_readable_instant(view)
    if commit < oldest:
        raise UnsupportedError(
            f"{view.store.uri('')} cannot keep {commit}: a clean deleted files that it needs, and kept what instants "
            f"from {oldest} on need; create a savepoint of one of these"
        )
