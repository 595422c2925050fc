"""Names of data files and markers: golden names, round trips, and names of other kinds."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.format.filenames import (
    BaseFileName,
    IoType,
    LogFileName,
    instant_of_data_file,
    marker_name,
    new_file_id,
    parse_data_file,
    parse_marker,
    write_token,
)

_UUID = UUID("9eeba35d-145d-4fc1-89aa-54a3e8cea3b9")
_IDS = st.from_regex(re.compile(r"[a-zA-Z0-9-]{1,40}", re.ASCII), fullmatch=True)
_INSTANTS = st.from_regex(re.compile(r"[0-9]{14,20}", re.ASCII), fullmatch=True)
_COUNTS = st.integers(min_value=0, max_value=10**9)
_TOKENS = st.builds(write_token, _COUNTS, _COUNTS, _COUNTS)


def test_every_data_file_of_the_reference_is_recognised(golden_tables: Path) -> None:
    base_files = log_files = 0
    for file in golden_tables.rglob("*"):
        if not file.is_file() or file.name.endswith(".crc"):
            continue
        if file.suffix in {".parquet", ".hfile"}:
            assert str(BaseFileName.parse(file.name)) == file.name
            assert LogFileName.parse(file.name) is None
            base_files += 1
        elif ".log." in file.name:
            assert str(LogFileName.parse(file.name)) == file.name
            assert BaseFileName.parse(file.name) is None
            log_files += 1
        else:
            assert BaseFileName.parse(file.name) is None
            assert LogFileName.parse(file.name) is None
    assert (base_files, log_files) == (101, 465)


def test_base_file_name_has_its_parts() -> None:
    name = "9eeba35d-145d-4fc1-89aa-54a3e8cea3b9-0_0-145-396_20261121123508310.parquet"
    parsed = BaseFileName.parse(name)
    assert parsed == BaseFileName(new_file_id(_UUID, 0), write_token(0, 145, 396), "20261121123508310", "parquet")
    assert parsed is not None
    assert parsed.name == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "hoodie.properties",
        ".hoodie_partition_metadata",
        "a_1-0-1_20261121.parquet.crc",
        ".a_1-0-1_20261121.parquet.crc",
        "a_b_1-0-1_20261121.parquet",
        "a_1-0-1_today.parquet",
        "a_1-0-1_20261121",
        "folder/a_1-0-1_20261121.parquet",
        "a_1-0-1_20261121.parquet\n",
    ],
)
def test_other_names_are_no_base_files(name: str) -> None:
    assert BaseFileName.parse(name) is None


def test_log_file_name_has_its_parts() -> None:
    parsed = LogFileName.parse(".files-0000-0_00000000000000010.log.12_0-0-0")
    assert parsed == LogFileName("files-0000-0", "00000000000000010", 12, "0-0-0")
    assert not LogFileName("f", "1", 1).is_cdc
    assert LogFileName.parse(".f_1.log.1_1-0-1.cdc") == LogFileName("f", "1", 1, "1-0-1", ".cdc")
    assert LogFileName("f", "1", 1, "1-0-1", ".cdc").is_cdc


def test_log_file_name_of_an_old_writer_has_no_token() -> None:
    parsed = LogFileName.parse(".f_20200101000000.log.3")
    assert parsed == LogFileName("f", "20200101000000", 3, "")
    assert str(parsed) == ".f_20200101000000.log.3"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "..f_1.log.1_1-0-1.crc",
        ".f_1.log.1_1-0-1.crc",
        ".f_1.log.x_1-0-1",
        ".f_1.log.1_1-0",
        "f_1.log.1_1-0-1",
        ".commits_.archive.1_1-0-1",
        ".f_1.log.1_1-0-1\n",
    ],
)
def test_other_names_are_no_log_files(name: str) -> None:
    assert LogFileName.parse(name) is None


def test_log_files_sort_by_instant_then_numeric_version_then_token_then_suffix() -> None:
    names = [
        ".f_1.log.2_1-0-1",
        ".f_1.log.10_1-0-1",
        ".f_1.log.10_2-0-1",
        ".f_1.log.10_2-0-1.cdc",
        ".f_2.log.1_1-0-1",
    ]
    parsed = [found for name in reversed(names) if (found := LogFileName.parse(name)) is not None]
    assert [str(name) for name in sorted(parsed, key=lambda log: log.sort_key)] == names


@given(_IDS, _TOKENS, _INSTANTS, st.sampled_from(["parquet", "orc", "hfile"]))
def test_base_file_names_round_trip(file_id: str, token: str, instant: str, extension: str) -> None:
    name = BaseFileName(file_id, token, instant, extension)
    assert BaseFileName.parse(str(name)) == name


@given(_IDS, _INSTANTS, _COUNTS, _TOKENS, st.sampled_from(["", ".cdc"]))
def test_log_file_names_round_trip(file_id: str, instant: str, version: int, token: str, suffix: str) -> None:
    name = LogFileName(file_id, instant, version, token, suffix)
    assert LogFileName.parse(str(name)) == name


def test_data_files_are_base_and_log_files() -> None:
    base, log = BaseFileName("a-0", "1-0-1", "20261121123441123"), LogFileName("a-0", "20261121123441124", 1)
    assert (parse_data_file(base.name), parse_data_file(f"p/q=1/{log.name}")) == (base, log)
    assert (instant_of_data_file(f"p/{base.name}"), instant_of_data_file(log.name)) == (
        base.instant_time,
        log.instant_time,
    )
    assert (parse_data_file(".hoodie_partition_metadata"), instant_of_data_file("p/notes.txt")) == (None, None)


def test_file_ids() -> None:
    assert new_file_id(_UUID, 3) == "9eeba35d-145d-4fc1-89aa-54a3e8cea3b9-3"
    with pytest.raises(ValueError, match="counts from 0"):
        new_file_id(_UUID, -1)


@pytest.mark.parametrize("io_type", IoType)
def test_markers_round_trip(io_type: IoType) -> None:
    marker = marker_name("city=sf/a_1-0-1_20261121.parquet", io_type)
    assert marker == f"city=sf/a_1-0-1_20261121.parquet.marker.{io_type}"
    assert parse_marker(marker) == ("city=sf/a_1-0-1_20261121.parquet", io_type)


@pytest.mark.parametrize("name", ["", "MARKERS.type", "MARKERS0", "a.marker.", "a.marker.create", ".marker.CREATE"])
def test_other_names_are_no_markers(name: str) -> None:
    assert parse_marker(name) is None
