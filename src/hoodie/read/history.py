"""The history of a table: its instants with their effects, and the content of a single instant."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from hoodie.errors import CorruptFileError, HoodieError, InstantNotFoundError
from hoodie.format.avro.file import is_avro_file, parse_record
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.json_text import parse_json
from hoodie.format.table.table_config import TimelineZone
from hoodie.read.report import report_schema
from hoodie.timeline import Action, Instant, parse_instant_time, read_instant
from hoodie.view.table_view import TableView

HISTORY_SCHEMA = report_schema(
    "instant string, completed_at time?, action string, operation string?, state string, inserted int64?, "
    "updated int64?, deleted int64?, files_created int64?, files_updated int64?, bytes_written int64?, "
    "seconds float64?"
)


def history(view: TableView, limit: int | None = None, *, archived: bool = False) -> pa.Table:
    """Return the instants of the active timeline, newest first, one row each; at most `limit` rows.

    `archived`: archived instants follow, newest first.

    `inserted`, `updated` and `deleted` count records. They are null for pending instants, for instants that write no
    data, and for compactions, log compactions and clustering, which change no record. A record that moved between
    partitions counts as inserted and deleted. `seconds` is the time from the request to the completion. Reads one small
    file for each write; of archived writes the parts of the archive that have them.

    Raises: CorruptFileError if a commit or the archive is damaged.
    """
    newest_first = list(reversed(view.timeline.instants))[:limit]
    zone = view.layout.zone
    rows = [history_row(instant, commit_of(view, instant), zone) for instant in newest_first]
    if archived and (limit is None or len(rows) < limit):
        rows += _archived_rows(view, None if limit is None else limit - len(rows))
    return pa.Table.from_pylist(rows, schema=HISTORY_SCHEMA)


def commit_of(view: TableView, instant: Instant) -> CommitMetadata | None:
    """Return the metadata of a completed write on the active timeline; None for other instants."""
    return view.commit_metadata(instant) if instant.is_completed and instant.action.writes_data else None


def _archived_rows(view: TableView, limit: int | None) -> list[Mapping[str, Any]]:
    known = {(instant.requested_time, instant.action) for instant in view.timeline}
    found = [instant for instant in view.archive().completed() if (instant.requested_time, instant.action) not in known]
    chosen = sorted(found, key=lambda instant: (instant.requested_time, instant.action), reverse=True)[:limit]
    commits = dict(view.archived_commits([instant for instant in chosen if instant.action.writes_data]))
    return [history_row(instant, commits.get(instant), view.layout.zone) for instant in chosen]


def history_row(instant: Instant, commit: CommitMetadata | None, zone: TimelineZone) -> Mapping[str, Any]:
    """Return a row of `HISTORY_SCHEMA`, without its nulls; `commit` is the metadata of a completed write."""
    row: dict[str, Any] = {
        "instant": instant.requested_time,
        "action": instant.action.value,
        "state": instant.state.name.lower(),
    }
    if not instant.is_completed:
        return row
    first, last = parsed_time(instant.requested_time, zone), parsed_time(instant.completion_time or "", zone)
    row["seconds"] = None if first is None or last is None else (last - first).total_seconds()
    row["completed_at"] = completed_at(instant, zone)
    return row if commit is None else {**row, **_counts(commit)}


def completed_at(instant: Instant, zone: TimelineZone) -> datetime | None:
    """Return when a completed instant completed; None if its time cannot be parsed."""
    return parsed_time(instant.completion_time or instant.requested_time, zone)


def parsed_time(text: str, zone: TimelineZone) -> datetime | None:
    """Return an instant time in UTC; None for another text: writers may choose times that are not times."""
    try:
        return parse_instant_time(text, zone).astimezone(UTC)
    except HoodieError:
        return None


def _counts(metadata: CommitMetadata) -> Mapping[str, Any]:
    stats = list(metadata.write_stats())
    return {
        "operation": (metadata.operation_type or "").lower() or None,
        **(metadata.changed_records() or {}),
        "files_created": sum(stat.is_new_file_group for stat in stats),
        "files_updated": sum(not stat.is_new_file_group for stat in stats),
        "bytes_written": sum(stat.total_write_bytes for stat in stats),
    }


def instant_content(view: TableView, requested_time: str, action: Action | None = None) -> Mapping[str, Any]:
    """Return the content of the instant's file as plain Python values, after its times, action and state.

    The file of the instant's latest state is read. The content of an empty file is None; the files of most pending
    instants are empty. `action` chooses between a commit and its savepoint; by default the commit is returned.

    An archived instant is looked up in the archive.

    Raises: InstantNotFoundError if neither timeline has such an instant; CorruptFileError.
    """
    instant = view.timeline.get(requested_time, action)
    if instant is None:
        for content in view.archive().contents(view.archive().find([requested_time])[:1]):
            return {
                "instant": content.requested_time,
                "completion_time": content.completion_time,
                "action": content.action,
                "state": "archived",
                "content": _decoded(content.metadata or b"", f"{requested_time} in the archived timeline"),
            }
        latest = view.timeline.latest()
        known = "it is empty" if latest is None else f"it contains {view.timeline.instants[0]} to {latest}"
        raise InstantNotFoundError(
            f"no instant {requested_time} in the timeline of {view.store.uri('')}: {known}; nor is it archived"
        )
    return {
        "instant": instant.requested_time,
        "completion_time": instant.completion_time,
        "action": instant.action.value,
        "state": instant.state.name.lower(),
        "content": _decoded(read_instant(view.store, view.layout, instant), str(instant)),
    }


def _decoded(content: bytes, path: str) -> Any:
    """Parse an Avro container with one record, or JSON (table version 6).

    Strings that contain JSON objects, such as the schema, are parsed too.
    """
    if not content:
        return None
    if is_avro_file(content):
        return _opened(parse_record(content, path=path)[1])
    return _opened(parse_json(content, path=path, expected="an Avro container or JSON"))


def _opened(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _opened(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_opened(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, str) and value.startswith("{"):
        try:
            return parse_json(value, path="")
        except CorruptFileError:
            return value
    return value
