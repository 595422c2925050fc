"""File ids of the partitioned record index, as JVM Hudi 1.2.0 was seen to name them."""

from __future__ import annotations

import pytest

import hoodie
from hoodie.index.record.file_groups import partition_path_of, partitioned_file_id

SEEN = {
    "city=sf": "record-index-city%3Dsf-0000-0",
    "city=a%b": "record-index-city%3Da%25b-0000-0",
    "city=a=b": "record-index-city%3Da%3Db-0000-0",
    "city=a b": "record-index-city%3Da b-0000-0",
    "city=ü_x-y": "record-index-city%3Dü%5Fx%2Dy-0000-0",
    "city=x/y": "record-index-city%3Dx%2Fy-0000-0",
    "": "record-index--0000-0",
}


@pytest.mark.parametrize(("partition_path", "file_id"), SEEN.items())
def test_names_lead_there_and_back(partition_path: str, file_id: str) -> None:
    assert partitioned_file_id(partition_path, 0) == file_id
    assert partition_path_of(file_id) == partition_path


def test_a_bucket_of_the_global_index_belongs_to_no_partition() -> None:
    assert partition_path_of("record-index-0003-0") is None


def test_a_dot_is_refused() -> None:
    with pytest.raises(hoodie.PartitionPathError, match="has a dot"):
        partitioned_file_id("city=a.b", 0)
