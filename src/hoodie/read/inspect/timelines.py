"""The instants of the data table or of the metadata table, page by page, and when one instant reached its states."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pyarrow as pa

from hoodie.errors import HoodieError
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.metadata.folder import MetadataFolder
from hoodie.read.history import HISTORY_SCHEMA, commit_of, history_row, parsed_time
from hoodie.read.report import report_schema
from hoodie.storage import together
from hoodie.timeline import (
    Action,
    ArchivedTimeline,
    ArchiveLogs,
    ArchiveReader,
    Instant,
    State,
    Timeline,
    read_instant,
)
from hoodie.view.table_view import TableView

TIMELINE_SCHEMA = pa.schema([*HISTORY_SCHEMA, *report_schema("requested_at time?, is_archived bool, problem string?")])


def timeline_page(view: TableView, limit: int, before: str | None, *, archived: bool, metadata: bool) -> pa.Table:
    """Return the newest `limit` instants requested before `before`, newest first; the columns are `TIMELINE_SCHEMA`.

    `archived`: with archived ones. `metadata`: of the timeline of the metadata table.

    Instants with the requested time of the last row are all on the page, so that this time is the next `before`. A
    commit that cannot be read has no counts, and its error as `problem`. Only the commits of the rows are read; with
    archived instants, the times and actions of all archived instants too, once in a process.

    Raises: CorruptFileError if the archive is damaged.
    """
    source = _of_metadata_table(view) if metadata else _Source(view.timeline, view.archive, partial(commit_of, view))
    active = _newest(source.timeline, limit, before)
    older = _archived(source, active, limit, before) if archived else frozenset[Instant]()
    chosen = _newest([*active, *older], limit, before)
    reads = [partial(_row, view, instant, partial(source.commit, instant)) for instant in chosen]
    stored = [read for read, instant in zip(reads, chosen, strict=True) if instant not in older]
    rows = [*together(view.store, *stored), *_archived_rows(view, source, [i for i in chosen if i in older])]
    rows.sort(key=lambda row: (row["instant"], row["action"]), reverse=True)
    return pa.Table.from_pylist(rows, schema=TIMELINE_SCHEMA)


@dataclass(frozen=True, slots=True)
class _Source:
    """A timeline, its archive, and how the commit of an active instant is read."""

    timeline: Timeline
    archive: Callable[[], ArchivedTimeline]
    commit: Callable[[Instant], CommitMetadata | None]


def _of_metadata_table(view: TableView) -> _Source:
    folder = MetadataFolder(view.store, view.config)

    def commit(instant: Instant) -> CommitMetadata | None:
        if not (instant.is_completed and instant.action.writes_data):
            return None
        content = read_instant(view.store, folder.layout, instant)
        return CommitMetadata.parse(content, path=f"{instant} of the metadata table")

    def archive() -> ArchivedTimeline:
        found = folder.archive()
        return found if isinstance(found, ArchiveLogs) else ArchiveReader(found)

    return _Source(folder.timeline(), archive, commit)


def _place(instant: Instant) -> tuple[str, str]:
    return instant.requested_time, instant.action


def _newest(instants: Iterable[Instant], limit: int, before: str | None) -> list[Instant]:
    """Return the newest instants, and those with the same requested time as the last one."""
    wanted = [found for found in instants if before is None or found.requested_time < before]
    chosen = heapq.nlargest(limit, wanted, key=_place)
    if chosen:
        last = chosen[-1].requested_time
        chosen += [found for found in wanted if found.requested_time == last and found not in chosen]
    return chosen


def _archived(source: _Source, active: Sequence[Instant], limit: int, before: str | None) -> frozenset[Instant]:
    """Return the archived instants that may be on the page; none if all are older than its active ones."""
    if not limit or (len(active) >= limit and source.archive().newest_time() < active[-1].requested_time):
        return frozenset()
    known = {_place(instant) for instant in source.timeline}
    return frozenset(_newest((i for i in source.archive().completed() if _place(i) not in known), limit, before))


def _archived_rows(view: TableView, source: _Source, instants: Sequence[Instant]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of archived instants; the archive is read if some of them are writes."""
    writes = {(found.requested_time, found.action.value): found for found in instants if found.action.writes_data}
    yield from (_row(view, found, lambda: None, is_archived=True) for found in instants if not found.action.writes_data)
    for content in source.archive().contents([*writes.values()]) if writes else ():
        instant = writes.pop((content.requested_time, content.action), None)
        if instant is not None:
            parse = partial(CommitMetadata.parse, content.metadata or b"", path=f"{instant} in the archived timeline")
            yield _row(view, instant, parse, is_archived=True)


def _row(
    view: TableView, instant: Instant, read: Callable[[], CommitMetadata | None], *, is_archived: bool = False
) -> Mapping[str, Any]:
    zone, problem, commit = view.layout.zone, None, None
    try:
        commit = read()
    except (HoodieError, OSError) as error:
        problem = str(error)
    return {
        **history_row(instant, commit, zone),
        "requested_at": parsed_time(instant.requested_time, zone),
        "is_archived": is_archived,
        "problem": problem,
    }


def state_times(view: TableView, content: Mapping[str, Any]) -> dict[str, str | None]:
    """Return when an instant was requested, put in flight, and completed, as ISO texts in UTC; None if not known.

    `content` as `history.instant_content` returns it. The second time is the change time of a file: one request. It is
    not known of a table that was copied, whose files are younger than their commits.
    """
    zone = view.layout.zone
    instant = view.timeline.get(content["instant"], Action(content["action"]))
    inflight = None
    if instant is not None and instant.state is not State.REQUESTED:
        paths = (f"{view.layout.instant_folder()}/{name}" for name in view.layout.names(instant, State.INFLIGHT))
        found = next((info for path in paths if (info := view.store.head(path)) is not None), None)
        inflight = None if found is None else datetime.fromtimestamp(found.modified_ms / 1000, UTC)
    requested, completed = parsed_time(content["instant"], zone), parsed_time(content["completion_time"] or "", zone)
    if inflight and requested:
        inflight = max(inflight, requested)  # an instant's time can be some milliseconds ahead of the storage's clock
    if inflight and completed and completed < inflight:
        inflight = None
    times = {"requested": requested, "inflight": inflight, "completed": completed}
    return {state: None if time is None else time.isoformat() for state, time in times.items()}
