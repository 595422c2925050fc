"""`t.stream`: a query of Spark whose micro-batches are written by `t.write_batch`, each of them once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hoodie.config import writes
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.spark.datasource_writer import warn_notes
from hoodie.spark.types import arrow_schema_of
from hoodie.storage import StoreSpec, open_store
from hoodie.storage.paths import literal_path
from hoodie.table import Table
from hoodie.table.context import TableContext
from hoodie.table.sessions import is_spark
from hoodie.write.setup import check_write
from hoodie.write.stream_batch import check_operation

_CHECKPOINTS: Final = "spark.sql.streaming.checkpointLocation"


@dataclass(eq=False, repr=False)
class BatchSink:
    """The function of `foreachBatch`. Spark Connect pickles it for a Python process beside the server."""

    store: StoreSpec
    lock: dict[str, str]
    operation: str
    identifier: str
    checkpoint: str
    properties: dict[str, str]
    _query: str | None = None
    _table: Table | None = None

    def __call__(self, frame: Any, batch_id: int) -> None:
        """Write one micro-batch, unless a commit has it. Warns: HoodieWarning for each note of the result."""
        session = frame.sparkSession
        if self._table is None:  # one handle for all batches, as it keeps what it read of the timeline
            self._table = Table(open_store(self.store), spark=session, lock=self.lock or None)
        result = self._table.write_batch(
            frame,
            batch_id,
            operation=self.operation,
            identifier=self.identifier,
            query=self._query_id(session),
            properties=self.properties,
        )
        if result is None:
            # Spark fails a stateful query if the states of a batch were not evaluated.
            frame.write.format("noop").mode("overwrite").save()
        else:
            warn_notes(result)

    def _query_id(self, session: Any) -> str:
        """Return the id of the query that runs the batches: the same when it goes on from its checkpoint.

        It is read from the checkpoint: a session of Spark Connect does not pass it to this function, and a classic one
        does not if its threads are not those of Python (`PYSPARK_PIN_THREAD=false`).
        """
        if self._query is None:
            row = session.read.text(literal_path(f"{self.checkpoint.rstrip('/')}/metadata")).first()
            self._query = str(json.loads(row[0])["id"])
        return self._query

    def __getstate__(self) -> dict[str, Any]:
        """Leave the handle out: it holds a session."""
        return {**self.__dict__, "_table": None}


def start_stream(
    context: TableContext,
    frame: Any,
    operation: str,
    *,
    checkpoint: str | None,
    trigger: Mapping[str, Any] | None,
    name: str | None,
    identifier: str | None,
    output_mode: str,
    properties: Mapping[str, str],
) -> Any:
    """Start the query of `Table.stream`. Raises: as it."""
    if not (is_spark(frame) and getattr(frame, "isStreaming", False)):
        raise InvalidConfigError(
            f"stream: expected a streaming DataFrame (spark.readStream), found {type(frame).__name__}; "
            "write other data with upsert or insert"
        )
    check_operation(operation)
    place = checkpoint or _default_checkpoint(frame.sparkSession, name)
    _check_write(context, frame, operation, properties)
    state = context.state
    stream = identifier or writes.STREAM_IDENTIFIER.get(properties, state.read_config().raw)
    sink = BatchSink(state.store.spec, dict(state.lock_options), operation, stream, place, dict(properties))
    writer = frame.writeStream.foreachBatch(sink).outputMode(output_mode).option("checkpointLocation", place)
    writer = writer if name is None else writer.queryName(name)
    return (writer.trigger(**trigger) if trigger else writer).start()


def _default_checkpoint(session: Any, name: str | None) -> str:
    """Return where Spark keeps the checkpoint of a query with a name. Raises: InvalidConfigError if it has no place."""
    folder = session.conf.get(_CHECKPOINTS, None)
    if not folder or name is None:
        raise InvalidConfigError(
            "stream: expected checkpoint='…', a folder where Spark notes which data each batch has: without it a "
            f"restart begins anew, and writes all data again; or set {_CHECKPOINTS} of the session and name= of the "
            "query"
        )
    return f"{folder.rstrip('/')}/{name}"


def _check_write(context: TableContext, frame: Any, operation: str, properties: Mapping[str, str]) -> None:
    """Raise the errors that the first batch would raise before it changes anything."""
    if context.state.store.spec.is_private:
        raise UnsupportedError(
            f"{context.state.store.uri('')} is in this process, and Spark's workers cannot reach it; use a folder"
        )
    call, dataset = context.write_call(arrow_schema_of(frame.schema).empty_table(), None, properties)
    check_write(call, None if operation == "delete" else dataset)
