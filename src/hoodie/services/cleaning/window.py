"""The retained commits of a clean: the earliest commit to retain, and when a clean is due.

Only the timeline is read. docs/format/table.md §9.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from hoodie.services.cleaning.options import CleanOptions, Policy
from hoodie.timeline import Action, Instant, is_live, to_instant_time
from hoodie.view.commit_cache import CleanFacts
from hoodie.view.table_view import TableView


def earliest_to_retain(
    view: TableView, options: CleanOptions, last: CleanFacts | None, now: datetime
) -> Instant | None:
    """Return the earliest commit whose snapshot must stay whole; None if a clean would retain all, or keeps versions.

    It is never later than the oldest pending write or table service, nor than a commit that completed after that began
    or after the earliest commit's own completion: what these read must stay. `last` is the last clean, from which
    `commits_max` counts. `now` has a time zone.
    """
    if options.policy is Policy.VERSIONS:
        return None
    writes = view.timeline.writes()
    commits = writes.completed().instants
    pending = _pending(view)
    if options.policy is Policy.COMMITS:
        chosen = commits[-options.retained] if 0 < options.retained < len(commits) else None
    else:
        since = to_instant_time(now - timedelta(hours=options.retained), view.layout.zone)
        chosen = next((instant for instant in commits if instant.requested_time >= since), None)
    if chosen is not None and pending and pending[0].requested_time < chosen.requested_time:
        earlier = [instant for instant in commits if instant.requested_time < pending[0].requested_time]
        chosen = earlier[-1] if earlier else None
    if chosen is None:
        return None
    if last is not None and last.earliest:
        cleaned = [found for found in commits if last.earliest <= found.requested_time < chosen.requested_time]
        chosen = cleaned[options.commits_max] if len(cleaned) > options.commits_max else chosen
    return _with_overlapping(commits, pending, chosen)


def _with_overlapping(commits: Sequence[Instant], pending: Sequence[Instant], chosen: Instant) -> Instant:
    """Return `chosen`, or the first commit requested before it that completed later than its snapshot began.

    A file slice is superseded when the newer slice is completed, not when it was requested: the snapshot of `chosen`,
    and a write that was pending then, still read what such a commit replaced.
    """
    horizon = min([chosen.completion_time or "", *(found.requested_time for found in pending[:1])])
    before = (found for found in commits if found.requested_time < chosen.requested_time)
    return next((found for found in before if (found.completion_time or "") > horizon), chosen)


def _pending(view: TableView) -> list[Instant]:
    """Return the pending writes and table services, and the index builds of this library that run.

    A build compares itself with the writes that completed while it ran. Builds of a JVM have no heartbeat, and do not
    hold a clean, as in the JVM.
    """

    def reads(found: Instant) -> bool:
        is_build = found.action is Action.INDEXING
        return found.action.writes_data or (is_build and is_live(view.store, found.requested_time))

    return list(filter(reads, view.timeline.pending()))


def commits_since(view: TableView, last: CleanFacts | None) -> int:
    """Return the number of commits that completed after the last clean was planned."""
    commits = view.timeline.writes().completed()
    return len(commits) if last is None else sum(found.requested_time > last.last_completed for found in commits)


def newest_commit(view: TableView) -> str:
    """Return the greatest requested time of a completed commit; empty without commits."""
    newest = view.timeline.writes().completed().latest()
    return "" if newest is None else newest.requested_time
