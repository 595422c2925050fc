"""Incremental reads: the rows that commits of a time span wrote, as of the end of the span."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.instants.service_metadata import RequestedReplaceMetadata
from hoodie.read.plan import ScanPlan, plan_scan
from hoodie.read.readable import check_readable
from hoodie.read.times import When, warn_of_midnight
from hoodie.timeline import Action, Instant, State, read_instant, to_instant_time
from hoodie.view.table_view import TableView


def plan_changes(view: TableView, since: When | None, until: When | None, *, mode: str = "latest") -> ScanPlan:
    """Plan an incremental read of the commits that completed in `(since, until]`.

    Times are compared with completion times. The requested time of an instant is replaced by the completion time of
    the instant, so callers can pass the `instant` of a `WriteResult`. Each changed row is returned once, as of `until`;
    a row that was deleted by then is not returned. With `since=None` the span begins with the first commit.

    Version 6 stores no completion times. There the span contains the commits that were requested in `(since, until]`,
    and a pending write that was requested before one of them is an error: its rows would be missed when it completes.

    Raises: UnsupportedError if `since` is in the archived timeline, for such a pending write, or for mode `cdc`, and as
    `check_readable`; InvalidConfigError for another mode.
    """
    if mode == "cdc":
        raise UnsupportedError("mode='cdc' comes with a later release; mode='latest' gives each changed row once")
    if mode != "latest":
        raise InvalidConfigError(f"mode={mode!r}: expected 'latest'")
    start, end = _span(view, since, until)
    check_readable(view, by_meta_columns=since is not None)
    _check_active(view, start)
    at_end = view if end is None else view.as_completed_by(end)
    chosen = _completed_after(at_end, start)
    if not view.config.version.has_completion_time_in_name:
        _check_no_write_between(at_end, chosen)
    scan = plan_scan(at_end)
    if since is None:
        return scan
    instants = frozenset(instant.requested_time for instant in chosen)
    touched = {
        (stat.partition_path or "", stat.file_id)
        for instant in chosen
        for stat in view.commit_metadata(instant).write_stats()
    }
    slices = tuple(found for found in scan.slices if (found.partition_path, found.file_id) in touched)
    return dataclasses.replace(scan, slices=slices, instants=instants)


def completed_between(view: TableView, since: When | None, until: When | None) -> list[Instant]:
    """Return the write instants that completed in `(since, until]`; times as for `plan_changes`.

    Raises: UnsupportedError if part of the span is in the archived timeline; InvalidConfigError if the span ends before
    it begins.
    """
    start, end = _span(view, since, until)
    _check_active(view, start or "")
    return _completed_after(view if end is None else view.as_completed_by(end), start)


def _span(view: TableView, since: When | None, until: When | None) -> tuple[str | None, str | None]:
    """Convert the caller's times to order times (`TableView.order_time`)."""
    start = None if since is None else completion_of(view, since)
    end = None if until is None else completion_of(view, until)
    if until is not None:
        warn_of_midnight(view, "until", until, [view.order_time(instant) for instant in view.completed_writes()])
    if start is not None and end is not None and start > end:
        raise InvalidConfigError(f"since={since!r} is later than until={until!r}")
    return start, end


def _completed_after(view: TableView, start: str | None) -> list[Instant]:
    return [instant for instant in view.completed_writes() if start is None or view.order_time(instant) > start]


def _check_no_write_between(view: TableView, chosen: Sequence[Instant]) -> None:
    """Refuse a span by requested times if a pending write was requested before the last commit of the span.

    A caller that continues after this commit would never see the rows of the pending write. Pending table services add
    no rows.
    """
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


def completion_of(view: TableView, when: When) -> str:
    """Convert a caller's time to an order time: an instant's requested time gives the `order_time` of the instant."""
    text = to_instant_time(when, view.layout.zone)
    instant = view.timeline.get(text)
    return text if instant is None or not instant.is_completed else view.order_time(instant)


def _check_active(view: TableView, start: str | None) -> None:
    first = view.timeline.start
    if start is not None and first is not None and start < first and view.has_archived_instants():
        raise UnsupportedError(
            f"{view.store.uri('')}: part of the changes since {start or 'the first commit'} is in the archived "
            f"timeline, and the active timeline begins at {first}; read the whole table once, then the changes since "
            f"{first} or later"
        )
