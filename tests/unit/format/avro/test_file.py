"""Containers of one Avro record: the reference's bytes, and bytes that are none."""

from __future__ import annotations

import io
import json
from pathlib import Path

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.format.avro.file import RecordSchema, is_avro_file, parse_record, record_to_bytes

_SYNC = bytes(range(16))
_GOLDEN = Path(__file__).parents[3] / "golden" / "instants"
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


def test_the_references_containers_come_back_byte_for_byte() -> None:
    files = sorted(_GOLDEN.glob("[a-z]*"))
    assert len(files) == 15
    for file in files:
        data = file.read_bytes()
        schema, record = parse_record(data, path=file.name)
        assert RecordSchema.load(schema.name) == schema
        assert record_to_bytes(schema, record, sync_marker=data[-16:]) == data


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


@pytest.mark.parametrize("name", sorted(file.name for file in _GOLDEN.glob("[a-z]*")))
def test_every_truncation_is_corrupt(name: str) -> None:
    data = (_GOLDEN / name).read_bytes()
    for end in range(len(data)):
        with pytest.raises(CorruptFileError) as raised:
            parse_record(data[:end], path=name)
        assert raised.value.path == name


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


@given(st.binary(max_size=200))
def test_garbage_is_corrupt(data: bytes) -> None:
    for candidate in (data, b"Obj\x01" + data):
        with pytest.raises((CorruptFileError, UnsupportedError)):
            parse_record(candidate)


@given(st.data())
def test_a_changed_byte_is_corrupt_or_gives_a_record(data: st.DataObject) -> None:
    changed = bytearray((_GOLDEN / "rollback").read_bytes())
    position = data.draw(st.integers(0, len(changed) - 1))
    changed[position] ^= data.draw(st.integers(1, 255))
    try:
        _, record = parse_record(bytes(changed))
    except (CorruptFileError, UnsupportedError):
        return
    assert isinstance(record, dict)


def test_schemas_are_parsed_once() -> None:
    assert RecordSchema.load("HoodieCommitMetadata") is RecordSchema.load("HoodieCommitMetadata")
    text = _SCHEMA.text
    assert RecordSchema.of(text, path="a").parsed is RecordSchema.of(text, path="b").parsed
    with pytest.raises(UnsupportedError, match="not a known Avro type"):
        RecordSchema.of('{"type":"nonsense"}')
