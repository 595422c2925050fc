"""Incremental reads: the rows that commits of a time span wrote, as of the end of the span.

Commits that were archived count too. A span is refused if a restore or a rollback took back commits that the consumer
may have read before. docs/operations/incremental-pipelines.md, docs/format/table.md §5.4.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hoodie.errors import (
    HistoryLostError,
    InvalidConfigError,
    UnsupportedError,
    ViewOvertakenError,
)
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.instants.service_metadata import (
    RequestedReplaceMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    may_have_completed,
)
from hoodie.read.plan import ScanPlan, check_readable, plan_scan
from hoodie.read.times import When, completion_of, warn_of_midnight
from hoodie.timeline import Action, Instant, State, read_instant
from hoodie.view.slices import check_span
from hoodie.view.table_view import TableView

if TYPE_CHECKING:
    from hoodie.records.condition import Condition

Columns = str | Sequence[str] | None
"""Names as in `chosen_columns`; None for all columns."""


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
    """Return the earliest requested time of the commits that a restore took back; empty if no plan contains it."""
    content = view.pending_content(restore)
    if not content:
        return ""
    infos = RestorePlan.parse(content, path=view.path_of(restore)).instants_to_rollback
    return min((info.commit_time for info in infos), default=restore.requested_time)


def _rolled_back(view: TableView, rollback: Instant) -> str:
    """Return the requested time of the commit that a rollback took back; empty if that was certainly no commit."""
    content = view.pending_content(rollback)
    if content:
        plan = RollbackPlan.parse(content, path=view.path_of(rollback))
        target = plan.instant_to_rollback
        return target.commit_time if target is not None and may_have_completed(plan) else ""
    # Its plan was not archived, or it never had one. Whether the target had completed is unknown.
    metadata = RollbackMetadata.parse(view.content_of(rollback), path=view.path_of(rollback))
    return min(metadata.commits_rollback, default="")


BEGINNING: Final = "00000000000000000"
"""The time before every commit: the place of a consumer that has read a table without commits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRows:
    """The rows that changed in `(since, until]`, and the place of their consumer.

    `rows` is a Spark DataFrame, or a pyarrow Table without Spark. Pass `until` as the next `since`: no commit is
    missed, and none is read twice. `is_snapshot`: the rows are all rows of the table as of `until`, and replace what
    the consumer has; otherwise they are the changed rows, to be merged into it. `commits` is the number of commits
    read.
    """

    rows: Any
    since: str | None
    until: str
    is_snapshot: bool
    commits: int

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the rows as an Arrow C stream. Raises: UnsupportedError for a DataFrame that has none."""
        if not hasattr(self.rows, "__arrow_c_stream__"):
            raise UnsupportedError("the changed rows are a Spark DataFrame: use rows, or rows.toArrow()")
        return self.rows.__arrow_c_stream__(requested_schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesPlan:
    """A planned incremental read: its scan, and the values of `ChangedRows` that are known without reading rows."""

    scan: ScanPlan
    since: str | None
    until: str
    is_snapshot: bool
    commits: int

    def with_rows(self, rows: Any) -> ChangedRows:
        """Return the result, with the rows that the scan returned."""
        return ChangedRows(
            rows=rows, since=self.since, until=self.until, is_snapshot=self.is_snapshot, commits=self.commits
        )


def plan_batch(
    view: TableView,
    since: When | None,
    until: When | None,
    *,
    columns: Columns = None,
    where: Condition | None = None,
    fallback: str = "error",
) -> ChangesPlan:
    """Plan an incremental read, with the place from which its consumer goes on.

    Times are compared with completion times. The requested time of an instant is replaced by the completion time of
    the instant, so callers can pass the `instant` of a `WriteResult`. Each changed row is returned once, as of `until`;
    a row that was deleted by then is not returned. With `since=None` the span begins with the first commit.

    Version 6 stores no completion times. There the span contains the commits that were requested in `(since, until]`,
    and a pending write that was requested before one of them is an error: its rows would be missed when it completes.

    `columns` and `where` as for `plan_scan`; the condition is tested on the rows as of `until`, and excludes files.

    Only file slices that a commit of the span wrote are read, and only the files of the archived timeline that may have
    one of these commits. `fallback`: what to do if the changed rows are lost: "error", or "snapshot", which reads
    the whole table as it is now, and warns.

    Raises: ViewOvertakenError if the read must be planned again on a new view;
        HistoryLostError if files that `until` needs were cleaned, or a restore or a rollback after `since` took
        back a commit up to it; UnsupportedError for such a pending write, and as `check_readable`;
        InvalidConfigError for another fallback, or a span that ends before it begins; CorruptFileError if the archived
        timeline is damaged; as `plan_scan`.
    """
    if fallback not in ("error", "snapshot"):
        raise InvalidConfigError(f"fallback={fallback!r}: expected 'error' or 'snapshot'")
    start, end = span_of(view, since, until)
    check_readable(view, by_meta_columns=since is not None)

    def scan_of(at_end: TableView) -> ScanPlan:
        return plan_scan(at_end, columns=columns, where=where)

    try:
        return _plan(view, start, end, scan_of)
    except ViewOvertakenError:
        raise
    except HistoryLostError as error:
        if fallback == "error":
            raise
        view.state.warn(f"all rows of the table are returned, not the changed ones: {error}")
        return _plan(view.refreshed(), None, None, scan_of, since=start)


def _plan(
    view: TableView,
    start: str | None,
    end: str | None,
    scan_of: Callable[[TableView], ScanPlan],
    *,
    since: str | None = None,
) -> ChangesPlan:
    at_end = view if end is None else view.as_completed_by(end)
    newest = max((view.order_time(instant) for instant in at_end.completed_writes()), default=BEGINNING)
    if start is None:
        check_no_write_between(at_end, at_end.completed_writes())
        # A commit that completed last may be archived already, if it was requested long before.
        archived = view.archived_instants(newest, end)
        writes = (view.order_time(found) for found in archived if found.action.writes_data)
        scan = scan_of(at_end)
        # A consumer at this position has passed the restores and rollbacks of earlier commits.
        taken_back = (at_end.order_time(found) for found, _ in _taken_back(at_end, newest, archived))
        until = max((newest, *writes, *taken_back))
        return ChangesPlan(
            scan=scan, since=since, until=until, is_snapshot=True, commits=len(at_end.completed_writes())
        )
    archived, chosen = writes_of_span(view, at_end, start, end)
    scan = scan_of(at_end)
    check_span(at_end, start)
    groups = {group for found in chosen for group in _written(view.commit_metadata(found))}
    for _, commit in view.archived_commits(archived):
        groups |= _written(commit)
    slices = tuple(found for found in scan.slices if found.group in groups)
    instants = frozenset(instant.requested_time for instant in (*archived, *chosen))
    return ChangesPlan(
        scan=dataclasses.replace(scan, slices=slices, instants=instants),
        since=start,
        until=max((start, *(view.order_time(found) for found in (*archived, *chosen)))),
        is_snapshot=False,
        commits=len(instants),
    )


def writes_of_span(
    view: TableView, at_end: TableView, start: str, end: str | None
) -> tuple[list[Instant], list[Instant]]:
    """Return the archived and the active writes that completed in `(start, end]`; `at_end`: the view as of the end."""
    found = view.archived_instants(start, end)
    check_not_taken_back(view, start, end, found)
    archived = [instant for instant in found if instant.action.writes_data]
    active = [write for write in at_end.completed_writes() if view.order_time(write) > start]
    check_no_write_between(at_end, [*archived, *active])
    return archived, active


def _written(commit: CommitMetadata) -> set[tuple[str, str]]:
    """Return the file groups that a commit wrote, as partition path and file id."""
    return {stat.group for stat in commit.write_stats()}


def completed_between(view: TableView, since: When | None, until: When | None) -> list[Instant]:
    """Return the write instants that completed in `(since, until]`, archived ones too; times as for `plan_batch`.

    Raises: InvalidConfigError if the span ends before it begins; CorruptFileError if the archive is damaged.
    """
    start, end = span_of(view, since, until)
    at_end = view if end is None else view.as_completed_by(end)
    active = [write for write in at_end.completed_writes() if view.order_time(write) > (start or "")]
    return sorted([*view.archived_writes(start or "", end), *active], key=view.order_time)


def span_of(view: TableView, since: When | None, until: When | None) -> tuple[str | None, str | None]:
    """Convert the caller's times to order times (`TableView.order_time`)."""
    start = None if since is None else completion_of(view, since)
    end = None if until is None else completion_of(view, until)
    if until is not None:
        warn_of_midnight(view, "until", until, [view.order_time(instant) for instant in view.completed_writes()])
    if start is not None and end is not None and start > end:
        raise InvalidConfigError(f"since={since!r} is later than until={until!r}")
    return start, end


