"""Column statistics and bloom filters of versions 8 and 6: JVM Hudi and we keep them up to date in turns.

Both skip files by the statistics, whose rows have index version V1: other wrappers than in version 9, and no type
(docs/format/metadata.md §4.4). JVM Hudi finds keys by the filters.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from tests.interop.judges import NEWEST_TABLE_VERSION, Jvm
from tests.interop.older.life import TABLE_TYPES

RELEASES = ("1.0.2", "0.15.0")
_ON = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.compact.inline": "false",
}
_OF_JVM = {
    "hoodie.index.type": "BLOOM",
    "hoodie.bloom.index.use.metadata": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
}
_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int32()),
        ("x", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("b", pa.bool_()),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("t", pa.timestamp("us", tz="UTC")),
        ("money", pa.decimal128(10, 2)),
        ("wide", pa.decimal128(20, 2)),
        ("none", pa.int32()),
    ]
)
_SKIPPING = ("x = 11", "l = 1099511627807", "s = 's31'", "day = DATE'1970-02-01'", "money = -3.1")
_OTHERS = (
    "b",
    "d <= -15.5",
    "t >= TIMESTAMP'1970-01-01 00:00:31'",
    "wide = 31.25",
    "money > 0",
    "none IS NULL",
    "none IS NOT NULL",
    "x > 1000",
    "ts > 3",
)


def _rows(numbers: range, p: str, *, ts: int, add: int = 0) -> pa.Table:
    rows = [
        {
            "id": f"k{number:02}",
            "p": p,
            "ts": ts,
            "x": value,
            "l": 2**40 + value,
            "d": -value / 2,
            "b": value % 2 == 0,
            "s": f"s{value}",
            "day": dt.date(1970, 1, 1) + dt.timedelta(days=value),
            "t": dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=value),
            "money": Decimal(-value) / 10,
            "wide": Decimal(value) + Decimal("0.25"),
            "none": None,
        }
        for number in numbers
        for value in (number + add,)
    ]
    return pa.Table.from_pylist(rows, _SCHEMA)


def _check(older: Jvm, path: Path, table_type: str) -> None:
    """Both find the same rows with statistics as without, in few of the files, and our full check finds nothing."""
    table = hoodie.open(path, spark=False)
    conditions = (*_SKIPPING, *_OTHERS)
    expected = older.ids_where(path, conditions, skips=False)
    assert older.ids_where(path, conditions, skips=True) == expected
    assert {where: sorted(table.to_arrow("id", where=where)["id"].to_pylist()) for where in conditions} == expected
    total = table.explain().file_slices
    for where in _SKIPPING:
        assert table.explain(where).file_slices < total, where
    if table_type == "COPY_ON_WRITE" or older.release != "0.15.0":
        # Plans of 0.15 do not tell the files of a merge-on-read table.
        where = _SKIPPING[0]
        assert older.read_where(path, where, skips=True).files < older.read_where(path, where, skips=False).files
    report = table.verify(full=True)
    assert report.ok, report
    config = table.view().config
    named = {"column_stats", "bloom_filters"} | ({"partition_stats"} if config.version.value > 6 else set())
    assert named <= set(config.metadata_partitions)


@pytest.mark.parametrize("table_type", TABLE_TYPES)
@pytest.mark.parametrize("is_ours", [True, False], ids=["our table", "its table"])
def test_both_keep_statistics_up_to_date_in_turns(older: Jvm, tmp_path: Path, table_type: str, is_ours: bool) -> None:
    path = tmp_path / "t"
    if is_ours:
        stored = {**_ON, "hoodie.datasource.write.hive_style_partitioning": "false"}
        hoodie.create(
            path, _SCHEMA, record_key="id", partition_by="p", ordering="ts", type=table_type.lower(), index="bloom",
            name="t", table_version=NEWEST_TABLE_VERSION[older.release], properties=stored,
        )  # fmt: skip

    def write(rows: pa.Table, *, by_us: bool, operation: str = "upsert") -> None:
        if by_us:
            table = hoodie.open(path, spark=False)
            table.delete(rows.select(["id", "p"])) if operation == "delete" else table.upsert(rows, properties=_ON)
        else:
            older.write(
                rows, path, table_name="t", key="id", partition="p", ordering="ts", table_type=table_type,
                operation=operation, options={**_ON, **_OF_JVM},
            )  # fmt: skip

    for number, p in enumerate("aabb"):
        write(_rows(range(10 * number, 10 * number + 3), p, ts=1), by_us=is_ours)
    _check(older, path, table_type)
    for ts, by_us in ((3, not is_ours), (4, is_ours)):
        write(_rows(range(10, 12), "a", ts=ts, add=by_us), by_us=by_us)
        write(_rows(range(40 + 5 * by_us, 42 + 5 * by_us), "b", ts=1), by_us=by_us)
        write(_rows(range(1 + by_us, 2 + by_us), "a", ts=9), by_us=by_us, operation="delete")
        _check(older, path, table_type)
    table = hoodie.open(path, spark=False)
    if table_type == "MERGE_ON_READ":
        table.schedule_compaction()
        table.compact()
    table.cluster(by="x")
    table.clean(properties={"hoodie.clean.commits.retained": "1"})
    write(_rows(range(31, 32), "b", ts=9), by_us=False)
    _check(older, path, table_type)
