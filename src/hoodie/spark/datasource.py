"""`format("hoodie")`: hoodie tables as a Python data source of PySpark 4, classic and Connect.

Python workers read the rows of the data source. `hoodie.open(path).read()` is faster, because Spark scans the files
itself. The data source is for programs that can only pass a format and a path, and for stores that Spark cannot read.
PySpark 3.5 has no Python data sources.

Spark evaluates the filters of a query on the rows that it gets. The data source takes no filters from Spark: Spark 4.1
to 4.3 plan a loaded DataFrame once and use the partitions of its first query for its later queries, whatever their
filters are. The option `where` prunes partitions and files. docs/data-source.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException

from hoodie.spark.catalog import uri_of_schema
from hoodie.spark.datasource_writer import StreamTableWriter, TableWriter
from hoodie.spark.one_line import one_line
from hoodie.spark.read_options import ReadOptions, read_options, store_and_options
from hoodie.spark.stream_source import StreamOptions, TableStreamReader, is_of_streams
from hoodie.spark.types import arrow_schema_of, spark_schema_of
from hoodie.storage import open_store
from hoodie.table.context import TableContext
from hoodie.table.save import Save
from hoodie.write.create_by_options import CREATION, JVM_DEFAULTS

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource, DataSourceReader
else:
    try:
        from pyspark.sql.datasource import DataSource, DataSourceReader
    except ImportError:
        DataSource = DataSourceReader = object

OF_WRITES = ("columns", "operation", *CREATION)
_OF_STREAMS = ("operation", *CREATION, "checkpointlocation", "queryname")


class TableSource(DataSource):
    """The data source `hoodie`. Spark creates one for every `load`, and requests its schema and its reader."""

    defaults: Mapping[str, str] = {}
    """Properties of the tables that it creates, which their options do not have."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "hoodie"

    @one_line()
    def schema(self) -> Any:
        """Return the Spark schema of the chosen columns, as of the newest commit or `as_of`."""
        store, found = read_options(self.options)
        if is_of_streams(found):
            options = StreamOptions.parse(store, found)
            return spark_schema_of(options.schema(TableContext(open_store(store), spark=False)))
        return spark_schema_of(ReadOptions.of(store, found).schema())

    @one_line()
    def reader(self, schema: Any) -> TableReader:
        """Return a reader of rows of this schema."""
        return TableReader(ReadOptions.of(*read_options(self._with_path(schema))), schema)

    @one_line()
    def writer(self, schema: Any, overwrite: bool) -> TableWriter:
        """Return a writer of rows of this schema, after a check of the table, the options and the columns.

        Raises: as `TableWriter.of`.
        """
        options = self._with_path(schema)
        if len(options) > len(self.options):
            options = {"operation": "insert_overwrite_table" if overwrite else "insert", **options}  # INSERT of SQL
        store, found = store_and_options(options, OF_WRITES)
        # The parent of the planning process is a process of the driver, which ends with it.
        save = Save.of(found, overwrites=overwrite, defaults=self.defaults)
        return TableWriter.of(store, save, schema, pid=os.getppid())

    def _with_path(self, schema: Any) -> dict[str, str]:
        """Return the options with a path: Spark hands over none for a table of its catalog, but for its schema."""
        options = dict(self.options)
        entry = uri_of_schema(schema)
        if entry is not None and "path" not in {name.lower() for name in options}:
            options["path"] = entry.uri
        return options

    @one_line()
    def streamReader(self, schema: Any) -> TableStreamReader:
        """Return the reader of a stream of rows of this schema. Raises: InvalidConfigError."""
        return TableStreamReader(StreamOptions.parse(*read_options(self.options)), schema)

    @one_line()
    def streamWriter(self, schema: Any, overwrite: bool) -> StreamTableWriter:
        """Return a writer of one batch of a stream of rows of this schema, after the checks of `writer`.

        Raises: as `StreamTableWriter.of`.
        """
        store, found = store_and_options(self.options, _OF_STREAMS)
        return StreamTableWriter.of(store, found, schema, overwrite=overwrite, defaults=self.defaults)


class HudiSource(TableSource):
    """The data source `hudi`, where no JAR of JVM Hudi has that name: it creates tables with the JVM's defaults."""

    defaults = JVM_DEFAULTS

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "hudi"


SOURCES: Final = {source.name(): source for source in (TableSource, HudiSource)}
"""The data sources by the names of their formats."""


def register_source(session: Any, name: str) -> None:
    """Register a data source in a session whose server did not find it; Spark's log reports that it was replaced.

    PySpark 4.0 keeps the data source that it found.
    """
    try:
        session.dataSource.register(SOURCES[name])
    except AnalysisException as error:
        is_found = session.version.startswith("4.0.") and error.getCondition() == "DATA_SOURCE_ALREADY_EXISTS"
        if not is_found:
            raise


class TableReader(DataSourceReader):
    """Plan the read in one Python process, then read in the workers."""

    def __init__(self, options: ReadOptions, schema: Any) -> None:
        self._options = options
        self._schema = arrow_schema_of(schema)

    @one_line()
    def partitions(self) -> Sequence[Any]:
        """Return one Spark partition for about 64 MiB of files. Partitions of the table are pruned."""
        return self._options.partitions(self._schema)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read the rows of a partition; runs in a worker. Memory: as `SlicesPartition.batches`."""
        pa.set_cpu_count(1)
        with one_line():
            yield from partition.batches()
