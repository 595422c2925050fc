"""Avro rows by columns against fastavro row by row; forms that only other writers make; damaged bytes."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, SchemaMismatchError, UnsupportedError
from hoodie.format.avro.rows import decode_rows, encode_rows
from hoodie.format.avro.schema import avro_to_arrow
from tests.support.odd_types import text_of_bytes
from tests.support.seeds import examples
from tests.unit.format.avro.avro_types import tables

Rows = list[dict[str, Any]]


def fastavro_bytes(schema: Any, rows: Rows) -> list[bytes]:
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    out = []
    for row in rows:
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, parsed, row)
        out.append(sink.getvalue())
    return out


def decoded(schema: Any, values: list[bytes], columns: list[str] | None = None, **limits: Any) -> pa.Table:
    lengths = np.array([len(value) for value in values], np.int64)
    ends = np.cumsum(lengths + 3) if len(values) else np.zeros(0, np.int64)
    content = b"".join(b"\xff\xff\xff" + value for value in values)
    text = json.dumps(schema)
    return decode_rows(content, ends - lengths, ends, text, columns=columns, path="log", offset=1000, **limits)


def encoded(schema: Any, rows: pa.Table, **limits: Any) -> list[bytes]:
    return [value for column in encode_rows(rows, json.dumps(schema), **limits) for value in column.to_pylist()]


def record(*types: Any) -> dict[str, Any]:
    fields = [{"name": f"f{place}", "type": kind} for place, kind in enumerate(types)]
    return {"type": "record", "name": "row", "fields": fields}


def one_column(kind: Any, values: list[bytes]) -> list[Any]:
    found: list[Any] = decoded(record(kind), values)["f0"].to_pylist()
    return found


@given(table=tables())
@settings(max_examples=examples(60))
def test_rows_of_any_schema_are_read_as_fastavro_wrote_them(table: tuple[dict[str, Any], Rows]) -> None:
    schema, rows = table
    found = decoded(schema, fastavro_bytes(schema, rows))
    found.validate(full=True)
    assert found.schema.equals(avro_to_arrow(json.dumps(schema)))
    assert found.to_pylist(maps_as_pydicts="strict") == rows


@given(table=tables())
@settings(max_examples=examples(60))
def test_rows_of_any_schema_are_written_as_fastavro_reads_them(table: tuple[dict[str, Any], Rows]) -> None:
    schema, rows = table
    values = fastavro_bytes(schema, rows)
    again = encoded(schema, decoded(schema, values))
    if '"logicalType": "decimal"' not in json.dumps(schema):
        assert again == values
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    read = [fastavro.schemaless_reader(io.BytesIO(value), parsed, None) for value in again]
    assert read == [fastavro.schemaless_reader(io.BytesIO(value), parsed, None) for value in values]
    assert decoded(schema, again).to_pylist(maps_as_pydicts="strict") == rows


@given(table=tables(), data=st.data())
@settings(max_examples=examples(60))
def test_columns_that_nobody_wants_are_passed_over(table: tuple[dict[str, Any], Rows], data: st.DataObject) -> None:
    schema, rows = table
    names = [field["name"] for field in schema["fields"]]
    wanted = data.draw(st.lists(st.sampled_from(names), unique=True, min_size=1))
    found = decoded(schema, fastavro_bytes(schema, rows), [*wanted, "other"])
    assert found.column_names == sorted(wanted)
    assert found.to_pylist(maps_as_pydicts="strict") == [{name: row[name] for name in sorted(wanted)} for row in rows]


@given(table=tables(), start=st.integers(0, 4), step=st.integers(1, 3))
@settings(max_examples=examples(60))
def test_slices_and_gathered_rows_are_written_like_any_other(
    table: tuple[dict[str, Any], Rows], start: int, step: int
) -> None:
    schema, rows = table
    whole = decoded(schema, fastavro_bytes(schema, rows))
    values = encoded(schema, whole)
    assert encoded(schema, whole.slice(start)) == values[start:]
    places = list(range(0, len(rows), step))[::-1]
    assert encoded(schema, whole.take(pa.array(places, pa.int32()))) == [values[place] for place in places]


@given(table=tables(), data=st.data())
@settings(max_examples=examples(120))
def test_damaged_rows_give_no_other_error(table: tuple[dict[str, Any], Rows], data: st.DataObject) -> None:
    schema, rows = table
    values = [bytearray(value) for value in fastavro_bytes(schema, rows) if value]
    if not values:
        return
    for _ in range(data.draw(st.integers(1, 3))):
        value = values[data.draw(st.integers(0, len(values) - 1))]
        value[data.draw(st.integers(0, len(value) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    if data.draw(st.booleans()):
        del values[-1][data.draw(st.integers(0, len(values[-1]) - 1)) :]
    columns = data.draw(st.sampled_from([None, ["f0"]]))
    with contextlib.suppress(CorruptFileError):
        decoded(schema, [bytes(value) for value in values], columns).validate(full=True)


def test_what_was_decoded_can_be_written_as_parquet() -> None:
    inner = {
        "type": "record",
        "name": "point",
        "fields": [{"name": "x", "type": "long"}, {"name": "y", "type": "string"}],
    }
    outer = {
        "type": "record",
        "name": "outer",
        "fields": [
            {"name": "point", "type": inner},
            {"name": "list", "type": {"type": "array", "items": ["null", "point"]}},
            {"name": "map", "type": {"type": "map", "values": "boolean"}},
            {"name": "fixed", "type": {"type": "fixed", "name": "four", "size": 4}},
        ],
    }
    schema = record(["null", outer], "int")
    full = {"point": {"x": 1, "y": "a"}, "list": [None, {"x": 2, "y": "b"}], "map": {"k": True}, "fixed": b"1234"}
    cases: list[Rows] = [[{"f0": full, "f1": 1}, {"f0": None, "f1": 2}], [{"f0": None, "f1": 1}]]
    for rows in cases:
        found = decoded(schema, fastavro_bytes(schema, rows))
        sink = io.BytesIO()
        pq.write_table(found, sink, store_schema=False)
        assert pq.read_table(sink).to_pylist(maps_as_pydicts="strict") == rows


def test_numbers_of_every_length() -> None:
    numbers = [sign * (1 << bits) + extra for bits in range(63) for sign in (1, -1) for extra in (-1, 0)]
    numbers += [2**63 - 1, -(2**63), 0]
    schema = record("long", "string")
    rows = [{"f0": number, "f1": "x" * (place % 130)} for place, number in enumerate(numbers)]
    values = fastavro_bytes(schema, rows)
    found = decoded(schema, values)
    assert found.to_pylist() == rows
    assert encoded(schema, found) == values


def test_many_rows_go_in_groups() -> None:
    schema = record("long", ["null", "string"], {"type": "array", "items": "string"})
    rows = [{"f0": n, "f1": None if n % 3 else "y" * n, "f2": ["z"] * (n % 4)} for n in range(300)]
    values = fastavro_bytes(schema, rows)
    whole = decoded(schema, values)
    for rows_max, bytes_max in ((7, 10**6), (1000, 500), (1000, 1)):
        found = decoded(schema, values, group_max=(rows_max, bytes_max))
        assert found.num_rows == 300
        assert found.column(0).num_chunks > 5
        assert found.equals(whole)
        assert encoded(schema, found, group_rows=rows_max) == values


def test_framed_rows_say_their_length_and_no_rows_are_none() -> None:
    schema = record("string", ["null", "int"])
    values = fastavro_bytes(schema, [{"f0": "a" * n, "f1": n if n % 2 else None} for n in range(5)])
    (found,) = encode_rows(decoded(schema, values), json.dumps(schema), framed=True)
    assert found.to_pylist() == [len(value).to_bytes(4, "big") + value for value in values]
    mapped = record("string", {"type": "map", "values": "long"})
    assert decoded(mapped, []).schema.equals(avro_to_arrow(json.dumps(mapped)))
    assert encoded(mapped, decoded(mapped, [])) == []


def test_lists_in_several_blocks_and_blocks_that_say_their_bytes() -> None:
    longs = {"type": "array", "items": "long"}
    sized = b"\x03\x06\x02\x80\x01" + b"\x02\x06" + b"\0"  # block of 2 with 3 bytes: 1, 64; block of 1: 3; the end
    values = [sized, b"\0", b"\x02\x02\x02\x04\0", b"\x04\x02\x04\0"]
    assert one_column(longs, values) == [[1, 64, 3], [], [1, 2], [1, 2]]
    floats = {"type": "array", "items": "float"}
    one = b"\0\0\x80\x3f"
    assert one_column(floats, [b"\x02" + one + b"\x03\x10" + one + one + b"\0", b"\0"]) == [[1.0] * 3, []]
    assert decoded(record(longs, "int"), [sized + b"\x02", b"\0\x04"], ["f1"])["f1"].to_pylist() == [1, 2]


def test_unions_of_numbers_become_the_wider_one() -> None:
    values = [b"\x02\x02", b"\x04\x04", b"\0", b"\x04\x80\x80\x80\x80\x20"]
    assert one_column(["null", "int", "long"], values) == [1, 2, None, 2**32]
    assert one_column(["double", "float"], [b"\x02\0\0\xc0\x3f", b"\0" + bytes(6) + b"\xf8\x3f"]) == [1.5, 1.5]
    schema = record(["float", "null", "double"], ["long", "int"])
    rows = pa.table({"f0": pa.array([1.5, None]), "f1": pa.array([5, 7])}, schema=avro_to_arrow(json.dumps(schema)))
    assert encoded(schema, rows) == [b"\x04" + bytes(6) + b"\xf8\x3f\0\x0a", b"\x02\0\x0e"]


def test_a_named_type_used_twice_and_in_a_namespace() -> None:
    inner = {"type": "record", "name": "point", "namespace": "a.b", "fields": [{"name": "x", "type": ["null", "int"]}]}
    schema = record(["null", inner], ["null", "a.b.point"], {"type": "array", "items": "a.b.point"})
    rows: Rows = [{"f0": {"x": 1}, "f1": None, "f2": [{"x": None}]}, {"f0": None, "f1": {"x": 3}, "f2": []}]
    values = fastavro_bytes(schema, rows)
    assert decoded(schema, values).to_pylist() == rows
    assert encoded(schema, decoded(schema, values)) == values


WIDE = {"type": "fixed", "name": "d", "size": 17, "logicalType": "decimal", "precision": 38}
DAMAGE = [
    ("boolean", b"\x02", "boolean"),
    ("int", b"\xff\xff\xff\xff\x7f", "32 bits"),
    ("long", b"\xff" * 9 + b"\x02", "64 bits"),
    ("long", b"\xff" * 11, "64 bits"),
    ("long", b"\x80", "past its record"),
    ("double", b"\0" * 7, "past its record"),
    ("string", b"\x04a", "past its record"),
    ("string", b"\x01", "past its record"),
    ("string", b"\x02\xff", "impossible"),
    ("int", b"\x02\x02", "longer than its schema"),
    (["null", "int"], b"\x04\x02", "branch"),
    (["null", "int"], b"\x01", "branch"),
    ({"type": "enum", "name": "e", "symbols": ["A"]}, b"\x02", "symbol"),
    ({"type": "array", "items": "int"}, b"\xfe\xff\xff\xff\x0f\x02", "more items"),
    ({"type": "array", "items": "int"}, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02", "more items"),
    ({"type": "array", "items": "double"}, b"\x04" + bytes(9), "past its record"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\0", "decimal"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\x04\x7f\xff", "impossible"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 38}, b"\x22" + bytes(17), "more than 16"),
    (WIDE, b"\1" + bytes(16), "38 digits"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "message"), DAMAGE)
def test_damage_is_named_with_its_place(kind: Any, value: bytes, message: str) -> None:
    with pytest.raises(CorruptFileError, match=message) as caught:
        decoded(record(kind), [value])
    assert caught.value.path == "log"
    assert caught.value.offset is not None
    assert 1000 <= caught.value.offset < 1000 + 3 + len(value) + 1


def test_null_where_none_may_be_is_refused() -> None:
    point = {"type": "record", "name": "point", "fields": [{"name": "x", "type": "int"}]}
    for kind, value in (
        ("int", None),
        (point, {"x": None}),
        ({"type": "array", "items": "int"}, [None]),
        (["int"], None),
    ):
        schema = record(kind)
        rows = pa.table({"f0": pa.array([value], avro_to_arrow(json.dumps(schema)).field(0).type)})
        with pytest.raises(SchemaMismatchError, match="f0"):
            encoded(schema, rows)
    unknown = record({"type": "enum", "name": "e", "symbols": ["A"]})
    with pytest.raises(SchemaMismatchError, match="symbol"):
        encoded(unknown, pa.table({"f0": ["B"]}))


def test_text_that_no_decoder_accepts_is_refused() -> None:
    wrong = text_of_bytes(b"ok", b"\xff")
    listed = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), wrong)
    for kind, column in (
        ("string", wrong),
        (["null", "string"], wrong),
        ({"type": "array", "items": "string"}, listed),
    ):
        with pytest.raises(SchemaMismatchError, match=r"column 'f0.*, row 1: text with bytes that are not valid UTF-8"):
            encoded(record(kind), pa.table({"f0": column}))


@pytest.mark.parametrize(
    "kind",
    [
        ["int", "string"],
        {"type": "record", "name": "r", "fields": []},
        {"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}},
    ],
)
def test_types_that_no_table_has_are_refused(kind: Any) -> None:
    with pytest.raises(UnsupportedError, match="f0"):
        decoded(record(kind), [b"\0"])
