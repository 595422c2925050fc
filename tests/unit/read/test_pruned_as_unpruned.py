"""A read that leaves out partitions and files returns the rows that the condition has without leaving out any."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie.records.condition import Condition
from hoodie.storage import Store
from hoodie.table import Table
from hoodie.view.slices import list_slices
from tests.support.tables import TYPES, made_once, new_table

NAN, INF = float("nan"), float("inf")
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "float": (pa.float32(), [0.0, -0.0, NAN, None, -1.5, 1.5, INF, -INF, 0.1, NAN]),
    "double": (pa.float64(), [-0.0, NAN, 0.0, None, -INF, INF, 1.5, -1.5, NAN, 0.1]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1, None, 0, -1, 1, 5, 7, 8, 9]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1, 2**53 + 1, 0, None, -1, 5, 7, 8, 9]),
    "text": (pa.string(), ["", "a", "a" * 5000, "\U0010ffff" * 2, "\uffff", "\ud7ff", "é", None, "b%", "\U00010000"]),
    "bool": (pa.bool_(), [True, True, False, False, None, None, True, False, None, True]),
    "money": (pa.decimal128(10, 2), [*map(Decimal, ("-1.25", "-0.01", "0", "1.25")), None, *map(Decimal, range(5))]),
    "great": (pa.decimal128(38, 0), [Decimal(10**37), Decimal(-(10**37)), None, *map(Decimal, range(-3, 4))]),
    "day": (
        pa.date32(),
        [dt.date(1, 1, 1), dt.date(1582, 10, 4), dt.date(1969, 12, 31), dt.date(1970, 1, 1), None] * 2,
    ),
    "stamp": (
        pa.timestamp("us", "UTC"),
        [
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC),
            dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
            dt.datetime(1, 1, 1, tzinfo=dt.UTC),
            dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC),
            None,
        ]
        * 2,
    ),
    "local": (
        pa.timestamp("us"),
        [dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(1970, 1, 1), None, None, None] * 2,
    ),
}
ON = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
}


def literal(name: str, value: Any) -> str:
    """The Spark SQL of a value of a column."""
    if name in ("float", "double"):
        return f"CAST('{'NaN' if value != value else str(value)}' AS {name.upper()})"
    if name in ("text", "bool", "int", "long"):
        return f"'{value}'" if name == "text" else str(value)
    if name in ("money", "great"):
        return str(value)
    return f"DATE '{value}'" if name == "day" else f"TIMESTAMP{'' if name == 'stamp' else '_NTZ'} '{value}'"


def conditions(name: str, stored: Sequence[Any]) -> Iterator[str]:
    """Comparisons with each value of a column: all kinds for floats, else two in turn; and one with two values."""
    values = list(dict.fromkeys(literal(name, one) for one in stored if one is not None))
    yield from (f"{name} IS NULL", f"NOT ({name} IS NULL)")
    for number, value in enumerate(values):
        other = values[number - 1]
        kinds = ("=", "<", "<>", ">=") if name in ("float", "double") else (("=", ">="), ("<", "<>"))[number % 2]
        yield from (f"{name} {kind} {value}" for kind in kinds)
        yield (f"{name} IN ({value}, {other}) OR x = 3", f"{name} BETWEEN {other} AND {value} AND x >= 0")[number % 2]
        if name == "text" and len(value) > 2:
            yield f"{name} LIKE '{value[1]}%'"


@made_once
def table_of(type_: str, partition_by: str, short: tuple[str | None, ...] = ()) -> Table:
    """Ten rows of all types, two in each of five files; if the table has log files, the same rows once more in them.

    `short`: texts instead of those of `VALUES`, which are too long for paths of partitions.
    """
    columns = {name: pa.array(values, data_type) for name, (data_type, values) in VALUES.items()}
    columns["text"] = pa.array(short, pa.string()) if short else columns["text"]
    numbers = list(range(10))
    rows = pa.table({"id": [f"k{n}" for n in numbers], "x": numbers, "pair": [n // 2 for n in numbers], **columns})
    table = new_table(rows.schema, partition_by=partition_by, type=type_, properties=ON)
    table.bulk_insert(rows)
    if type_ == "merge_on_read":
        table.upsert(rows.take(pa.array([9, 0, 3, 4])))
    return table


def compare(table: Table, name: str, values: Sequence[Any] = ()) -> None:
    whole = table.to_arrow()
    assert table.explain("x = 99").file_slices == 0
    for where in conditions(name, values or VALUES[name][1]):
        expected = sorted(Condition.parse(where).row_filter(whole.schema).matching(whole)["x"].to_pylist())
        assert sorted(table.to_arrow("x", where=where)["x"].to_pylist()) == expected, where


@pytest.mark.matrix(keep=6)
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("type_", TYPES)
def test_statistics_leave_out_no_row(type_: str, name: str) -> None:
    compare(table_of(type_, "pair"), name)


@pytest.mark.matrix(keep=4)
@pytest.mark.parametrize("name", [name for name in VALUES if name not in ("text", "float")])
def test_partition_values_leave_out_no_row(name: str) -> None:
    compare(table_of("copy_on_write", name), name)


def test_texts_of_partitions_leave_out_no_row() -> None:
    short = ("", "a", "1", "01", "__HIVE_DEFAULT_PARTITION__", None, "é", "b%", "true", "\U00010000")
    compare(table_of("copy_on_write", "text", short), "text", short)


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("type_", TYPES)
def test_bounds_without_nan_leave_out_no_row(type_: str) -> None:
    """Files of earlier versions have bounds that leave out NaN."""
    table = table_of(type_, "pair")
    view = table.view()
    for found in list_slices(view):
        assert found.base_file is not None
        with_first_footer(view.store, found.base_file.path)
    told = [row["max"] for row in table.inspect.statistics().to_pylist() if row["column"] in ("float", "double")]
    assert len(told) == 10
    assert "nan" not in told
    for name in ("float", "double"):
        compare(table, name)


def with_first_footer(store: Store, path: str) -> None:
    """Give a base file the footer that pyarrow wrote, in which no bound is NaN; a file without NaN has no other."""
    data = store.read(path)
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    if data[end - 4 : end] == b"PAR1":
        store.replace(path, data[:end] + data[2 * end - len(data) : end])
