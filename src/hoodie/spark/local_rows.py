"""Small Arrow tables as DataFrames that are kept in the JVM, for rows that were merged in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pyarrow as pa

from hoodie.read.local_merges import RecentResults

KEPT_BYTES_MAX = 64 * 1024 * 1024
"""Maximum bytes of Arrow data whose DataFrames this process keeps; the JVM holds the data."""
_FOLDED_BYTES_MAX = 256 * 1024
"""Up to this many bytes Spark's optimizer may evaluate parts of a query on the rows, on one thread of the driver."""
_THRESHOLD = "spark.sql.execution.arrow.localRelationThreshold"

_kept: RecentResults[Any] = RecentResults(KEPT_BYTES_MAX)
_setting = threading.Lock()


def makes_frames_of_arrow(session: Any) -> bool:
    """Return whether the session makes DataFrames of Arrow tables, and has scalar subqueries: PySpark 4.0 and later."""
    return hasattr(type(session.range(0)), "scalar")


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
