"""Containers of one Avro record, and the schemas that files bring along."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, HoodieError, UnsupportedError
from hoodie.format.avro.file import MAGIC, RecordSchema, is_avro_file, parse_record, record_to_bytes
from hoodie.format.avro.rows import decode_rows, encode_rows
from hoodie.format.avro.rows.layout import row_layout
from hoodie.format.avro.safe_schema import LEVELS_MAX, bare_schema, parse_schema
from hoodie.format.avro.schema import avro_to_arrow
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.metadata_table.metadata_record import decode_record
from hoodie.format.varint import zigzag_to_bytes

_SYNC = bytes(range(16))
_SCHEMA = RecordSchema.of(
    json.dumps(
        {
            "type": "record",
            "name": "Pair",
            "fields": [
                {"name": "text", "type": {"type": "string", "avro.java.string": "String"}},
                {"name": "count", "type": ["null", "long"], "default": None},
            ],
        }
    )
)


def test_another_reader_agrees() -> None:
    data = record_to_bytes(_SCHEMA, {"text": "é", "count": 7}, sync_marker=_SYNC)
    assert list(fastavro.reader(io.BytesIO(data))) == [{"text": "é", "count": 7}]
    assert data.endswith(_SYNC)
    assert is_avro_file(data)


def test_sync_markers_are_random_unless_given() -> None:
    record = {"text": "", "count": None}
    assert record_to_bytes(_SCHEMA, record)[-16:] != record_to_bytes(_SCHEMA, record)[-16:]
    with pytest.raises(ValueError, match="16 bytes"):
        record_to_bytes(_SCHEMA, record, sync_marker=b"short")


@given(st.text(), st.none() | st.integers(-(2**63), 2**63 - 1))
def test_round_trip(text: str, count: int | None) -> None:
    record = {"text": text, "count": count}
    assert parse_record(record_to_bytes(_SCHEMA, record)) == (_SCHEMA, record)


@pytest.mark.parametrize(
    "record", [{}, {"text": 1, "count": None}, {"text": "", "count": "x"}, {"text": "", "count": 2**63}]
)
def test_a_record_that_does_not_fit_is_refused(record: dict[str, object]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  (fastavro's own words)
        record_to_bytes(_SCHEMA, record)


def test_more_bytes_or_a_second_block_are_corrupt() -> None:
    data = record_to_bytes(_SCHEMA, {"text": "", "count": None}, sync_marker=_SYNC)
    with pytest.raises(CorruptFileError, match="1 more bytes"):
        parse_record(data + b"\0")


def test_two_records_in_a_block_are_corrupt() -> None:
    stream = io.BytesIO()
    fastavro.writer(stream, _SCHEMA.parsed, [{"text": "a"}, {"text": "b"}])
    with pytest.raises(CorruptFileError, match="1 record expected, found 2"):
        parse_record(stream.getvalue())


def test_a_compressed_container_is_unsupported() -> None:
    stream = io.BytesIO()
    fastavro.writer(stream, _SCHEMA.parsed, [{"text": "a"}], codec="deflate")
    with pytest.raises(UnsupportedError, match="deflate"):
        parse_record(stream.getvalue())


def test_schemas_are_parsed_once() -> None:
    assert RecordSchema.load("HoodieCommitMetadata") is RecordSchema.load("HoodieCommitMetadata")
    text = _SCHEMA.text
    assert RecordSchema.of(text, path="a").parsed is RecordSchema.of(text, path="b").parsed
    with pytest.raises(UnsupportedError, match="not a known Avro type"):
        RecordSchema.of('{"type":"nonsense"}')


# Schemas that a file brings along: what a decoder does with them is bounded


def _record(*types: Any, name: str = "HoodieCommitMetadata") -> dict[str, Any]:
    fields = [{"name": f"f{place}", "type": avro} for place, avro in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields}


def _container(schema: str, block: bytes) -> bytes:
    text, key, sync = schema.encode(), b"avro.schema", bytes(16)
    head = [zigzag_to_bytes(1), zigzag_to_bytes(len(key)), key, zigzag_to_bytes(len(text)), text, zigzag_to_bytes(0)]
    return b"".join([MAGIC, *head, sync, zigzag_to_bytes(1), zigzag_to_bytes(len(block)), block, sync])


def _nested(levels: int) -> Any:
    avro: Any = "long"
    for level in range(levels):
        avro = ["null", _record(avro, name=f"r{level}")]
    return avro


def _laughs(levels: int) -> dict[str, Any]:
    """A small schema whose types, written out, are 8 to the power of `levels`."""
    first = _record(*(["long"] * 8), name="r0")
    fields: list[Any] = [first]
    for level in range(1, levels):
        fields.append(_record(*([f"r{level - 1}"] * 8), name=f"r{level}"))
    return _record(*fields)


_ITSELF = {"type": "record", "name": "r", "fields": [{"name": "x", "type": ["null", "r"]}]}
_BEYOND = {
    "array of nulls": (_record({"type": "array", "items": "null"}), "null"),
    "map of nulls": (_record({"type": "map", "values": "null"}), "null"),
    "null field": (_record("null", "long"), "null"),
    "array of empty records": (_record({"type": "array", "items": _record(name="e")}), "at least one field"),
    "array of fixed without bytes": (
        _record({"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}}),
        "1 to",
    ),
    "huge fixed": (_record({"type": "fixed", "name": "f", "size": 10**13}), "1 to"),
    "contains itself": (_record(_ITSELF), "itself"),
    "itself in an array": (_record({"type": "array", "items": "HoodieCommitMetadata"}), "itself"),
    "too deep": (_record(_nested(LEVELS_MAX)), "levels"),
    "many types": (_laughs(9), "types"),
    "huge enum": (
        _record({"type": "enum", "name": "e", "symbols": [f"s{place}" for place in range(250_000)]}),
        "types",
    ),
    "unknown type": (_record("strjng"), "not a known"),
}
_MALFORMED = {
    "no json": "{",
    "deep json": "[" * 100_000,
    "deep wrappers": '{"type":' * 50_000,
    "a number": "7",
    "null": "null",
    "no fields": '{"type":"record","name":"r"}',
    "fields without types": '{"type":"record","name":"r","fields":[{"name":"x"}]}',
    "fields of numbers": '{"type":"record","name":"r","fields":[1]}',
    "no name": '{"type":"record","fields":[{"name":"x","type":"long"}]}',
    "a name that is a number": '{"type":"record","name":1,"fields":[{"name":"x","type":"long"}]}',
    "the same field twice": json.dumps(
        {"type": "record", "name": "r", "fields": [{"name": "x", "type": "long"}, {"name": "x", "type": "int"}]}
    ),
    "the same name twice": json.dumps(
        _record({"type": "fixed", "name": "f", "size": 2}, {"type": "fixed", "name": "f", "size": 3})
    ),
    "a size that is a text": json.dumps(_record({"type": "fixed", "name": "f", "size": "9"})),
    "symbols twice": json.dumps(_record({"type": "enum", "name": "e", "symbols": ["a", "a"]})),
    "a union of nothing": json.dumps(_record([])),
    "a union of unions": json.dumps(_record([["null", "long"], "int"])),
    "half a surrogate": '{"type":"record","name":"\\ud800","fields":[{"name":"x","type":"long"}]}',
    "a number of 5000 digits": '{"type":"fixed","name":"f","size":' + "9" * 5000 + "}",
}


def test_null_as_an_object_is_no_type_of_a_column() -> None:
    with pytest.raises(UnsupportedError, match="'null' is not a known Avro type"):
        avro_to_arrow(json.dumps(_record(["null", {"type": "null"}], "long")))


@pytest.mark.parametrize("case", _BEYOND)
def test_schemas_beyond_the_limits_are_refused_wherever_they_are_decoded(case: str) -> None:
    schema, reason = _BEYOND[case]
    text = json.dumps(schema)
    for decode in (
        lambda: parse_record(_container(text, b"\x80\x80\x80\x80\x40\0"), path="c"),
        lambda: CommitMetadata.parse(_container(text, b"\x80\x80\x80\x80\x40\0"), path="c"),
        lambda: decode_record(b"\x80\x80\x80\x80\x40\0", schema_json=text, path="c"),
        lambda: avro_to_arrow(text),
        lambda: row_layout(text),
    ):
        with pytest.raises(UnsupportedError, match=reason):
            decode()


@pytest.mark.parametrize("case", _MALFORMED)
def test_text_that_is_no_schema_is_corrupt(case: str) -> None:
    text = _MALFORMED[case]
    with pytest.raises(CorruptFileError) as raised:
        parse_record(_container(text, b"\0"), path="20260101000000000.commit")
    assert raised.value.path == "20260101000000000.commit"
    with pytest.raises(CorruptFileError):
        decode_record(b"\0", schema_json=text, path="x")
    with pytest.raises(HoodieError):
        avro_to_arrow(text)


def test_a_commit_of_a_few_bytes_does_not_fill_the_memory() -> None:
    """2**33 nulls: an item has no bytes, so that the count is the only thing in the file."""
    text = json.dumps(_record({"type": "array", "items": "null"}))
    data = _container(text, zigzag_to_bytes(2**33) + b"\0")
    assert len(data) < 250
    begin = time.perf_counter()
    with pytest.raises(UnsupportedError, match="null"):
        CommitMetadata.parse(data, path="c")
    assert time.perf_counter() - begin < 1


def test_a_count_beyond_the_data_is_corrupt() -> None:
    text = json.dumps(_record({"type": "array", "items": "boolean"}, {"type": "map", "values": "int"}))
    for count in (2**33, -(2**62), 2**62):
        with pytest.raises(CorruptFileError):
            parse_record(_container(text, zigzag_to_bytes(count) + b"\1\1\1"))


def test_the_deepest_schema_is_decoded() -> None:
    text = json.dumps(_record("string", _nested(LEVELS_MAX - 2)))
    schema = avro_to_arrow(text)
    value: Any = 7
    for _ in range(LEVELS_MAX - 2):
        value = {"f0": value}
    rows = pa.table({"f0": ["a"], "f1": [value]}, schema=schema)
    (encoded,) = encode_rows(rows, text)
    data = encoded[0].as_py()
    starts, ends = np.array([0]), np.array([len(data)])
    assert decode_rows(data, starts, ends, text, path="x").equals(rows)


def test_the_errors_of_a_text_name_each_file_that_has_it() -> None:
    for path in ("a", "b"):
        with pytest.raises(CorruptFileError) as raised:
            parse_schema("{", path=path)
        assert raised.value.path == path


def test_a_bare_schema_has_full_names_and_nothing_but_types() -> None:
    inner = {"type": "record", "name": "p", "doc": "x", "fields": [{"name": "t", "type": "long", "default": 0}]}
    when = {"type": "long", "logicalType": "timestamp-micros"}
    text = json.dumps({**_record(inner, ["null", "a.p"], when, {"type": {"type": "int"}}), "namespace": "a"})
    point = {"type": "record", "name": "a.p", "fields": [{"name": "t", "type": "long"}]}
    expected = _record(point, ["null", "a.p"], "long", "int", name="a.HoodieCommitMetadata")
    assert bare_schema(text, path="x") == expected


@pytest.mark.parametrize(
    ("precision", "scale", "message"),
    [
        *((precision, 2, "precision") for precision in (0, 39, 10**6, "9", None, True)),
        *((10, scale, "scale") for scale in (-1, 11, 10**12, "2")),
    ],
)
def test_decimals_that_arrow_has_not_are_refused(precision: object, scale: object, message: str) -> None:
    avro = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    with pytest.raises(UnsupportedError, match=message):
        avro_to_arrow(json.dumps(_record(avro)))


def test_a_namespace_of_null_is_none() -> None:
    """Java's Avro accepts it."""
    text = json.dumps(_record({**_record("long", name="inner"), "namespace": None}) | {"namespace": None})
    assert parse_schema(text, path="x")["namespace"] is None
    assert avro_to_arrow(text).field("f0").type == pa.struct([pa.field("f0", pa.int64(), nullable=False)])
    assert row_layout(text) is not None
