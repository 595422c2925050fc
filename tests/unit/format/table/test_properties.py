"""Java properties: the escapes of both directions, and the reference's files byte for byte."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.format.filenames import PARTITION_METADATA_NAME
from hoodie.format.table.properties import (
    BYTES_MAX,
    PartitionMetadata,
    java_date,
    parse_properties,
    properties_to_bytes,
    table_checksum,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("# comment\n! comment\n\n  \t\n", {}),
        ("a=1\r\nb=2\rc=3\n", {"a": "1", "b": "2", "c": "3"}),
        ("a = 1 \nb : 2\nc 3", {"a": "1 ", "b": "2", "c": "3"}),
        ("  a=1", {"a": "1"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=x", {"": "x"}),
        ("a==b", {"a": "=b"}),
        ("a:=b", {"a": "=b"}),
        (r"a\=b\:c\ d=e", {"a=b:c d": "e"}),
        (r"a=p\:SIMPLE,ts\:TIMESTAMP", {"a": "p:SIMPLE,ts:TIMESTAMP"}),
        (r"a=\t\n\r\f\\\#\!\q", {"a": "\t\n\r\f\\#!q"}),
        (r"a=\u00e9\u65E5\ud83d\ude00", {"a": "é日😀"}),
        ("a=one \\\n   two \\\r\n three\nb=2", {"a": "one two three", "b": "2"}),
        ("a=x\\\\\nb=2", {"a": "x\\", "b": "2"}),
        ("a=1\\\n# no comment\n", {"a": "1# no comment"}),
        ("a=1\\", {"a": "1"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=\xe9", {"a": "é"}),
    ],
)
def test_parsing(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text.encode("latin-1")) == expected


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        *((text, "four hex digits") for text in (rb"a=\u12", rb"a=\uzzzz", rb"a=\u")),
        (b"a=1\0", "NUL"),
        (b"\0" * 100, "NUL"),
        (b"a=1\na=\\ud800", "surrogate"),
        (b"a=" + b"x" * BYTES_MAX, "at most"),
    ],
    ids=lambda value: str(value[:12]),
)
def test_other_content_is_corrupt(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptFileError, match=reason) as raised:
        parse_properties(data, path="t/hoodie.properties")
    assert raised.value.path == "t/hoodie.properties"
    assert len(str(raised.value)) < 500


def test_writing_escapes_what_java_escapes() -> None:
    written = properties_to_bytes({"a b:=#!": "  x y\t:=#!\\é😀\x7f"}, ("first", "é"))
    assert written == (
        b"#first\n#\\u00E9\n"
        b"a\\ b\\:\\=\\#\\!=\\  x y\\t\\:\\=\\#\\!\\\\\\u00E9\\uD83D\\uDE00\\u007F\n"
    )  # fmt: skip


def test_java_date_is_in_utc_and_in_english() -> None:
    assert java_date(datetime(2026, 11, 21, 12, 34, 49, tzinfo=UTC)) == "Sat Nov 21 12:34:49 UTC 2026"
    assert java_date(datetime(2027, 1, 4, 0, 30, tzinfo=timezone(timedelta(hours=1)))) == "Sun Jan 03 23:30:00 UTC 2027"


def test_the_references_lines_come_back_byte_for_byte(golden_tables: Path) -> None:
    files = sorted(golden_tables.rglob("hoodie.properties"))
    assert len(files) == 12
    for file in files:
        data = file.read_bytes()
        first, second, *lines = data.decode("ascii").splitlines()
        properties = parse_properties(data)
        assert properties_to_bytes(properties, (first[1:], second[1:])) == data
        assert len(properties) == len(lines)
        assert properties["hoodie.table.checksum"] == str(table_checksum(None, properties["hoodie.table.name"]))


def test_the_checksum_takes_the_database_in() -> None:
    assert table_checksum(None, "v9_cow") == 2254393582
    assert table_checksum("", "v9_cow") == 2254393582
    assert table_checksum("db", "v9_cow") != 2254393582


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_round_trip(properties: dict[str, str]) -> None:
    assert parse_properties(properties_to_bytes(properties, ("comment",))) == properties


@given(st.binary())
def test_any_bytes_parse_or_are_corrupt(data: bytes) -> None:
    try:
        parse_properties(data)
    except CorruptFileError:
        assert b"\\u" in data or b"\0" in data


def test_metadata_of_partitions(golden_tables: Path) -> None:
    data = (golden_tables / "v6_mor" / "city=sf" / PARTITION_METADATA_NAME).read_bytes()
    parsed = PartitionMetadata.parse(data)
    assert parsed == PartitionMetadata(commit_time="20261121123508310", partition_depth=1)
    assert parsed.to_bytes(datetime(2026, 11, 21, 12, 35, 10, tzinfo=UTC)) == data
    files = list(golden_tables.rglob(PARTITION_METADATA_NAME))
    assert files
    assert all(PartitionMetadata.parse(file.read_bytes()).commit_time is not None for file in files)
    assert PartitionMetadata.parse(b"partitionDepth=2").commit_time is None
    written = PartitionMetadata(commit_time=None, partition_depth=2).to_bytes(datetime(2026, 1, 1, tzinfo=UTC))
    assert b"commitTime" not in written


@pytest.mark.parametrize(
    "data", [b"", b"commitTime=1", b"partitionDepth=-1", b"partitionDepth=x", b"partitionDepth=" + b"9" * 5000, b"\xff"]
)
def test_without_a_depth_it_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match="partitionDepth"):
        PartitionMetadata.parse(data, path="p/.hoodie_partition_metadata")