def check_no_write_between(view: TableView, chosen: Sequence[Instant]) -> None:
    """Refuse a span of a table of version 6 if a pending write was requested before the last commit of the span.

    A caller that continues after this commit would never see the rows of the pending write. Pending table services add
    no rows.
    """
    if view.config.version.has_completion_time_in_name:
        return
    last = max((instant.requested_time for instant in chosen), default="")
    for instant in view.timeline.pending().writes().instants:
        if instant.requested_time < last and _adds_rows(view, instant):
            raise UnsupportedError(
                f"{view.store.uri('')}: the write {instant} is pending, and the commit {last} was requested later. A "
                "table of version 6 orders its commits by requested time, so the rows of the pending write would be "
                "missed. Wait until it completes, roll it back if its writer does not run any more, or read the "
                f"changes until an instant before {instant.requested_time}"
            )


def _adds_rows(view: TableView, instant: Instant) -> bool:
    """Return whether a pending instant is a write, not a table service."""
    if instant.action is not Action.REPLACE_COMMIT:
        return instant.action in (Action.COMMIT, Action.DELTA_COMMIT)
    # In version 6 the pending files of a clustering have the action of an insert overwrite.
    content = read_instant(view.store, view.layout, instant, State.REQUESTED)
    return not content or RequestedReplaceMetadata.parse(content, path=str(instant)).clustering_plan is None
