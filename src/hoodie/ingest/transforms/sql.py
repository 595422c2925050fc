"""The transform `sql`: a query over the rows of the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hoodie.ingest.options import check_types, require
from hoodie.ingest.run_sql import StreamView, query_in_process, query_on_spark
from hoodie.ingest.transforms.transform import Context
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
        check_types(self, "transform sql, ")
        require(bool(self.query.strip()), "transform sql, query", "a query over source", self.query)

    def __call__(self, rows: Any, context: Context) -> Any:
        """Return the rows of the query. In process they are a stream, if `rows` is a reader.

        Memory in process: what DuckDB needs for the query, and all rows of a reader that the query reads twice.

        Raises: as `query_on_spark` and `query_in_process`.
        """
        query = self.query.replace(_JVM_NAME, _NAME)
        if context.spark is not None and not is_spark(rows):
            rows = spark_room().from_arrow(context.spark, rows if isinstance(rows, pa.Table) else rows.read_all())
        if is_spark(rows):
            return query_on_spark(rows.sparkSession, query, {_NAME: rows})
        changed = query_in_process(query, {_NAME: StreamView(rows)}, context.schema)
        return changed.read_all() if isinstance(rows, pa.Table) else changed
