"""Conditions of Polars as `where`: the rows are those that Polars keeps, or the condition is refused."""

from __future__ import annotations

import functools
import operator
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest

import hoodie
from hoodie.read.polars_filter import sql_of_polars
from tests.support.tables import new_table

NAN = float("nan")
ROWS = pa.table(
    {
        "id": ["a", "b", "c", "d", "e"],
        "n": pa.array([1, 2, None, 2**60 + 1, -5], pa.int64()),
        "m": pa.array([1, 3, None, 2**60 + 1, 5], pa.int64()),
        "x": [0.5, NAN, None, float("inf"), -1.0],
        "f": pa.array([0.1, NAN, None, 2.0, 0.5], pa.float32()),
        "b": [True, False, None, True, False],
        "s": ["it's", "50%_x", None, "", "Ünö"],
        "c": pa.array(
            [Decimal("1.25"), Decimal("-7.00"), None, Decimal("0.01"), Decimal("99.99")], pa.decimal128(9, 2)
        ),
        "d": [date(2026, 1, 1), date(1969, 12, 31), None, date(2026, 1, 2), date(1, 1, 1)],
        "t": pa.array([datetime(2026, 1, day, 12, 0, 0, day, UTC) if day else None for day in (1, 2, 0, 3, 4)]),
        "l": pa.array([datetime(2026, 1, day, 12) if day else None for day in (1, 2, 0, 3, 4)], pa.timestamp("us")),
        "st": [
            {"y": 1, "z": {"q": "k"}},
            {"y": None, "z": {"q": None}},
            None,
            {"y": 7, "z": None},
            {"y": 9, "z": {"q": "r"}},
        ],
    }
)
c = pl.col
NOON = datetime(2026, 1, 2, 12, 0, 0, 2, UTC)

TRANSLATED = [
    c("n") > 1,
    c("n") == 2**60 + 1,
    c("n") != 2,
    pl.lit(1) < c("n"),
    c("n") >= 1.5,
    c("n") < c("m"),
    c("n").eq_missing(2),
    c("n").eq_missing(None),
    c("n").ne_missing(c("m")),
    ~(c("x") > 0.5),
    c("x") > 1,
    c("x") == NAN,
    c("x").is_nan(),
    ~c("x").is_nan(),
    c("x").is_not_nan(),
    c("x") < float("inf"),
    c("x").is_in([NAN, 0.5]),
    c("f") >= 0.5,
    c("f").is_nan(),
    c("b"),
    ~c("b"),
    c("b") == False,  # noqa: E712
    c("b").is_null() | (c("n") == 1),
    c("s") == "it's",
    c("s").is_in(["it's", "", "nothing"]),
    ~c("s").is_in(["it's"]),
    c("s").is_in([]),
    ~c("s").is_in([]),
    c("n").is_in(pl.Series([1, 2])),
    c("n").is_in(range(3000)),
    c("s").str.starts_with("50%"),
    c("s").str.ends_with("_x"),
    ~c("s").str.contains("%", literal=True),
    c("c") > Decimal("1.00"),
    c("c").is_between(0, 2),
    c("d") > date(2026, 1, 1),
    c("d").is_in([date(2026, 1, 2), date(1, 1, 1)]),
    c("t") >= NOON,
    c("t").is_between(NOON, datetime(2026, 1, 4, tzinfo=UTC), closed="right"),
    c("l") == datetime(2026, 1, 3, 12),
    c("n").is_between(1, 2, closed="left"),
    ~c("n").is_between(1, 2, closed="none"),
    c("st").struct.field("y") > 3,
    c("st").struct.field("z").struct.field("q") == "k",
    (c("n") > 0) & ((c("s") == "") | c("x").is_null()),
    pl.all_horizontal(c("n") > 0, c("b"), c("s").is_not_null()),
    pl.any_horizontal(c("n") > 2, c("b")),
    (c("n") > 1).alias("large"),
    pl.lit(True),
    (c("n") > 1) & pl.lit(False),
]
REFUSED = [
    c("n") + 1 > 2,
    (c("n") > 1) & (c("n") + 1 > 2),
    (c("n") > 1) | c("s").str.contains("a.c"),
    ~c("s").str.to_lowercase().is_in(["a"]),
    c("n") == c("x"),
    c("n") > "1",
    c("s") == 1,
    c("d") > datetime(2026, 1, 1),
    c("t") > datetime(2026, 1, 1),
    c("l") > NOON,
    c("f") == 0.1,
    c("n") > 1e300,
    c("x") > 2**60,
    c("n").is_in([1, None]),
    c("n").is_in([1, None], nulls_equal=True),
    c("n").is_in(c("m")),
    c("n") == pl.lit(None),
    c("n").cast(pl.Int8) == 1,
    c("n").sum() > 1,
    c("n").max().over("s") > 1,
    c("n").is_unique(),
    pl.all() > 1,
    c("n", "m") > 1,
    c("n"),
    c("n") ^ c("m"),
    pl.lit(1) < 2,
    c("st").is_in([{"y": 1}]),
    c("n").map_elements(bool, return_dtype=pl.Boolean),
    functools.reduce(operator.or_, [c("n") == number for number in range(500)]),
]


