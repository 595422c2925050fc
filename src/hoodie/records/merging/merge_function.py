"""Call a merge function of the caller, and check what it returns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hoodie.arguments import shown
from hoodie.errors import InvalidConfigError
from hoodie.format.schema.conform import conform
from hoodie.records.merging.mergers import MergeFunction


def merge_by(function: MergeFunction, older: pa.Table, newer: pa.Table) -> tuple[pa.Table, pa.BooleanArray | None]:
    """Return the merged rows of a function, and which of their records are deleted; None for none.

    Raises: InvalidConfigError if the function returned anything else than `MergeFunction` describes.
    """
    answer: Any = function(older, newer)
    merged, deleted = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)
    if not isinstance(merged, pa.Table) or merged.num_rows != newer.num_rows:
        returned = f"{merged.num_rows} rows" if isinstance(merged, pa.Table) else shown(answer)
        raise InvalidConfigError(
            f"expected the merger {_name(function)} to return a pyarrow table of {newer.num_rows} rows, one for each "
            f"row that it received, or that and an array of booleans; it returned {returned}"
        )
    missing = [name for name in newer.column_names if merged.column_names.count(name) != 1]
    if missing:
        raise InvalidConfigError(
            f"expected the merger {_name(function)} to return each column of its rows once; its result has the columns "
            f"{merged.column_names}, and {missing[0]!r} is not one of them, or twice"
        )
    if deleted is not None and not _are_flags(deleted, newer.num_rows):
        raise InvalidConfigError(
            f"expected the merger {_name(function)} to return an array of {newer.num_rows} booleans with its rows, "
            f"true for each record that is deleted; it returned {shown(deleted)}"
        )
    return merged, None if deleted is None else deleted.cast(pa.bool_()).fill_null(False)


def _are_flags(value: Any, count: int) -> bool:
    """Return whether a value is an array of so many booleans; one of only nulls has the null type."""
    is_array = isinstance(value, pa.Array | pa.ChunkedArray) and len(value) == count
    return is_array and (pa.types.is_boolean(value.type) or pa.types.is_null(value.type))


def _name(function: MergeFunction) -> str:
    return repr(getattr(function, "__qualname__", function))


def answered(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Return a column of a merge function's result in the field's type; nested types may differ in required fields.

    Raises: SchemaMismatchError if a struct that is not null lacks a required value.
    """
    if not pa.types.is_nested(field.type):
        return column.cast(field.type)
    return conform(pa.table([column], [field.name]), pa.schema([field])).column(0)
