"""Data skipping of both engines by our statistics returns the rows that a read without skipping returns."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.records.condition import Condition
from tests.interop.judges import Jvm
from tests.support.steps import once_at

NAN, INF = float("nan"), float("inf")
ON = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.parquet.small.file.limit": "0",
}
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "f": (pa.float64(), [NAN, -0.0, 0.0, None, -INF, INF, 1.5, -1.5]),
    "n": (pa.int64(), [-(2**63), 2**63 - 1, None, 2**53 + 1, 0, -1, None, None]),
    "s": (pa.string(), ["", "\U0010ffff" * 2, "\uffff", "\ud7ff", "a" * 5000, None, "é", "\U00010000"]),
    "m": (pa.decimal128(10, 2), [*map(Decimal, ("-1.25", "-0.01", "0", "1.25")), None, *map(Decimal, (5, 7, 9))]),
    "d": (pa.date32(), [dt.date(1960, 2, 29), dt.date(1969, 12, 31), dt.date(1970, 1, 1), None] * 2),
    "t": (
        pa.timestamp("us", "UTC"),
        [
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC),
            dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
            dt.datetime(1960, 1, 1, tzinfo=dt.UTC),
            None,
        ]
        * 2,
    ),
}
CONDITIONS = (
    "f < -1",
    "f >= 1.5",
    "f = CAST('NaN' AS DOUBLE)",
    "f = 0",
    "f IS NULL OR n IS NULL",
    "n > 9007199254740992",
    "n < -9223372036854775807",
    "n = 0 AND s IS NOT NULL",
    "s > '\uffff'",
    "s = '\U0010ffff\U0010ffff'",
    "s < 'a'",
    "s LIKE 'aaa%'",
    "s IN ('é', '\ud7ff')",
    "m < 0",
    "m = 1.25",
    "d < '1970-01-01'",
    "d BETWEEN '1969-12-31' AND '1969-12-31'",
    "t < TIMESTAMP '1970-01-01 00:00:00Z'",
    "t >= TIMESTAMP '1970-01-01 00:00:00Z'",
)


def rows() -> pa.Table:
    """Eight rows, two in each of four files."""
    columns = {name: pa.array(values, data_type) for name, (data_type, values) in VALUES.items()}
    numbers = list(range(8))
    return pa.table({"id": [f"k{n}" for n in numbers], "p": [str(n // 2) for n in numbers], "ts": [1] * 8, **columns})


LOST_BY_THE_JVM = ("f = CAST('NaN' AS DOUBLE)", "s LIKE 'aaa%'")
"""JVM reads with data skipping lose rows of these (docs/operations/statistics.md)."""


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_skipping_loses_no_row(jvm: Jvm, tmp_path: Path, kind: str) -> None:
    """Our statistics, as both engines use them, on nulls, NaN, long and odd texts, and times before 1970."""
    path, data = tmp_path / "t", rows()
    hoodie.create(
        path, data.schema, record_key="id", partition_by="p", ordering="ts", index="simple", name="t",
        type=kind.lower(), properties=ON, spark=False,
    )  # fmt: skip
    hoodie.open(path, spark=False).upsert(data)
    hoodie.open(path, spark=False).upsert(data.take(pa.array([0, 3, 6])))
    table = hoodie.open(path, spark=False)
    assert {"column_stats", "partition_stats"} <= set(table.view().config.metadata_partitions)
    assert table.explain("n = 5").file_slices < 4
    whole = table.to_arrow()
    expected: dict[str, list[str]] = {}
    for where in CONDITIONS:
        expected[where] = sorted(Condition.parse(where).row_filter(whole.schema).matching(whole)["id"].to_pylist())
        assert sorted(table.to_arrow("id", where=where)["id"].to_pylist()) == expected[where], where
    told = [where for where in CONDITIONS if where not in LOST_BY_THE_JVM]
    assert jvm.ids_where(path, told, skips=True) == {where: expected[where] for where in told}
    lost = list(LOST_BY_THE_JVM)
    assert jvm.ids_where(path, lost, skips=False) == {where: expected[where] for where in lost}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_skipping_loses_no_row_of_writers_that_overlapped(jvm: Jvm, tmp_path: Path, kind: str) -> None:
    """The ranges of a partition include the rows of a write that completed after a later one, in any order of logs."""
    path, schema = tmp_path / "t", pa.schema([("id", pa.string()), ("p", pa.string()), ("n", pa.int64())])
    hoodie.create(
        path, schema, record_key="id", partition_by="p", index="simple", name="t", type=kind.lower(), spark=False,
        properties={**ON, "hoodie.metadata.compact.max.delta.commits": "4"},
    )  # fmt: skip

    def insert(number: int) -> None:
        rows = pa.table([[f"k{number}"], ["a"], [number]], schema=schema)
        hoodie.open(path, spark=False).insert(rows)

    def check(numbers: list[int]) -> None:
        expected = {f"n = {number}": [f"k{number}"] for number in numbers} | {"n < 0": []}
        assert jvm.ids_where(path, list(expected), skips=True) == expected
        table = hoodie.open(path, spark=False)
        assert {where: table.to_arrow("id", where=where)["id"].to_pylist() for where in expected} == expected
        assert table.explain("n < 0").file_slices == 0
        assert table.index.verify("column_stats").ok

    insert(1)
    with once_at(Step.BEGUN, lambda: insert(2)):
        insert(100)
    check([1, 2, 100])
    for number in range(200, 204):  # the metadata table is compacted
        insert(number)
    check([1, 2, 100, *range(200, 204)])
