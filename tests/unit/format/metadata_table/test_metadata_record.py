"""Rows of the metadata table's partition `files`, and record locations."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
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
from hoodie.format.metadata_table.record_location import LocationColumn, RecordLocation, location_values

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


def test_other_rows_and_other_schemas_are_refused() -> None:
    other = FileListRecord(RecordType.RECORD_INDEX, {}).to_bytes()
    with pytest.raises(CorruptFileError, match="type 5"):
        FileListRecord.parse(other, schema_json=metadata_schema(), path="x")
    for schema in ("", "{}", '{"type":"nonsense"}'):
        with pytest.raises((CorruptFileError, UnsupportedError)):
            FileListRecord.parse(other, schema_json=schema, path="x")


# Locations of the partition `record_index`

FILE_IDS = st.one_of(st.uuids().map(str), st.uuids().map(lambda unique: f"{unique}-7"), st.just("00000003-odd-name"))
LOCATIONS = st.builds(RecordLocation, st.text(max_size=20), FILE_IDS, st.integers(0, 1 << 42))


@given(LOCATIONS)
def test_there_and_back(location: RecordLocation) -> None:
    assert RecordLocation.parse(location.to_bytes(), schema_json=metadata_schema(), path="x") == location


def test_the_bytes_of_the_format_page() -> None:
    location = RecordLocation("city=nyc", "8e28521e-2ca3-4f03-ae3d-f47abb1ca2bc-0", 1_795_264_606_256)
    encoded = location.to_bytes()
    assert encoded.startswith(bytes.fromhex("0000000000000a00000002021063") + b"ity=nyc\x02")
    assert encoded[-3:] == bytes(3)


def test_a_column_shares_its_locations() -> None:
    locations = [RecordLocation("a", "f-1", 1), RecordLocation("b", "f-2", 2)]
    values = location_values(locations, np.array([1, 0, 1, 1]))
    with_null = pa.concat_arrays([values, pa.nulls(1, pa.binary())])
    column = LocationColumn.parse(with_null, schema_json=metadata_schema(), path="x")
    found = [column.locations[code] if code >= 0 else None for code in column.codes.tolist()]
    assert found == [*(locations[place] for place in (1, 0, 1, 1)), None]


def test_other_records_are_no_locations() -> None:
    with pytest.raises(CorruptFileError, match="x: "):
        RecordLocation.parse(b"\x00\x01", schema_json=metadata_schema(), path="x")
