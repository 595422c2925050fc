"""Incremental reads: the rows that commits of a time span wrote, as of the end of the span.

Commits that were archived count too. docs/operations/incremental-pipelines.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from hoodie.errors import HistoryLostError, InvalidConfigError, UnsupportedError, ViewOvertakenError
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.instants.service_metadata import RequestedReplaceMetadata
from hoodie.read.plan import ScanPlan, plan_scan
from hoodie.read.readable import check_readable
from hoodie.read.taken_back import check_not_taken_back, last_taken_back
from hoodie.read.times import When, completion_of, warn_of_midnight
from hoodie.timeline import Action, Instant, State, read_instant
from hoodie.view.archived import archived_commits, archived_instants, archived_writes
from hoodie.view.lost_instants import check_span
from hoodie.view.table_view import TableView

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


def plan_changes(view: TableView, since: When | None, until: When | None) -> ScanPlan:
    """Plan an incremental read of the commits that completed in `(since, until]`; see `plan_batch`.

    Raises: as `plan_batch`.
    """
    return plan_batch(view, since, until).scan


def plan_batch(view: TableView, since: When | None, until: When | None, *, fallback: str = "error") -> ChangesPlan:
    """Plan an incremental read, with the place from which its consumer goes on.

    Times are compared with completion times. The requested time of an instant is replaced by the completion time of
    the instant, so callers can pass the `instant` of a `WriteResult`. Each changed row is returned once, as of `until`;
    a row that was deleted by then is not returned. With `since=None` the span begins with the first commit.

    Version 6 stores no completion times. There the span contains the commits that were requested in `(since, until]`,
    and a pending write that was requested before one of them is an error: its rows would be missed when it completes.

    Only file slices that a commit of the span wrote are read, and only the files of the archived timeline that may have
    one of these commits. `fallback`: what to do if the rows cannot be told any more: "error", or "snapshot", which
    reads the whole table as it is now, and warns.

    Raises: ViewOvertakenError if the read must be planned again on a new view;
        HistoryLostError if files that `until` needs were cleaned, or a restore or a rollback after `since` took
        back a commit up to it; UnsupportedError for such a pending write, and as `check_readable`;
        InvalidConfigError for another fallback, or a span that ends before it begins; CorruptFileError if the archived
        timeline is damaged.
    """
    if fallback not in ("error", "snapshot"):
        raise InvalidConfigError(f"fallback={fallback!r}: expected 'error' or 'snapshot'")
    start, end = span_of(view, since, until)
    check_readable(view, by_meta_columns=since is not None)
    try:
        return _plan(view, start, end)
    except ViewOvertakenError:
        raise
    except HistoryLostError as error:
        if fallback == "error":
            raise
        view.state.warn(f"all rows of the table are returned, not the changed ones: {error}")
        return _plan(view.refreshed(), None, None, since=start)


def _plan(view: TableView, start: str | None, end: str | None, *, since: str | None = None) -> ChangesPlan:
    at_end = view if end is None else view.as_completed_by(end)
    newest = max((view.order_time(instant) for instant in at_end.completed_writes()), default=BEGINNING)
    if start is None:
        check_no_write_between(at_end, at_end.completed_writes())
        # A commit that completed last may be archived already, if it was requested long before.
        archived = archived_instants(view, newest, end)
        writes = (view.order_time(found) for found in archived if found.action.writes_data)
        scan = plan_scan(at_end)
        until = max((newest, *writes, last_taken_back(at_end, newest, archived)))
        return ChangesPlan(
            scan=scan, since=since, until=until, is_snapshot=True, commits=len(at_end.completed_writes())
        )
    found_archived = archived_instants(view, start, end)
    check_not_taken_back(view, start, end, found_archived)
    chosen = [found for found in at_end.completed_writes() if view.order_time(found) > start]
    archived = [found for found in found_archived if found.action.writes_data]
    check_no_write_between(at_end, [*archived, *chosen])
    scan = plan_scan(at_end)
    check_span(at_end, start)
    groups = {group for found in chosen for group in _written(view.commit_metadata(found))}
    for _, commit in archived_commits(view, archived):
        groups |= _written(commit)
    slices = tuple(found for found in scan.slices if (found.partition_path, found.file_id) in groups)
    instants = frozenset(instant.requested_time for instant in (*archived, *chosen))
    return ChangesPlan(
        scan=dataclasses.replace(scan, slices=slices, instants=instants),
        since=start,
        until=max((start, *(view.order_time(found) for found in (*archived, *chosen)))),
        is_snapshot=False,
        commits=len(instants),
    )


def _written(commit: CommitMetadata) -> set[tuple[str, str]]:
    """Return the file groups that a commit wrote, as partition path and file id."""
    return {(stat.partition_path or "", stat.file_id) for stat in commit.write_stats()}


def completed_between(view: TableView, since: When | None, until: When | None) -> list[Instant]:
    """Return the write instants that completed in `(since, until]`, archived ones too; times as for `plan_batch`.

    Raises: InvalidConfigError if the span ends before it begins; CorruptFileError if the archive is damaged.
    """
    start, end = span_of(view, since, until)
    at_end = view if end is None else view.as_completed_by(end)
    active = [found for found in at_end.completed_writes() if view.order_time(found) > (start or "")]
    return sorted([*archived_writes(view, start or "", end), *active], key=view.order_time)


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
