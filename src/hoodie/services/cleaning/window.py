"""The retained commits of a clean: the earliest commit to retain, and when a clean is due.

Only the timeline is read. docs/format/table.md §9.4.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from hoodie.services.cleaning.options import CleanOptions, Policy
from hoodie.timeline import Instant, to_instant_time
from hoodie.view.commit_cache import CleanFacts
from hoodie.view.table_view import TableView


def earliest_to_retain(
    view: TableView, options: CleanOptions, last: CleanFacts | None, now: datetime
) -> Instant | None:
    """Return the earliest commit whose snapshot must stay whole; None if a clean would retain all, or keeps versions.

    It is never later than the oldest pending write or table service: what it read must stay. `last` is the last clean,
    from which `commits_max` counts. `now` has a time zone.
    """
    if options.policy is Policy.VERSIONS:
        return None
    writes = view.timeline.writes()
    commits = writes.completed().instants
    pending = writes.pending().instants
    if options.policy is Policy.COMMITS:
        chosen = commits[-options.retained] if 0 < options.retained < len(commits) else None
    else:
        since = to_instant_time(now - timedelta(hours=options.retained), view.layout.zone)
        chosen = next((instant for instant in commits if instant.requested_time >= since), None)
    if chosen is not None and pending and pending[0].requested_time < chosen.requested_time:
        earlier = [instant for instant in commits if instant.requested_time < pending[0].requested_time]
        chosen = earlier[-1] if earlier else None
    if chosen is None or last is None or not last.earliest:
        return chosen
    cleaned = [found for found in commits if last.earliest <= found.requested_time < chosen.requested_time]
    return cleaned[options.commits_max] if len(cleaned) > options.commits_max else chosen


def commits_since(view: TableView, last: CleanFacts | None) -> int:
    """Return the number of commits that completed after the last clean was planned."""
    commits = view.timeline.writes().completed()
    return len(commits) if last is None else sum(found.requested_time > last.last_completed for found in commits)


def newest_commit(view: TableView) -> str:
    """Return the greatest requested time of a completed commit; empty without commits."""
    newest = view.timeline.writes().completed().latest()
    return "" if newest is None else newest.requested_time
