"""Convert rows to a pandas DataFrame without a change of values."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.types as types


def to_pandas(rows: pa.Table) -> pd.DataFrame:
    """Return the rows as pandas data: NumPy types, and pandas' nullable types for integers and booleans with nulls.

    Without these pandas would make floats of integers, which lose digits beyond 2^53. Memory: the rows.
    """
    frame = rows.to_pandas()
    for name in rows.column_names:
        column = rows[name]
        if column.null_count and (types.is_integer(column.type) or types.is_boolean(column.type)):
            frame[name] = column.to_pandas(types_mapper=_nullable)
    return frame


def _nullable(kind: pa.DataType) -> Any:
    if types.is_boolean(kind):
        return pd.BooleanDtype()
    return pd.api.types.pandas_dtype(f"{'U' if types.is_unsigned_integer(kind) else ''}Int{kind.bit_width}")
