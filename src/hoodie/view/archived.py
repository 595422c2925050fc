"""What a view needs of archived instants: their completion times, their commits, and the schemas that these store.

docs/format/table.md §2.6, §2.7, §5.1. The archive is read only if the active timeline cannot answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from hoodie.errors import InstantNotFoundError
from hoodie.files.slices import Listing, logs_in_doubt
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.table.table_config import TableType
from hoodie.timeline import ArchivedTimeline, Instant, Timeline
from hoodie.view.commit_cache import CommitFacts

if TYPE_CHECKING:
    from hoodie.view.table_view import TableView

_SCHEMA_BATCH = 16
"""Commits whose contents are read at once in search of a schema; nearly every commit stores one."""


def archived_writes(view: TableView, after: str = "", until: str | None = None) -> list[Instant]:
    """Return the archived write instants with an `order_time` in `(after, until]`, sorted by it.

    An instant that is still on the active timeline of the view is left out: a writer archives instants first, and then
    deletes their files.

    Raises: CorruptFileError if the archive is damaged.
    """
    return [instant for instant in archived_instants(view, after, until) if instant.action.writes_data]


def archived_instants(view: TableView, after: str = "", until: str | None = None) -> list[Instant]:
    """Return the archived instants of all actions; times and errors as for `archived_writes`."""
    known = {instant.requested_time for instant in (*view.timeline, *view.completed_later) if instant.is_completed}
    return [found for found in view.archive().completed(after, until) if found.requested_time not in known]


def archived_commits(view: TableView, instants: Collection[Instant]) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Yield archived write instants and their commits, in no defined order. Memory: one row group of the archive.

    Raises: CorruptFileError; InstantNotFoundError if one of them is not archived.
    """
    wanted = {(instant.requested_time, instant.action.value): instant for instant in instants}
    if wanted:
        for content in view.archive().contents(instants):
            instant = wanted[content.requested_time, content.action]
            yield instant, CommitMetadata.parse(content.metadata or b"", path=f"{instant} in the archived timeline")


def archived_content(view: TableView, instant: Instant) -> bytes:
    """Return the content of a completed instant that a writer archived after the view was loaded.

    Raises: InstantNotFoundError if it is not archived: it was rolled back; CorruptFileError.
    """
    found = [known for known in view.archive().find([instant.requested_time]) if known.action is instant.action]
    for content in view.archive().contents(found):
        return content.metadata or b""
    raise InstantNotFoundError(
        f"{instant} of {view.store.uri('')} is neither on the active nor on the archived timeline: it was rolled back "
        "since the timeline was loaded; load the table again"
    )


def newest_archived_schema(view: TableView, *, until: str | None = None) -> str | None:
    """Return the schema of the newest archived commit that stores one; `until` (inclusive) is a requested time.

    Commits that completed after the time of the view are left out.
    """
    if not view.has_archived_instants():
        return None
    hidden = view.timeline.never_completed
    found = [
        instant
        for instant in archived_writes(view)
        if instant.requested_time not in hidden and (until is None or instant.requested_time <= until)
    ]
    while found:
        batch, found = found[-_SCHEMA_BATCH:], found[:-_SCHEMA_BATCH]
        facts = {instant: CommitFacts.of(commit) for instant, commit in archived_commits(view, batch)}
        for instant in reversed(batch):
            if facts[instant].schema and facts[instant].changes_schema:
                return facts[instant].schema
    return None


def with_archived_logs(view: TableView, listing: Listing) -> Timeline:
    """Return the view's timeline with the completion times of archived instants that log files in `listing` need.

    The archive is read for merge-on-read tables only, and once for each instant.
    """
    timeline, known = view.timeline, view.state.archived_times
    if view.config.table_type is not TableType.MERGE_ON_READ or view.config.version.log_name_has_base_instant:
        return timeline
    in_doubt = {time for names in listing.values() for time in logs_in_doubt(names, timeline.start)}
    whole = view.whole_timeline()
    in_doubt = {time for time in in_doubt if whole.get(time) is None}
    unknown = in_doubt - known.keys()
    if unknown:
        found = {instant.requested_time: instant for instant in view.archive().find(unknown) if _is_write(instant)}
        # An instant that is not archived never completed; its completion time is not looked up again.
        known.update({time: _completion_time(found, time) for time in unknown})
    archived = {time: known[time] for time in in_doubt if known[time]}
    return replace(timeline, archived={**timeline.archived, **archived}) if archived else timeline


def with_archived_between(view: TableView, timeline: Timeline, times: Collection[str]) -> Timeline:
    """Return the timeline with those of the times that are archived, of the instants that miss between others.

    The archive is read if there is such an instant. JVM Hudi leaves them if it deletes a savepoint whose later commits
    are archived.

    Raises: CorruptFileError if the archive is damaged.
    """
    known, missing = view.state.archived_times, _missing_between(timeline, view.whole_timeline(), times)
    unknown = {time for time in missing if not known.get(time)}
    if unknown:
        # What is not found is looked up again by the next view: it may complete and be archived until then.
        found = (instant for instant in view.archive().find(unknown) if instant.action.writes_data)
        known.update({instant.requested_time: instant.completion_time or instant.requested_time for instant in found})
    archived = {time: known[time] for time in missing if known.get(time)}
    return replace(timeline, archived={**timeline.archived, **archived}) if archived else timeline


def committed_times(timeline: Timeline, archive: ArchivedTimeline, times: Collection[str]) -> set[str]:
    """Return those of the times, of instants in names of files, whose files are committed.

    The archive is asked for the instants that are not on the timeline and older than its newest one. Those before the
    first archived instant count as committed if they are before the timeline's start: of a copy without history, or
    with a part of it, nothing tells.

    Raises: CorruptFileError if the archive is damaged.
    """
    committed = set(filter(timeline.contains_or_before_start, times))
    old = {time for time in committed if timeline.get(time) is None and time not in timeline.archived}
    unknown = old | _missing_between(timeline, timeline, times)
    if not unknown:
        return committed
    oldest = archive.oldest_time()
    if not oldest:
        return committed
    archived = {instant.requested_time for instant in archive.find(unknown)}
    return (committed - unknown) | archived | {time for time in old if time < oldest}


def _missing_between(timeline: Timeline, whole: Timeline, times: Collection[str]) -> set[str]:
    """Return the times that miss between others; `whole` has the instants that completed later too.

    Instants after the newest one are new: their writers began after the timeline was loaded.
    """
    newest = whole.latest()
    return set() if newest is None else {t for t in filter(timeline.is_missing, times) if t < newest.requested_time}


def _is_write(instant: Instant) -> bool:
    return instant.action.writes_data


def _completion_time(found: Mapping[str, Instant], requested_time: str) -> str:
    instant = found.get(requested_time)
    return "" if instant is None else instant.completion_time or requested_time
