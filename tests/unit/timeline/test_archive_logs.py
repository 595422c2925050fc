"""The archived timeline of version 6: its log files, torn ones among them, and a merge that did not finish."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import fastavro
import pytest

from hoodie.errors import CorruptFileError, InstantNotFoundError
from hoodie.format.avro.file import RecordSchema, record_to_bytes
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.instants.service_metadata import CleanMetadata
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock
from hoodie.storage import MemoryStore
from hoodie.timeline import Action, ArchiveLogs

FOLDER = ".hoodie/archived"
_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "HoodieArchivedMetaEntry",
    "namespace": "org.apache.hudi.avro.model",
    "fields": [
        *(
            {"name": name, "type": ["null", json.loads(RecordSchema.load(record).text)], "default": None}
            for name, record in (
                ("hoodieCommitMetadata", "HoodieCommitMetadata"),
                ("hoodieCleanMetadata", "HoodieCleanMetadata"),
            )
        ),
        *(
            {"name": name, "type": ["null", "string"], "default": None}
            for name in ("commitTime", "actionType", "actionState", "stateTransitionTime")
        ),
    ],
}
_MERGE_PLAN = {
    "type": "record",
    "name": "HoodieMergeArchiveFilePlan",
    "fields": [{"name": "mergedArchiveFileName", "type": "string"}],
}


def entry(time: str, action: str = "commit", state: str | None = "COMPLETED", **more: object) -> dict[str, object]:
    """A record of the archive."""
    return {"commitTime": time, "actionType": action, "actionState": state, **more}


def log_file(*entries: dict[str, object]) -> bytes:
    """An archive file with one Avro block."""
    parsed = fastavro.parse_schema(json.loads(json.dumps(_SCHEMA)))
    records = []
    for found in entries:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, found)
        records.append(out.getvalue())
    framed = b"".join(struct.pack(">i", len(record)) + record for record in records)
    content = struct.pack(">ii", 3, len(records)) + framed
    headers = {HeaderKey.SCHEMA: json.dumps(_SCHEMA)}
    return LogBlock(block_type=BlockType.AVRO_DATA, headers=headers, content=content).to_bytes()


def archive(**files: bytes) -> ArchiveLogs:
    """An archive of these files."""
    store = MemoryStore()
    for name, data in files.items():
        store.create(f"{FOLDER}/.commits_.archive.{name.removeprefix('n')}", data)
    return ArchiveLogs(store, FOLDER)


def test_completed_instants_are_read_by_requested_time() -> None:
    commit = {"operationType": "UPSERT", "extraMetadata": {"schema": "x"}}
    found = archive(
        n1=log_file(
            entry("0003", state="REQUESTED"),
            entry("0003", state="INFLIGHT"),
            entry("0003", stateTransitionTime="0004", hoodieCommitMetadata=commit),
        ),
        n2=log_file(entry("0005", "deltacommit", None)),
    )
    times = [(instant.requested_time, instant.completion_time, instant.action) for instant in found.completed()]
    assert times == [("0003", "0004", Action.COMMIT), ("0005", "0005", Action.DELTA_COMMIT)]
    assert [instant.requested_time for instant in found.completed("0003")] == ["0005"]
    assert [instant.requested_time for instant in found.completed("", "0003")] == ["0003"]
    (content,) = found.contents(found.find({"0003"}))
    parsed = CommitMetadata.parse(content.metadata or b"")
    assert (parsed.operation_type, parsed.schema) == ("UPSERT", "x")
    assert found.find({"0004"}) == []
    with pytest.raises(InstantNotFoundError, match=r"0005\.commit"):
        list(found.contents([next(iter(archive(n1=log_file(entry("0005"))).completed()))]))


def test_the_content_of_a_clean() -> None:
    clean = {
        "startCleanTime": "0001",
        "timeTakenInMillis": 1,
        "totalFilesDeleted": 2,
        "earliestCommitToRetain": "0007",
        "partitionMetadata": {},
    }
    found = archive(n1=log_file(entry("0008", "clean", hoodieCleanMetadata=clean)))
    (content,) = found.contents(found.completed())
    assert CleanMetadata.parse(content.metadata or b"").earliest_commit_to_retain == "0007"


def test_files_that_are_no_archive_files_are_skipped() -> None:
    found = archive(n1=log_file(entry("0001")))
    found.store.create(f"{FOLDER}/other", b"x")
    assert [instant.requested_time for instant in found.completed()] == ["0001"]
    assert ArchiveLogs(MemoryStore(), FOLDER).completed() == []


def test_a_merge_that_did_not_finish() -> None:
    whole, torn = log_file(entry("0001")), log_file(entry("0001"), entry("0002"))[:-30]
    found = archive(n1=whole, n2=torn)
    with pytest.raises(CorruptFileError, match=r"archive\.2"):
        found.completed()
    plan = record_to_bytes(RecordSchema.of(json.dumps(_MERGE_PLAN)), {"mergedArchiveFileName": ".commits_.archive.2"})
    found.store.create(f"{FOLDER}/mergeArchivePlan", plan)
    assert [instant.requested_time for instant in found.completed()] == ["0001"]


@pytest.mark.parametrize(
    "data",
    [b"no log file", log_file(entry("0001", "commjt")), log_file({"commitTime": None, "actionType": "commit"})],
    ids=["other bytes", "action", "time"],
)
def test_damaged_files_are_told(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"archive\.1"):
        archive(n1=data).completed()
