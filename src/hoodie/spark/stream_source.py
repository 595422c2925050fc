"""`spark.readStream.format("hoodie")`: a table as a stream of what its commits change.

An offset is the completion time of the last commit that is read, as `t.changes` has it. The rows between two offsets
are always the same, so a batch that is repeated after a death has the same rows. docs/streaming.md.

Spark requests the initial offset several times for the first batch, and again if this batch is repeated after a
restart. With `since=latest` the answer changes with each commit, so the offset in the checkpoint, at the end of the
batch, has its beginning too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from hoodie.errors import HistoryLostError, InvalidConfigError, SchemaMismatchError
from hoodie.format.instants.write_stat import WriteStat
from hoodie.read.cdc import cdc_schema, with_json_images
from hoodie.read.cdc_plan import plan_cdc
from hoodie.read.changes import BEGINNING, check_no_write_between, completed_between, plan_batch
from hoodie.read.chosen_columns import checked_columns
from hoodie.read.plan import check_readable, scan_schema
from hoodie.read.times import OrderTime, completion_of, jvm_bound
from hoodie.spark.merged import SlicesPartition, change_partitions, slice_partitions
from hoodie.spark.one_line import one_line
from hoodie.spark.types import arrow_schema_of, spark_schema_of
from hoodie.storage import StoreSpec, open_store
from hoodie.table.context import TableContext
from hoodie.view.table_view import TableView

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamReader
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
else:

    class _NotThere:
        """What a PySpark does not have: 3.5 no sources in Python, 4.0 and 4.1 no limits of batches."""

    try:
        from pyspark.sql.datasource import DataSourceStreamReader
    except ImportError:
        DataSourceStreamReader = _NotThere
    try:
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
    except ImportError:
        ReadAllAvailable = ReadMaxRows = None
        SupportsTriggerAvailableNow = type("SupportsTriggerAvailableNow", (), {})


START: Final = "hoodie.datasource.streaming.startoffset"
"""The option of JVM Hudi's source for `since`, in lower case."""
_LIMITS: Final = ("maxcommitspertrigger", "maxfilespertrigger", "maxbytespertrigger")
OF_STREAMS: Final = (*_LIMITS, START)
"""Options that only streams have."""
JVM_BOUNDS: Final = ("hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime")
"""The options of JVM Hudi for the bounds of an incremental read, which streams do not have."""
QUERY: Final = "hoodie.datasource.query.type"
"""The option of JVM Hudi for the kind of a read."""
_KNOWN: Final = ("since", "mode", "flat", "columns", *OF_STREAMS)
EARLIEST: Final = "earliest"
_LATEST: Final = "latest"
_VERSION = 1
_IS_INITIAL: Final = "is_initial"
"""In a start offset: it is computed, not of the checkpoint."""
_SINCE: Final = "since"
"""In an end offset: the start of the batch, if the batch is the first."""
_NO_ROWS_MAX = 2**62


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The options of a `spark.readStream` call. `limits`: the most commits, files and bytes of a batch, if limited.

    `is_jvm`: the option of the start is JVM Hudi's, a completion time. `as_json`: images of change data are JSON texts.
    """

    store: StoreSpec
    since: str
    cdc: bool
    flat: bool
    columns: tuple[str, ...] | None
    limits: Mapping[str, int]
    is_jvm: bool = False
    as_json: bool = False

    @classmethod
    def parse(cls, store: StoreSpec, found: Mapping[str, str]) -> StreamOptions:
        """Parse the options; names are in lower case. Raises: InvalidConfigError for unknown options and values."""
        is_jvm = QUERY in found
        # Streams of JVM Hudi are incremental, whatever the query type is.
        unknown = sorted(set(found) - {*_KNOWN, *((QUERY, "view") if is_jvm else ())})
        if unknown:
            raise InvalidConfigError(f"unknown options {unknown}; a stream takes path, {', '.join(_KNOWN)}")
        names = names_of(found)
        cdc, flat = mode_of(found, names)
        if "since" in found and found.get(START, found["since"]) != found["since"]:
            raise InvalidConfigError(f"since={found['since']!r} contradicts {START}={found[START]!r}: give one of them")
        start = found.get(START, EARLIEST).strip()
        since = start.lower() if start.lower() in (EARLIEST, _LATEST) else start
        return cls(
            store=store,
            since=found.get("since", since if since.strip("0") else EARLIEST),
            cdc=cdc,
            flat=flat,
            columns=names,
            limits={name: _number(name, found[name]) for name in _LIMITS if name in found},
            is_jvm="since" not in found,
            as_json=is_jvm and cdc and not flat,
        )

    def schema(self, context: TableContext) -> pa.Schema:
        """Return the schema of the rows of the stream. Raises: as `stream_schema`."""
        schema = stream_schema(context, cdc=self.cdc, flat=self.flat, columns=self.columns)
        return with_json_images(schema) if self.as_json else schema


def names_of(found: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the names of the option `columns`; None without it."""
    return tuple(name.strip() for name in found["columns"].split(",")) if "columns" in found else None