@pytest.fixture(scope="module")
def table() -> hoodie.Table:
    return new_table(ROWS.schema, ROWS)


@pytest.mark.parametrize("condition", TRANSLATED, ids=[str(found)[:60] for found in TRANSLATED])
def test_the_rows_are_those_that_polars_keeps(table: hoodie.Table, condition: pl.Expr) -> None:
    kept = pl.DataFrame(pl.from_arrow(ROWS)).filter(condition)["id"].to_list()
    assert sorted(table.to_arrow("id", where=condition)["id"].to_pylist()) == kept


@pytest.mark.parametrize("condition", REFUSED, ids=[str(found)[:60] for found in REFUSED])
def test_what_sql_cannot_say_is_refused_whole(table: hoodie.Table, condition: pl.Expr) -> None:
    with pytest.raises(
        hoodie.UnsupportedError, match=r"(?s)^where=.*, found .*; write the condition in Spark SQL, as "
    ):
        table.count(condition)


def test_an_unknown_column_is_named(table: hoodie.Table) -> None:
    with pytest.raises(hoodie.SchemaMismatchError, match="no column 'idd'; did you mean id"):
        table.count(c("idd") == "a")


def test_names_are_quoted() -> None:
    schema = pa.schema([("a`b.c", pa.int64()), ("a", pa.struct([("x y", pa.string())]))])
    assert sql_of_polars(c("a`b.c") > 1, schema) == "(`a``b.c` > 1)"
    assert sql_of_polars(c("a").struct.field("x y") == "v", schema) == "(`a`.`x y` = 'v')"


def test_each_call_with_a_condition_takes_one() -> None:
    t = new_table(ROWS.schema, ROWS)
    assert t.count(c("n") == 1) == 1
    assert t.head(9, where=c("n") > 0).num_rows == 3
    assert t.to_pandas(columns=["id"], where=c("s") == "")["id"].to_list() == ["d"]
    assert t.to_batches(where=c("n") > 0).read_all().num_rows == 3
    assert t.explain(c("id") == "a").file_slices == 1
    assert t.changes(where=c("n") == 1).num_rows == 1
    assert t.update({"n": 100}, where=c("n") == 1).updated == 1
    assert t.delete_where(c("n") == 100).deleted == 1
    with pytest.raises(hoodie.UnsupportedError, match="write the condition in Spark SQL"):
        t.delete_where((c("n") == 2) & (c("n") + 1 > 2))
    assert t.count() == 4


def test_polars_is_not_imported_for_other_conditions() -> None:
    code = (
        "import sys, hoodie; t = hoodie.create('memory://no-polars', {'id': ['a']}, record_key='id')\n"
        "import pyarrow.compute as pc; t.count(pc.field('id') == 'a'); assert 'polars' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
