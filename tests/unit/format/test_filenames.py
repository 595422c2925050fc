"""Names of data files and markers: golden names, round trips, and names of other kinds."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.format.filenames import (
    BaseFileName,
    IoType,
    LogFileName,
    bucket_of_file_id,
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


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        (
            "9eeba35d-145d-4fc1-89aa-54a3e8cea3b9-0_0-145-396_20261121123508310.parquet",
            BaseFileName(new_file_id(_UUID, 0), write_token(0, 145, 396), "20261121123508310", "parquet"),
        ),
        (".files-0000-0_00000000000000010.log.12_0-0-0", LogFileName("files-0000-0", "00000000000000010", 12, "0-0-0")),
        (".f_1.log.1_1-0-1.cdc", LogFileName("f", "1", 1, "1-0-1", ".cdc")),
        # Of an old writer.
        (".f_20200101000000.log.3", LogFileName("f", "20200101000000", 3, "")),
    ],
)
def test_names_have_their_parts(name: str, parsed: BaseFileName | LogFileName) -> None:
    assert type(parsed).parse(name) == parse_data_file(name) == parsed
    assert (str(parsed), parsed.name) == (name, name)
    assert isinstance(parsed, BaseFileName) or parsed.is_cdc == name.endswith(".cdc")


def test_log_files_sort_by_instant_then_numeric_version_then_token_then_suffix() -> None:
    names = [".f_1.log.2_1-0-1", ".f_1.log.10_1-0-1", ".f_1.log.10_2-0-1", ".f_1.log.10_2-0-1.cdc", ".f_2.log.1_1-0-1"]
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


_OTHERS: list[tuple[Callable[[str], object], list[str]]] = [
    (
        BaseFileName.parse,
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
    ),
    (
        LogFileName.parse,
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
    ),
    (parse_marker, ["", "MARKERS.type", "MARKERS0", "a.marker.", "a.marker.create", ".marker.CREATE"]),
    (bucket_of_file_id, ["6f1c2f9b-4a5f", "0000001-4a5f", "000000012-4a5f", ""]),
]


def test_other_names_are_none() -> None:
    for parse, names in _OTHERS:
        assert [name for name in names if parse(name) is not None] == []
