"""Schema evolution on write, against what the JVM reference accepted by default."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.table_schema import arrow_to_avro, avro_to_arrow, evolve, with_meta_fields

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


def test_new_columns_come_last_and_take_null() -> None:
    incoming = pa.schema([pa.field("b", pa.int32(), nullable=False), pa.field("a", pa.int32())])
    expected = pa.schema([pa.field("a", pa.int32()), pa.field("b", pa.int32(), nullable=True)])
    assert evolve(schema(a=pa.int32()), incoming).equals(expected)


def test_a_column_takes_null_once_the_data_may_hold_it() -> None:
    strict = pa.schema([pa.field("a", pa.int32(), nullable=False)])
    assert evolve(strict, schema(a=pa.int32())).field("a").nullable
    assert not evolve(strict, strict).field("a").nullable
    assert evolve(schema(a=pa.int32()), strict).field("a").nullable


def test_columns_that_take_no_null_must_be_there() -> None:
    strict = pa.schema([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.int32())])
    with pytest.raises(SchemaMismatchError, match=r"'a'.*missing.*allows no null"):
        evolve(strict, schema(b=pa.int32()))
    inner = schema(s=pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y", pa.int32())]))
    with pytest.raises(SchemaMismatchError, match=r"'s\.x'"):
        evolve(inner, schema(s=pa.struct([("y", pa.int32())])))


def test_arrow_types_of_the_data_do_not_matter_beyond_what_they_become() -> None:
    table = schema(
        a=pa.int32(), b=pa.string(), c=pa.timestamp("us", "UTC"), d=pa.list_(pa.field("element", pa.int32()))
    )
    moments, texts = pa.timestamp("ns", "Asia/Tokyo"), pa.dictionary(pa.int8(), pa.large_string())
    incoming = schema(a=pa.int8(), b=texts, c=moments, d=pa.large_list(pa.int16()))
    assert evolve(table, incoming).equals(table)


def test_timestamps_keep_the_unit_of_the_table_but_not_across_zones() -> None:
    millis, micros = schema(a=pa.timestamp("ms", "UTC")), schema(a=pa.timestamp("us", "UTC"))
    assert evolve(millis, micros) == millis
    assert evolve(micros, millis) == micros
    with pytest.raises(
        SchemaMismatchError, match=r"'a': timestamp\[us, tz=UTC\] in the table, timestamp\[us\] in the data"
    ):
        evolve(micros, schema(a=pa.timestamp("us")))


def test_decimals_grow_but_keep_their_scale() -> None:
    narrow, wide = schema(a=pa.decimal128(10, 2)), schema(a=pa.decimal128(12, 2))
    assert evolve(narrow, wide) == wide
    assert evolve(wide, narrow) == wide
    with pytest.raises(SchemaMismatchError, match="scale 2"):
        evolve(narrow, schema(a=pa.decimal128(12, 3)))


@pytest.mark.parametrize("integer", [pa.int32(), pa.int64()], ids=str)
@pytest.mark.parametrize("floating", [pa.float32(), pa.float64()], ids=str)
def test_integers_do_not_become_floats(integer: pa.DataType, floating: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError, match=rf"'n'.*cast the data to {integer}"):
        evolve(schema(n=integer), schema(n=floating))
    with pytest.raises(SchemaMismatchError, match=r"'s\.n'"):
        evolve(schema(s=pa.struct([("n", integer)])), schema(s=pa.struct([("n", floating)])))
    assert evolve(schema(n=floating), schema(n=integer)) == schema(n=floating)


def test_the_text_of_keys_must_not_change() -> None:
    before, incoming = pa.float32(), pa.float64()
    assert evolve(schema(k=before), schema(k=incoming)).field("k").type == incoming
    with pytest.raises(SchemaMismatchError, match=r"'k'.*keys are made of its text"):
        evolve(schema(k=before), schema(k=incoming), key_fields=["k"])
    nested = [schema(s=pa.struct([("k", kind)])) for kind in (before, incoming)]
    with pytest.raises(SchemaMismatchError, match=r"'s\.k'"):
        evolve(*nested, key_fields=["s.k"])


def test_key_fields_may_grow_and_must_be_there() -> None:
    assert evolve(schema(k=pa.int32()), schema(k=pa.int64()), key_fields=["k"]) == schema(k=pa.int64())
    assert evolve(schema(k=pa.float64()), schema(k=pa.float64()), key_fields=["k"]) == schema(k=pa.float64())
    wide = schema(k=pa.decimal128(12, 2))
    assert evolve(schema(k=pa.decimal128(10, 2)), wide, key_fields=["k"]) == wide
    with pytest.raises(SchemaMismatchError, match=r"'k'.*missing"):
        evolve(schema(k=pa.int32(), v=pa.int32()), schema(v=pa.int32()), key_fields=["k"])


def test_names_that_differ_in_case_only_are_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="'V': in the table it is named 'v'"):
        evolve(schema(v=pa.int32()), schema(V=pa.int32()))
    with pytest.raises(SchemaMismatchError, match=r"'s\.V': in the table it is named 's\.v'"):
        evolve(schema(s=pa.struct([("v", pa.int32())])), schema(s=pa.struct([("V", pa.int32())])))


def test_meta_fields_of_the_data_do_not_count() -> None:
    plain = schema(a=pa.int32())
    assert evolve(plain, with_meta_fields(schema(a=pa.int64()))) == schema(a=pa.int64())
    assert evolve(with_meta_fields(plain), plain) == with_meta_fields(plain)


def test_types_of_new_columns_are_checked_and_made_normal() -> None:
    assert evolve(schema(a=pa.int32()), schema(a=pa.int32(), b=pa.int8())).field("b").type == pa.int32()
    with pytest.raises(SchemaMismatchError, match="'b'"):
        evolve(schema(a=pa.int32()), schema(a=pa.int32(), b=pa.null()))
