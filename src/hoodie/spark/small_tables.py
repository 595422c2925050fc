"""Copy small tables between the driver and Spark, on every Spark version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from hoodie.spark.jobs import errors_of_jobs
from hoodie.spark.types import arrow_schema_of, spark_schema_of


def to_arrow(frame: Any) -> pa.Table:
    """Return a small DataFrame as an Arrow table in the driver. Memory: all its rows. Raises: as `errors_of_jobs`."""
    with errors_of_jobs():
        return _to_arrow(frame)


def _to_arrow(frame: Any) -> pa.Table:
    if hasattr(type(frame), "toArrow"):
        return frame.toArrow()
    schema = arrow_schema_of(frame.schema)
    if hasattr(type(frame), "_collect_as_arrow"):
        collected = frame._collect_as_arrow()
    else:
        # Connect of PySpark 3.5 returns rows or pandas, and pandas rounds longs in columns with nulls. Bytes are not
        # changed.
        packed = frame.mapInArrow(_packed, "batch binary").collect()
        collected = [batch for row in packed for batch in pa.ipc.open_stream(bytes(row[0]))]
    return pa.Table.from_batches(collected) if collected else schema.empty_table()


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Convert each batch to the bytes of an Arrow stream; runs in workers."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch({"batch": pa.array([sink.getvalue().to_pybytes()], pa.binary())})


def from_arrow(session: Any, table: pa.Table) -> Any:
    """Return a small Arrow table as a DataFrame whose rows are in the JVM; reading it runs no Python."""
    if hasattr(type(session.range(0)), "toArrow"):
        return session.createDataFrame(table)
    # PySpark 3.5 accepts rows or pandas. It converts pandas to rows too, with warnings from pandas.
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return session.createDataFrame(rows, spark_schema_of(table.schema))
