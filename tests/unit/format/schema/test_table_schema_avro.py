"""Arrow to Avro and back: byte for byte what the JVM reference stored for the same types."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import SchemaMismatchError, UnsupportedError
from hoodie.format.schema.table_schema import (
    META_FIELDS,
    arrow_to_avro,
    avro_record_name,
    avro_to_arrow,
    with_meta_fields,
    without_meta_fields,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "types"


@cache
def golden(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


NULLABLE_POINT = pa.struct([pa.field("x", pa.float64()), pa.field("y", pa.float64(), nullable=False)])
DEEP = pa.struct(
    [
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("inner", pa.struct([pa.field("price", pa.decimal128(12, 2)), pa.field("point", NULLABLE_POINT)])),
        pa.field("points", pa.list_(pa.field("element", NULLABLE_POINT))),
    ]
)


def items(data_type: pa.DataType, *, nullable: bool = True) -> pa.DataType:
    return pa.list_(pa.field("element", data_type, nullable=nullable))


def texts_to(data_type: pa.DataType, *, nullable: bool = True) -> pa.DataType:
    return pa.map_(pa.string(), pa.field("value", data_type, nullable=nullable))


ALL_TYPES = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("flag", pa.bool_()),
        pa.field("tiny", pa.int32()),
        pa.field("small", pa.int32()),
        pa.field("count", pa.int32()),
        pa.field("count_not_null", pa.int32(), nullable=False),
        pa.field("big", pa.int64()),
        pa.field("ratio", pa.float32()),
        pa.field("exact", pa.float64()),
        pa.field("text", pa.string()),
        pa.field("raw", pa.binary()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("local_at", pa.timestamp("us")),
        *(
            pa.field(f"dec_{precision}_{scale}", pa.decimal128(precision, scale))
            for precision, scale in [(1, 0), (2, 2), (9, 2), (10, 0), (18, 4), (19, 0), (20, 10), (38, 18), (38, 38)]
        ),
        pa.field("dec_not_null", pa.decimal128(10, 2), nullable=False),
        pa.field("ints", items(pa.int32())),
        pa.field("ints_not_null", items(pa.int32(), nullable=False), nullable=False),
        pa.field("matrix", items(items(pa.decimal128(8, 3)))),
        pa.field("counts", texts_to(pa.int64())),
        pa.field("counts_not_null", texts_to(pa.int64(), nullable=False)),
        pa.field("point", NULLABLE_POINT),
        pa.field("point_not_null", NULLABLE_POINT, nullable=False),
        pa.field("deep", DEEP),
        pa.field("list_of_structs", items(DEEP)),
        pa.field("map_of_structs", texts_to(NULLABLE_POINT)),
        pa.field("map_of_lists", texts_to(items(NULLABLE_POINT))),
        pa.field("days", items(pa.date32())),
        pa.field("times", texts_to(pa.timestamp("us", "UTC"))),
        pa.field("local_times", items(pa.timestamp("us"))),
        pa.field("array", items(NULLABLE_POINT)),
        pa.field("value", NULLABLE_POINT),
    ]
)


def test_all_types_are_written_byte_for_byte_as_the_jvm_writes_them_and_read_back() -> None:
    stored = golden("all_types")["all_types"]["schema"]
    assert arrow_to_avro(ALL_TYPES, table_name="all_types") == stored
    assert avro_to_arrow(stored).equals(ALL_TYPES, check_metadata=True)
    by_row_writer = golden("all_types")["all_types_row_writer"]["schema"]
    assert arrow_to_avro(avro_to_arrow(by_row_writer), table_name="all_types") == by_row_writer


def test_meta_fields_are_written_as_in_the_parquet_footer_of_the_avro_writer() -> None:
    footer = pq.read_metadata(GOLDEN / "all_types.parquet").metadata[b"parquet.avro.schema"].decode()
    assert arrow_to_avro(with_meta_fields(ALL_TYPES), table_name="all_types") == footer
    assert without_meta_fields(avro_to_arrow(footer)).equals(ALL_TYPES)


@pytest.mark.parametrize("name", sorted(golden("names")["tables"]))
def test_table_names_are_cleaned_as_the_jvm_does(name: str) -> None:
    schema = golden("names")["tables"][name]
    parsed = json.loads(schema)
    assert avro_record_name(name) == (parsed["name"], parsed["namespace"])
    assert arrow_to_avro(avro_to_arrow(schema), table_name=name) == schema


@pytest.mark.parametrize("name", sorted(golden("names")["columns"]))
def test_column_names_are_taken_or_refused_as_by_the_jvm(name: str) -> None:
    expected = golden("names")["columns"][name]
    schema = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field(name, NULLABLE_POINT)])
    if isinstance(expected, str):
        assert arrow_to_avro(schema, table_name="t") == expected
    else:
        with pytest.raises(SchemaMismatchError, match="rename the column"):
            arrow_to_avro(schema, table_name="t")


def test_all_names_that_avro_forbids_are_listed() -> None:
    inner = pa.struct([("x y", pa.int64()), ("ok", pa.map_(pa.string(), pa.struct([("1", pa.int64())])))])
    schema = pa.schema([("a b", pa.int64()), ("ok", pa.list_(inner)), ("c-d", pa.string())])
    said = r"columns 'a b', 'ok\.x y', 'ok\.ok\.1', 'c-d': .*; rename the columns"
    with pytest.raises(SchemaMismatchError, match=said):
        arrow_to_avro(schema, table_name="t")


def test_millisecond_timestamps_have_their_own_logical_types() -> None:
    schema = pa.schema([("a", pa.timestamp("ms", "UTC")), ("b", pa.timestamp("ms"))])
    types = [field["type"][1]["logicalType"] for field in json.loads(arrow_to_avro(schema, table_name="t"))["fields"]]
    assert types == ["timestamp-millis", "local-timestamp-millis"]
    assert avro_to_arrow(arrow_to_avro(schema, table_name="t")) == schema


@pytest.mark.parametrize(
    ("avro", "expected"),
    [
        ("int", pa.int32()),
        ({"type": "string", "avro.java.string": "String"}, pa.string()),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, pa.string()),
        ({"type": "fixed", "name": "f", "size": 7}, pa.binary(7)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}, pa.decimal128(12, 3)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 12}, pa.decimal128(12, 0)),
        ({"type": "int", "logicalType": "time-millis"}, pa.time32("ms")),
        ({"type": "long", "logicalType": "time-micros"}, pa.time64("us")),
        ({"type": "long", "logicalType": "something-new"}, pa.int64()),
        ({"type": {"type": "array", "items": "long"}}, items(pa.int64(), nullable=False)),
        (["int", "long"], pa.int64()),
        (["float", "double"], pa.float64()),
    ],
)
def test_types_that_other_writers_store(avro: Any, expected: pa.DataType) -> None:
    record = {"type": "record", "name": "r", "fields": [{"name": "a", "type": avro}]}
    assert avro_to_arrow(json.dumps(record)) == pa.schema([pa.field("a", expected, nullable=False)])
    record = {"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", avro]}]}
    if not isinstance(avro, list):
        assert avro_to_arrow(json.dumps(record)) == pa.schema([pa.field("a", expected)])


def test_null_may_stand_last_in_a_union() -> None:
    record = {"type": "record", "name": "r", "fields": [{"name": "a", "type": ["string", "null"], "default": "x"}]}
    assert avro_to_arrow(json.dumps(record)) == pa.schema([pa.field("a", pa.string())])


def test_named_types_are_found_by_short_and_by_full_name() -> None:
    point = {"type": "record", "name": "p", "namespace": "n.s", "fields": [{"name": "x", "type": "int"}]}
    fields: list[dict[str, Any]] = [
        {"name": "a", "type": point},
        {"name": "b", "type": "n.s.p"},
        {"name": "c", "type": ["null", "n.s.p"]},
    ]
    schema = avro_to_arrow(json.dumps({"type": "record", "name": "r", "namespace": "n.s", "fields": fields}))
    assert schema.field("a").type == schema.field("b").type == schema.field("c").type
    fields[1] = {"name": "b", "type": "p"}
    assert avro_to_arrow(json.dumps({"type": "record", "name": "r", "namespace": "n.s", "fields": fields})) == schema


@pytest.mark.parametrize(
    ("avro", "message"),
    [
        (["int", "string"], "union"),
        (["null", "int", "string"], "union"),
        ("nosuch", "nosuch"),
        ({"type": "record", "name": "r", "fields": [{"name": "x", "type": ["null", "r"]}]}, "contains itself"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39}, "38"),
    ],
)
def test_types_without_a_place_are_refused_by_name(avro: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as error:
        avro_to_arrow(json.dumps({"type": "record", "name": "top", "fields": [{"name": "the_column", "type": avro}]}))
    assert "the_column" in str(error.value)


def test_only_records_of_normal_types_are_table_schemas() -> None:
    for text in ('"string"', '["null", "string"]', '{"type": "array", "items": "int"}'):
        with pytest.raises(UnsupportedError, match="record"):
            avro_to_arrow(text)
    with pytest.raises(UnsupportedError, match=r"'a\.b'"):
        arrow_to_avro(pa.schema([("a", pa.struct([("b", pa.int8())]))]), table_name="t")


def test_meta_fields_come_first_once() -> None:
    schema = pa.schema([("a", pa.int32())])
    once = with_meta_fields(schema)
    assert once.names == [*META_FIELDS, "a"]
    assert with_meta_fields(once) == once
    assert with_meta_fields(schema, has_operation=True).names == [*META_FIELDS, "_hoodie_operation", "a"]
    assert without_meta_fields(with_meta_fields(schema, has_operation=True)) == schema


def test_physical_types_of_pyarrow_files_are_those_of_the_jvm(tmp_path: Path) -> None:
    """Except for lists, which the Avro writer of the JVM writes with two levels; both read both."""
    pq.write_table(ALL_TYPES.empty_table(), tmp_path / "ours.parquet", store_schema=False)
    ours = pq.ParquetFile(tmp_path / "ours.parquet").schema
    found = {ours.column(i).path: ours.column(i) for i in range(len(ours))}
    for path, (physical, logical, length, definition, repetition) in golden("all_types")["all_types_row_writer"][
        "columns"
    ].items():
        if path in META_FIELDS:
            continue
        column = found[path]
        assert (column.physical_type, column.length) == (physical, length), path
        assert str(column.logical_type) == logical, path
        assert (column.max_definition_level, column.max_repetition_level) == (definition, repetition), path
