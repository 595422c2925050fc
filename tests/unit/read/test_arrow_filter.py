"""Expressions of pyarrow as conditions in SQL: what is translated, and what is left out."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.read.arrow_filter import Translated, columns_of, translated

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
    (pc.if_else(pc.is_valid(n), n.isin([1]), pa.scalar(None, pa.bool_())), "(`n` IS NOT NULL AND `n` IN (1))"),
]
LEFT_OUT = [
    (OPAQUE, None),
    (OPAQUE & (n == 1), "((`n` = 1))"),
    ((key == "a") & (t > datetime(2026, 1, 1)) & (n == 1), "(((`id` = 'a')) AND (`n` = 1))"),
    (OPAQUE | (n == 1), None),
    (~(OPAQUE & (n == 1)), None),
    (~(x > 1.0), None),  # a NaN matches it in pyarrow, not in SQL
    (f == 0.1, None),  # 0.1 is another number in 32 bits
    (n == pa.scalar(None, pa.int64()), None),
    (x == float("nan"), None),
    (n.isin(list(range(100))), None),  # pyarrow shows the first and the last
    (n.isin([1, None]), None),
    (pc.field("s", "y") == 1, None),
    (n.cast("string") == "1", None),
    (pc.scalar(5) < n, None),
    (pc.starts_with(key, "a") & (n == 1), "((`n` = 1))"),
    (pc.field(1) == 1, None),
]


@pytest.mark.parametrize(("expression", "where"), WHOLE, ids=[str(found) for found, _ in WHOLE])
def test_what_sql_can_say_is_translated(expression: pc.Expression, where: str) -> None:
    assert translated(expression, SCHEMA) == Translated(where, True)


@pytest.mark.parametrize(("expression", "where"), LEFT_OUT, ids=[str(found)[:40] for found, _ in LEFT_OUT])
def test_other_parts_are_left_out(expression: pc.Expression, where: str | None) -> None:
    assert translated(expression, SCHEMA) == Translated(where, False)


def test_names_that_look_like_expressions_are_not_read() -> None:
    schema = pa.schema([("n", pa.int64()), ("n == 1) and (n", pa.int64()), ("and", pa.int64())])
    assert translated((pc.field("n") > 0) & (pc.field("n == 1) and (n") == 2), schema) == Translated(None, False)
    assert translated(pc.field("and") == 1, schema) == Translated(None, False)
    assert translated(pc.field("n") == 1, schema) == Translated("(`n` = 1)", True)


def test_the_columns_of_an_expression_are_at_least_those_it_reads() -> None:
    assert columns_of((key == "a") & (pc.field("s", "y") == 1), SCHEMA) == ["id", "s"]
    assert columns_of(pc.field(1) == 1, SCHEMA) == SCHEMA.names
