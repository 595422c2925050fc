"""The transform `sql`: a query over the rows of the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hoodie.arguments import shown
from hoodie.errors import InvalidConfigError
from hoodie.ingest.run_sql import StreamView, query_in_process, query_on_spark
from hoodie.ingest.transforms.transform import Context, arrow_rows
from hoodie.table.sessions import is_spark, spark_room

_NAME: Final = "source"
_JVM_NAME: Final = "<SRC>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql:
    """A query over the table `source`; `<SRC>` stands for it too, as in HoodieStreamer.

    On Spark it is Spark SQL, in this process DuckDB's SQL. Their functions differ. Sums and counts of integers are
    64-bit integers in both; sums and products of decimals may have another precision. Text that is no number is an
    error of DuckDB's `CAST`, as in Spark with ANSI mode. The write converts the columns to the types of the table, if
    no value changes.
    """

    query: str

    def __post_init__(self) -> None:
        if not isinstance(self.query, str) or not self.query.strip():
            raise InvalidConfigError(f"transform sql, query: expected a query over source, found {shown(self.query)}")

    def __call__(self, rows: Any, context: Context) -> Any:
        """Return the rows of the query. In process they are a stream, if `rows` is a reader.

        Memory in process: what DuckDB needs for the query, and all rows of a reader that the query reads twice.

        Raises: as `query_on_spark` and `query_in_process`.
        """
        query = self.query.replace(_JVM_NAME, _NAME)
        if context.spark is not None and not is_spark(rows):
            found = arrow_rows(rows)
            table = found if isinstance(found, pa.Table) else found.read_all()
            rows = spark_room().from_arrow(context.spark, table)
        if is_spark(rows):
            return query_on_spark(rows.sparkSession, query, {_NAME: rows})
        here = arrow_rows(rows)
        changed = query_in_process(query, {_NAME: StreamView(here)}, context.schema)
        return changed.read_all() if isinstance(here, pa.Table) else changed
