"""Rows are compared value by value, floats by their bits, also inside of lists, maps and structs."""

from __future__ import annotations

import decimal
import math
from typing import Any

import pyarrow as pa
import pytest

from hoodie.records.differences import are_same_rows, differing_rows

ANY_VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, False]),
    "text": (pa.string(), ["", "a"]),
    "bytes": (pa.binary(), [b"", b"\0"]),
    "fixed": (pa.binary(2), [b"ab", b"cd"]),
    "float": (pa.float32(), [0.0, -0.0, math.nan, math.inf]),
    "double": (pa.float64(), [0.0, -0.0, math.nan, 1.5]),
    "decimal": (pa.decimal128(9, 2), [decimal.Decimal("1.00"), decimal.Decimal("1.01")]),
    "time": (pa.time64("us"), [0, 1]),
    "date": (pa.date32(), [0, 1]),
    "timestamp": (pa.timestamp("us", "UTC"), [0, 1]),
    "struct": (
        pa.struct([("x", pa.float64()), ("y", pa.list_(pa.string()))]),
        [{"x": math.nan, "y": None}, {"x": None, "y": []}, {"x": None, "y": None}, {"x": 1.0, "y": ["a", None]}],
    ),
    "list": (pa.list_(pa.float64()), [[], [None], [math.nan], [math.nan, 1.0], [1.0, math.nan], [0.0], [-0.0]]),
    "map": (
        pa.map_(pa.string(), pa.list_(pa.int64())),
        [[], [("a", None)], [("a", [])], [("a", [1])], [("b", [1])], [("a", [1]), ("b", [2, None])]],
    ),
}


@pytest.mark.parametrize("name", ANY_VALUES)
def test_a_value_is_the_same_as_itself_only(name: str) -> None:
    kind, values = ANY_VALUES[name]
    values = [None, *values]
    pairs = [(one, other) for one in range(len(values)) for other in range(len(values))]
    # The arrays are slices, in several chunks.
    sides = []
    for side in zip(*pairs, strict=True):
        array = pa.array([values[0], *(values[place] for place in side)], kind)[1:]
        sides.append(pa.table({"v": pa.chunked_array([array[:3], array[3:]])}))
    assert differing_rows(*sides).tolist() == [one != other for one, other in pairs]
    assert [are_same_rows(*(rows.slice(row, 1) for rows in sides)) for row in range(len(pairs))] == [
        one == other for one, other in pairs
    ]


def test_nulls_without_a_type_are_the_same() -> None:
    rows = pa.table({"v": pa.nulls(2)})
    assert are_same_rows(rows, rows)
