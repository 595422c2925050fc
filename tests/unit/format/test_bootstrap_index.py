"""The bootstrap index: what the JVM wrote is read, and what we write has the same entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoodie.errors import CorruptFileError
from hoodie.format.avro.file import RecordSchema, parse_record, record_to_bytes
from hoodie.format.bootstrap_index import SkeletonSource, index_by_file_id, index_by_partition, parse_source
from hoodie.format.hfile import HFileReader

GOLDEN = Path(__file__).parents[2] / "golden" / "bootstrap"
Entries = dict[bytes, tuple[str, dict[str, Any]]]


def entries_of(content: bytes) -> tuple[Entries, dict[str, Any]]:
    """The schema and record of each entry, and the record of the file info."""
    reader = HFileReader(content, path="the index")
    keys, values = reader.entries()
    found: Entries = {}
    for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True):
        schema, record = parse_record(value)
        found[key] = (schema.text, record)
    return found, parse_record(bytes(reader.file_info["INDEX_INFO"]))[1]


def sources() -> tuple[list[SkeletonSource], str, int]:
    """The source files that the JVM's index names, its folder, and the time when it was made."""
    found, info = entries_of((GOLDEN / "fileids.hfile").read_bytes())
    listed = []
    for key, (_, record) in found.items():
        status = record["bootstrapFileStatus"]
        listed.append(
            SkeletonSource(
                partition_path=record["partitionPath"],
                file_id=key.decode().rpartition("fileid=")[2],
                uri=status["path"]["uri"],
                size_bytes=status["length"],
                modified_ms=status["modificationTime"],
            )
        )
    return listed, info["bootstrapBasePath"], info["createdTimestamp"]


def test_our_index_has_the_entries_of_the_jvm() -> None:
    assert [source.partition_path for source in sources()[0]] == ["p=a", "p=b b", "p=c"]
    assert entries_of(index_by_file_id(*sources())) == entries_of((GOLDEN / "fileids.hfile").read_bytes())
    assert entries_of(index_by_partition(*sources())) == entries_of((GOLDEN / "partitions.hfile").read_bytes())


@pytest.mark.parametrize("count", [0, 1, 3000])
def test_a_round_trip(count: int) -> None:
    given = [
        SkeletonSource(
            partition_path=f"p={number % 7}" if count > 1 else "",
            file_id=f"{number:08d}",
            uri=f"s3://bucket/é {number}.parquet",
            size_bytes=number,
            modified_ms=number,
        )
        for number in reversed(range(count))
    ]
    keys, values = HFileReader(index_by_file_id(given, "s3://bucket", 5), path="the index").entries()
    found = {
        key: parse_source(value, path="the index")
        for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True)
    }
    assert found == {source.key: (source.uri, source.size_bytes) for source in given}
    by_partition, info = entries_of(index_by_partition(given, "s3://bucket", 5))
    assert info == {"version": 1, "bootstrapBasePath": "s3://bucket", "createdTimestamp": 5, "numKeys": min(count, 7)}
    assert sum(len(record["fileIdToBootstrapFile"]) for _, record in by_partition.values()) == count


def test_damaged_entries_are_errors() -> None:
    schema = RecordSchema.load("HoodieBootstrapFilePartitionInfo")
    times = ("modificationTime", "accessTime", "permission", "owner", "group", "symlink")
    names = ("version", "path", "length", "isDir", "blockReplication", "blockSize", *times)
    status: dict[str, Any] = dict.fromkeys(names)
    record = {"version": None, "bootstrapPartitionPath": "", "bootstrapFileStatus": None, "partitionPath": ""}
    for broken in (None, status, {**status, "path": {"version": 1, "uri": None}, "length": 5}):
        with pytest.raises(CorruptFileError, match="expected, found"):
            parse_source(record_to_bytes(schema, {**record, "bootstrapFileStatus": broken}), path="the index")
