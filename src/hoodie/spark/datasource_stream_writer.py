"""`df.writeStream.format("hoodie")`: tasks stage the rows of a batch, then one process writes them, each batch once.

Spark creates a writer for each task, and another one for the commit of each batch; what they share is in the messages
of the tasks. The rule about batches is that of `t.stream`: docs/streaming.md.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie import config as options
from hoodie.errors import HoodieError, InvalidConfigError, UnsupportedError
from hoodie.spark.datasource_writer import StagedRows, TableWriter, warn_notes
from hoodie.storage import StoreSpec, open_store
from hoodie.table import Table

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
else:
    try:
        from pyspark.sql.datasource import DataSourceStreamArrowWriter
    except ImportError:
        DataSourceStreamArrowWriter = None

_CHECKPOINT = "checkpointlocation"


class StreamTableWriter(DataSourceStreamArrowWriter or object):  # type: ignore[misc]  # PySpark 4.0 has no such class
    """The writer of a batch. `checkpoint` is the folder of Spark's checkpoint."""

    def __init__(
        self, writer: TableWriter, store: StoreSpec, operation: str, checkpoint: str, properties: Mapping[str, str]
    ) -> None:
        self._writer, self._store = writer, store
        self._operation, self._checkpoint = operation, checkpoint
        self._properties = dict(properties)

    @classmethod
    def of(cls, store: StoreSpec, found: Mapping[str, str], schema: Any, *, overwrite: bool) -> StreamTableWriter:
        """Create the writer; `found` are `operation`, `hoodie.*` options, and those that Spark adds.

        `overwrite`: the output mode is complete.

        Raises: as `TableWriter.of`; InvalidConfigError without a checkpoint; UnsupportedError on PySpark 4.0.
        """
        if DataSourceStreamArrowWriter is None:
            raise UnsupportedError(
                "this release of PySpark gives rows, not Arrow, to writers of streams (4.1 or newer does): use t.stream"
            )
        if _CHECKPOINT not in found:
            raise InvalidConfigError(
                "expected the option checkpointLocation: Spark does not tell this writer the folder of "
                "spark.sql.streaming.checkpointLocation, where it keeps the id of the query"
            )
        writer = TableWriter.of(store, found, schema, overwrite=overwrite)
        return cls(writer, store, writer.operation, found[_CHECKPOINT], writer.properties)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedRows:
        """Stage the rows of one task; runs in a worker. Memory: one batch."""
        return self._writer.write(iterator)

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        """Write the staged rows in this process as one commit, unless a commit has the batch, then delete them.

        Warns: `HoodieWarning` for each note of the result. Raises: as `Table.write_batch`.
        """
        result = Table(open_store(self._store), spark=False).write_batch(
            self._writer.rows_of(messages),
            batchId,
            operation=self._operation,
            identifier=options.STREAM_IDENTIFIER.get(self._properties),
            query=_query_id(self._checkpoint),
            properties=self._properties,
        )
        self._remove(messages)
        if result is not None:
            warn_notes(result)

    def abort(self, messages: Sequence[Any], batchId: int) -> None:
        """Delete the staged rows of the tasks that succeeded; those of others are deleted by a later write."""
        self._remove(messages)

    def _remove(self, messages: Sequence[Any]) -> None:
        store = open_store(self._store)
        staged = {message.path for message in messages if message is not None and message.path is not None}
        for folder in {posixpath.dirname(path) for path in staged}:
            store.delete_folder(folder)


def _query_id(checkpoint: str) -> str:
    """Return the id that Spark stored in the checkpoint of the query. Raises: InvalidConfigError."""
    try:
        return str(json.loads(open_store(checkpoint).read("metadata"))["id"])
    except (HoodieError, OSError, ValueError, KeyError) as error:
        raise InvalidConfigError(
            f"checkpointLocation={checkpoint!r}: expected the file `metadata` that Spark writes there, with the id of "
            f"the query ({error}); use a folder that hoodie can read, or t.stream"
        ) from error
