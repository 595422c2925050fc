"""One flow: the batches of a source are read, transformed and written to a table, each of them once."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from hoodie.errors import BatchWrittenError, HoodieWarning, InvalidConfigError, SourceError
from hoodie.format.instants.ingest_checkpoint import IngestCheckpoint
from hoodie.index import index_of_view
from hoodie.ingest.bad_rows import BadInProcess, BadRowsPolicy, counted_apart
from hoodie.ingest.latest import latest
from hoodie.ingest.result import BatchResult, Preview
from hoodie.ingest.rows.spark_files import PLACE
from hoodie.ingest.source import Batch, Decoded, Request, Source
from hoodie.ingest.target import Target
from hoodie.ingest.transforms import Context, Transform
from hoodie.ingest.transforms.transform import each_batch, frame_or_arrow, names_of
from hoodie.records.change import IS_DELETED
from hoodie.table import Table
from hoodie.table.sessions import is_spark
from hoodie.view.table_view import TableView
from hoodie.write.flow_batch import FlowBatch, StoredPlace, stored_place, write_flow_batch
from hoodie.write.stream_batch import check_operation

_ATTEMPTS: Final = 10
"""How often a batch is planned again because another job changed the place."""
_LOOKS_UP: Final = frozenset({"upsert", "delete"})
"""Operations that find the records of their keys: of several events of a key, the last one counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a flow begins instead of at the place of the newest commit; each text counts once, as in HoodieStreamer.

    `place`: a place of the source. `ignore`: any text that was not given before; the source then begins anew, whatever
    the place is.
    """

    place: str | None = None
    ignore: str | None = None

    def __post_init__(self) -> None:
        for name, text in (("checkpoint", self.place), ("ignore_checkpoint", self.ignore)):
            if text == "":
                raise InvalidConfigError(f"{name}: expected a text, found an empty one; leave it out for no start")

    def after(self, stored: IngestCheckpoint | None) -> str | None:
        """Return the place after which the next batch begins; None for the source's own beginning."""
        if stored is None:
            return self.place
        if self.ignore is not None and self.ignore != stored.ignored:
            return None
        is_new = self.place is not None and self.place != stored.start
        return self.place if is_new else stored.place


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """When batches run.

    `continuous`: for ever, else until the source has nothing new, without a pause. `interval`: seconds between the
    begins of two batches of a continuous flow. `idle`: seconds between two looks at an idle source, at least
    `interval`; with many flows, whose looks would take more than a tenth of a core, up to `idle_max`.
    `batches_max`: of each flow. `retries`: of a flow without `continuous` after an error; a continuous flow is
    tried again for ever, after `back_off` seconds, which double to at most `back_off_max`. `threads`: batches at
    once.
    """

    continuous: bool = False
    interval: float = 0.0
    idle: float = 1.0
    idle_max: float = 30.0
    batches_max: int | None = None
    retries: int = 0
    back_off: float = 1.0
    back_off_max: float = 300.0
    threads: int = 4

    def __post_init__(self) -> None:
        seconds = dict.fromkeys(("interval", "idle", "idle_max", "back_off", "back_off_max"), 0)
        for name, number in {**seconds, "retries": 0, "threads": 1, "batches_max": 1}.items():
            found = getattr(self, name)
            if found is not None and not number <= found <= threading.TIMEOUT_MAX:
                raise InvalidConfigError(f"{name}={found}: expected a number from {number}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What a batch begins with: the table, its newest view, and the place that it stores; a table may not exist yet.

    The batch is planned, read and prepared with this view. The write checks the place again, under the table's lock.
    """

    table: Table | None
    view: TableView | None
    stored: StoredPlace

    @property
    def schema(self) -> pa.Schema | None:
        return None if self.view is None else self.view.schema().arrow


@dataclass(slots=True, kw_only=True)
class Flow:
    """A source, what is done with its rows, and the table that gets them.

    `is_named`: several flows write the table, and each finds its place by its name. `limit`: of a batch, as in
    `Request`. `spark`: the session that reads and transforms the rows; None: this process does it. `properties`:
    `hoodie.*` options of the writes. `schema`: Arrow schema of the rows of the source. `evolve`: which changes of the
    table's schema are allowed, as `schema` of `Table.upsert`.

    For its runner: `pace`; None for the runner's, whose `continuous` and `threads` count for every flow. `after`: names
    of the flows that write what this flow reads. `needs_spark`: the flow is to get a session.
    """

    name: str
    source: Source
    target: Target
    transforms: Sequence[Transform] = ()
    operation: str = "upsert"
    is_named: bool = False
    limit: int | None = None
    spark: Any = None
    start: Start = field(default_factory=Start)
    bad_rows: BadRowsPolicy = field(default_factory=BadRowsPolicy)
    schema: pa.Schema | None = None
    evolve: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    pace: Pace | None = None
    after: Sequence[str] = ()
    needs_spark: bool = False
    _known: StoredPlace | None = field(default=None, init=False)
    """The place that was found last."""

    def __post_init__(self) -> None:
        check_operation(self.operation)
        if self.limit is not None and self.limit < 1:
            raise InvalidConfigError(f"limit={self.limit}: expected a number from 1, or none for no limit")

    @property
    def key(self) -> str | None:
        """The name of the flow in commits; None if it is the only one of its table."""
        return self.name if self.is_named else None

    def run_batch(self) -> BatchResult | None:
        """Read and write the next batch; return None if the source has nothing new.

        Raises: the errors of the source, the transforms and the write; BadRowsError. Nothing is then written.
        """
        for _ in range(_ATTEMPTS - 1):
            with suppress(BatchWrittenError):
                return self._attempt()
        return self._attempt()

    def begun(self) -> Begun:
        """Return the table as it is now, with the place of its newest commit."""
        table = self.target.opened()
        view = None if table is None else table.view()
        self._known = StoredPlace() if view is None else stored_place(view, self.key, self._known)
        return Begun(table=table, view=view, stored=self._known)

    def request(self, begun: Begun, *, is_look: bool = False) -> Request:
        schema = self.schema
        if schema is None and begun.schema is not None and not self.transforms:
            schema = begun.schema
            if self.operation == "upsert" and schema.get_field_index(IS_DELETED) < 0:
                schema = schema.append(pa.field(IS_DELETED, pa.bool_()))  # of rows that delete
        keys, deletes_by = self.target.deciding(begun.view) if self.operation == "upsert" else ((), ())
        checkpoint = begun.stored.checkpoint
        after = self.start.after(checkpoint)
        return Request(
            after=after,
            place_version=checkpoint.version if checkpoint is not None and after == checkpoint.place else None,
            limit=self.limit,
            spark=self.spark,
            schema=schema,
            is_look=is_look,
            takes_arrow=not self.transforms,
            keys=keys,
            deletes_by=deletes_by,
        )

    def preview(self) -> Preview | None:
        """Return what the next batch would read and change, without any write; None if there is nothing new.

        All rows of the batch are read.
        """
        begun = self.begun()
        batch = self._plan(begun, is_look=True)
        decoded = None if batch is None else self._transformed(batch, begun.schema)
        if batch is None or decoded is None:
            return None
        rows, notes = (decoded.rows, ()) if begun.view is None else self._last_events(decoded, begun.view)
        if isinstance(rows, pa.RecordBatchReader):
            rows = rows.read_all()
        new = count = _count(rows)
        if begun.table is not None and self.operation in _LOOKS_UP and count:
            new = _count(begun.table.filter_exists(rows))
        return Preview(
            flow=self.name,
            about=batch.about,
            place=batch.place,
            rows=count,
            bad_rows=0 if decoded.bad is None else decoded.bad.count(),
            new=new if self.operation in _LOOKS_UP else None,
            lag_rows=batch.lag_rows,
            notes=(*batch.notes, *notes),
        )

    def _attempt(self) -> BatchResult | None:
        begun = self.begun()
        batch = self._plan(begun)
        decoded = None if batch is None else self._transformed(batch, begun.schema)
        if batch is None or decoded is None:
            return None
        table = self.target.made(_without(decoded.rows, (*decoded.order, IS_DELETED)).schema)
        rows, notes = self._last_events(decoded, table.view() if begun.view is None else begun.view)
        bad = decoded.bad
        counts: list[int] = []

        def check() -> None:
            counts[:] = counts or [0 if bad is None else self.bad_rows.apply(self.name, bad)]

        if isinstance(bad, BadInProcess):  # counted already, so that nothing is written for a refused batch
            check()
        last = begun.stored.checkpoint or IngestCheckpoint(place=None)
        flow_batch = FlowBatch(
            name=self.key,
            planned_from=begun.stored,
            checkpoint=IngestCheckpoint(
                place=batch.place or None,
                start=self.start.place or last.start,
                ignored=self.start.ignore or last.ignored,
                version=getattr(self.source, "place_version", 1),
            ),
            check=check,
        )
        call, dataset = table._context.write_call(rows, None, self.properties, self.evolve)
        write = write_flow_batch(call, dataset, self.operation, flow_batch)
        return BatchResult(
            write=write,
            place=batch.place,
            about=batch.about,
            bad_rows=counts[0],
            lag_rows=batch.lag_rows,
            lag_seconds=batch.lag_seconds,
            notes=(*batch.notes, *notes, *_finish(batch)),
        )

    def _plan(self, begun: Begun, *, is_look: bool = False) -> Batch | None:
        if begun.stored.unnamed is not None and self.start == Start():
            raise InvalidConfigError(
                f"flow {self.name}: the table has the place {begun.stored.unnamed!r} of a flow without a name, and "
                "none of this name: begin there with checkpoint= (in a job file: checkpoint), or anew with "
                "ignore_checkpoint="
            )
        request = self.request(begun, is_look=is_look)
        batch = self.source.plan(request)
        if batch is not None and batch.place and batch.place == request.after:
            raise SourceError(
                f"flow {self.name}: the source returned the place {batch.place!r} again, with a batch ({batch.about}): "
                "expected the place behind the batch, or no batch"
            )
        return batch

    def _transformed(self, batch: Batch, schema: pa.Schema | None) -> Decoded | None:
        """Read a batch, and return its rows after the transforms. `schema`: of the table.

        Returns None if it has no rows, and there is no table that could store its place: it is read again later.
        """
        columns = self.schema if schema is None else schema
        if batch.rows == 0:  # the batch only stores a place
            if columns is None:
                raise InvalidConfigError(
                    f"flow {self.name}: the first batch has no rows, and the table does not exist: create it, or pass "
                    "schema="
                )
            return Decoded(rows=columns.empty_table())
        read = batch.read()
        decoded = read if isinstance(read, Decoded) else Decoded(rows=read)
        if decoded.has_no_rows:
            return None if columns is None else Decoded(rows=columns.empty_table(), bad=decoded.bad)
        if self.transforms and decoded.bad is not None:
            decoded = replace(decoded, bad=counted_apart(decoded.bad))
        if self.operation not in _LOOKS_UP and decoded.order == (PLACE,):
            # Rows that differ in their place only would be distinct for a transform.
            decoded = replace(decoded, rows=_without(decoded.rows, [PLACE]), order=())
        rows, context = frame_or_arrow(decoded.rows), Context(spark=self.spark, schema=schema)
        marks_deletes = self.operation != "delete" and IS_DELETED in names_of(rows)
        for transform in self.transforms:
            rows = transform(rows, context)
        if marks_deletes and IS_DELETED not in names_of(rows):
            raise InvalidConfigError(
                f"flow {self.name}: the transforms drop the column {IS_DELETED}, so the rows that it marks would be "
                "written, not deleted: keep it in the rows (the flow removes it). To ignore deletes, leave out the "
                "rows where it is true, and keep it too"
            )
        return replace(decoded, rows=rows)

    def _last_events(self, decoded: Decoded, view: TableView) -> tuple[Any, tuple[str, ...]]:
        """Return the rows with the last event of each key, without the columns of the order, and notes.

        It follows the transforms, which may leave events out. If the table has ordering fields, the write decides by
        them; where a delete has the ordering value of the row that it deletes, the order of the source counts too.
        """
        rows, order = decoded.rows, decoded.order
        if not order:
            return rows, ()
        names = names_of(rows)
        here = [name for name in order if name in names]
        config = view.config
        is_decided = bool(config.ordering_fields) and not decoded.deletes_tie
        if self.operation not in _LOOKS_UP or not config.record_key_fields or is_decided:
            return _without(rows, here), ()
        if len(here) < len(order):
            note = (
                f"the transforms drop {', '.join(sorted(set(order) - set(here)))}: of several events of a key in one "
                "batch, any one may be kept. Keep these columns in the rows (the flow removes them), or give the table "
                "an ordering"
            )
            return _without(rows, here), (note,)
        keys = list(config.record_key_fields)
        if not index_of_view(view).is_global:
            keys += [name for name in config.partition_fields if name not in keys]
        return _without(latest(rows, keys, (*config.ordering_fields, *order)), here), ()


def _without(rows: Any, names: Sequence[str]) -> Any:
    """Return the rows without those of the columns that they have."""
    if is_spark(rows):
        return rows.drop(*names)
    gone = set(names)
    return each_batch(rows, lambda table: table.select([name for name in table.column_names if name not in gone]))


def _count(rows: Any) -> int:
    return int(rows.count() if is_spark(rows) else rows.num_rows)


def _finish(batch: Batch) -> tuple[str, ...]:
    """Do what follows the commit; return an error of it as a note, since the batch is committed."""
    if batch.after_commit is None:
        return ()
    try:
        batch.after_commit()
    except Exception as error:
        note = f"the batch is committed, but what follows it failed: {error}"
        warnings.warn(note, HoodieWarning, stacklevel=2)
        return (note,)
    return ()
