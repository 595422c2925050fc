"""Small local tables for tests of bad input, and the check that nothing came of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import hoodie
from hoodie.table import Table

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float64()), ("city", pa.string())])


def trips(*rows: tuple[str | None, int, float | None, str | None]) -> pa.Table:
    """Rows of the table's columns."""
    columns = list(zip(*rows, strict=True))
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def new_table(path: Path) -> Table:
    """A table with two rows in two partitions."""
    table = hoodie.create(path, SCHEMA, record_key="id", partition_by="city", ordering="ts", spark=False)
    table.upsert(trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "nyc")))
    return table


def files_below(path: Path) -> dict[str, bytes]:
    """Every file of a table with its bytes: what a refused call must not change."""
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}
