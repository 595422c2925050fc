"""Rows as JSON text parse to their values, whatever their types, nulls and slices."""

from __future__ import annotations

import datetime
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest

from hoodie.records.row_json import json_texts

AT = datetime.datetime(2024, 1, 2, 3, 4, 5, 678900, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (pa.int64(), -(2**62), -(2**62)),
        (pa.bool_(), True, True),
        (pa.float64(), 1.0, 1.0),
        (pa.float64(), 1e300, 1e300),
        (pa.float64(), float("nan"), "NaN"),
        (pa.float32(), float("-inf"), "-Infinity"),
        (pa.decimal128(5, 2), decimal.Decimal("1.50"), 1.5),
        (pa.string(), 'é "quoted" \\ \n\t\x01', 'é "quoted" \\ \n\t\x01'),
        (pa.binary(), b"\x00\xff", "AP8="),
        (pa.date32(), datetime.date(2024, 1, 2), "2024-01-02"),
        (pa.timestamp("us", "UTC"), AT, "2024-01-02T03:04:05.678Z"),
        (pa.timestamp("us"), AT.replace(tzinfo=None), "2024-01-02T03:04:05.678"),
        (pa.list_(pa.string()), ["a", None, '"'], ["a", None, '"']),
        (pa.list_(pa.int32()), [], []),
        (pa.struct([("x", pa.int32()), ("l", pa.list_(pa.int32()))]), {"x": None, "l": [1]}, {"x": None, "l": [1]}),
        (pa.map_(pa.string(), pa.int32()), [("k", 1), ("z", None)], {"k": 1, "z": None}),
    ],
)
def test_values_of_each_type(kind: pa.DataType, value: Any, told: Any) -> None:
    column = pa.array([value, None, value], kind)
    rows = pa.StructArray.from_arrays([column, pa.array([1, 2, 3])], names=["a", 'b"'])
    for found, start in ((rows, 0), (rows.slice(1), 1)):
        texts = json_texts(found).to_pylist()
        expected = [{"a": told, 'b"': 1}, {"a": None, 'b"': 2}, {"a": told, 'b"': 3}][start:]
        assert [json.loads(text) for text in texts] == expected


def test_null_rows_and_rows_without_columns() -> None:
    rows = pa.array([{"a": 1}, None], pa.struct([("a", pa.int32())]))
    assert json_texts(rows).to_pylist() == ['{"a":1}', None]
    assert json_texts(pa.array([{}, None], pa.struct([]))).to_pylist() == ["{}", None]
