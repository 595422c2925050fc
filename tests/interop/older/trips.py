"""Tables that an older release of JVM Hudi writes, and the comparison of what all readers see."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import hoodie
from tests.interop.judges import Jvm, read_with_hudi_rs
from tests.support.rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float64()), ("city", pa.string())])


def trips(numbers: range, ts: int) -> pa.Table:
    """One row for each number, with this ordering value."""
    rows = [{"id": f"k{n:02}", "ts": ts, "fare": n + ts / 8, "city": ("sf", "nyc")[n % 2]} for n in numbers]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def write(older: Jvm, path: Path, rows: pa.Table, *, table_type: str, operation: str = "upsert") -> None:
    """A write of the older release."""
    older.write(
        rows, path, table_name="trips", key="id", partition="city", ordering="ts", table_type=table_type,
        operation=operation, options={"hoodie.compact.inline": "false"},
    )  # fmt: skip


def assert_all_read(older: Jvm, path: Path, expected: dict[str, int]) -> None:
    """The older release, we and hudi-rs see these ids and ordering values, and the same values in every column."""
    theirs = older.read(path)
    assert dict(zip(theirs["id"].to_pylist(), theirs["ts"].to_pylist(), strict=True)) == expected
    assert_same_rows(hoodie.open(path).to_arrow(), theirs, meta=True)
    assert_same_rows(read_with_hudi_rs(path).select(SCHEMA.names), theirs.select(SCHEMA.names))
