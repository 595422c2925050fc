"""Types of new tables, and schema evolution on write, against what the JVM reference accepted by default."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.table_schema import arrow_to_avro, avro_to_arrow, evolve, normalise, with_meta_fields

GOLDEN = Path(__file__).parents[3] / "golden" / "types" / "evolution.json"
# The JVM turns one side into text or bytes, or a number into a moment: a wrong column would go through unseen. Integers
# that become floats are rounded (docs/decisions/0006-lossless-evolution.md).
ONLY_WE_REFUSE = {
    "int_to_string", "long_to_string", "float_to_string", "decimal_to_string", "string_to_int", "string_to_date",
    "string_to_binary", "binary_to_string", "long_to_timestamp",
    "int_to_float", "int_to_double", "long_to_float", "long_to_double",
}  # fmt: skip
# New columns are made nullable here; missing nullable ones are filled, which the JVM does on request only.
ONLY_THE_JVM_REFUSES = {
    "add_column", "add_column_in_middle", "add_not_null", "struct_add", "list_struct_add",
    "missing_nullable_nullif", "struct_missing_nullable", "missing_nullable", "struct_missing",
}  # fmt: skip
_SCALARS = {
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


@cache
def golden() -> dict[str, dict[str, Any]]:
    loaded: dict[str, dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return loaded


def arrow_of_spark(spark: Any) -> pa.DataType:
    if isinstance(spark, str):
        decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", spark)
        return pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else _SCALARS[spark]
    if spark["type"] == "struct":
        return pa.struct([arrow_field(child) for child in spark["fields"]])
    if spark["type"] == "array":
        return pa.list_(pa.field("element", arrow_of_spark(spark["elementType"]), nullable=spark["containsNull"]))
    return pa.map_(
        pa.string(), pa.field("value", arrow_of_spark(spark["valueType"]), nullable=spark["valueContainsNull"])
    )


def arrow_field(spark: dict[str, Any]) -> pa.Field:
    return pa.field(spark["name"], arrow_of_spark(spark["type"]), nullable=spark["nullable"])


@pytest.mark.parametrize("name", sorted(golden()))
def test_the_schema_after_a_write_is_that_of_the_jvm(name: str) -> None:
    case = golden()[name]
    before = avro_to_arrow(case["before"])
    incoming = pa.schema(arrow_of_spark(case["incoming_spark"]).fields)
    if name in ONLY_WE_REFUSE or ("error" in case and name not in ONLY_THE_JVM_REFUSES):
        with pytest.raises(SchemaMismatchError):
            evolve(before, incoming)
    elif name in ONLY_THE_JVM_REFUSES:
        assert "error" in case
        assert evolve(before, incoming).names[: len(before.names)] == before.names
        if "missing" in name:
            with pytest.raises(SchemaMismatchError, match="missing"):
                evolve(before, incoming, fill_missing=False)
    else:
        assert arrow_to_avro(evolve(before, incoming), table_name="t") == case["after"]


def schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(list(columns.items()))


def strict(**columns: pa.DataType) -> pa.Schema:
    """Columns that take no null."""
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


def nested(name: str, kind: pa.DataType) -> pa.Schema:
    """A struct `s` with one field."""
    return schema(s=pa.struct([(name, kind)]))


INT, LONG, FLOAT, DOUBLE = pa.int32(), pa.int64(), pa.float32(), pa.float64()
MILLIS, MICROS = schema(a=pa.timestamp("ms", "UTC")), schema(a=pa.timestamp("us", "UTC"))
NARROW, WIDE = schema(a=pa.decimal128(10, 2)), schema(a=pa.decimal128(12, 2))
MIXED = schema(a=INT, b=pa.string(), c=pa.timestamp("us", "UTC"), d=pa.list_(pa.field("element", INT)))
MIXED_AS_DATA = schema(
    a=pa.int8(),
    b=pa.dictionary(pa.int8(), pa.large_string()),
    c=pa.timestamp("ns", "Asia/Tokyo"),
    d=pa.large_list(pa.int16()),
)
EVOLVED = {
    "new columns come last and take null": (
        schema(a=INT),
        pa.schema([pa.field("b", INT, nullable=False), pa.field("a", INT)]),
        schema(a=INT, b=INT),
    ),
    "a column takes null once the data may hold it": (strict(a=INT), schema(a=INT), schema(a=INT)),
    "and not before": (strict(a=INT), strict(a=INT), strict(a=INT)),
    "nor is that taken back": (schema(a=INT), strict(a=INT), schema(a=INT)),
    "Arrow types do not matter beyond what they become": (MIXED, MIXED_AS_DATA, MIXED),
    "milliseconds stay": (MILLIS, MICROS, MILLIS),
    "microseconds stay": (MICROS, MILLIS, MICROS),
    "decimals grow": (NARROW, WIDE, WIDE),
    "and do not shrink": (WIDE, NARROW, WIDE),
    "meta fields of the data do not count": (schema(a=INT), with_meta_fields(schema(a=LONG)), schema(a=LONG)),
    "meta fields of the table stay": (with_meta_fields(schema(a=INT)), schema(a=INT), with_meta_fields(schema(a=INT))),
    "types of new columns become normal": (schema(a=INT), schema(a=INT, b=pa.int8()), schema(a=INT, b=INT)),
    "integers fit into floats": (schema(a=FLOAT), schema(a=LONG), schema(a=FLOAT)),
    "floats grow": (schema(a=FLOAT), schema(a=DOUBLE), schema(a=DOUBLE)),
}
REFUSED = {
    "a missing column without null": (
        pa.schema([*strict(a=INT), *schema(b=INT)]),
        schema(b=INT),
        r"'a'.*missing.*allows no null",
    ),
    "a missing field without null": (
        schema(s=pa.struct([*strict(x=INT), *schema(y=INT)])),
        nested("y", INT),
        r"'s\.x'",
    ),
    "another zone": (
        MICROS,
        schema(a=pa.timestamp("us")),
        r"'a': timestamp\[us, tz=UTC\] in the table, timestamp\[us\] in the data",
    ),
    "another scale": (NARROW, schema(a=pa.decimal128(12, 3)), "scale 2"),
    **{
        f"{integer} does not become {floating}": (
            schema(n=integer),
            schema(n=floating),
            rf"'n'.*cast the data to {integer}",
        )
        for integer in (INT, LONG)
        for floating in (FLOAT, DOUBLE)
    },
    "nor does a field": (nested("n", INT), nested("n", DOUBLE), r"'s\.n'"),
    "another case": (schema(v=INT), schema(V=INT), "'V': in the table it is named 'v'"),
    "another case of a field": (nested("v", INT), nested("V", INT), r"'s\.V': in the table it is named 's\.v'"),
    "a type of a new column": (schema(a=INT), schema(a=INT, b=pa.null()), "'b'"),
}
Case = tuple[pa.Schema, pa.Schema, Any]


@pytest.mark.parametrize("case", EVOLVED.values(), ids=EVOLVED)
def test_evolved(case: Case) -> None:
    table, incoming, expected = case
    assert evolve(table, incoming).equals(expected)


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused(case: Case) -> None:
    table, incoming, message = case
    with pytest.raises(SchemaMismatchError, match=message):
        evolve(table, incoming)


def test_key_fields_may_grow_if_their_text_stays_and_must_be_there() -> None:
    for before, after in ((INT, LONG), (DOUBLE, DOUBLE), (pa.decimal128(10, 2), pa.decimal128(12, 2))):
        assert evolve(schema(k=before), schema(k=after), key_fields=["k"]) == schema(k=after)
    with pytest.raises(SchemaMismatchError, match=r"'k'.*keys are made of its text"):
        evolve(schema(k=FLOAT), schema(k=DOUBLE), key_fields=["k"])
    with pytest.raises(SchemaMismatchError, match=r"'s\.k'"):
        evolve(nested("k", FLOAT), nested("k", DOUBLE), key_fields=["s.k"])
    with pytest.raises(SchemaMismatchError, match=r"'k'.*missing"):
        evolve(schema(k=INT, v=INT), schema(v=INT), key_fields=["k"])


# What Arrow types become in a table, and which are refused


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
WITHOUT_A_PLACE = [
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


@pytest.mark.parametrize(("found", "advice"), WITHOUT_A_PLACE, ids=str)
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
