"""Record locations against the JVM's bytes, and there and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.format.metadata_table.metadata_record import metadata_schema
from hoodie.format.metadata_table.record_location import LocationColumn, RecordLocation, location_values

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
    assert [column.locations[code] if code >= 0 else None for code in column.codes.tolist()] == [
        locations[1],
        locations[0],
        locations[1],
        locations[1],
        None,
    ]


def test_other_records_are_no_locations() -> None:
    with pytest.raises(CorruptFileError, match="x: "):
        RecordLocation.parse(b"\x00\x01", schema_json=metadata_schema(), path="x")
