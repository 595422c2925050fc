"""Commits that were taken back by a restore or a rollback, which a consumer of changes may have read before.

docs/operations/incremental-pipelines.md, docs/format/table.md §5.4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from hoodie.errors import HistoryLostError, InstantNotFoundError
from hoodie.format.instants.service_metadata import RestorePlan, RollbackMetadata, RollbackPlan, may_have_completed
from hoodie.timeline import Action, Instant, State, read_instant
from hoodie.view.archived import archived_content
from hoodie.view.table_view import TableView


def last_taken_back(view: TableView, start: str, archived: Collection[Instant]) -> str:
    """Return the order time of the last restore or rollback that takes back commits up to `start`; else `start`.

    A place at this time is behind it. `archived` and errors as for `check_not_taken_back`.
    """
    return max((view.order_time(found) for found, _ in _taken_back(view, start, archived)), default=start)


def check_not_taken_back(view: TableView, start: str, end: str | None, archived: Collection[Instant]) -> None:
    """Refuse a span in which commits up to `start` were taken back: the caller may have rows that are gone.

    `archived` are the archived instants of the span `(start, end]`. Reads the plan of each rollback after `start`, and
    of archived ones the metadata. The rollback of a write that never completed is no reason to refuse.

    Raises: HistoryLostError; CorruptFileError if a plan or the archive is damaged.
    """
    for instant, what in _taken_back(view, start, archived):
        ended = view.order_time(instant)
        if end is None or ended <= end:
            raise HistoryLostError(
                f"{what} at {ended}, after {start}: commits that were read before may be gone. "
                "Read the whole table once; t.changes_since does so with fallback='snapshot'",
                oldest_instant=instant.requested_time,
            )


def last_undo(view: TableView, start: str) -> Instant | None:
    """Return the last active restore, or rollback of a commit that may have completed, that ended after `start`.

    Reads the plan of each rollback after `start`. Raises: CorruptFileError if a plan is damaged.
    """
    ended = [found for found in view.timeline.completed() if view.order_time(found) > start]
    for instant in sorted(ended, key=view.order_time, reverse=True):
        if instant.action is Action.RESTORE or (instant.action is Action.ROLLBACK and _rolled_back(view, instant)):
            return instant
    return None


def _taken_back(view: TableView, start: str, archived: Iterable[Instant]) -> Iterator[tuple[Instant, str]]:
    """Yield the restores and rollbacks that ended after `start` and took back commits up to it; with what each did."""
    table = view.store.uri("")
    active = (found for found in view.timeline.completed() if view.order_time(found) > start)
    for instant in (*archived, *active):
        if instant.action is Action.RESTORE:
            if _first_restored(view, instant) <= start:
                yield instant, f"{table} was restored"
        elif instant.action is Action.ROLLBACK:
            target = _rolled_back(view, instant)
            if target and target <= start:
                yield instant, f"the commit {target} of {table} was rolled back"


def _first_restored(view: TableView, restore: Instant) -> str:
    """Return the earliest requested time of the commits that a restore took back; empty if no plan tells it."""
    content = _plan_of(view, restore)
    if not content:
        return ""
    infos = RestorePlan.parse(content, path=view.path_of(restore)).instants_to_rollback
    return min((info.commit_time for info in infos), default=restore.requested_time)


def _plan_of(view: TableView, instant: Instant) -> bytes:
    """Return the content of the requested file; empty if there is none."""
    try:
        return read_instant(view.store, view.layout, instant, State.REQUESTED)
    except InstantNotFoundError:
        return b""


def _rolled_back(view: TableView, rollback: Instant) -> str:
    """Return the requested time of the commit that a rollback took back; empty if that was certainly no commit."""
    content = _plan_of(view, rollback)
    if content:
        plan = RollbackPlan.parse(content, path=view.path_of(rollback))
        target = plan.instant_to_rollback
        return target.commit_time if target is not None and may_have_completed(plan) else ""
    # Its plan was not archived, or it never had one. Nothing tells whether the target had completed.
    try:
        done = read_instant(view.store, view.layout, rollback)
    except InstantNotFoundError:
        done = archived_content(view, rollback)
    metadata = RollbackMetadata.parse(done, path=view.path_of(rollback))
    return min(metadata.commits_rollback, default="")
