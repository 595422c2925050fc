"""The smallest integer of each type, in every form of a condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from tests.support.tables import new_table

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64()), ("i", pa.int32())])
SMALLEST = {"v": -(2**63), "i": -(2**31)}


@pytest.fixture
def table() -> hoodie.Table:
    return new_table(SCHEMA, [{"id": "a", **SMALLEST}, {"id": "b", "v": 2**63 - 1, "i": 2**31 - 1}])


def of_duckdb(table: hoodie.Table, column: str, value: int) -> list[str]:
    con: Any = duckdb.connect()
    table.to_duckdb(con).create_view("t")
    return [row[0] for row in con.sql(f"SELECT id FROM t WHERE {column} IN ({value}, 7)").fetchall()]


def of_polars(table: hoodie.Table, predicate: pl.Expr) -> list[str]:
    found: list[str] = table.to_polars().filter(predicate).select("id").collect()["id"].to_list()
    return found


def of_arrow(table: hoodie.Table, where: Any) -> list[str]:
    found: list[str] = table.to_arrow(["id"], where=where)["id"].to_pylist()
    return found


FORMS: dict[str, Callable[[hoodie.Table, str, int], list[str]]] = {
    "SQL": lambda table, column, value: of_arrow(table, f"{column} = {value}"),
    "SQL in parentheses": lambda table, column, value: of_arrow(table, f"{column} <= -({-value})"),
    "SQL with a suffix": lambda table, column, value: of_arrow(table, f"{column} = {value}L"),
    "SQL, a list": lambda table, column, value: of_arrow(table, f"{column} IN (7, {value})"),
    "pyarrow": lambda table, column, value: of_arrow(table, pc.field(column) == value),
    "pyarrow, a list": lambda table, column, value: of_arrow(table, pc.field(column).isin([value])),
    "a dataset": lambda table, column, value: (
        table.to_dataset().to_table(filter=pc.field(column) <= value)["id"].to_pylist()
    ),
    "polars": lambda table, column, value: of_polars(table, pl.col(column) == value),
    "polars, a list": lambda table, column, value: of_polars(table, pl.col(column).is_in([value])),
    "polars, a range": lambda table, column, value: of_polars(table, pl.col(column).is_between(value, 0)),
    "duckdb": of_duckdb,
}


@pytest.mark.parametrize("column", SMALLEST)
@pytest.mark.parametrize("form", FORMS)
def test_the_smallest_integer(table: hoodie.Table, form: str, column: str) -> None:
    assert FORMS[form](table, column, SMALLEST[column]) == ["a"]
