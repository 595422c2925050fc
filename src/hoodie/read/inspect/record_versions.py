"""What one write changed, row by row, and the states that one record had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import HoodieError, InstantNotFoundError, ViewOvertakenError
from hoodie.format.filenames import name_of, parse_data_file
from hoodie.format.json_values import rows_of
from hoodie.format.schema.table_schema import META_FIELDS, OPERATION_FIELD, without_meta_fields
from hoodie.read.cdc import AFTER, BEFORE, change_batches
from hoodie.read.cdc_plan import UNCHANGING, CdcPlan, plan_cdc
from hoodie.read.history import completed_at
from hoodie.read.key_holders import is_unique_by_partition, locate
from hoodie.read.local import read_table
from hoodie.read.lookup import location_rows
from hoodie.read.plan import COMMIT_TIME, check_readable, plan_keys
from hoodie.read.report import with_notes
from hoodie.read.times import OrderTime, view_as_of
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.timeline import Instant
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView

FILE_NAME: Final = "_hoodie_file_name"
_META: Final = frozenset({*META_FIELDS, OPERATION_FIELD})
_LOOK_UPS_MAX: Final = 50
"""Look-ups of a key in earlier states of the table, for one answer."""
_NAMED_MAX: Final = 10


def changed_rows(view: TableView, requested_time: str, limit: int) -> pa.Table:
    """Return at most `limit` rows that a completed write changed: key, before and after it; both are structs.

    `before` is null for an inserted row, `after` for a deleted one. A row that moved to another partition is a deleted
    and an inserted row. Notes name why there are none, or why some are not there. Memory: as `change_batches`.

    Raises: InstantNotFoundError without such a completed write; UnsupportedError for a table without meta fields;
        ViewOvertakenError if others took files of the view meanwhile.
    """
    check_readable(view, by_meta_columns=True)
    instant = _write_of(view, requested_time)
    images = without_meta_fields(view.schema().arrow)
    columns = [field.with_nullable(True) for field in images]
    schema = pa.schema([("key", pa.string()), (BEFORE, pa.struct(columns)), (AFTER, pa.struct(columns))])
    operation, notes = _operation_of(view, instant), list[str]()
    if operation in UNCHANGING:
        return with_notes(schema.empty_table(), [f"the operation {operation.lower()} moves rows and changes none"])
    found: list[pa.Table] = []
    try:
        end = view.order_time(instant)
        plan = plan_cdc(view, OrderTime(_just_before(end)), OrderTime(end))
        schema = pa.schema([schema.field("key"), *(pa.field(n, pa.struct(list(plan.read))) for n in (BEFORE, AFTER))])
        left = limit
        for rows in _changes(view, plan):
            found.append(_keyed(rows.slice(0, left), schema))
            left -= found[-1].num_rows
            if left <= 0:
                break
    except ViewOvertakenError:
        raise
    except HoodieError as error:
        notes.append(f"not all changes can be read any more: {error}")
    return with_notes(pa.concat_tables([schema.empty_table(), *found]), notes)


def _just_before(order_time: str) -> str:
    """Return a text that sorts directly before an order time.

    >>> _just_before("20261130010000000")
    '20261130009999999'
    """
    return f"{int(order_time) - 1:0{len(order_time)}d}"


def _changes(view: TableView, plan: CdcPlan) -> Iterator[pa.RecordBatch]:
    """Yield the changes with the record key in each image, which logged images lack: they are computed from files."""
    images = pa.schema([pa.field(RECORD_KEY, pa.string()), *plan.read])
    for change in plan.changes:
        if change.lost is not None:
            raise change.lost
        yield from change_batches(view.store, replace(change, logged={}), images)


def _keyed(rows: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """Return changes with the record key as a column of its own."""
    images = [rows[name] for name in (BEFORE, AFTER)]
    keys = [image.field(RECORD_KEY) for image in images]
    parts = [
        pa.StructArray.from_arrays(
            [image.field(child.name) for child in schema.field(name).type],
            fields=list(schema.field(name).type),
            mask=pc.is_null(image),
        )
        for name, image in zip((BEFORE, AFTER), images, strict=True)
    ]
    nulls = [pc.is_null(image) for image in images]
    key = pc.if_else(nulls[0], keys[1], keys[0])
    return pa.Table.from_arrays([key, *parts], schema=schema)


def _write_of(view: TableView, requested_time: str) -> Instant:
    """Return a completed write, active or archived. Raises: InstantNotFoundError."""
    active = view.timeline.writes().get(requested_time)
    found = [active] if active is not None else view.archive().find([requested_time])
    for instant in found:
        if instant.is_completed and instant.action.writes_data:
            return instant
    raise InstantNotFoundError(
        f"{view.store.uri('')}: expected a completed write with the requested time {requested_time}, found "
        f"{found[0] if found else 'none'}; `hoodie timeline` lists the instants"
    )


def _operation_of(view: TableView, instant: Instant) -> str:
    if view.timeline.get(instant.requested_time) is not None:
        return view.commit_facts(instant).operation_type or ""
    return next((commit.operation_type or "" for _, commit in view.archived_commits([instant])), "")


def record_versions(view: TableView, key: str, versions: int) -> dict[str, Any]:
    """Return the row of a record key, its location, and at most `versions` of its states, newest first.

    `row` is None if no row has the key. Dates and times in rows are ISO texts, in any year. `location`: partition path,
    file id, instant of the write of the row, and file; None without a row.
    `versions`: each state with the write that made it; a row of None was deleted by it. The row of the newest state is
    `row`. States are looked for in the active timeline, as long as their files exist; `notes` name where they end. If
    keys are unique in a partition only, the states are those of one record, the newest; `notes` name the partitions of
    the others.

    Cost: a look-up of the key for each state. Raises: UnsupportedError for a table without meta fields; as `plan_keys`.
    """
    search = _Search(view, key)
    row = search.row_at(None)
    notes: list[str] = []
    states = list(islice(_states(search, row, notes), max(versions, 0)))
    return {
        "key": key,
        "row": _plain(row),
        "location": None if row is None else _location(view, key, row),
        "versions": states,
        "notes": [*search.notes_of_others(), *notes],
    }


@dataclass(slots=True)
class _Search:
    """Looks up one key in the table and in its earlier states.

    If keys are unique in a partition only, the first row found sets `partition`; later look-ups search this partition
    alone. `others` are the partitions where other records had the key then.
    """

    view: TableView
    key: str
    look_ups: int = 0
    group: tuple[str, str] | None = field(default=None)
    partition: str | None = None
    others: list[str] = field(default_factory=list)

    def row_at(self, instant: Instant | None) -> dict[str, Any] | None:
        """Return the row after a write, or the newest one, with meta columns; None if no row has the key.

        Of a table without a record index, the file group that held the key last is read alone, if it existed then.
        """
        self.look_ups += 1
        view, as_of = (self.view, None) if instant is None else view_as_of(self.view, instant.requested_time)
        wanted = {RECORD_KEY: [self.key], **({} if self.partition is None else {PARTITION_PATH: [self.partition]})}
        plan = plan_keys(view, pa.table(wanted), as_of=as_of)
        own = tuple(found for found in plan.slices if found.group == self.group)
        rows = [*rows_of(read_table(replace(plan, slices=own or plan.slices)))]
        if not rows and own:
            rows = [*rows_of(read_table(replace(plan, slices=tuple(s for s in plan.slices if s not in own))))]
        row = max(rows, key=lambda found: found[COMMIT_TIME] or "", default=None)
        if row is not None:
            self.group = row[PARTITION_PATH], _file_id(row)
            if self.partition is None and is_unique_by_partition(self.view):
                self.partition = row[PARTITION_PATH]
                self.others = sorted({found[PARTITION_PATH] for found in rows} - {self.partition})
        return row

    def notes_of_others(self) -> list[str]:
        """Return a note that names the partitions of other records with the key; none without them."""
        if not self.others:
            return []
        names = ", ".join(self.others[:_NAMED_MAX])
        more = f" and {len(self.others) - _NAMED_MAX:,} more" if len(self.others) > _NAMED_MAX else ""
        return [
            f"other records have this key, in the partitions {names}{more}: the states here are of {self.partition}"
        ]


def _file_id(row: Mapping[str, Any]) -> str:
    """Return the file id in the meta columns of a row; rows of log files may have the file id as their file name."""
    name = row[FILE_NAME] or ""
    parsed = parse_data_file(name)
    return name if parsed is None else parsed.file_id


def _states(search: _Search, row: Mapping[str, Any] | None, notes: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the states of the record, newest first: each row with its write, and deletions between them."""
    view = search.view
    left = view.completed_writes()
    try:
        while left or row is not None:
            if row is None:
                # Only a write that deletes or replaces rows can have taken the record.
                while left and not _may_delete(view, left[-1]):
                    left.pop()
                maker = left.pop() if left else None
            else:
                while left and left[-1].requested_time != row[COMMIT_TIME]:
                    left.pop()
                maker = left.pop() if left else None
                yield _state(view, row[COMMIT_TIME], maker, row)
            if maker is None or not left:
                break
            if search.look_ups >= _LOOK_UPS_MAX:
                notes.append(f"the search ended after {search.look_ups} look-ups, before {maker.requested_time}")
                return
            before = search.row_at(left[-1])
            if row is None and before is not None:
                yield _state(view, maker.requested_time, maker, None)
            row = before
        if view.has_archived_instants():
            notes.append("earlier states may be of archived writes, which are not looked up")
    except HoodieError as error:
        notes.append(f"earlier states cannot be read any more: {error}")


