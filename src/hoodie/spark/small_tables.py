"""Copy small tables between the driver and Spark, on every Spark version; keep those of merged rows in the JVM."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from hoodie.read.local_merges import RecentResults
from hoodie.spark.types import arrow_schema_of, spark_schema_of
from hoodie.spark.workers import errors_of_jobs, own_python

KEPT_BYTES_MAX = 64 * 1024 * 1024
"""Maximum bytes of Arrow data whose DataFrames this process keeps; the JVM holds the data."""
_KEPT_MAX = 256
"""Maximum number of DataFrames that this process keeps. Each of them keeps its session, and PySpark makes a session
object for each batch of `foreachBatch`."""
_FOLDED_BYTES_MAX = 256 * 1024
"""Up to this many bytes Spark's optimizer may evaluate parts of a query on the rows, on one thread of the driver."""
_THRESHOLD = "spark.sql.execution.arrow.localRelationThreshold"
_LOCAL_TIME = re.compile(r"timestamp\[\w+\]")
"""Arrow's text of a timestamp without time zone, at any depth of a type."""

_kept: RecentResults[Any] = RecentResults(KEPT_BYTES_MAX, _KEPT_MAX)
_setting = threading.Lock()


def to_arrow(frame: Any) -> pa.Table:
    """Return a small DataFrame as an Arrow table in the driver. Memory: all its rows. Raises: as `errors_of_jobs`."""
    with errors_of_jobs(frame.sparkSession):
        if hasattr(type(frame), "toArrow"):
            return frame.toArrow()
        schema = arrow_schema_of(frame.schema)
        if hasattr(type(frame), "_collect_as_arrow"):
            collected = frame._collect_as_arrow()
        else:
            # Connect of PySpark 3.5 returns rows or pandas, and pandas rounds longs in columns with nulls. Bytes are
            # not changed.
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
    """Return a small Arrow table as a DataFrame whose rows are in the JVM; reading it runs no Python.

    Timestamps without time zone stay so: by itself PySpark takes them for times in the session's zone.
    """
    if hasattr(type(session.range(0)), "toArrow"):
        has_local = any(_LOCAL_TIME.search(str(kind)) for kind in table.schema.types)
        schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True) if has_local else None
        return session.createDataFrame(table, schema)
    # PySpark 3.5 accepts rows or pandas. It converts pandas to rows too, with warnings from pandas.
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    with own_python(session):
        return session.createDataFrame(rows, spark_schema_of(table.schema))


def empty_frame(session: Any, schema: Any) -> Any:
    """Return a DataFrame of this Spark schema without rows; PySpark runs Python workers for it."""
    with own_python(session):
        return session.createDataFrame([], schema)


def kept(session: Any, key: Hashable | None, size_bytes: int, make: Callable[[], Any]) -> Any:
    """Return what `make` returns, or what it returned for the same key in this session, while that is kept.

    `size_bytes` are the bytes that the JVM holds for it. Nothing is kept without a key.
    """
    session_key = None if key is None else (session, key)
    found = _kept.get(session_key)
    if found is None:
        found = make()
        _kept.keep(session_key, found, size_bytes)
    return found


def frame_of(session: Any, rows: pa.Table, schema: Any) -> Any:
    """Return an Arrow table as a DataFrame of this Spark schema, which must have the types of the table."""
    with _as_tasks(session) if rows.nbytes > _FOLDED_BYTES_MAX else nullcontext():
        return session.createDataFrame(rows, schema)


@contextmanager
def _as_tasks(session: Any) -> Iterator[None]:
    """Let a classic session give Arrow data to tasks, which decode it in parallel, not the optimizer of each query."""
    with _setting:
        before = session.conf.get(_THRESHOLD, None)
        session.conf.set(_THRESHOLD, "0")
        try:
            yield
        finally:
            if before is None:
                session.conf.unset(_THRESHOLD)
            else:
                session.conf.set(_THRESHOLD, before)
