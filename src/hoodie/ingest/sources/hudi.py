"""The source `hudi`: what changed in a Hudi table, of any writer, since the commits that were read before.

The place is Hudi's: the completion time of the newest commit that was read, in tables of version 6 its requested time.
The requested time of a table that was upgraded since is replaced by the completion time of that commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import islice
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.display import counted
from hoodie.errors import HistoryLostError, SourceError, UnsupportedError, ViewOvertakenError
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation
from hoodie.format.schema.table_schema import META_FIELDS, OPERATION_FIELD
from hoodie.ingest.options import check_types, require
from hoodie.ingest.source import Batch, Decoded, Request
from hoodie.ingest.transforms.transform import each_batch
from hoodie.read.cdc import read_cdc
from hoodie.read.cdc_plan import UNCHANGING, CdcPlan, plan_cdc
from hoodie.read.changes import (
    BEGINNING,
    ChangesPlan,
    check_no_write_between,
    check_not_taken_back,
    completed_between,
    plan_batch,
)
from hoodie.read.local import read_batches
from hoodie.read.times import OrderTime, completion_of
from hoodie.records.change import IS_DELETED
from hoodie.records.sql.quoting import quoted
from hoodie.table import Table
from hoodie.table import open as open_table
from hoodie.table.sessions import spark_room
from hoodie.timeline import Instant, Timeline, ms_of_instant_time
from hoodie.view.table_view import TableView

CHANGE: Final = "_hoodie_change"
"""Column of change data: the number of a change, by which later changes of a key come after earlier ones."""
_REPLACING: Final = frozenset(
    {WriteOperation.INSERT_OVERWRITE, WriteOperation.INSERT_OVERWRITE_TABLE, WriteOperation.DELETE_PARTITION}
)
_ARCHIVED_AT_ONCE: Final = 64


@dataclass(slots=True)
class Hudi:
    """Reads the rows that the commits of a table changed; the limit of a batch is a number of commits.

    `mode`: `latest` reads each changed row once, as it is after the batch; deletes of rows are not seen. `cdc` reads
    each change; with `deletes` (default in this mode) deleted rows come with `_hoodie_is_deleted`, which deletes them
    in the target. In this process the changes of a batch are in memory.

    `start`: of a flow without a place: `snapshot` reads the whole table as it is, then what changes; `earliest` the
    changes of all commits; `latest` only later commits; an instant or a time the commits that completed after it.

    `restart`: what happens if the changes after the place are gone, because they were cleaned, or the table was
    restored, or a commit was rolled back: `error`, or `snapshot`, which reads the whole table again.
    """

    path: str
    _: KW_ONLY
    mode: Literal["latest", "cdc"] = "latest"
    start: str = "snapshot"
    restart: Literal["error", "snapshot"] = "error"
    deletes: bool | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    _opened: tuple[Any, Table] | None = field(default=None, init=False, repr=False, compare=False)
    _idle: tuple[str, Timeline] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_types(self, "source hudi, ")
        require(bool(self.path), "source hudi, path", "the path of a table", self.path)
        starts = "snapshot, earliest, latest, or an instant or time"
        require(bool(self.start), "source hudi, start", starts, self.start)
        is_seen = self.mode == "cdc" or not self.deletes
        only_cdc = 'mode = "cdc", because deletes are not seen in mode latest'
        require(is_seen, "source hudi, deletes", only_cdc, self.deletes)

    @property
    def place_version(self) -> int:
        """The version of Hudi's checkpoints that the place has: 2 is a completion time, 1 a requested time."""
        table = self._opened[1] if self._opened is not None else self._table(None)
        return 2 if table.view().config.version.has_completion_time_in_name else 1

    def plan(self, request: Request) -> Batch | None:
        """Return the next commits, or the first snapshot; None if no commit changed rows since the place.

        Raises: SourceError if the changes are gone (then `restart` decides), or the place is none of a table;
            UnsupportedError in a table of version 6 while the first write after the place is pending.
        """
        if request.after and not (request.after.isascii() and request.after.isdecimal()):
            raise SourceError(f"{self.path}: expected the time of a commit as the place, found {request.after[:60]!r}")
        table = self._table(request.spark)
        try:
            if request.after:
                return self._changes(table, request, request.after)
            return self._first(table, request)
        except ViewOvertakenError as error:
            raise SourceError(f"{self.path}: the table is being cleaned or rolled back, try again: {error}") from error
        except HistoryLostError as error:
            since = f"the changes after {request.after or self.start} cannot be read"
            if self.restart == "snapshot":
                note = (
                    f"{self.path}: {since} ({error}): the whole table is read again; rows that were deleted in between "
                    "stay in the target"
                )
                return self._snapshot(table, (note,))
            raise SourceError(
                f"{self.path}: {since}: {error}. The oldest instant that can be read is {error.oldest_instant}; with "
                'restart = "snapshot" the source reads the whole table again, and rows that were deleted in between '
                "stay in the target"
            ) from error

    def _table(self, session: Any) -> Table:
        """Return the handle, which stays open for the session that uses it; tables in memory are read here."""
        if self._opened is None or self._opened[0] is not session:
            table = open_table(self.path, storage_options=self.storage_options, spark=False)
            if session is not None and not table.view().store.spec.is_private:
                table = Table(table.view().store, spark=session)
            self._opened = session, table
        return self._opened[1]

    def _first(self, table: Table, request: Request) -> Batch | None:
        if self.start == "snapshot":
            return self._snapshot(table, ())
        if self.start == "earliest":
            return self._changes(table, request, BEGINNING)
        view = table.view()
        if self.start == "latest":
            # The place is committed now: commits until the next run are later ones.
            newest = max((view.order_time(found) for found in completed_between(view, None, None)), default=BEGINNING)
            plan = _planned(table, view, newest, newest)
            return self._batch(self._reading(table, plan), plan.until, f"no rows: only commits after {newest}")
        return self._changes(table, request, completion_of(view, self.start))

    def _snapshot(self, table: Table, notes: tuple[str, ...]) -> Batch | None:
        plan = table._context.planned(lambda now: plan_batch(now, None, None))
        if plan.until == BEGINNING:
            return None
        return self._batch(self._reading(table, plan), plan.until, f"all rows as of {plan.until}", notes)

    def _changes(self, table: Table, request: Request, after: str) -> Batch | None:
        view = table.view()
        seen = after, view.timeline
        if self._idle == seen:
            return None
        if request.place_version == 1 and view.config.version.has_completion_time_in_name:
            after = completion_of(view, after)
        span = _Span.of(view, after, request.limit)
        if not span.commits:
            check_not_taken_back(view, after, None, view.archived_instants(after, None))
            self._idle = seen
            return None
        if self.mode == "cdc":
            since, until = OrderTime(after), OrderTime(span.until)
            cdc = table._context.planned(lambda now: plan_cdc(now, since, until), view)
            read = _ChangeData(table, cdc, tuple(span.commits), self.deletes is not False)
            return self._batch(read, span.until, span.about, span.notes, span.lag_seconds(view))
        return self._latest(table, view, span)

    def _latest(self, table: Table, view: TableView, span: _Span) -> Batch:
        longer: tuple[str, ...] = ()
        try:
            plan = _planned(table, view, span.after, span.until)
        except ViewOvertakenError:
            raise
        except HistoryLostError:
            whole = _Span.of(view, span.after, None)
            if whole.until == span.until:
                raise
            # The files as of an earlier commit were cleaned; all changed rows are in the newest ones.
            plan = _planned(table, view, span.after, whole.until)
            longer = (f"{self.path}: the batch is longer than the limit: the files as of {span.until} were cleaned",)
            span = whole
        notes = (*span.notes, *span.unseen(self.path), *longer)
        return self._batch(self._reading(table, plan), span.until, span.about, notes, span.lag_seconds(view))

    def _reading(self, table: Table, plan: ChangesPlan) -> Callable[[], Any]:
        """Return the function that reads the rows of a plan: as a DataFrame, or a stream of this process.

        Beside change data with deletes, the rows have its flag, so that transforms find the same columns in each batch.
        """
        columns = tuple(name for name in plan.scan.columns if name not in (*META_FIELDS, OPERATION_FIELD))
        scan = replace(plan.scan, columns=columns)
        lacks_flag = self.mode == "cdc" and self.deletes is not False and IS_DELETED not in columns

        def read() -> Any:
            session = table._context.session()
            rows = read_batches(scan) if session is None else spark_room().read_scan(session, scan)
            if not lacks_flag:
                return rows
            if session is not None:
                return rows.selectExpr("*", f"false AS {IS_DELETED}")
            return each_batch(rows, lambda some: some.append_column(IS_DELETED, pa.repeat(False, some.num_rows)))

        return read

    def _batch(
        self,
        read: Callable[[], Any],
        place: str,
        about: str,
        notes: tuple[str, ...] = (),
        lag_seconds: float = 0.0,
    ) -> Batch:
        return Batch(
            place=place,
            read=read,
            about=f"{self.path}: {about}",
            lag_rows=None if lag_seconds else 0,
            lag_seconds=lag_seconds,
            notes=notes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """The commits of a batch that changed rows, in the order of their completion, with what is known of them.

    `next`: when the first commit behind the batch completed; empty if there is none.
    """

    after: str
    until: str
    commits: Mapping[str, str | None]
    deleted: int
    next: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, view: TableView, after: str, limit: int | None) -> _Span:
        """Find at most `limit` commits that completed after a place. Reads their metadata, and the archive's if needed.

        Raises: UnsupportedError as `check_no_write_between`, if no commit is before the pending write.
        """
        found = completed_between(view, OrderTime(after), None)
        found, notes = _without_pending(view, found)
        commits: dict[str, str | None] = {}
        until, deleted, behind = after, 0, ""
        for instant, metadata in _with_metadata(view, found):
            changes = metadata.operation_type not in UNCHANGING
            if changes and limit is not None and len(commits) >= limit:
                behind = view.order_time(instant)
                break
            until = view.order_time(instant)
            if changes:
                commits[instant.requested_time] = metadata.operation_type
                deleted += sum(stat.num_deletes for stat in metadata.write_stats())
        return cls(after=after, until=until, commits=commits, deleted=deleted, next=behind, notes=notes)

    @property
    def about(self) -> str:
        return f"{counted(len(self.commits), 'commits')} in ({self.after}, {self.until}]"

    def unseen(self, path: str) -> tuple[str, ...]:
        """Return notes on deletes that mode latest does not see."""
        replaced = ", ".join(f"{time} ({kind})" for time, kind in self.commits.items() if kind in _REPLACING)
        left = [f"rows that {replaced} replaced or deleted stay in the target"] if replaced else []
        if self.deleted:
            left.append(f"{self.deleted} rows that the commits deleted stay in the target, if it has them")
        return tuple(f'{path}: {rows}; mode = "cdc" deletes them there' for rows in left)

    def lag_seconds(self, view: TableView) -> float:
        """Return the age of the first commit behind the batch; 0 if there is none."""
        if not self.next:
            return 0.0
        return max(time.time() - ms_of_instant_time(self.next, view.layout.zone) / 1000, 0.001)