def mode_of(found: Mapping[str, str], columns: Sequence[str] | None) -> tuple[bool, bool]:
    """Return whether changes are read as change data, and with flat images.

    Raises: InvalidConfigError for unknown values, and for columns of change data.
    """
    mode, flat = found.get("mode", "latest"), found.get("flat", "false").lower()
    if mode not in ("latest", "cdc") or flat not in ("true", "false") or (mode == "latest" and flat == "true"):
        raise InvalidConfigError(
            f"mode={mode!r}, flat={flat!r}: expected mode 'latest', or 'cdc' with or without flat 'true'"
        )
    if mode == "cdc" and columns is not None:
        raise InvalidConfigError("mode='cdc' has all columns of the table: select columns of the loaded DataFrame")
    return mode == "cdc", flat == "true"


def is_of_streams(found: Mapping[str, str]) -> bool:
    """Return whether the options are of a stream: Spark reads the schema of a stream like the schema of a table."""
    has_no_bound = not any(name in found for name in JVM_BOUNDS)
    if found.get(QUERY) == "incremental" and has_no_bound:
        return True
    return any(name in found for name in OF_STREAMS) or found.get("since") in (EARLIEST, _LATEST)


def _number(name: str, text: str) -> int:
    if not text.strip().isdecimal() or int(text) == 0:
        raise InvalidConfigError(f"{name}={text!r}: expected a whole number from 1")
    return int(text)


class TableStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of one stream: Spark calls it in one Python process, and `read` in its workers."""

    def __init__(self, options: StreamOptions, schema: Any) -> None:
        if options.limits and ReadMaxRows is None:
            raise InvalidConfigError(
                f"options {sorted(options.limits)}: PySpark limits the batches of such sources from 4.2 on; remove them"
            )
        self._options = options
        self._schema = arrow_schema_of(schema)
        self._known: TableContext | None = None
        self._target: str | None = None
        self._initial: dict[str, Any] | None = None
        if ReadMaxRows is None:
            # PySpark 4.0 and 4.1 call it without arguments.
            self.latestOffset = self._newest_offset  # type: ignore[method-assign,assignment]

    @property
    def _context(self) -> TableContext:
        """The table, as one handle for all batches: it keeps what it read of the timeline."""
        if self._known is None:
            self._known = TableContext(open_store(self._options.store), spark=False)
        return self._known

    def __getstate__(self) -> dict[str, Any]:
        """Leave the handle out: Spark sends the reader to the workers."""
        return {**self.__dict__, "_known": None}

    @one_line()
    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first batch, by the option `since`; the same one in each call of a process.

        Raises: InvalidConfigError.
        """
        view = self._context.view()
        check_readable(view, by_meta_columns=True)
        start = self._start(view)
        if _IS_INITIAL in start:
            until = start["until"]
            check_no_write_between(
                view, [found for found in view.completed_writes() if view.order_time(found) <= until]
            )
        return start

    def _start(self, view: TableView) -> dict[str, Any]:
        if self._initial is None:
            since = self._options.since
            if since == EARLIEST:
                self._initial = _offset(BEGINNING if self._options.cdc else "")
            elif since == _LATEST:
                self._initial = {**_offset(_newest(view)), _IS_INITIAL: True}
            else:
                self._initial = _offset(jvm_bound(since, view) if self._options.is_jvm else completion_of(view, since))
        return self._initial

    @one_line()
    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        """Return the end of the next batch: one commit, and more up to the commits, files and bytes of the options.

        A batch of the whole table is not divided.
        """
        place = _place(start)
        newest = self._target or _newest(self._context.view())
        if newest <= place and _IS_INITIAL not in start:
            return start
        if isinstance(limit, ReadAllAvailable) or place == "" or newest <= place:
            return _end(start, max(place, newest))
        return _end(start, self._limited(place, newest))

    @one_line()
    def _newest_offset(self) -> dict[str, Any]:
        """Return the newest offset, as `latestOffset` of PySpark 4.0 and 4.1, before Spark requests the initial one.

        Any batch may be the first.
        """
        view = self._context.view()
        return _end(self._start(view) if self._options.since == _LATEST else {}, _newest(view))

    def _limited(self, place: str, newest: str) -> str:
        view, limits = self._context.view(), self._options.limits
        left = {name: limits.get(name, _NO_ROWS_MAX) for name in _LIMITS}
        end = place
        for instant in completed_between(view, place, newest):
            stats = _stats(view, instant)
            cost = dict(zip(_LIMITS, (1, len(stats), sum(stat.file_size_bytes for stat in stats)), strict=True))
            if end != place and any(left[name] < cost[name] for name in _LIMITS):
                return end
            left = {name: left[name] - cost[name] for name in _LIMITS}
            end = view.order_time(instant)
        return newest

    def getDefaultReadLimit(self) -> Any:
        """Return that there is a limit; the options have it, as Spark has no limit of commits."""
        return ReadMaxRows(_NO_ROWS_MAX) if self._options.limits else ReadAllAvailable()

    @one_line()
    def reportLatestOffset(self) -> dict[str, Any]:
        """Return the offset behind the newest commit."""
        return _offset(_newest(self._context.view()))

    @one_line()
    def prepareForTriggerAvailableNow(self) -> None:
        """Take the newest commit of this moment as the end of the stream."""
        self._target = _newest(self._context.view())

    @one_line()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[SlicesPartition]:
        """Plan the read of the changes in `(start, end]`; about 64 MiB of files for a Spark partition.

        Raises: HistoryLostError if the history was cleaned; SchemaMismatchError if the columns of the table are not
            those with which the stream began.
        """
        if _IS_INITIAL in start and _SINCE in end:
            start = _offset(end[_SINCE])
        since, until = _place(start), _place(end)
        if until in ("", since):
            return []
        if until < since:
            raise HistoryLostError(
                f"the newest commit completed at {until}, and the stream has read until {since}: the table was "
                "restored or replaced. Start the stream with another checkpoint",
                oldest_instant=until,
            )
        if self._options.cdc:
            flat, as_json = self._options.flat, self._options.as_json
            changes = self._context.planned(lambda view: plan_cdc(view, since, until))
            if not as_json:
                self._check_columns(cdc_schema(changes.schema, flat=flat))
            return change_partitions(changes, self._schema, flat=flat, as_json=as_json)
        scan = self._context.planned(lambda view: plan_batch(view, since or None, until)).scan
        there = scan.output_schema.names
        wanted = there if self._options.columns is None else [name for name in self._options.columns if name in there]
        self._check_columns(scan.with_columns(wanted).output_schema)
        return slice_partitions(self._options.store, scan.with_columns(wanted), self._schema)

    def _check_columns(self, found: pa.Schema) -> None:
        """Check the columns at the end of a batch: those that the table got later are null, and their types widened.

        Raises: SchemaMismatchError for columns that the stream does not have, or has with another type.
        """
        own, types = _types(self._schema), _types(arrow_schema_of(spark_schema_of(found)))
        if own == types:
            return
        # Not only the columns of the option: the check below names a column that the table has lost.
        newest = stream_schema(self._context, cdc=self._options.cdc, flat=self._options.flat)
        now = _types(arrow_schema_of(spark_schema_of(newest)))
        other = [name for name in own if name not in now]
        other += [name for name in types if own.get(name) != types[name] and own.get(name) != now.get(name)]
        if other:
            raise SchemaMismatchError(
                f"the columns {other} are new, dropped, renamed, or have another type, since the stream began: stop "
                "the query, and start it again with a new DataFrame and the same checkpoint; a stream with the option "
                "columns has only these"
            )

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read the rows of a partition; runs in a worker. Memory: as `SlicesPartition.batches`."""
        pa.set_cpu_count(1)
        with one_line():
            yield from partition.batches()


def stream_schema(
    context: TableContext, *, cdc: bool, flat: bool = False, columns: Sequence[str] | None = None
) -> pa.Schema:
    """Return the schema of the changes of a table: its columns now, or change data. Plans no changes.

    Raises: as `checked_columns`: fields of structs cannot be chosen, as a batch may be from before a field was added.
    """
    if cdc:
        return cdc_schema(context.view().schema().arrow, flat=flat)
    schema = scan_schema(context.view())
    return pa.schema([schema.field(name) for name in checked_columns(schema, columns)])


def _types(schema: pa.Schema) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in schema}


def _stats(view: TableView, instant: Any) -> list[WriteStat]:
    if view.timeline.get(instant.requested_time) is not None:
        return list(view.commit_metadata(instant).write_stats())
    return [stat for _, commit in view.archived_commits([instant]) for stat in commit.write_stats()]


def _newest(view: TableView) -> str:
    return max((view.order_time(instant) for instant in view.completed_writes()), default=BEGINNING)


def _offset(place: str) -> dict[str, Any]:
    return {"version": _VERSION, "until": place}


def _end(start: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the end of a batch; of a batch that begins at a computed start, with this start."""
    return {**_offset(place), _SINCE: start["until"]} if _IS_INITIAL in start else _offset(place)


def _place(offset: Mapping[str, Any]) -> str:
    """Return the completion time of an offset; empty before the whole table. Raises: InvalidConfigError."""
    if offset.get("version") != _VERSION or not isinstance(offset.get("until"), str):
        raise InvalidConfigError(
            f"the checkpoint has the offset {dict(offset)!r}: expected version {_VERSION} and until, a completion "
            "time; this checkpoint is of another source, or of a newer hoodie"
        )
    place = offset["until"]
    return OrderTime(place) if place else place
