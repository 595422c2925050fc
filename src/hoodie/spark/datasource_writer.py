"""`df.write.format("hoodie")` and `df.writeStream`: tasks stage rows as Arrow files, then one process writes them.

The process runs on the driver's machine. Only files that the messages of successful tasks name are read, so an attempt
that failed, was repeated, or ran speculatively never doubles rows. Nothing is on the timeline before all tasks are
done. docs/data-source.md.

Spark creates a writer of a stream for each task, and another one for the commit of each batch; what they share is in
the messages of the tasks. Batches follow the rule of `t.stream`: docs/streaming.md.
"""

from __future__ import annotations

import json
import posixpath
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie.config import concurrency, writes
from hoodie.errors import HoodieError, HoodieWarning, InvalidConfigError, UnsupportedError
from hoodie.files.staging.row_files import RowFiles, new_row_folder, write_row_file
from hoodie.files.table_properties import read_table_config
from hoodie.spark.one_line import one_line
from hoodie.spark.types import arrow_schema_of
from hoodie.storage import Store, StoreSpec, open_store
from hoodie.table import Table
from hoodie.table.save import Save
from hoodie.timeline.locks import file_system, in_process
from hoodie.write.result import AlterResult, WriteResult

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
else:
    try:
        from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
    except ImportError:
        DataSourceArrowWriter = WriterCommitMessage = object
    try:
        from pyspark.sql.datasource import DataSourceStreamArrowWriter
    except ImportError:
        DataSourceStreamArrowWriter = None

_CHECKPOINT = "checkpointlocation"


@dataclass(frozen=True)
class StagedRows(WriterCommitMessage):
    """What a task staged: the path of its file, None if it had no rows."""

    path: str | None


class TableWriter(DataSourceArrowWriter):
    """The writer of one `save`: Spark creates it in a planning process and pickles it for tasks and for the commit."""

    def __init__(self, store: StoreSpec, schema: pa.Schema, save: Save, *, pid: int | None = None) -> None:
        self.store, self._schema, self.save = store, schema, save
        self._folder = new_row_folder(pid)

    @classmethod
    def of(cls, store: StoreSpec, save: Save, schema: Any, *, pid: int | None = None) -> TableWriter:
        """Create the writer after the checks of `Save.checked`, which can create the table; `pid`: `new_row_folder`.

        Raises: as `Save.checked`; UnsupportedError for a table in the memory of one process.
        """
        columns = arrow_schema_of(schema)
        if store.is_private:
            raise UnsupportedError(f"{store.uri} is in one process, and Spark's workers cannot write to it")
        checked = save.checked(open_store(store), columns, RowFiles(store, columns, ()))
        return cls(store, columns, _with_lock_of_processes(checked, open_store(store)), pid=pid)

    @one_line()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedRows:
        """Stage the rows of one task; runs in a worker. Memory: one batch."""
        pa.set_cpu_count(1)
        return StagedRows(write_row_file(open_store(self.store), self._folder, self._schema, iterator))

    @one_line()
    def commit(self, messages: Sequence[Any]) -> None:
        """Write the staged rows in this process, as one commit, then delete them.

        Warns: `HoodieWarning` for each note of the result. Raises: as the method of `Table` for the operation.
        """
        table = Table(open_store(self.store), spark=False)
        result = self.save.run(table, self.rows_of(messages), staged=self._folder)
        self._remove()
        if result is not None:
            warn_notes(result)

    def abort(self, messages: Sequence[Any]) -> None:
        """Delete the staged rows; a failed task has no message, and its files go with the folder."""
        self._remove()

    def rows_of(self, messages: Sequence[Any]) -> RowFiles:
        """Return the rows that tasks staged."""
        return RowFiles(self.store, self._schema, tuple(found.path for found in messages if found.path is not None))

    def _remove(self) -> None:
        open_store(self.store).delete_folder(self._folder)


def _with_lock_of_processes(save: Save, store: Store) -> Save:
    """Return a save whose commit excludes those of other processes: Spark commits each write in one of its own.

    The in-process lock of JVM Hudi excludes the writers of a driver, so the file-system lock is taken in its place.
    """
    key = concurrency.LOCK_PROVIDER.key
    if save.properties.get(key, read_table_config(store).raw.get(key)) != in_process.NAME:
        return save
    return replace(save, properties={**save.properties, key: file_system.NAME})


def warn_notes(result: AlterResult | WriteResult, *, stacklevel: int = 3) -> None:
    """Warns: `HoodieWarning` for each note of the result of a write that shows none to its caller."""
    for note in result.notes:
        warnings.warn(f"{result.operation} {result.instant}: {note}", HoodieWarning, stacklevel=stacklevel)


class StreamTableWriter(DataSourceStreamArrowWriter or object):  # type: ignore[misc]  # PySpark 4.0 has no such class
    """The writer of a batch. `checkpoint` is the folder of Spark's checkpoint."""

    def __init__(self, writer: TableWriter, checkpoint: str) -> None:
        self._writer, self._checkpoint = writer, checkpoint

    @classmethod
    def of(
        cls, store: StoreSpec, found: Mapping[str, str], schema: Any, *, overwrite: bool, defaults: Mapping[str, str]
    ) -> StreamTableWriter:
        """Create the writer; `found` are `operation`, `hoodie.*` options, and those that Spark adds.

        `overwrite`: the output mode is complete. `defaults`: properties of tables that the writer creates.

        Raises: as `TableWriter.of`; InvalidConfigError without a checkpoint, and without an identifier if the options
            announce several writers; UnsupportedError on PySpark 4.0.
        """
        if DataSourceStreamArrowWriter is None:
            raise UnsupportedError(
                "this release of PySpark gives rows, not Arrow, to writers of streams (4.1 or newer does): use t.stream"
            )
        if _CHECKPOINT not in found:
            raise InvalidConfigError(
                "expected the option checkpointLocation: Spark does not pass this writer the folder of "
                "spark.sql.streaming.checkpointLocation, where it keeps the id of the query"
            )
        mode = found.get(concurrency.CONCURRENCY_MODE.key, concurrency.SINGLE_WRITER)
        if mode.lower() != concurrency.SINGLE_WRITER and writes.STREAM_IDENTIFIER.key not in found:
            raise InvalidConfigError(
                f"{concurrency.CONCURRENCY_MODE.key}={mode!r} announces several writers: expected the option "
                f"{writes.STREAM_IDENTIFIER.key}, with another value for each stream into the table"
            )
        whole = {"operation": "insert_overwrite_table"} if overwrite else {}
        save = Save.of({**whole, **found}, overwrites=False, defaults=defaults)
        return cls(TableWriter.of(store, save, schema), found[_CHECKPOINT])

    @one_line()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedRows:
        """Stage the rows of one task; runs in a worker. Memory: one batch."""
        return self._writer.write(iterator)

    @one_line()
    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        """Write the staged rows in this process as one commit, unless a commit has the batch, then delete them.

        Warns: `HoodieWarning` for each note of the result. Raises: as `Table.write_batch`.
        """
        writer = self._writer
        result = Table(open_store(writer.store), spark=False).write_batch(
            writer.rows_of(messages),
            batchId,
            operation=writer.save.operation,
            query=_query_id(self._checkpoint),
            properties=writer.save.all_properties,
        )
        self._remove(messages)
        if result is not None:
            warn_notes(result)

    def abort(self, messages: Sequence[Any], batchId: int) -> None:
        """Delete the staged rows of the tasks that succeeded; those of others are deleted by a later write."""
        self._remove(messages)

    def _remove(self, messages: Sequence[Any]) -> None:
        store = open_store(self._writer.store)
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
