"""Values as Java prints them."""

from __future__ import annotations

import math
import struct
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import UnsupportedError
from hoodie.format.schema.java_text import java_text

TEXTS: list[tuple[pa.Array, list[str | None]]] = [
    (pa.array([0, -1, 2**63 - 1, None], pa.int64()), ["0", "-1", "9223372036854775807", None]),
    (pa.array([True, False, None]), ["true", "false", None]),
    (pa.array(["ü ✓😀", "", None]), ["ü ✓😀", "", None]),
    (pa.array(["x"], pa.large_string()), ["x"]),
    (pa.array(["x"], pa.string_view()), ["x"]),
    (pa.array(["x", None, "x"]).dictionary_encode(), ["x", None, "x"]),
    (pa.array([1.0, 0.1, -0.0, 100.0, 1e7, 9999999.0]), ["1.0", "0.1", "-0.0", "100.0", "1.0E7", "9999999.0"]),
    (pa.array([1e-3, 9.99e-4, 1e21, 1.5e300, -2.5e-7]), ["0.001", "9.99E-4", "1.0E21", "1.5E300", "-2.5E-7"]),
    (pa.array([math.nan, math.inf, -math.inf, None]), ["NaN", "Infinity", "-Infinity", None]),
    (pa.array([4.9e-324, 2e-323, 1e-322, -4.9e-324]), ["4.9E-324", "2.0E-323", "9.9E-323", "-4.9E-324"]),
    (pa.array([1.4e-45, 3.4028235e38, 0.1], pa.float32()), ["1.4E-45", "3.4028235E38", "0.1"]),
    (pa.array([Decimal("1.10"), Decimal("0.00"), None], pa.decimal128(10, 2)), ["1.10", "0.00", None]),
    (pa.array([Decimal("0E-10"), Decimal("-1E-7")], pa.decimal128(38, 10)), ["0E-10", "-1.000E-7"]),
    (pa.array([Decimal("100")], pa.decimal128(5, 0)), ["100"]),
    (pa.array([date(1, 1, 1), date(1500, 3, 1), None]), ["0001-01-01", "1500-03-01", None]),
    (pa.array([3_000_000], pa.int32()).cast(pa.date32()), ["+10183-09-21"]),
    (pa.array([datetime(2026, 7, 1)], pa.timestamp("ms")), ["1782864000000"]),
    (pa.array([-1, None], pa.timestamp("us", "UTC")), ["-1", None]),
    (pa.array([b"\x00\xff", b"", None, b"abc"]), ["00ff", "", None, "616263"]),
    (pa.array([b"\x00\xff", b"", None, b"abc"]).slice(1, 3), ["", None, "616263"]),
    (pa.array([], pa.binary()), []),
    (pa.array([], pa.float64()), []),
]  # fmt: skip


@pytest.mark.parametrize(("array", "expected"), TEXTS, ids=str)
def test_text_of_values(array: pa.Array, expected: list[str | None]) -> None:
    text = java_text(array)
    text.validate(full=True)
    assert text.type == pa.string()
    assert text.to_pylist() == expected


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int32()), pa.null(), pa.time32("ms"), pa.struct([("a", pa.int32())])], ids=str
)
def test_types_without_text(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="no text"):
        java_text(pa.nulls(1, kind))


@given(st.lists(st.floats(), max_size=5))
def test_doubles_are_told_apart_and_written_as_java_does(numbers: list[float]) -> None:
    for number, text in zip(numbers, java_text(pa.array(numbers, pa.float64())).to_pylist(), strict=True):
        check_notation(number, text)
        assert same(float(text.replace("Infinity", "inf")), number)


@given(st.lists(st.floats(width=32), max_size=5))
def test_floats_are_told_apart_and_written_as_java_does(numbers: list[float]) -> None:
    for number, text in zip(numbers, java_text(pa.array(numbers, pa.float32())).to_pylist(), strict=True):
        check_notation(number, text)
        if math.isfinite(number):
            assert struct.pack("f", float(text)) == struct.pack("f", number)


def check_notation(number: float, text: Any) -> None:
    """Java writes plain numbers from 1e-3 up to 1e7, all others with one digit before the point and an exponent."""
    if not math.isfinite(number):
        return
    plain = number == 0 or 1e-3 <= abs(number) < 1e7
    mantissa, _, exponent = text.lstrip("-").partition("E")
    whole, point, fraction = mantissa.partition(".")
    assert bool(exponent) != plain
    assert whole.isdigit()
    assert point == "."
    assert fraction.isdigit()
    if not plain:
        assert len(whole) == 1
        assert whole != "0"
        assert fraction == "0" or not fraction.endswith("0")


def same(left: float, right: float) -> bool:
    return struct.pack("d", left) == struct.pack("d", right) or (math.isnan(left) and math.isnan(right))
