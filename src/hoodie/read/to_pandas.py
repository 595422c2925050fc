"""Convert rows to a pandas DataFrame without a change of values."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.types as types

from hoodie.errors import UnsupportedError


def to_pandas(rows: pa.Table) -> pd.DataFrame:
    """Return the rows as pandas data: NumPy types, and pandas' nullable types for integers and booleans with nulls.

    Without these pandas would make floats of integers, which lose digits beyond 2^53. In lists, structs and maps such
    integers are Python objects. Times with a zone are Python objects in lists, which keep the zone. A column with a
    date after the year 9999 has the type `datetime64`. Memory: the rows.

    Raises: UnsupportedError for a time after the year 9999 in a struct or map, which pandas cannot hold.
    """
    columns = {name: _series(name, rows[name]) for name in rows.column_names}
    return pd.DataFrame(columns, index=pd.RangeIndex(rows.num_rows), copy=False)


def _series(name: str, column: pa.ChunkedArray) -> pd.Series:
    kind = column.type
    options: dict[str, Any] = {}
    if types.is_nested(kind):
        # An array of NumPy inside of a list has no zone.
        options = {"integer_object_nulls": True, "timestamp_as_object": "tz=" in str(kind)}
    elif column.null_count and (types.is_integer(kind) or types.is_boolean(kind)):
        options = {"types_mapper": _nullable}
    try:
        with suppress(ValueError):  # Python has no date after the year 9999; NumPy has.
            return column.to_pandas(**options)
        return column.to_pandas(**options | {"date_as_object": False, "timestamp_as_object": False})
    except ValueError as error:
        raise UnsupportedError(
            f"column {name!r} of type {kind} has a value that pandas cannot hold ({error}): leave the column out, or "
            f"read it with to_arrow"
        ) from error


def _nullable(kind: pa.DataType) -> Any:
    if types.is_boolean(kind):
        return pd.BooleanDtype()
    return pd.api.types.pandas_dtype(f"{'U' if types.is_unsigned_integer(kind) else ''}Int{kind.bit_width}")
