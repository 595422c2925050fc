"""Rows of the metadata table's partition `files`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.format.hfile import HFileReader
from hoodie.format.metadata_table.metadata_record import (
    FileListRecord,
    RecordType,
    commit_schema,
    decode_record,
    metadata_schema,
)

FILES = st.dictionaries(st.text(max_size=80), st.none() | st.integers(0, 2**62), max_size=20)


@given(kind=st.sampled_from([RecordType.PARTITION_LIST, RecordType.FILE_LIST]), files=FILES)
def test_rows_round_trip(kind: RecordType, files: dict[str, int | None]) -> None:
    record = FileListRecord(kind, files)
    assert FileListRecord.parse(record.to_bytes(), schema_json=metadata_schema(), path="x") == record


def test_base_files_of_the_golden_tables_are_written_back(golden_tables: Path) -> None:
    paths = list(golden_tables.glob("*/.hoodie/metadata/files/*.hfile"))
    assert len(paths) >= 6
    compacted = 0
    for path in paths:
        reader = HFileReader(path.read_bytes(), path=str(path))
        assert reader.file_info["schema"].decode() == metadata_schema()
        for value in reader.entries()[1].to_pylist():
            name = decode_record(value, schema_json=metadata_schema(), path="x")["_hoodie_file_name"]
            compacted += name is not None
            record = FileListRecord.parse(value, schema_json=metadata_schema(), path="x")
            assert record.to_bytes(file_name=name) == value
    assert compacted


def test_the_commit_schema_has_no_meta_fields() -> None:
    names = [field["name"] for field in json.loads(commit_schema())["fields"]]
    assert names[:2] == ["key", "type"]
    assert [field["name"] for field in json.loads(metadata_schema())["fields"]][5:] == names


@pytest.mark.parametrize(
    "value", [b"", b"\0\0", b"\xff" * 40, FileListRecord(RecordType.FILE_LIST, {}).to_bytes() + b"x"]
)
def test_damaged_values(value: bytes) -> None:
    with pytest.raises(CorruptFileError):
        FileListRecord.parse(value, schema_json=metadata_schema(), path="x")


def test_other_rows_and_other_schemas_are_refused() -> None:
    other = FileListRecord(RecordType.RECORD_INDEX, {}).to_bytes()
    with pytest.raises(CorruptFileError, match="type 5"):
        FileListRecord.parse(other, schema_json=metadata_schema(), path="x")
    for schema in ("", "{}", '{"type":"nonsense"}'):
        with pytest.raises((CorruptFileError, UnsupportedError)):
            FileListRecord.parse(other, schema_json=schema, path="x")
