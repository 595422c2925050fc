"""Parquet files that become tables, for tests: how they are written and adopted, and what the tables have then."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import hoodie
from hoodie.format.avro.schema import META_FIELDS
from hoodie.write.adopting.result import Adoption


def write(path: Path, columns: Mapping[str, Any]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return str(path)


def adopt(source: Path, **wanted: Any) -> Adoption:
    """Adopt the files as the table `t` beside them, with the key `id`."""
    return hoodie.adopt(source, source.parent / "t", dry_run=False, **{"record_key": "id", **wanted})


def rows_of(path: Path) -> pa.Table:
    found = hoodie.open(path, spark=False).to_arrow()
    return found.select([name for name in found.column_names if name not in META_FIELDS])


def values_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a table, in the order of their keys."""
    return sorted(rows_of(path).to_pylist(), key=lambda row: str(row["id"]))
