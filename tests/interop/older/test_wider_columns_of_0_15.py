"""Columns of merge-on-read tables of version 6 that get wider types: JVM Hudi 0.15 reads and compacts the log files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.interop.judges import Jvm, create_trips
from tests.support.rows import assert_same_rows

RELEASES = ("0.15.0",)
VECTORS = "spark.sql.parquet.enableVectorizedReader"


def _schema(number: pa.DataType, real: pa.DataType) -> pa.Schema:
    nested = pa.struct([("y", real)])
    return pa.schema(
        {"id": pa.string(), "ts": pa.int64(), "city": pa.string(), "x": number, "s": nested, "l": pa.list_(number)}
    )


NARROW, WIDE = _schema(pa.int32(), pa.float32()), _schema(pa.int64(), pa.float64())


def _rows(schema: pa.Schema, ts: int, value: int) -> pa.Table:
    row: dict[str, Any] = {"id": f"k{ts % 2}", "ts": ts, "city": "sf", "x": value, "s": {"y": 1.5}, "l": [value, value]}
    return pa.Table.from_pylist([row], schema=schema)


@pytest.fixture
def in_rows(older: Jvm) -> Iterator[Jvm]:
    """The release without the vectorised reader, which refuses nested columns whose type changed."""
    with older.configured({VECTORS: "false"}):
        yield older


def test_the_release_reads_and_compacts_wider_columns(in_rows: Jvm, tmp_path: Path) -> None:
    older, path = in_rows, tmp_path / "t"
    table = create_trips(path, NARROW, type="merge_on_read", index="simple", table_version=6, spark=False)
    for ts in (1, 2, 3, 4):
        table.upsert(_rows(NARROW, ts, ts))
    for ts in (5, 6):
        table.upsert(_rows(WIDE, ts, 2**40 + ts))
    names = WIDE.names
    expected = hoodie.open(path, spark=False).to_arrow(names)
    assert sorted(expected["x"].to_pylist()) == [2**40 + 5, 2**40 + 6]
    assert_same_rows(older.read(path, columns=names), expected)
    compacts = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    older.write_trips(_rows(WIDE, 7, 7), path, table_type="MERGE_ON_READ", options=compacts)
    found = hoodie.open(path, spark=False)
    assert found.timeline.writes().completed().instants[-1].action.value == "commit"
    assert sorted(found.to_arrow(names)["x"].to_pylist()) == [7, 2**40 + 6]
    assert_same_rows(older.read(path, columns=names), found.to_arrow(names))
