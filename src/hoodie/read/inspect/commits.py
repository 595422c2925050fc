"""What the commits of a table recorded: growth by day, writers, flows and streams, and the schemas of the table.

Write metadata is read, no data file. The commits of the active timeline are read once each; an object store gets the
requests together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from threading import Lock
from typing import Any, Final, TypeVar

import pyarrow as pa

from hoodie.config.secrets import masked, redacted
from hoodie.config.writes import SMALL_FILE_BYTES
from hoodie.errors import HoodieError
from hoodie.format.instants.commit_metadata import REARRANGING, SCHEMA_KEY, CommitMetadata, WriteOperation
from hoodie.format.instants.ingest_checkpoint import KEYS as INGEST_KEYS
from hoodie.format.instants.ingest_checkpoint import has_names, places_of
from hoodie.format.instants.sink_checkpoint import CHECKPOINT_KEY, QUERY_KEY, batches_of
from hoodie.format.schema.column_ids import LATEST_SCHEMA
from hoodie.format.schema.table_schema import avro_to_arrow, without_meta_fields
from hoodie.read.history import completed_at, history_row
from hoodie.read.report import report_schema, with_notes
from hoodie.storage import together
from hoodie.timeline import Instant, to_instant_time
from hoodie.view.table_view import TableView

GROWTH_SCHEMA = report_schema(
    "day date32, commits int64, inserted int64, updated int64, deleted int64, rows int64, bytes_written int64, "
    "files_created int64, small_files int64"
)
WRITERS_SCHEMA = report_schema(
    "instant string, completed_at time?, operation string?, writer string, place string?"
).append(pa.field("extra", pa.map_(pa.string(), pa.string()), nullable=False))
FLOWS_SCHEMA = report_schema(
    "flow string, kind string, place string, instant string, completed_at time?, age_seconds float64?"
)
_COLUMN = pa.struct(list(report_schema("name string?, type string?, nullable bool?")))
_CHANGE = pa.struct(list(report_schema("name string?, from string?, to string?")))
SCHEMAS_SCHEMA = pa.schema(
    [
        *report_schema("instant string?, completed_at time?"),
        pa.field("columns", pa.list_(_COLUMN), nullable=False),
        pa.field("added", pa.list_(pa.string()), nullable=False),
        pa.field("removed", pa.list_(pa.string()), nullable=False),
        pa.field("changed", pa.list_(_CHANGE), nullable=False),
    ]
)
_ARCHIVED_MAX: Final = 20_000
_OWN_KEYS: Final = frozenset({SCHEMA_KEY, LATEST_SCHEMA, CHECKPOINT_KEY, QUERY_KEY, *INGEST_KEYS})
_APPLICATION_KEYS: Final = ("spark.app.id", "spark.app.name", "applicationId")
_NOT_READ: Final = "the commits of the archived timeline are not read"
_T = TypeVar("_T")


def growth(view: TableView, days: int, *, now: datetime | None = None) -> pa.Table:
    """Return what the commits of the last `days` days (UTC, with today) added: a row a day with commits, oldest first.

    `rows` is inserted - deleted; rows of file groups that a write replaced are not subtracted. `small_files` are new
    base files below the small file limit of the table. Archived commits of these days count, at most 20,000.

    Memory: one commit, and the instants of the archive. Raises: CorruptFileError if the archive is damaged.
    """
    first = (now or datetime.now(UTC)).astimezone(UTC).date() - timedelta(days=min(max(days, 1), 100_000) - 1)
    cutoff = to_instant_time(datetime(first.year, first.month, first.day, tzinfo=UTC), view.layout.zone)
    found = _Growth(view, first)
    active = [instant for instant in view.completed_writes() if view.order_time(instant) >= cutoff]
    together(view.store, *(partial(found.read, instant) for instant in active))
    if view.has_archived_instants():
        archived = view.archived_writes(cutoff)
        if len(archived) > _ARCHIVED_MAX:
            found.notes.append(f"only the newest {_ARCHIVED_MAX:,} of {len(archived):,} archived commits are counted")
        for instant, commit in view.archived_commits(archived[-_ARCHIVED_MAX:]):
            found.add(instant, commit)
    rows = [{"day": day, **counts} for day, counts in sorted(found.days.items())]
    return with_notes(pa.Table.from_pylist(rows, schema=GROWTH_SCHEMA), found.notes)


@dataclass(slots=True)
class _Growth:
    """Adds up commits by day; the threads of `together` add one commit at a time."""

    view: TableView
    first: date
    days: dict[date, dict[str, int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lock: Any = field(default_factory=Lock)

    def read(self, instant: Instant) -> None:
        try:
            self.add(instant, self.view.commit_metadata(instant))
        except (HoodieError, OSError) as error:
            self.notes.append(f"{instant} is not counted: {error}")

    def add(self, instant: Instant, commit: CommitMetadata) -> None:
        at = completed_at(instant, self.view.layout.zone)
        if at is not None and at.astimezone(UTC).date() >= self.first:
            counts = self._counts(instant, commit)
            with self.lock:
                day = self.days.setdefault(at.astimezone(UTC).date(), dict.fromkeys(GROWTH_SCHEMA.names[1:], 0))
                for name, count in counts.items():
                    day[name] += count

    def _counts(self, instant: Instant, commit: CommitMetadata) -> dict[str, int]:
        row = history_row(instant, commit, self.view.layout.zone)
        counts = {name: row.get(name) or 0 for name in GROWTH_SCHEMA.names if name in row}
        limit = SMALL_FILE_BYTES.get(self.view.config.raw)
        new = (stat for stat in commit.write_stats() if stat.is_new_file_group and not stat.is_log_append)
        if commit.partition_to_replace_file_ids and commit.operation_type != WriteOperation.CLUSTER:
            self.notes.append("rows of file groups that a write replaced or dropped are not subtracted")
        return {
            **counts,
            "commits": 1,
            "rows": counts.get("inserted", 0) - counts.get("deleted", 0),
            "small_files": sum(stat.file_size_bytes < limit for stat in new),
        }


def writers(view: TableView, limit: int) -> pa.Table:
    """Return who wrote the newest commits of the active timeline, at most `limit`, newest first.

    `writer` and `place` come from the extra metadata: an ingestion, a stream, or a Spark application. `extra` are its
    other entries, without schemas; `***` stands for passwords in both. A commit that cannot be read has the writer
    `unknown`, and a note.
    """
    newest = view.completed_writes()[-limit - 1 :] if limit else []
    commits = _read_all(view, newest, lambda instant: view.commit_metadata(instant))
    rows, notes, before = [], [], dict[str, str]()
    for instant in newest:
        commit = commits[instant]
        row = {"instant": instant.requested_time, "completed_at": completed_at(instant, view.layout.zone)}
        if isinstance(commit, CommitMetadata):
            rows.append({**row, **_writer_row(commit, before, view.path_of(instant))})
            before = places_of(commit.extra_metadata) or before
        else:
            rows.append({**row, "writer": "unknown", "extra": []})
            notes.append(f"{instant} cannot be read: {commit}")
    return with_notes(pa.Table.from_pylist(rows[-limit:][::-1] if limit else [], schema=WRITERS_SCHEMA), notes)


def _writer_row(commit: CommitMetadata, before: Mapping[str, str], path: str) -> dict[str, Any]:
    """Return writer, place, operation and other entries; `before` are the places that the commit before it had."""
    extra = commit.extra_metadata
    places, batches = places_of(extra), _batches(extra, path)
    application = next((extra[key] for key in _APPLICATION_KEYS if extra.get(key)), None)
    moved = {name: place for name, place in places.items() if before.get(name) != place} or places
    if places:
        writer = f"hoodie ingest: {', '.join(moved)}" if has_names(extra) else "ingestion without a name"
        place = "; ".join(moved.values())
    elif batches:
        writer, place = f"stream: {', '.join(batches)}", "; ".join(f"batch {batch}" for batch in batches.values())
    else:
        own = "table service" if commit.operation_type in REARRANGING else "unknown"
        writer, place = (own if application is None else f"Spark application {application}"), None
    return {
        "operation": (commit.operation_type or "").lower() or None,
        "writer": writer,
        "place": None if place is None else masked(place),
        "extra": sorted(redacted({key: text for key, text in extra.items() if key not in _OWN_KEYS}).items()),
    }


def _batches(extra: Mapping[str, str], path: str) -> dict[str, str]:
    """Return the batches of streams; none if their entry is damaged, which the stream itself refuses."""
    try:
        return batches_of(extra, path=path)
    except HoodieError:
        return {}


def flows(view: TableView, *, now: datetime | None = None) -> pa.Table:
    """Return the newest commit with a place of each ingestion and stream, the most recent first.

    `flow` is the name of the ingestion, or the identifier of the stream; empty for the only ingestion of a table, whose
    entries have the form of HoodieStreamer. A commit repeats the places of other ingestions with names: the row is of
    the commit that changed the place. `place`: the checkpoint with `***` for passwords, or the number of the batch.
    Archived commits do not count; a note names this.
    """
    now = now or datetime.now(UTC)
    instants = view.completed_writes()
    facts = _read_all(view, instants, lambda instant: view.commit_facts(instant).sink)
    newest: dict[tuple[str, str], tuple[str, Instant]] = {}
    notes = [_NOT_READ] if view.has_archived_instants() else []
    for instant in instants:
        sink = facts[instant]
        if isinstance(sink, Exception):
            notes.append(f"{instant} cannot be read: {sink}")
            continue
        kind = "ingest" if has_names(sink) else "HoodieStreamer"
        found = {(kind, name): place for name, place in places_of(sink).items()}
        found |= {("stream", name): batch for name, batch in _batches(sink, view.path_of(instant)).items()}
        for flow, place in found.items():
            if flow[0] != "ingest" or newest.get(flow, ("",))[0] != place:
                newest[flow] = (place, instant)
    rows = [_flow_row(view, now, *flow, *found) for flow, found in newest.items()]
    rows.sort(key=lambda row: row["instant"], reverse=True)
    return with_notes(pa.Table.from_pylist(rows, schema=FLOWS_SCHEMA), notes)


def _flow_row(view: TableView, now: datetime, kind: str, name: str, place: str, instant: Instant) -> dict[str, Any]:
    at = completed_at(instant, view.layout.zone)
    return {
        "flow": name,
        "kind": kind,
        "place": masked(place),
        "instant": instant.requested_time,
        "completed_at": at,
        "age_seconds": None if at is None else round((now - at).total_seconds(), 3),
    }


def schemas(view: TableView) -> pa.Table:
    """Return the schemas that the commits of the active timeline stored, newest first; one row for each change.

    `added`, `removed` and `changed` compare with the schema before it. Without a commit: the schema that the table was
    created with, whose instant is null. Archived commits do not count; a note names this.

    Raises: CorruptFileError if a schema does not parse.
    """
    instants = view.completed_writes()
    facts = _read_all(view, instants, view.commit_facts)
    rows: list[dict[str, Any]] = []
    notes = [_NOT_READ] if view.has_archived_instants() else []
    before, text = None, None
    for instant in instants:
        found = facts[instant]
        if isinstance(found, Exception):
            notes.append(f"{instant} cannot be read: {found}")
        elif found.schema and found.changes_schema and found.schema != text:
            text = found.schema
            columns = _columns_of(text, view.path_of(instant))
            if columns != before:
                at = completed_at(instant, view.layout.zone)
                rows.append({"instant": instant.requested_time, "completed_at": at, **_compared(columns, before)})
                before = columns
    if not rows and view.config.create_schema:
        created = _columns_of(view.config.create_schema, f"{view.store.uri('')}: hoodie.table.create.schema")
        rows.append({"instant": None, "completed_at": None, **_compared(created, None)})
    return with_notes(pa.Table.from_pylist(rows[::-1], schema=SCHEMAS_SCHEMA), notes)


def columns_of(schema: pa.Schema) -> list[dict[str, Any]]:
    """Return name, type and nullability of each column."""
    return [{"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in schema]


def _columns_of(avro: str, path: str) -> list[dict[str, Any]]:
    return columns_of(without_meta_fields(avro_to_arrow(avro, path=path)))


def _compared(columns: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    new = {column["name"]: _type_text(column) for column in columns}
    old = new if before is None else {column["name"]: _type_text(column) for column in before}
    return {
        "columns": columns,
        "added": [name for name in new if name not in old],
        "removed": [name for name in old if name not in new],
        "changed": [
            {"name": name, "from": old[name], "to": text} for name, text in new.items() if old.get(name, text) != text
        ],
    }


def _type_text(column: Mapping[str, Any]) -> str:
    return f"{column['type']}{'' if column['nullable'] else ' not null'}"


def _read_all(
    view: TableView, instants: Iterable[Instant], read: Callable[[Instant], _T]
) -> dict[Instant, _T | HoodieError | OSError]:
    """Return what `read` returns for each instant, or its error."""

    def result(instant: Instant) -> _T | HoodieError | OSError:
        try:
            return read(instant)
        except (HoodieError, OSError) as error:
            return error

    found = list(instants)
    return dict(zip(found, together(view.store, *(partial(result, one) for one in found)), strict=True))
