"""Keys in any form and type name the same records, for look-ups and for deletes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import RecordKeyError, SchemaMismatchError
from tests.support.tables import new_table

MOMENT = datetime(2024, 1, 2, 3, 4, 5)
TYPED_KEYS = {
    "ns": (pa.timestamp("us"), MOMENT, pa.array([MOMENT], pa.timestamp("ns"))),
    "scale": (pa.decimal128(10, 2), Decimal("1.50"), pa.array([Decimal("1.5")])),
    "float": (pa.int64(), 7, pa.array([7.0])),
    "int8": (pa.int32(), 7, pa.array([7], pa.int8())),
    "date64": (pa.date32(), date(2024, 1, 2), pa.array([date(2024, 1, 2)], pa.date64())),
    "view": (pa.string(), "a", pa.array(["a"], pa.string_view())),
    "dictionary": (pa.string(), "a", pa.array(["a"]).dictionary_encode()),
}


def table_of(key_type: pa.DataType, key: Any, **options: Any) -> hoodie.Table:
    """A table with one record; its partition column has the key's type and value."""
    rows = pa.table({"k": pa.array([key], key_type), "p": pa.array([key], key_type), "x": [1]})
    return new_table(rows.schema, rows, record_key="k", **options)


@pytest.mark.parametrize("partition_by", [(), "p"], ids=["plain", "partitioned"])
@pytest.mark.parametrize("case", TYPED_KEYS)
def test_keys_of_other_types_name_the_same_record(case: str, partition_by: str) -> None:
    key_type, key, given = TYPED_KEYS[case]
    table = table_of(key_type, key, partition_by=partition_by)
    naming = pa.table({"k": given, "p": given, "other": [[1]]})
    assert table.read_keys(naming)["x"].to_pylist() == [1]
    assert table.filter_exists(naming).num_rows == 0
    assert table.delete(naming).deleted == 1
    assert table.to_arrow().num_rows == 0


@pytest.mark.parametrize("given", [pa.array([MOMENT]), pa.array([7.5]), pa.array([1 << 40]), pa.array([True])], ids=str)
def test_keys_that_do_not_fit_are_refused(given: pa.Array) -> None:
    table = table_of(pa.int32(), 7)
    for call in (table.read_keys, table.filter_exists, table.delete):
        with pytest.raises(SchemaMismatchError, match="'k'"):
            call(pa.table({"k": given}))


FORMS: dict[str, Callable[[Any], Any]] = {
    "a value": lambda key: key,
    "list": lambda key: [key],
    "tuple": lambda key: (key,),
    "set": lambda key: {key},
    "generator": lambda key: (one for one in [key]),
    "array": lambda key: pa.array([key]),
    "chunked array": lambda key: pa.chunked_array([[key]]),
    "scalar": lambda key: pa.scalar(key),
    "numpy": lambda key: np.array([key]),
    "numpy scalar": lambda key: np.array([key])[0],
    "pandas": lambda key: pd.Series([key]),
    "data frame": lambda key: pd.DataFrame({"k": [key]}),
    "dicts": lambda key: [{"k": key}],
}


@pytest.mark.parametrize(("key_type", "key"), [(pa.string(), "a"), (pa.int32(), 7)], ids=["text", "number"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_keys_come_in_many_forms(form: Callable[[Any], Any], key_type: pa.DataType, key: Any) -> None:
    table = table_of(key_type, key)
    assert table.read_keys(form(key))["k"].to_pylist() == [key]
    assert table.delete(form(key)).deleted == 1


def test_texts_are_whole_keys_where_the_key_column_holds_none() -> None:
    table = table_of(pa.int32(), 7)
    assert table.read_keys("7").num_rows == 1
    assert table.delete(["7", "8"]).deleted == 1


def test_keys_of_several_columns_are_texts() -> None:
    rows = pa.table({"a": [1, 2], "b": ["x", "y"]})
    table = new_table(rows.schema, rows, record_key=["a", "b"])
    assert table.read_keys(["a:1,b:x"])["a"].to_pylist() == [1]
    with pytest.raises(SchemaMismatchError, match=r"a:\.\.\.,b:"):
        table.delete([1])
    assert table.delete("a:2,b:y").deleted == 1


def test_a_single_key_with_its_name_in_it_is_given_as_a_value() -> None:
    table = table_of(pa.string(), "a", key_generator="complex", partition_by="p")
    assert table.read_keys(["a"])["_hoodie_record_key"].to_pylist() == ["k:a"]


def test_keys_below_a_struct_are_given_as_values() -> None:
    rows = pa.table({"m": [{"id": 1, "more": "x"}, {"id": 2, "more": "y"}]})
    table = new_table(rows.schema, rows, record_key="m.id")
    assert table.read_keys([1.0])["m"].to_pylist() == [{"id": 1, "more": "x"}]
    assert table.delete([2]).deleted == 1


def test_rows_with_views_of_texts_are_filtered() -> None:
    table = table_of(pa.string(), "a", partition_by="p")
    views = pa.array(["a", "b", "b"], pa.string_view())
    found = table.filter_exists(
        pa.table({"k": views, "p": pa.array(["a", "a", "b"], pa.string_view()), "x": [1, 2, 3]})
    )
    assert found["x"].to_pylist() == [2, 3]
    assert found.schema.field("k").type == pa.string()


def test_no_keys_name_nothing_and_null_is_no_key() -> None:
    table = table_of(pa.int32(), 7)
    assert table.read_keys([]).num_rows == 0
    assert table.delete([]).deleted == 0
    with pytest.raises(RecordKeyError):
        table.read_keys([None])
    with pytest.raises(SchemaMismatchError, match="one type"):
        table.read_keys([1, "a"])
