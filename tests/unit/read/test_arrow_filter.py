"""Expressions of pyarrow as conditions in SQL: what is translated, and what is left out."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from operator import or_

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.read.arrow_filter import columns_of, translated
from tests.support.tables import TYPES, new_table

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("d", pa.date32()),
        ("c", pa.decimal128(9, 2)),
        ("t", pa.timestamp("us", "UTC")),
        ("o", pa.bool_()),
        ("s", pa.struct([("y", pa.int64())])),
    ]
)
key, n, x, f, d, c, t, o = (pc.field(name) for name in ("id", "n", "x", "f", "d", "c", "t", "o"))
OPAQUE = n == x
NUMBERED = pa.table({"id": ["a", "b", "c"], "v": [10, 20, 30], "w": [20, 1, 16]})

WHOLE = [
    (key == "a", "(`id` = 'a')"),
    (key == 'it\'s "q"\\\n) and (n == 1', "(`id` = 'it\\'s \"q\"\\\\\n) and (n == 1')"),
    (n >= -5, "(`n` >= -5)"),
    (n != 2**40, f"(`n` <> {2**40}L)"),
    (x < 1e300, "(`x` < 1e+300D)"),
    (d == date(2026, 1, 2), "(`d` = DATE'2026-01-02')"),
    (c <= Decimal("1.50"), "(`c` <= 1.50BD)"),
    (o, "(`o` = true)"),
    (~o, "(NOT (`o` = true))"),
    (o == False, "(`o` = false)"),  # noqa: E712
    (n.is_null(), "(`n` IS NULL)"),
    (n.is_valid(), "(`n` IS NOT NULL)"),
    (n.isin([1, 2]), "(`n` IS NOT NULL AND `n` IN (1, 2))"),
    (key.isin(["a, b", "]"]), "(`id` IS NOT NULL AND `id` IN ('a, b', ']'))"),
    ((n > 1) & (n < 3) | (key == "x"), "(((`n` > 1) AND (`n` < 3)) OR (`id` = 'x'))"),
    (~((n > 1) | (key == "x")), "(NOT ((`n` > 1) OR (`id` = 'x')))"),
    (pc.if_else(pc.is_valid(n), n.isin([1]), pa.scalar(None, pa.bool_())), "(`n` IN (1))"),
    (n.isin(list(range(100))), f"(`n` IS NOT NULL AND `n` IN ({', '.join(map(str, range(100)))}))"),
    (pc.scalar(5) < n, "(`n` > 5)"),
    (key.isin(['a", "b']), "(`id` IS NOT NULL AND `id` IN ('a\", \"b'))"),
    (key.isin([r"C:\new"]), r"(`id` IS NOT NULL AND `id` IN ('C:\\new'))"),
    (key.isin(["ü" * 200]), f"(`id` IS NOT NULL AND `id` IN ('{'ü' * 200}'))"),
    ((n == 1) | (n == 2) | (n == 3), "((`n` = 1) OR (`n` = 2) OR (`n` = 3))"),
    (t > datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC), "(`t` > TIMESTAMP'2026-01-01 00:00:00.000001Z')"),
    (x == 3, "(`x` = 3.0D)"),
]
LEFT_OUT = [
    (OPAQUE, None),
    (OPAQUE & (n == 1), "(`n` = 1)"),
    ((key == "a") & (t > datetime(2026, 1, 1)) & (n == 1), "((`id` = 'a') AND (`n` = 1))"),
    (OPAQUE | (n == 1), None),
    (~(OPAQUE & (n == 1)), None),
    (~(x > 1.0), None),  # a NaN matches it in pyarrow, not in SQL
    (f == 0.1, None),  # 0.1 is another number in 32 bits
    (n == pa.scalar(None, pa.int64()), None),
    (x == float("nan"), None),
    (n.isin([1, None]), None),
    (pc.field("s", "y") == 1, None),
    (n.cast("string") == "1", None),
    (n.isin(list(range(100_000))), None),
    (x == 2**60 + 1, None),
    (pc.is_in(n, pa.array([1]), skip_nulls=True), None),
    (n.is_null(nan_is_null=True), None),
    (pc.starts_with(key, "a") & (n == 1), "(`n` = 1)"),
    (pc.field(1) == 1, None),
]


@pytest.mark.parametrize(("expression", "where"), WHOLE, ids=[str(found) for found, _ in WHOLE])
def test_what_sql_can_say_is_translated(expression: pc.Expression, where: str) -> None:
    assert translated(expression, SCHEMA) == (where, True)


@pytest.mark.parametrize(("expression", "where"), LEFT_OUT, ids=[str(found)[:40] for found, _ in LEFT_OUT])
def test_other_parts_are_left_out(expression: pc.Expression, where: str | None) -> None:
    assert translated(expression, SCHEMA) == (where, False)


def test_names_that_look_like_expressions() -> None:
    schema = pa.schema([("n", pa.int64()), ("n == 1) and (n", pa.int64()), ("and", pa.int64()), ("n", pa.int64())])
    found = translated((pc.field("and") > 0) & (pc.field("n == 1) and (n") == 2), schema)
    assert found == ("((`and` > 0) AND (`n == 1) and (n` = 2))", True)
    assert translated(pc.field("n") == 1, schema) == (None, False)  # two columns have the name


def test_a_long_chain_is_one_list() -> None:
    terms = [(n == number) & (key == str(number)) for number in range(400)]
    where, is_complete = translated(reduce(or_, terms), SCHEMA)
    assert is_complete
    assert where is not None
    assert where.count(" OR ") == 399
    assert where.startswith("(((`n` = 0) AND (`id` = '0')) OR ((`n` = 1)")
    assert translated(reduce(or_, terms * 10), SCHEMA) == (None, False)


def test_the_columns_of_an_expression_are_at_least_those_it_reads() -> None:
    assert columns_of((key == "a") & (pc.field("s", "y") == 1), SCHEMA) == ["id", "s"]
    assert columns_of(pc.field(1) == 1, SCHEMA) == SCHEMA.names


@pytest.mark.parametrize("value", ["u" * 120, r"C:\new", 'a", "b', "ü" * 98, "line\nend"])
def test_texts_of_any_form_are_found(value: str) -> None:
    rows = pa.table({"id": [value, "other"]})
    table = new_table(rows.schema, rows)
    for wanted in (key.isin([value]), key == value, ~(key != value)):
        assert table.count(wanted) == 1
        assert table.to_dataset().to_table(filter=wanted, columns=["id"]).to_pylist() == [{"id": value}]


def test_a_filter_that_sql_cannot_hold_filters_rows() -> None:
    rows = pa.table({"n": pa.array([1, 2, 3], pa.int64()), "id": ["a", "b", "c"]})
    table = new_table(rows.schema, rows)
    deep = n == 1
    for number in range(300):
        deep = (deep & (n < 100 + number)) | (n == 2)
    assert sorted(table.to_dataset().to_table(filter=deep, columns=["id"])["id"].to_pylist()) == ["a", "b"]


@pytest.mark.parametrize("table_type", TYPES)
def test_a_number_in_a_filter_is_a_place_in_the_schema(table_type: str) -> None:
    table = new_table(NUMBERED.schema, NUMBERED, NUMBERED.slice(1), type=table_type)  # merge-on-read: a log
    dataset = table.to_dataset()
    for name in ("v", "w"):
        number = dataset.schema.names.index(name)
        for wanted in (pc.field(number) > 15, (pc.field(number) > 15) & (key != "z"), pc.field((number,)) > 15):
            named = pc.field(name) > 15
            for columns in (["w"], ["w", "id"], ["_hoodie_record_key"], None):
                assert dataset.to_table(columns, wanted) == dataset.to_table(columns, named)
            assert dataset.count_rows(wanted) == dataset.count_rows(named)
