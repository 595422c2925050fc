"""Announce the data source `hoodie` to PySpark 4: its workers look for `DefaultSource` in modules named `pyspark_*`.

Every Spark program that uses any Python data source imports this module, so it imports nothing of `hoodie` before
Spark asks the data source for a schema, a reader or a writer. PySpark 3.5 has no Python data sources: there the module
is empty.
"""

from __future__ import annotations

from typing import Any

try:
    from pyspark.sql.datasource import DataSource
except ImportError:
    __all__: list[str] = []
else:
    __all__ = ["DefaultSource"]

    class DefaultSource(DataSource):
        """The data source `hoodie`; `hoodie.spark.datasource.TableSource` does the work."""

        @classmethod
        def name(cls) -> str:
            """Return the name of the format."""
            return "hoodie"

        def schema(self) -> Any:
            """Return the Spark schema of the rows that the options select."""
            return self._source().schema()

        def reader(self, schema: Any) -> Any:
            """Return the reader of rows of this schema."""
            return self._source().reader(schema)

        def writer(self, schema: Any, overwrite: bool) -> Any:
            """Return the writer of rows of this schema."""
            return self._source().writer(schema, overwrite)

        def streamReader(self, schema: Any) -> Any:
            """Return the reader of a stream of rows of this schema."""
            return self._source().streamReader(schema)

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:
            """Return the writer of the batches of a stream of rows of this schema."""
            return self._source().streamWriter(schema, overwrite)

        def _source(self) -> Any:
            from hoodie.spark.datasource import SOURCES

            return SOURCES[self.name()](self.options)
