"""A dataset of a table returns what pyarrow filters from its rows, whatever expression is given, and what it prunes."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from tests.support.rows import assert_same_rows
from tests.support.seeds import seeded

EXPRESSIONS = 60
BUCKETS = {"bucket": {"hoodie.bucket.index.num.buckets": "3"}}
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("i", pa.int32()),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("b", pa.bool_()),
        ("d", pa.decimal128(9, 2)),
        ("day", pa.date32()),
        ("null", pa.int64()),
    ]
)
VALUES: dict[str, list[Any]] = {
    "i": [None, -(2**31), -7, 0, 3, 9],
    "f": [None, float("nan"), float("inf"), -0.0, 0.0, 1.5, 1e300],
    "g": [None, float("nan"), 0.1, -0.5, 7.0],
    "b": [None, True, False],
    "d": [None, Decimal("-1.25"), Decimal("0.00"), Decimal("2.50")],
    "day": [None, dt.date(1960, 2, 29), dt.date(2024, 5, 5)],
    "null": [None, 0, 5],
    "p": ["x", "y", "z", "a b"],
    "id": [f"k{number}" for number in range(40)],
    "ts": list(range(6)),
}


@pytest.mark.matrix(keep=4)
@seeded(1, 2)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("index", ["record", "bucket", "simple"])
def test_any_expression_returns_the_rows_that_pyarrow_filters(table_type: str, index: str, seed: int) -> None:
    chance = random.Random(seed)
    table = hoodie.create(
        f"memory://datasets-{table_type}-{index}-{seed}", SCHEMA, record_key="id", partition_by="p", ordering="ts",
        type=table_type, index=index, spark=False,
        properties={"hoodie.metadata.index.column.stats.enable": "true", **BUCKETS.get(index, {})},
    )  # fmt: skip
    for number in range(4):
        table.upsert(pa.Table.from_pylist([_row(chance, number) for _ in range(12)], SCHEMA))
    everything = table.to_arrow()
    dataset = table.to_dataset()
    assert dataset.schema == everything.schema
    for _ in range(EXPRESSIONS):
        expression = _expression(chance, 3)
        columns = chance.sample(everything.schema.names, chance.randint(1, 4))
        expected = everything.filter(expression).select(columns)
        found = dataset.to_table(columns, filter=expression)
        assert found.schema == expected.schema
        try:
            assert_same_rows(found, expected, meta=True)
            assert dataset.count_rows(expression) == expected.num_rows
        except AssertionError as error:
            raise AssertionError(f"{expression}: {error}") from error


def _row(chance: random.Random, number: int) -> dict[str, Any]:
    row = {name: chance.choice(values) for name, values in VALUES.items()}
    return {**row, "ts": number}


def _expression(chance: random.Random, depth: int) -> pc.Expression:
    shape = chance.choice(["and", "or", "not", "leaf", "leaf"]) if depth else "leaf"
    if shape == "not":
        return ~_expression(chance, depth - 1)
    if shape in ("and", "or"):
        left, right = _expression(chance, depth - 1), _expression(chance, depth - 1)
        return left & right if shape == "and" else left | right
    name = chance.choice(SCHEMA.names)
    column, kind = pc.field(name), SCHEMA.field(name).type
    values = [value for value in VALUES[name] if value is not None]
    value = pa.scalar(chance.choice(values), kind)
    tests = [column == value, column != value, column.is_null(), column.is_valid(), column == pc.field(name)]
    some = pa.array(chance.sample(values, chance.randint(1, len(values))), kind)
    tests += [column.isin(some), pc.if_else(column.is_valid(), column.isin(some), pa.scalar(None, pa.bool_()))]
    if not pa.types.is_boolean(kind):
        tests += [column < value, column <= value, column > value, column >= value]
    return chance.choice(tests)
