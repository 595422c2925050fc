"""What SQL statements return in a session: a DataFrame each, as `spark.sql` does; some carry their result."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import pyarrow as pa

from hoodie.spark.datasource_writer import warn_notes
from hoodie.spark.small_tables import empty_frame, from_arrow
from hoodie.table import Table
from hoodie.write.result import AlterResult, WriteResult

COUNTS: Final = pa.schema(
    [("instant", pa.string()), *((name, pa.int64()) for name in ("inserted", "updated", "deleted", "ignored"))]
)
"""The columns of the answer to a write."""


def answer(session: Any, result: Any, *, stacklevel: int = 3) -> Any:
    """Return the result of a statement as a DataFrame: rows as they are, of a write its counts, else no rows.

    A DataFrame that is made here has the result as its attribute `result`, and the fields of a `WriteResult` or
    `AlterResult` as attributes too. `stacklevel`: where a warning points to; 3 is the caller of the caller.

    Warns: `HoodieWarning` for each note of the result, which a DataFrame does not show.
    """
    if isinstance(result, AlterResult | WriteResult):
        warn_notes(result, stacklevel=stacklevel + 1)
    if isinstance(result, WriteResult):
        counts = {name: getattr(result, name) for name in COUNTS.names}
        return _carrying(from_arrow(session, pa.Table.from_pylist([counts], COUNTS)), result)
    is_rowless = result is None or isinstance(result, AlterResult | Table)
    return _carrying(empty_frame(session, ""), result) if is_rowless else result


def _carrying(frame: Any, result: Any) -> Any:
    frame.result = result
    for field in dataclasses.fields(result) if isinstance(result, AlterResult | WriteResult) else ():
        if not hasattr(type(frame), field.name):
            setattr(frame, field.name, getattr(result, field.name))
    return frame