def _may_delete(view: TableView, instant: Instant) -> bool:
    commit = view.commit_metadata(instant)
    if commit.operation_type in UNCHANGING:
        return False
    return bool(commit.partition_to_replace_file_ids) or any(stat.num_deletes for stat in commit.write_stats())


def _state(view: TableView, time: str, maker: Instant | None, row: Mapping[str, Any] | None) -> dict[str, Any]:
    at = None if maker is None else completed_at(maker, view.layout.zone)
    return {"instant": time, "completed_at": at, "row": _plain(row)}


def _plain(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if row is None else {name: value for name, value in row.items() if name not in _META}


def _location(view: TableView, key: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return where the row is: by the record index, else by its meta columns; `file` is the newest of its slice."""
    place = {"partition_path": row[PARTITION_PATH], "file_id": _file_id(row), "instant": row[COMMIT_TIME]}
    keys = pa.array([key], pa.string())
    found = locate(view, keys)
    if found is not None:
        indexed = location_rows(keys, found, view.layout.zone).drop_columns([RECORD_KEY]).to_pylist()[0]
        place = indexed if indexed["file_id"] is not None else place
    slices = list_slices(view, [place["partition_path"]])
    file = next((name_of(one.paths[-1]) for one in slices if one.file_id == place["file_id"]), None)
    # The index has the instant that made its entry, not the write of the row.
    return {**place, "instant": row[COMMIT_TIME], "file": file}
