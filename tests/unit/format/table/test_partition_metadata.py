"""The file that makes a folder a partition."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hoodie.errors import CorruptFileError
from hoodie.format.filenames import PARTITION_METADATA_NAME
from hoodie.format.table.partition_metadata import PartitionMetadata


def test_the_references_file_comes_back_byte_for_byte(golden_tables: Path) -> None:
    data = (golden_tables / "v6_mor" / "city=sf" / PARTITION_METADATA_NAME).read_bytes()
    parsed = PartitionMetadata.parse(data)
    assert parsed == PartitionMetadata(commit_time="20261121123508310", partition_depth=1)
    assert parsed.to_bytes(datetime(2026, 11, 21, 12, 35, 10, tzinfo=UTC)) == data


def test_every_file_of_the_reference_parses(golden_tables: Path) -> None:
    files = list(golden_tables.rglob(PARTITION_METADATA_NAME))
    assert files
    for file in files:
        assert PartitionMetadata.parse(file.read_bytes()).commit_time is not None


@pytest.mark.parametrize(
    "data", [b"", b"commitTime=1", b"partitionDepth=-1", b"partitionDepth=x", b"partitionDepth=" + b"9" * 5000, b"\xff"]
)
def test_without_a_depth_it_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match="partitionDepth"):
        PartitionMetadata.parse(data, path="p/.hoodie_partition_metadata")


def test_the_commit_time_may_be_missing() -> None:
    assert PartitionMetadata.parse(b"partitionDepth=2").commit_time is None
    written = PartitionMetadata(commit_time=None, partition_depth=2).to_bytes(datetime(2026, 1, 1, tzinfo=UTC))
    assert b"commitTime" not in written
