"""The source `stream`: any streaming format of Spark; Spark's own query plans the batches, and keeps their offsets."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final

from hoodie.config.secrets import secrets_of
from hoodie.errors import SourceError, UnsupportedError
from hoodie.ingest.options import check_types, require, text_of
from hoodie.ingest.source import Batch, Request
from hoodie.ingest.sources.secrets import cause

_LOOK_SECONDS: Final = 0.05
"""How often a flow looks whether Spark's query has ended, while it waits for a batch."""
_QUERIES: Final[dict[str, _Query]] = {}
"""The queries of this process, by the folders of their checkpoints: Spark allows one at a time."""
_STARTS: Final = threading.Lock()
"""Held while a query starts: of two flows that begin at once with one checkpoint, the second is refused."""


@dataclass(frozen=True, slots=True, eq=False)
class _Handed:
    """A batch that Spark's query holds until the flow has committed it."""

    number: int
    rows: Any
    is_done: threading.Event = field(default_factory=threading.Event)


class _Query:
    """One run of Spark's query, over what the source has now. Its batches wait here for the flow."""

    def __init__(self, owner: Stream, reader: Any) -> None:
        """Start the query. Raises: errors of Spark."""
        self.owner = weakref.ref(owner)
        self._handed: _Handed | None = None
        self._is_closed = False
        writer = reader.writeStream.foreachBatch(self._hand).option("checkpointLocation", owner.checkpoint)
        self.query = writer.trigger(availableNow=True).start()

    def next(self) -> _Handed | None:
        """Return the batch that waits, or the next one; None if the query has ended. Raises: the error of the query."""
        while True:
            handed = self._handed
            if handed is not None and not handed.is_done.is_set():
                return handed
            if self.query.awaitTermination(_LOOK_SECONDS):
                return None

    def close(self) -> None:
        """End the query; a batch that waits is not committed, and the next query begins with it."""
        self._is_closed = True
        self.query.stop()

    def _hand(self, rows: Any, number: int) -> None:
        """Hold a batch until it is committed. Spark calls it on a thread of its own."""
        handed = self._handed = _Handed(number, rows)
        while not handed.is_done.wait(_LOOK_SECONDS):
            if self._is_closed or self.owner() is None:
                raise RuntimeError("the flow ended before it committed the batch")


@dataclass(frozen=True, eq=False)
class Stream:
    """Reads a streaming format of Spark, such as `rate`, `kinesis`, `delta` or a data source of your own.

    The place of the flow is the id of the query and the number of its last batch. The query sends a batch again until
    the flow has committed it, and the flow writes no batch twice. docs/ingest/README.md: the keys.
    """

    format: str
    checkpoint: str
    _: KW_ONLY
    path: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    schema: str | None = None

    def __post_init__(self) -> None:
        check_types(self, "source stream, ")
        for name in ("format", "checkpoint"):
            require(bool(getattr(self, name).strip()), f"source stream, {name}", "a text", getattr(self, name))

    def plan(self, request: Request) -> Batch | None:
        """Return the batch that Spark's query sends next; None if it has ended.

        Raises: UnsupportedError without a classic session, and for a look; SourceError.
        """
        if not hasattr(request.spark, "_jsparkSession"):
            raise UnsupportedError(
                "source stream: expected a classic Spark session, found "
                f"{'none' if request.spark is None else 'Spark Connect: use Table.stream'}"
            )
        if request.is_look:
            raise UnsupportedError(
                "source stream: there is no preview, because Spark's query alone finds new rows, and sends them to be "
                "written"
            )
        try:
            return self._next(request)
        except SourceError:
            raise
        except Exception as error:
            with suppress(Exception):
                self.close()
            text = cause(error, secrets_of(self.path or "", {key: text_of(one) for key, one in self.options.items()}))
            raise SourceError(f"source stream, {self.format}: {text}") from error

    def close(self) -> None:
        """End the query of this process, if one runs; a batch that waits is sent again by the next one."""
        found = _QUERIES.get(self._key)
        if found is not None and found.owner() in (self, None):
            del _QUERIES[self._key]
            found.close()

    @property
    def _key(self) -> str:
        return self.checkpoint.rstrip("/")

    def _next(self, request: Request) -> Batch | None:
        found = self._query(request)
        query = str(found.query.id)
        last = _last_number(request.after, query, self.checkpoint)
        while (handed := found.next()) is not None:
            if handed.number > last:
                return self._batch(handed, query, last, request.limit)
            if handed.number < last:
                self.close()
                raise SourceError(
                    f"source stream: expected the batches up to {last}, which the table has, in {self.checkpoint}, "
                    f"found those up to {handed.number}: the checkpoint is older than the table, and would number "
                    "other rows as these batches. Restore the checkpoint, or give the source another one"
                )
            handed.is_done.set()  # it was committed, and the query died before it noted that
        del _QUERIES[self._key]
        return None

    def _query(self, request: Request) -> _Query:
        """Return the query of this source, which may hold a batch; else start one."""
        with _STARTS:
            found = _QUERIES.get(self._key)
            if found is not None and found.owner() is self:
                return found
            if found is not None and found.owner() is not None:
                raise SourceError(f"source stream: another flow reads by the checkpoint {self.checkpoint}: choose one")
            self.close()
            found = _QUERIES[self._key] = _Query(self, self._reader(request))
            return found

    def _batch(self, handed: _Handed, query: str, last: int, limit: int | None) -> Batch:
        notes: tuple[str, ...] = ()
        if handed.number > last + 1:
            notes = (
                f"the query goes on with batch {handed.number}: it does not send batches {last + 1} to "
                f"{handed.number - 1} again, which a restore or a rollback may have taken back, or which another table "
                "has. To read them again, give the source another checkpoint",
            )
        if limit is not None:
            notes = (*notes, f"limit={limit} has no effect: set an option of the format, such as maxFilesPerTrigger")
        return Batch(
            place=f"{query}:{handed.number}",
            read=lambda: handed.rows,
            about=f"batch {handed.number} of {self.format}",
            after_commit=handed.is_done.set,
            notes=notes,
        )

    def _reader(self, request: Request) -> Any:
        reader = request.spark.readStream.format(self.format)
        reader = reader.options(**{key: text_of(value) for key, value in self.options.items()})
        reader = reader if self.schema is None else reader.schema(self.schema)
        return reader.load() if self.path is None else reader.load(self.path)


def _last_number(place: str | None, query: str, checkpoint: str) -> int:
    """Return the number of the batch in a place; -1 for none. Raises: SourceError for the place of another query."""
    if place is None:
        return -1
    stored, _, number = place.rpartition(":")
    if stored != query or not number.isdecimal():
        raise SourceError(
            f"source stream: expected the checkpoint of the query that wrote the place {place!r}, found the query "
            f"{query} in {checkpoint}: give the source its checkpoint, or begin anew with ignore_checkpoint"
        )
    return int(number)
