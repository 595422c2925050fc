"""Small tables between the driver and Spark, on every Spark version."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hoodie.spark.types import arrow_schema_of, spark_schema_of


def to_arrow(frame: Any) -> pa.Table:
    """A small DataFrame as an Arrow table in the driver."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    schema = arrow_schema_of(frame.schema)
    collected = frame._collect_as_arrow()
    return pa.Table.from_batches(collected) if collected else schema.empty_table()


def from_arrow(session: Any, table: pa.Table) -> Any:
    """A small Arrow table as a DataFrame that Spark holds without Python."""
    if hasattr(type(session.range(0)), "toArrow"):
        return session.createDataFrame(table)
    # PySpark 3.5 takes pandas, which it turns into rows with warnings of pandas' own, or rows.
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return session.createDataFrame(rows, spark_schema_of(table.schema))
