"""What Arrow types become in a table, and which are refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.table_schema import normalise


def items(data_type: pa.DataType, *, nullable: bool = True) -> pa.DataType:
    return pa.list_(pa.field("element", data_type, nullable=nullable))


KEPT = [
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.binary(16),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.decimal128(1, 0),
    pa.decimal128(38, 38),
    items(pa.int32()),
    items(items(pa.string(), nullable=False)),
    pa.struct([pa.field("a", pa.int32(), nullable=False)]),
    pa.map_(pa.string(), items(pa.int64())),
]
CHANGED = [
    (pa.int8(), pa.int32()),
    (pa.int16(), pa.int32()),
    (pa.uint8(), pa.int32()),
    (pa.uint16(), pa.int32()),
    (pa.uint32(), pa.int64()),
    (pa.float16(), pa.float32()),
    (pa.large_string(), pa.string()),
    (pa.string_view(), pa.string()),
    (pa.large_binary(), pa.binary()),
    (pa.binary_view(), pa.binary()),
    (pa.date64(), pa.date32()),
    (pa.decimal32(5, 2), pa.decimal128(5, 2)),
    (pa.decimal64(15, 2), pa.decimal128(15, 2)),
    (pa.decimal256(38, 2), pa.decimal128(38, 2)),
    (pa.timestamp("s"), pa.timestamp("us")),
    (pa.timestamp("ms"), pa.timestamp("us")),
    (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
    (pa.timestamp("ns"), pa.timestamp("us")),
    (pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("us", "UTC")),
    (pa.timestamp("us", "+02:00"), pa.timestamp("us", "UTC")),
    (pa.dictionary(pa.int8(), pa.string()), pa.string()),
    (pa.dictionary(pa.int32(), pa.large_string()), pa.string()),
    (pa.run_end_encoded(pa.int32(), pa.int8()), pa.int32()),
    (pa.json_(), pa.string()),
    (pa.uuid(), pa.binary(16)),
    (pa.list_(pa.int8()), items(pa.int32())),
    (pa.list_(pa.int8(), 3), items(pa.int32())),
    (pa.large_list(pa.string()), items(pa.string())),
    (pa.list_view(pa.string()), items(pa.string())),
    (pa.large_list_view(pa.string()), items(pa.string())),
    (pa.struct([("a", pa.int8())]), pa.struct([("a", pa.int32())])),
    (pa.map_(pa.large_string(), pa.int8()), pa.map_(pa.string(), pa.int32())),
    (pa.map_(pa.string(), pa.struct([("a", pa.uint32())])), pa.map_(pa.string(), pa.struct([("a", pa.int64())]))),
]
REFUSED = [
    (pa.null(), "cast it to the type that the column should have"),
    (pa.uint64(), "int64 or decimal128"),
    (pa.duration("us"), "no durations"),
    (pa.month_day_nano_interval(), "no durations"),
    (pa.time64("us"), "no times of day"),
    (pa.time32("ms"), "no times of day"),
    (pa.decimal128(5, -1), "scale"),
    (pa.decimal256(39, 2), "38 digits"),
    (pa.struct([]), "at least one field"),
    (pa.map_(pa.int32(), pa.string()), "keys of maps are strings"),
    (pa.dense_union([pa.field("a", pa.int32())]), "cast or drop"),
    (pa.dictionary(pa.int8(), pa.null()), "cast it"),
]


@pytest.mark.parametrize("data_type", KEPT, ids=str)
def test_types_of_a_table_stay(data_type: pa.DataType) -> None:
    schema = pa.schema([pa.field("a", data_type, nullable=False), pa.field("b", data_type)])
    assert normalise(schema).equals(schema, check_metadata=True)


@pytest.mark.parametrize(("found", "expected"), CHANGED, ids=str)
def test_other_types_become_those(found: pa.DataType, expected: pa.DataType) -> None:
    result = normalise(pa.schema([pa.field("a", found, nullable=False)], metadata={"pandas": "{}"}))
    assert result.equals(pa.schema([pa.field("a", expected, nullable=False)]), check_metadata=True)


@pytest.mark.parametrize(("found", "advice"), REFUSED, ids=str)
def test_types_without_a_place_are_refused_by_name(found: pa.DataType, advice: str) -> None:
    with pytest.raises(SchemaMismatchError, match=advice) as error:
        normalise(pa.schema([("outer", pa.struct([("inner", found)]))]))
    assert "'outer.inner'" in str(error.value)


def test_items_and_values_are_named_in_errors() -> None:
    with pytest.raises(SchemaMismatchError, match=r"'a\.element\.value'"):
        normalise(pa.schema([("a", pa.list_(pa.map_(pa.string(), pa.null())))]))


@pytest.mark.parametrize("names", [["a", "a"], ["a", "A"], ["ü", "Ü"]])
def test_names_are_unique_whatever_their_case(names: list[str]) -> None:
    with pytest.raises(SchemaMismatchError, match=r"twice|case only"):
        normalise(pa.schema([pa.field(name, pa.int32()) for name in names]))
    with pytest.raises(SchemaMismatchError, match=r"'s\."):
        normalise(pa.schema([("s", pa.struct([pa.field(name, pa.int32()) for name in names]))]))
