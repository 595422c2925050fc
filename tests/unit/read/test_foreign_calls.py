"""Calls of other libraries that found a raw error."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import hoodie
from tests.support.refusals import refused
from tests.support.tables import PLAIN, new_table, rows, values_of

PRICED = pa.schema([("id", pa.string()), ("price", pa.float64())])


def test_a_dataset_is_written_as_parquet_files(tmp_path: Path) -> None:
    table = new_table(PLAIN, rows("a", "b"))
    for _ in range(2):
        ds.write_dataset(
            table.to_dataset(), tmp_path / "out", format="parquet", existing_data_behavior="delete_matching"
        )
    assert ds.dataset(tmp_path / "out").to_table().select(["id", "ts"]).sort_by("id").to_pylist() == [
        {"id": "a", "ts": 1},
        {"id": "b", "ts": 1},
    ]


def test_a_connection_that_is_closed_is_refused() -> None:
    con = duckdb.connect()
    con.close()
    with pytest.raises(hoodie.InvalidConfigError, match="con: expected an open connection"):
        new_table(PLAIN, rows("a")).to_duckdb(con)


def test_decimals_in_a_column_of_doubles() -> None:
    table = new_table(PRICED)
    given = {"a": Decimal("3.5"), "b": Decimal("3.1"), "c": Decimal("-0.000001"), "d": None}
    table.upsert([{"id": key, "price": value} for key, value in given.items()])
    assert values_of(table, "id", "price") == [("a", 3.5), ("b", 3.1), ("c", -1e-06), ("d", None)]
    with refused(table, "Decimal('3.14159265358979323846') (Decimal) does not fit double"):
        table.upsert([{"id": "a", "price": Decimal("3.14159265358979323846")}])


def test_decimals_in_a_column_of_integers() -> None:
    table = new_table(pa.schema([("id", pa.string()), ("n", pa.int32())]))
    table.upsert(
        [{"id": "a", "n": Decimal("3")}, {"id": "b", "n": Decimal("3.00")}, {"id": "c", "n": Decimal("-1E+3")}]
    )
    assert values_of(table, "id", "n") == [("a", 3), ("b", 3), ("c", -1000)]
    for value in ("3.5", "2147483648"):
        with refused(table, f"Decimal('{value}') (Decimal) does not fit int32"):
            table.upsert([{"id": "a", "n": Decimal(value)}])
