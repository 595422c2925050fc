"""Column statistics of base files, from their Parquet footers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.base_file import open_base_file
from hoodie.files.slices import BaseFile
from hoodie.read.report import report_schema
from hoodie.storage import Store

STATISTICS_SCHEMA = report_schema(
    "partition_path string, file string, column string, rows int64, nulls int64?, min string?, max string?, "
    "size_bytes int64"
)


def column_statistics(store: Store, files: Sequence[BaseFile]) -> pa.Table:
    """Return one row for each column of each base file: rows, nulls, bounds as strings, and bytes on disk.

    One small read for each file. Raises: MissingFileError, CorruptFileError.
    """

    def read(file: BaseFile, context: TaskContext) -> list[dict[str, Any]]:
        with open_base_file(store, file) as (parquet, _):
            return _column_rows(file, parquet.metadata)

    rows = [row for rows in LocalEngine().run(read, files) for row in rows]
    return pa.Table.from_pylist(rows, schema=STATISTICS_SCHEMA)


def _column_rows(file: BaseFile, footer: Any) -> list[dict[str, Any]]:
    """Return one row for each leaf column, over all row groups of the file."""
    columns: dict[str, list[Any]] = {}
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for number in range(row_group.num_columns):
            chunk = row_group.column(number)
            columns.setdefault(chunk.path_in_schema, []).append(chunk)
    return [
        {
            "partition_path": file.partition_path,
            "file": file.name,
            "column": name,
            "rows": footer.num_rows,
            "size_bytes": sum(chunk.total_compressed_size for chunk in chunks),
            **_bounds([chunk.statistics for chunk in chunks]),
        }
        for name, chunks in columns.items()
    ]


def _bounds(statistics: list[Any]) -> dict[str, Any]:
    """Return nulls and bounds over all row groups; null if the statistics of a row group do not contain them."""
    has_nulls = all(found is not None and found.has_null_count for found in statistics)
    nulls = sum(found.null_count for found in statistics) if has_nulls else None
    filled = [found for found in statistics if found is None or found.num_values > 0]
    if not filled or any(found is None or not found.has_min_max for found in filled):
        return {"nulls": nulls, "min": None, "max": None}
    # NaN, which equals nothing, is the greatest value of a chunk that has it.
    greatest = max((found.max for found in filled), key=lambda value: (value != value, value))
    return {"nulls": nulls, "min": _text(min(found.min for found in filled)), "max": _text(greatest)}


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
