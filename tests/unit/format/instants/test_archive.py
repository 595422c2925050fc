"""Files of archived timelines: the JVM's, our own, damaged ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFileError
from hoodie.format.instants.archive import (
    ArchivedInstant,
    ArchiveFile,
    ArchiveFileName,
    ArchiveManifest,
    archived_to_bytes,
    completion_times,
    manifest_name,
    manifest_version,
    merged_to_bytes,
    parse_archived,
)
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.instants.service_metadata import CleanerPlan

GOLDEN = Path(__file__).parents[3] / "golden" / "archive"
FIRST = ArchivedInstant(requested_time="1", completion_time="4", action="deltacommit", metadata=b"result")
SECOND = ArchivedInstant(requested_time="2", completion_time="3", action="commit", metadata=b"result", plan=b"plan")


def golden_files() -> list[Path]:
    return sorted(GOLDEN.glob("*.parquet"))


def test_files_of_the_jvm_are_read() -> None:
    instants = [found for path in golden_files() for found in parse_archived(path.read_bytes(), path=str(path))]
    assert len({found.requested_time for found in instants}) == len(instants) > 15
    assert {found.action for found in instants} == {"commit", "clean"}
    for found in instants:
        assert found.requested_time < found.completion_time
        assert found.metadata is not None
        if found.action == "commit":
            assert CommitMetadata.parse(found.metadata).operation_type == "UPSERT"
        else:
            assert found.plan is not None
            assert CleanerPlan.parse(found.plan).policy == "KEEP_LATEST_COMMITS"


def test_we_write_what_the_jvm_writes() -> None:
    path = golden_files()[0]
    data = path.read_bytes()
    instants = parse_archived(data)
    ours = archived_to_bytes(instants)
    assert parse_archived(ours) == instants
    jvms, written = pq.ParquetFile(path), pq.ParquetFile(pa.BufferReader(ours))
    columns = range(len(jvms.schema))
    assert [str(written.schema.column(place)) for place in columns] == [
        str(jvms.schema.column(place)) for place in columns
    ]
    key = b"parquet.avro.schema"
    assert written.metadata.metadata[key] == jvms.metadata.metadata[key]


def test_names() -> None:
    parsed = [ArchiveFileName.parse(path.name) for path in golden_files()]
    assert [found.layer for found in parsed if found is not None] == [1, 0, 0]
    assert [found.name for found in parsed if found is not None] == [path.name for path in golden_files()]
    assert ArchiveFileName.parse("1_2_10.parquet") is None
    assert ArchiveFileName.parse("manifest_1") is None
    assert manifest_name(7) == "manifest_7"
    assert (manifest_version("manifest_7"), manifest_version("manifest_x"), manifest_version("7")) == (7, None, None)


def test_the_manifest_of_the_jvm() -> None:
    manifest = ArchiveManifest.parse((GOLDEN / "manifest_6").read_bytes())
    assert {file.name: file.size_bytes for file in manifest.files} == {
        path.name: path.stat().st_size for path in golden_files()
    }
    assert ArchiveManifest.parse(manifest.to_bytes()) == manifest


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"files": [1]}', b'{"files": [{"fileName": "x"}]}', b"\xff"])
def test_what_is_no_manifest(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match="m1"):
        ArchiveManifest.parse(data, path="m1")


def test_a_manifest_names_files_of_an_archive_only() -> None:
    with pytest.raises(CorruptFileError):
        _ = ArchiveFile("hello", 1).parsed_name


def test_merging_keeps_all_rows_in_order() -> None:
    merged = merged_to_bytes([archived_to_bytes([FIRST]), archived_to_bytes([SECOND])])
    assert parse_archived(merged) == [FIRST, SECOND]
    assert completion_times(merged) == {("1", "deltacommit"): "4", ("2", "commit"): "3"}
    golden = [path.read_bytes() for path in golden_files()]
    assert len(parse_archived(merged_to_bytes(golden))) == sum(len(parse_archived(data)) for data in golden)
