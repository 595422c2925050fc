"""`df.write.format("hoodie")`: tasks stage their rows as Arrow files, then one process of the driver's machine writes.

Only files that the messages of successful tasks name are read, so an attempt that failed, was repeated, or ran
speculatively never doubles rows. Nothing is on the timeline before all tasks are done. docs/data-source.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from hoodie.engine import LocalEngine
from hoodie.errors import HoodieWarning, InvalidConfigError, UnsupportedError
from hoodie.files.staging.row_files import RowFiles, new_row_folder, write_row_file
from hoodie.spark.types import arrow_schema_of
from hoodie.storage import StoreSpec, open_store
from hoodie.table import Table
from hoodie.view.table_state import TableState
from hoodie.write.create_by_options import TableOptions
from hoodie.write.result import WriteResult
from hoodie.write.setup import WriteCall, WriteSetup

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
else:
    try:
        from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
    except ImportError:
        DataSourceArrowWriter = WriterCommitMessage = object

APPEND: Final = ("insert", "upsert", "bulk_insert", "delete")
OVERWRITE: Final = ("insert_overwrite_table", "insert_overwrite")
"""The values of the option `operation`, by mode; the first of each is the default."""


@dataclass(frozen=True)
class StagedRows(WriterCommitMessage):
    """What a task staged: the path of its file, None if it had no rows."""

    path: str | None


class TableWriter(DataSourceArrowWriter):
    """The writer of one `save`: Spark creates it in a planning process and pickles it for tasks and for the commit.

    `operation` is the name of a method of `Table`, `properties` are the `hoodie.*` options of the call.
    """

    def __init__(self, store: StoreSpec, schema: Any, operation: str, properties: Mapping[str, str]) -> None:
        self._store = store
        self._schema = arrow_schema_of(schema)
        self.operation = operation
        self.properties = dict(properties)
        self._folder = new_row_folder()

    @classmethod
    def of(cls, store: StoreSpec, options: Mapping[str, str], schema: Any, *, overwrite: bool) -> TableWriter:
        """Create the writer of a mode; `options` are `operation`, `hoodie.*` options, and those of `CREATION`.

        A table that does not exist is created if the options name its record key.

        Raises: InvalidConfigError for an operation that the mode does not have; as `TableOptions.ensure`; the errors
            that the write would raise before it changes anything.
        """
        table, options = TableOptions.split(options)
        allowed = OVERWRITE if overwrite else APPEND
        operation = options.get("operation", allowed[0])
        if operation not in allowed:
            mode = "overwrite" if overwrite else "append"
            raise InvalidConfigError(f"operation={operation!r}: mode {mode!r} takes {', '.join(allowed)}")
        properties = {name: value for name, value in options.items() if name.startswith("hoodie.")}
        writer = cls(store, schema, operation, properties)
        writer.check(table)
        return writer

    def check(self, table: TableOptions) -> None:
        """Check the table or create it, and check the options and the columns of the data. Raises: as `of`."""
        store = open_store(self._store)
        if self._store.is_private:
            raise UnsupportedError(f"{store.uri('')} is in one process, and Spark's workers cannot write to it")
        table.ensure(store, self._schema, self.properties, may_create=self.operation != "delete")
        state = TableState(store).for_call(self.properties)
        call = WriteCall(state=state, engine=LocalEngine(), properties=self.properties)
        WriteSetup.without_repair(call, None if self.operation == "delete" else self.rows_of([]))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedRows:
        """Stage the rows of one task; runs in a worker. Memory: one batch."""
        pa.set_cpu_count(1)
        return StagedRows(write_row_file(open_store(self._store), self._folder, self._schema, iterator))

    def commit(self, messages: Sequence[Any]) -> None:
        """Write the staged rows in this process, as one commit, then delete them.

        Warns: `HoodieWarning` for each note of the result. Raises: as the method of `Table` for the operation.
        """
        table = Table(open_store(self._store), spark=False)
        result = getattr(table, self.operation)(self.rows_of(messages), properties=self.properties)
        self._remove()
        warn_notes(result)

    def abort(self, messages: Sequence[Any]) -> None:
        """Delete the staged rows; a failed task has no message, and its files go with the folder."""
        self._remove()

    def rows_of(self, messages: Sequence[Any]) -> RowFiles:
        """Return the rows that tasks staged."""
        return RowFiles(self._store, self._schema, tuple(found.path for found in messages if found.path is not None))

    def _remove(self) -> None:
        open_store(self._store).delete_folder(self._folder)


def warn_notes(result: WriteResult) -> None:
    """Warns: `HoodieWarning` for each note of the result of a write that returns nothing to its caller."""
    for note in result.notes:
        warnings.warn(f"{result.operation} {result.instant}: {note}", HoodieWarning, stacklevel=3)