def _without_pending(view: TableView, found: list[Instant]) -> tuple[list[Instant], tuple[str, ...]]:
    """Leave out the commits of a table of version 6 that follow a pending write, whose rows would be missed."""
    left = list(found)
    while left:
        try:
            check_no_write_between(view, left)
            break
        except UnsupportedError:
            if len(left) == 1:
                raise
            left.pop()
    waiting = len(found) - len(left)
    return left, (f"{waiting} commits wait for a pending write that was requested before them",) if waiting else ()


def _with_metadata(view: TableView, instants: list[Instant]) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Yield commits with their metadata, in the given order; of archived ones a few are read at once."""
    remaining = iter(instants)
    while some := list(islice(remaining, _ARCHIVED_AT_ONCE)):
        archived = [found for found in some if view.timeline.get(found.requested_time) is None]
        known = dict(view.archived_commits(archived))
        for instant in some:
            yield instant, known.get(instant) or view.commit_metadata(instant)


def _planned(table: Table, view: TableView, since: str, until: str) -> ChangesPlan:
    return table._context.planned(lambda now: plan_batch(now, OrderTime(since), OrderTime(until)), view)


@dataclass(frozen=True, slots=True)
class _ChangeData:
    """Reads change data as rows: for a delete the row before it, else the row after the change.

    `commits`: the requested times of the commits, in the order of their completion. A record that moves to another
    partition is a delete and an insert of one commit; the insert is the later change.
    """

    table: Table
    plan: CdcPlan
    commits: tuple[str, ...]
    deletes: bool

    def __call__(self) -> Decoded:
        session = self.table._context.session()
        if session is None:
            rows = self._in_process(read_cdc(self.plan))
        else:
            rows = self._on_spark(spark_room().read_cdc(session, self.plan))
        return Decoded(rows=rows, order=(CHANGE,), deletes_tie=True)

    @property
    def _names(self) -> list[str]:
        """The columns of the rows; `_hoodie_is_deleted` of the source is replaced."""
        return [name for name in self.plan.schema.names if not (self.deletes and name == IS_DELETED)]

    def _in_process(self, changes: pa.Table) -> pa.Table:
        if not self.deletes:
            changes = changes.filter(pc.not_equal(changes["op"], "d"))
        is_delete = pc.equal(changes["op"], "d")
        number = pc.index_in(changes["ts_ms"], value_set=pa.array(self.commits, pa.string())).cast(pa.int64())
        image = pc.if_else(is_delete, changes["before"], changes["after"])
        columns = {name: pc.struct_field(image, name) for name in self._names}
        columns[CHANGE] = pc.add(pc.multiply(number, 2), pc.if_else(is_delete, 0, 1))
        return pa.table({**columns, IS_DELETED: is_delete} if self.deletes else columns)

    def _on_spark(self, changes: Any) -> Any:
        times = ", ".join(f"'{requested_time}'" for requested_time in self.commits)
        number = f"CAST(array_position(array({times}), ts_ms) AS BIGINT) * 2 + IF(op = 'd', 0, 1)"
        rows = changes if self.deletes else changes.where("op <> 'd'")
        image = "CASE WHEN op = 'd' THEN before ELSE after END AS _image"
        flag = [f"op = 'd' AS {IS_DELETED}"] if self.deletes else []
        rows = rows.selectExpr(image, f"{number} AS {CHANGE}", *flag)
        kept = [name for name in (CHANGE, IS_DELETED) if self.deletes or name == CHANGE]
        return rows.selectExpr(*(f"_image.{quoted(name)} AS {quoted(name)}" for name in self._names), *kept)
