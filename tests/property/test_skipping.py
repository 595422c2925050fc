"""A read that skips files by statistics returns what a read of all files returns, whatever types, values and merges."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.records.condition import Condition
from tests.support.seeds import seeded

ROUNDS = 6
CONDITIONS = 36
UTC = dt.UTC
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("i", pa.int32()),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("s", pa.string()),
        ("y", pa.binary()),
        ("b", pa.bool_()),
        ("d", pa.decimal128(30, 3)),
        ("day", pa.date32()),
        ("t", pa.timestamp("us", tz="UTC")),
        ("n", pa.timestamp("us")),
        ("o", pa.struct([("x", pa.int64()), ("w", pa.string())])),
    ]
)
VALUES: dict[str, list[Any]] = {
    "i": [None, -(2**31), -7, 0, 3, 9, 2**31 - 1],
    "f": [None, float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1.5, -2.25, 1e300],
    "g": [None, float("nan"), 0.5, -0.5, 0.0, 7.0],
    "s": [None, "", "a", "ab", "abc", "b%", "é", "\U0001f600", "\uffff", "x" * 5000, "xy" * 2600],
    "y": [None, b"", b"\x00", b"\xff", b"ab"],
    "b": [None, True, False],
    "d": [None, Decimal("-1.250"), Decimal("0.000"), Decimal("123456789012345678901234567.125"), Decimal("2.500")],
    "day": [None, dt.date(1, 1, 1), dt.date(1960, 2, 29), dt.date(1970, 1, 1), dt.date(2024, 5, 5)],
    "t": [
        None,
        dt.datetime(1901, 1, 1, tzinfo=UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        dt.datetime(2024, 5, 5, 12, tzinfo=UTC),
    ],
    "n": [None, dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 5, 5, 12)],
    "o": [None, {"x": None, "w": None}, {"x": -5, "w": "q"}, {"x": 8, "w": None}],
}
LITERALS = {
    "i": ["-8", "-7", "0", "3.5", "9", "'3'", "10000000000"],
    "f": ["0", "1.5", "-2.25", "2", "1e10", "CAST('NaN' AS DOUBLE)"],
    "g": ["0", "0.5", "7", "0.1"],
    "s": ["''", "'a'", "'abb'", "'é'", "'zzz'", "5"],
    "y": ["X'00'", "X'FF'", "'ab'"],
    "b": ["true", "false"],
    "d": ["-1.25", "0", "2.5", "2.4999", "1e3"],
    "day": ["DATE '1960-02-29'", "'1969-12-31'", "TIMESTAMP '1970-01-01 00:00:00'"],
    "t": ["TIMESTAMP '1969-12-31 23:59:59.999999'", "'1905-01-01'", "'2024-05-07'", "DATE '1968-01-01'"],
    "n": ["TIMESTAMP '1970-01-01 00:00:00'", "'2030-01-01'"],
    "o.x": ["-5", "0", "8", "9"],
    "o.w": ["'q'", "'r'"],
    "id": ["'k1'", "'zz'"],
    "_hoodie_record_key": ["'k1'", "'zz'"],
}


def batch(chooser: random.Random, ids: list[str], ts: int) -> pa.Table:
    """Rows whose values are close to each other, so that files have narrow ranges."""
    columns: dict[str, list[Any]] = {"id": ids, "p": [partition_of(key) for key in ids], "ts": [ts] * len(ids)}
    for name, values in VALUES.items():
        few = chooser.sample(values, k=chooser.choice([1, 1, 2]))
        columns[name] = [chooser.choice(few) for _ in ids]
    return pa.table(columns, schema=SCHEMA)


def partition_of(key: str) -> str:
    return f"p{sum(key.encode()) % 3}"


def leaf(chooser: random.Random) -> str:
    name = chooser.choice(list(LITERALS))
    value, other = chooser.choice(LITERALS[name]), chooser.choice(LITERALS[name])
    forms = [
        f"{name} {chooser.choice(['<', '<=', '=', '>', '>=', '!=', '<=>'])} {value}",
        f"{value} {chooser.choice(['<', '<=', '=', '>', '>='])} {name}",
        f"{name} IS NULL",
        f"{name} IS NOT NULL",
        f"NOT ({name} > {value})",
        f"{name} BETWEEN {value} AND {other}",
        f"{name} IN ({value}, {other}, NULL)",
        f"CAST({name} AS STRING) = {value}",
    ]
    if name in ("s", "o.w"):
        pattern = chooser.choice(["a%", "ab_", "x%", "%", "q", "z%", "é%"])
        forms += [f"{name} LIKE '{pattern}'", f"{name} LIKE '{pattern}'", f"{name} NOT LIKE '{pattern}'"]
    return chooser.choice(forms)


def condition(chooser: random.Random) -> str:
    first, second = leaf(chooser), leaf(chooser)
    return chooser.choice([first, first, f"({first}) AND ({second})", f"({first}) OR ({second})"])


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
@seeded(1)
def test_skipping_changes_no_result(kind: str, seed: int) -> None:
    chooser = random.Random(seed)
    table = hoodie.create(
        f"memory://skipping-{kind}-{seed}",
        SCHEMA,
        record_key="id",
        partition_by="p",
        type=kind,
        index=chooser.choice(["simple", "record"]),
        ordering=chooser.choice([None, "ts"]),
        properties={
            "hoodie.metadata.index.column.stats.enable": "true",
            "hoodie.metadata.index.column.stats.column.list": ",".join([*VALUES, "id", "o.x", "o.w"]),
            "hoodie.metadata.compact.max.delta.commits": "3",
            "hoodie.parquet.small.file.limit": "0",
        },
    )
    skipped = compared = 0
    for number in range(ROUNDS):
        ids = [f"k{chooser.randrange(40)}" for _ in range(6)]
        table.upsert(batch(chooser, sorted(set(ids)), chooser.randrange(10)))
        if number == 4:
            table.delete(pa.table({"id": ["k1", "k2"], "p": [partition_of("k1"), partition_of("k2")]}))
        if number == 5 and kind == "merge_on_read" and table.schedule_compaction():
            table.compact()
        everything = table.to_arrow()
        for _ in range(CONDITIONS // ROUNDS):
            where = condition(chooser)
            try:
                found = Condition.parse(where).row_filter(everything.schema).matching(everything)
            except (hoodie.HoodieError, pa.ArrowInvalid):
                # Refused, or a cast of a value fails: there is no result to compare.
                continue
            wanted = sorted(found["id"].to_pylist())
            assert sorted(table.to_arrow("id", where=where)["id"].to_pylist()) == wanted, where
            told = table.explain(where).skipped
            skipped += told.by_partition_stats + told.by_column_stats
            compared += 1
    assert compared > CONDITIONS // 2
    assert skipped > compared // 4
