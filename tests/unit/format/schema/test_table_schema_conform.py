"""Batches brought to a table's schema: what is cast, filled and refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.fit import fit_array
from hoodie.format.schema.table_schema import avro_to_arrow, conform, normalise, without_meta_fields

GOLDEN = Path(__file__).parents[3] / "golden" / "types"


def batch(array: pa.Array, name: str = "a") -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([array], [name])


def one(data_type: pa.DataType, *, nullable: bool = True) -> pa.Schema:
    return pa.schema([pa.field("a", data_type, nullable=nullable)])


CAST: list[tuple[pa.Array, pa.DataType, list[Any]]] = [
    (pa.array([1, None, -128], pa.int8()), pa.int32(), [1, None, -128]),
    (pa.array([2**32 - 1], pa.uint32()), pa.int64(), [2**32 - 1]),
    (pa.array([2**40, 1], pa.int64()), pa.float64(), [2.0**40, 1.0]),
    (pa.array([5], pa.int64()), pa.int32(), [5]),
    (pa.array([7], pa.int32()), pa.float32(), [7.0]),
    (pa.array([1.5, -0.0, None, math.inf], pa.float64()), pa.float32(), [1.5, -0.0, None, math.inf]),
    (pa.array([3.0], pa.float64()), pa.int64(), [3]),
    (pa.array(["ünï✓😀", "", None], pa.large_string()), pa.string(), ["ünï✓😀", "", None]),
    (pa.array(["x", None, "x"]).dictionary_encode(), pa.string(), ["x", None, "x"]),
    (pa.array([b"\x00\xff"], pa.large_binary()), pa.binary(), [b"\x00\xff"]),
    (pa.array([b"abcd"], pa.binary()), pa.binary(4), [b"abcd"]),
    (pa.array([date(1500, 3, 1), date(1, 1, 1)], pa.date64()), pa.date32(), [date(1500, 3, 1), date(1, 1, 1)]),
    (
        pa.array([Decimal("1.25"), None], pa.decimal128(5, 2)),
        pa.decimal128(38, 18),
        [Decimal("1.25").quantize(Decimal("1e-18")), None],
    ),
    (pa.array([12], pa.int32()), pa.decimal128(12, 2), [Decimal("12.00")]),
    (pa.array([None, None], pa.null()), pa.decimal128(12, 2), [None, None]),
    (pa.array([datetime(1500, 3, 1, 1, 2, 3)], pa.timestamp("s")), pa.timestamp("us"), [datetime(1500, 3, 1, 1, 2, 3)]),
    (
        pa.array([datetime(2026, 7, 1, 12, tzinfo=UTC)], pa.timestamp("ns", "Asia/Tokyo")),
        pa.timestamp("us", "UTC"),
        [datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("UTC"))],
    ),
    (pa.array([{"x": 1}, None], pa.struct([("x", pa.int8())])), pa.struct([("x", pa.int64())]), [{"x": 1}, None]),
    (pa.array([[1, None], None, []], pa.large_list(pa.int8())), pa.list_(pa.int32()), [[1, None], None, []]),
    (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), pa.list_(pa.int32()), [[1, 2], None]),
    (pa.array([[1], None, [2, 3], [4]], pa.list_view(pa.int8())), pa.list_(pa.int32()), [[1], None, [2, 3], [4]]),
    (pa.array([[9], None, [2], []], pa.large_list_view(pa.int8())).slice(1), pa.list_(pa.int32()), [None, [2], []]),
    (pa.array([[9], None, [2], []], pa.large_list(pa.int8())).slice(1), pa.list_(pa.int32()), [None, [2], []]),
    (pa.array([[9, 8], None, [2, 3]], pa.list_(pa.int8(), 2)).slice(1), pa.list_(pa.int32()), [None, [2, 3]]),
    (pa.array([], pa.list_view(pa.int8())), pa.list_(pa.int32()), []),
    (
        pa.array([[("k", 1)], None, []], pa.map_(pa.large_string(), pa.int8())),
        pa.map_(pa.string(), pa.int64()),
        [[("k", 1)], None, []],
    ),
]
REFUSED: list[tuple[pa.Array, pa.DataType, str]] = [
    (pa.array([2**31], pa.int64()), pa.int32(), "does not fit int32"),
    (pa.array([2**53 + 1], pa.int64()), pa.float64(), "does not fit double"),
    (pa.array([2**24 + 1], pa.int32()), pa.float32(), "does not fit float"),
    (pa.array([0.1, math.nan], pa.float64()), pa.float32(), "0.1 of type double would be rounded"),
    (pa.array([1e300], pa.float64()), pa.float32(), "would be rounded"),
    (pa.array([1.5]), pa.int64(), "does not fit int64"),
    (pa.array([Decimal("1.25")], pa.decimal128(5, 2)), pa.decimal128(5, 1), "does not fit"),
    (pa.array([Decimal("999.25")], pa.decimal128(5, 2)), pa.decimal128(4, 2), "does not fit"),
    (pa.array([1], pa.timestamp("ns")), pa.timestamp("us"), "does not fit"),
    (pa.array([1], pa.timestamp("us", "UTC")), pa.timestamp("ms", "UTC"), "does not fit"),
    (pa.array([1], pa.timestamp("us")), pa.timestamp("us", "UTC"), "expected, found"),
    (pa.array([1], pa.timestamp("us", "UTC")), pa.timestamp("us"), "expected, found"),
    (pa.array([b"abc"]), pa.binary(4), "does not fit"),
    (pa.array(["1"]), pa.int32(), "expected, found string"),
    (pa.array([1]), pa.string(), "expected, found int64"),
    (pa.array(["x"]), pa.binary(), "expected, found"),
    (pa.array([True]), pa.int32(), "expected, found bool"),
    (pa.array([1], pa.int64()), pa.timestamp("us"), "expected, found"),
    (pa.array([1], pa.date32()), pa.timestamp("us"), "expected, found"),
    (pa.array([1.5]), pa.decimal128(5, 2), "expected, found"),
    (pa.array([[1]]), pa.int64(), "expected, found list"),
    (pa.array([{"x": 1}]), pa.list_(pa.int64()), "expected, found struct"),
]


@pytest.mark.parametrize(("array", "wanted", "expected"), CAST, ids=str)
def test_values_survive_a_cast(array: pa.Array, wanted: pa.DataType, expected: list[Any]) -> None:
    result = conform(batch(array), one(wanted))
    result.validate(full=True)
    assert result.schema.equals(one(wanted), check_metadata=True)
    assert str(result.column(0).to_pylist()) == str(expected)
    table = pa.Table.from_batches([batch(array), batch(array)])
    assert str(conform(table, one(wanted)).column(0).to_pylist()) == str(expected * 2)


@pytest.mark.parametrize(("array", "wanted", "message"), REFUSED, ids=str)
def test_what_would_be_lost_is_refused_by_name(array: pa.Array, wanted: pa.DataType, message: str) -> None:
    with pytest.raises(SchemaMismatchError, match=message) as error:
        conform(batch(array), one(wanted))
    assert "'a'" in str(error.value)
    nested = pa.array([{"x": value.as_py()} for value in array], pa.struct([("x", array.type)]))
    with pytest.raises(SchemaMismatchError, match=message) as error:
        conform(batch(nested), one(pa.struct([("x", wanted)])))
    assert "'a.x'" in str(error.value)


def test_columns_are_reordered_and_filled() -> None:
    wanted = pa.schema([("a", pa.int32()), ("b", pa.list_(pa.string())), ("c", pa.int32())])
    data = pa.RecordBatch.from_arrays([pa.array([3], pa.int32()), pa.array([1], pa.int32())], ["c", "a"])
    assert conform(data, wanted).to_pylist() == [{"a": 1, "b": None, "c": 3}]
    assert conform(pa.Table.from_batches([data]), wanted).to_pylist() == [{"a": 1, "b": None, "c": 3}]
    assert conform(data.slice(1), wanted).num_rows == 0
    assert conform(pa.table({"c": pa.chunked_array([], pa.int8())}), wanted).schema == wanted


def test_nested_fields_are_reordered_and_filled() -> None:
    found = pa.list_(pa.struct([("y", pa.int8()), ("x", pa.int8())]))
    wanted = pa.list_(pa.field("element", pa.struct([("x", pa.int32()), ("new", pa.string()), ("y", pa.int64())])))
    result = conform(batch(pa.array([[{"x": 1, "y": 2}, None], None], found)), one(wanted))
    assert result.to_pylist() == [{"a": [{"x": 1, "new": None, "y": 2}, None]}, {"a": None}]


def test_missing_and_unknown_columns_are_named() -> None:
    with pytest.raises(SchemaMismatchError, match="'a' is missing"):
        conform(batch(pa.array([1]), "b"), pa.schema([("b", pa.int64()), pa.field("a", pa.int64(), nullable=False)]))
    with pytest.raises(SchemaMismatchError, match="'b' is not in the table's schema"):
        conform(batch(pa.array([1]), "b"), one(pa.int64()))
    with pytest.raises(SchemaMismatchError, match=r"'a\.y' is not in"):
        conform(batch(pa.array([{"y": 1}])), one(pa.struct([("x", pa.int64())])))
    with pytest.raises(SchemaMismatchError, match="'b' occurs twice"):
        conform(pa.RecordBatch.from_arrays([pa.array([1])] * 2, ["b", "b"]), one(pa.int64()))


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (pa.int32(), pa.int64()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.large_list(pa.string()), pa.list_(pa.field("element", pa.string()))),
        (pa.struct([pa.field("y", pa.int8())]), pa.struct([pa.field("y", pa.int32(), nullable=False)])),
    ],
)
def test_required_fields_of_null_structs_can_be_written(given: pa.DataType, kind: pa.DataType) -> None:
    found = pa.StructArray.from_arrays([pa.nulls(3, given)], fields=[pa.field("x", given)], mask=pa.array([True] * 3))
    schema = one(pa.struct([pa.field("x", kind, nullable=False)]))
    for data in (batch(found), pa.record_batch([pa.array([1, 2, 3])], ["other"])):
        conformed = conform(data, schema, stored=True)
        pq.write_table(pa.Table.from_batches([conformed]), pa.BufferOutputStream())
        assert conformed["a"].to_pylist() == [None, None, None]


def test_null_is_refused_where_none_may_be() -> None:
    with pytest.raises(SchemaMismatchError, match="'a' allows no null; 2 of 3"):
        conform(batch(pa.array([1, None, None])), one(pa.int64(), nullable=False))
    inner = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    found = pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int64())]))
    with pytest.raises(SchemaMismatchError, match=r"'a\.x' allows no null; 1 of 3"):
        conform(batch(found), one(inner))
    assert conform(batch(found.slice(0, 2)), one(inner)).to_pylist() == [{"a": {"x": 1}}, {"a": None}]
    strict_items = pa.list_(pa.field("element", pa.int64(), nullable=False))
    with pytest.raises(SchemaMismatchError, match=r"'a\.element' allows no null"):
        conform(batch(pa.array([[1, None]])), one(strict_items))


def test_only_the_rows_of_a_slice_are_judged() -> None:
    array = pa.array([[2**40], [1, 2], [3], [2**40]], pa.list_(pa.int64()))
    assert conform(batch(array.slice(1, 2)), one(pa.list_(pa.int32()))).to_pylist() == [{"a": [1, 2]}, {"a": [3]}]
    maps = pa.array([[("k", 2**40)], [("l", 1)], None], pa.map_(pa.string(), pa.int64()))
    result = conform(batch(maps.slice(1)), one(pa.map_(pa.string(), pa.int32())))
    result.validate(full=True)
    assert result.to_pylist() == [{"a": [("l", 1)]}, {"a": None}]


def test_fitting_data_is_returned_as_it_is() -> None:
    data = batch(pa.array([1]))
    assert conform(data, data.schema) is data


@pytest.mark.parametrize(
    ("array", "wanted", "expected"),
    [
        (pa.array([2**24 + 1], pa.int32()), pa.float32(), [2.0**24]),
        (pa.array([2**53 + 1], pa.int64()), pa.float64(), [2.0**53]),
        (pa.array([1, None], pa.int32()), pa.string(), ["1", None]),
        (pa.array([0.6, None, 1e10, 5.0], pa.float32()), pa.string(), ["0.6", None, "1.0E10", "5.0"]),
        (pa.array([0.1, -1e-7]), pa.string(), ["0.1", "-1.0E-7"]),
        (pa.array([date(2026, 1, 1)]), pa.string(), ["2026-01-01"]),
        (pa.array(["y"]), pa.binary(), [b"y"]),
        (pa.array([b"y"]), pa.string(), ["y"]),
        (pa.array([[2**24 + 1]]), pa.list_(pa.float32()), [[2.0**24]]),
    ],
    ids=str,
)
def test_stored_rows_follow_the_promotions_of_the_jvm(
    array: pa.Array, wanted: pa.DataType, expected: list[Any]
) -> None:
    assert conform(batch(array), one(wanted), stored=True).column(0).to_pylist() == expected
    with pytest.raises(SchemaMismatchError):
        conform(batch(array), one(wanted))


def test_numbers_beyond_the_digits_of_a_decimal_are_refused() -> None:
    wanted = pa.decimal128(38, 0)
    for text in ("9" * 39, "340282366920938463463374607431768211457", "3e38", "-9.9e38", "1.2e77", "1e300"):
        with pytest.raises(SchemaMismatchError, match="does not fit decimal128"):
            conform(batch(pa.array([text])), one(wanted), stored=True)
        with pytest.raises(SchemaMismatchError, match="does not fit decimal128"):
            conform(batch(pa.array([float(text)])), one(wanted), stored=True)
        with pytest.raises(SchemaMismatchError, match=r"row 0: .* does not fit decimal128"):
            fit_array(pa.array([float(text)]), wanted, "x")


FLOATS = [0.6, None, -0.0, 16777217.0, 3.4028235e38, 1e10, 123456.7, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("nesting", ["plain", "list", "struct", "map"])
def test_floats_become_the_doubles_of_the_same_decimal_text(nesting: str) -> None:
    wrap: dict[str, tuple[Callable[[Any], pa.DataType], Callable[[Any], Any]]] = {
        "plain": (lambda kind: kind, lambda value: value),
        "list": (pa.list_, lambda value: [value]),
        "struct": (lambda kind: pa.struct([("x", kind)]), lambda value: {"x": value}),
        "map": (lambda kind: pa.map_(pa.string(), kind), lambda value: [("k", value)]),
    }
    kind, nested = wrap[nesting]
    stored = pa.array([nested(value) for value in FLOATS], kind(pa.float32()))
    expected = [nested(16777216.0 if value == 16777217.0 else value) for value in FLOATS]
    for is_stored in (True, False):
        found = conform(batch(stored), one(kind(pa.float64())), stored=is_stored).column(0)
        assert str(found.to_pylist()) == str(expected)


def test_stored_rows_lose_the_columns_that_the_table_has_no_more() -> None:
    data = pa.RecordBatch.from_pydict({"gone": [1], "a": [{"gone": 1, "x": 2}]})
    assert conform(data, one(pa.struct([("x", pa.int64())])), stored=True).to_pylist() == [{"a": {"x": 2}}]


@pytest.mark.parametrize("name", ["all_types", "all_types_row_writer"])
def test_files_of_both_jvm_writers_conform_to_the_schema_of_their_commit(name: str) -> None:
    schema = avro_to_arrow(json.loads((GOLDEN / "all_types.json").read_text(encoding="utf-8"))[name]["schema"])
    table = pq.read_table(GOLDEN / f"{name}.parquet")
    data = table.select(without_meta_fields(table.schema).names)
    result = conform(data, schema)
    result.validate(full=True)
    assert result.schema.equals(schema, check_metadata=True)
    assert str(result.to_pylist()) == str(data.to_pylist())
    assert normalise(schema).equals(schema, check_metadata=True)
    for row in range(data.num_rows):
        assert str(conform(data.slice(row, 1), schema).to_pylist()) == str(data.slice(row, 1).to_pylist())
