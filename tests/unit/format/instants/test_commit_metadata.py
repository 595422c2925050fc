"""Commit metadata in JSON and Avro, both ways."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.format.avro.file import RecordSchema, record_to_bytes
from hoodie.format.instants.commit_metadata import CommitMetadata, RuntimeStats, WriteOperation, WriteStat
from hoodie.format.table.versions import VERSIONS, TableVersion

_INSTANTS = Path(__file__).parents[3] / "golden" / "instants"

_COUNTS = st.integers(0, 2**62)
_TEXTS = st.text(max_size=20)
_AVRO_STATS = st.builds(
    WriteStat,
    file_id=_TEXTS,
    path=st.none() | _TEXTS,
    prev_commit=_TEXTS,
    num_writes=_COUNTS,
    file_size_bytes=_COUNTS,
    partition_path=st.none() | _TEXTS,
    min_event_time=st.none() | _COUNTS,
    cdc_stats=st.none() | st.dictionaries(_TEXTS, _COUNTS, max_size=2),
    runtime_stats=st.none() | st.builds(RuntimeStats, total_scan_time_ms=_COUNTS),
    log_version=st.none() | st.integers(0, 2**31 - 1),
    log_files=st.none() | st.lists(_TEXTS, max_size=2).map(tuple),
)
_METADATA = st.builds(
    CommitMetadata,
    partition_to_write_stats=st.dictionaries(_TEXTS, st.lists(_AVRO_STATS, max_size=3).map(tuple), max_size=3),
    compacted=st.booleans(),
    extra_metadata=st.dictionaries(_TEXTS, _TEXTS, max_size=3),
    operation_type=st.sampled_from(WriteOperation).map(str),
    partition_to_replace_file_ids=st.none()
    | st.dictionaries(_TEXTS, st.lists(_TEXTS, max_size=2).map(tuple), max_size=2),
)


def _instant_files(tables: Path, *versions: str) -> list[Path]:
    """Non-empty commit metadata files of the tables, inflight ones too, and of their metadata tables."""
    found = []
    for version in versions:
        for file in tables.glob(f"{version}_*/.hoodie/**/*"):
            state = file.name.split(".", 1)[-1]
            is_metadata = state in {"commit", "deltacommit", "inflight", "deltacommit.inflight"}
            if is_metadata and not file.name.startswith(".") and file.stat().st_size:
                found.append(file)
    return found


def test_avro_files_of_the_reference_come_back_byte_for_byte(golden_tables: Path) -> None:
    files = _instant_files(golden_tables, "v8", "v9")
    assert len(files) == 108
    for file in files:
        data = file.read_bytes()
        parsed = CommitMetadata.parse(data, path=str(file))
        assert parsed.to_bytes(TableVersion.NINE, sync_marker=data[-16:]) == data


def test_json_files_of_the_reference_come_back_with_the_same_fields_in_order(golden_tables: Path) -> None:
    files = _instant_files(golden_tables, "v6")
    assert len(files) == 52
    for file in files:
        data = file.read_bytes()
        written = CommitMetadata.parse(data, path=str(file)).to_bytes(TableVersion.SIX)
        # Equal text of both, so equal order of keys on every level.
        assert json.dumps(json.loads(written)) == json.dumps(json.loads(data))


@pytest.mark.parametrize("name", ["insert_overwrite.replacecommit", "clustering.replacecommit"])
def test_replace_commits_of_the_reference(name: str) -> None:
    parsed = CommitMetadata.parse((_INSTANTS / name).read_bytes())
    assert parsed.partition_to_replace_file_ids
    assert all(ids for ids in parsed.partition_to_replace_file_ids.values())
    again = CommitMetadata.parse(parsed.to_bytes(6))
    assert again.partition_to_replace_file_ids == parsed.partition_to_replace_file_ids


def test_a_completed_commit(golden_tables: Path) -> None:
    (file,) = (golden_tables / "v9_cow" / ".hoodie" / "timeline").glob("20261121123616628_*.commit")
    parsed = CommitMetadata.parse(file.read_bytes())
    assert parsed.operation_type == WriteOperation.INSERT
    assert not parsed.compacted
    assert parsed.partition_to_replace_file_ids is None
    assert parsed.schema is not None
    assert json.loads(parsed.schema)["name"] == "v9_cow_record"
    assert set(parsed.partition_to_write_stats) == {"city=sf", "city=nyc"}
    (stat,) = parsed.partition_to_write_stats["city=sf"]
    assert stat.file_id == "d8d4b204-cee2-4c38-b746-dbf9009792ed-0"
    assert stat.path == f"city=sf/{stat.file_id}_0-656-1883_20261121123616628.parquet"
    assert stat.is_new_file_group
    assert not stat.is_log_append
    assert (stat.num_writes, stat.num_inserts, stat.file_size_bytes) == (150, 150, 441575)
    assert stat.runtime_stats == RuntimeStats(total_create_time_ms=157)
    assert [stat.partition_path for stat in parsed.write_stats()] == list(parsed.partition_to_write_stats)


def test_a_log_append_of_version_6(golden_tables: Path) -> None:
    parsed = CommitMetadata.parse((golden_tables / "v6_mor" / ".hoodie" / "20261121123527557.deltacommit").read_bytes())
    (stat,) = parsed.partition_to_write_stats["city=sf"]
    assert stat.is_log_append
    assert stat.log_version == 1
    assert stat.log_files == (".9eeba35d-145d-4fc1-89aa-54a3e8cea3b9-0_20261121123523175.log.1_0-288-813",)
    assert stat.base_file is not None
    assert stat.base_file.endswith("_20261121123523175.parquet")


def test_an_inflight_workload_profile(golden_tables: Path) -> None:
    file = golden_tables / "v9_cow" / ".hoodie" / "timeline" / "20261121123622766.inflight"
    inserts, updates = CommitMetadata.parse(file.read_bytes()).partition_to_write_stats["city=sf"]
    assert inserts == WriteStat(num_inserts=25)
    assert updates == WriteStat(
        file_id="d8d4b204-cee2-4c38-b746-dbf9009792ed-0", prev_commit="20261121123616628", num_update_writes=100
    )


def test_an_empty_file_stands_for_empty_metadata() -> None:
    assert CommitMetadata.parse(b"") == CommitMetadata()


def test_json_of_other_writers() -> None:
    parsed = CommitMetadata.parse(
        b'{"partitionToWriteStats":{"p":[{"fileId":"f","numWrites":1,"novel":[1]}]},"compacted":null,'
        b'"totalRecordsDeleted":0,"operationType":"FROM_THE_FUTURE","extraMetadata":null}'
    )
    (stat,) = parsed.write_stats()
    assert stat == WriteStat(file_id="f", num_writes=1, unknown={"novel": [1]})
    assert parsed.unknown == {"totalRecordsDeleted": 0}
    assert parsed.operation_type == "FROM_THE_FUTURE"
    rewritten = json.loads(parsed.to_bytes(6))
    assert rewritten["totalRecordsDeleted"] == 0
    assert rewritten["partitionToWriteStats"]["p"][0]["novel"] == [1]


@given(_METADATA)
def test_avro_round_trip(metadata: CommitMetadata) -> None:
    assert CommitMetadata.parse(metadata.to_bytes(TableVersion.EIGHT)) == metadata


@given(_METADATA)
def test_json_round_trip(metadata: CommitMetadata) -> None:
    as_json = {
        partition: tuple(
            # JSON writes the log fields together or not at all.
            replace(stat, log_files=stat.log_files or ()) if stat.is_log_append else stat
            for stat in stats
        )
        for partition, stats in metadata.partition_to_write_stats.items()
    }
    expected = replace(metadata, partition_to_write_stats=as_json)
    assert CommitMetadata.parse(metadata.to_bytes(TableVersion.SIX)) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"garbage",
        b"Obj\x01",
        b'{"partitionToWriteStats":[]}',
        b'{"partitionToWriteStats":{"p":{}}}',
        b'{"partitionToWriteStats":{"p":[1]}}',
        b'{"partitionToWriteStats":{"p":[{"fileId":7}]}}',
        b'{"partitionToWriteStats":{"p":[{"numWrites":"7"}]}}',
        b'{"partitionToWriteStats":{"p":[{"numWrites":true}]}}',
        b'{"partitionToWriteStats":{"p":[{"logFiles":"x"}]}}',
        b'{"partitionToWriteStats":{"p":[{"cdcStats":{"x":"1"}}]}}',
        b'{"partitionToWriteStats":{"p":[{"runtimeStats":{"totalScanTime":"1"}}]}}',
        b'{"compacted":"no"}',
        b'{"extraMetadata":{"schema":{}}}',
        b'{"operationType":1}',
        b'{"partitionToReplaceFileIds":{"p":[1]}}',
        b'{"a":' * 100_000,
    ],
)
def test_garbage_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError) as raised:
        CommitMetadata.parse(data, path="t/1.commit")
    assert raised.value.path == "t/1.commit"


def test_another_record_is_corrupt() -> None:
    data = (_INSTANTS / "rollback").read_bytes()
    with pytest.raises(CorruptFileError, match="HoodieCommitMetadata expected, found HoodieRollbackMetadata"):
        CommitMetadata.parse(data)


def test_an_older_writers_schema_with_fewer_fields() -> None:
    fields = [{"name": "operationType", "type": ["null", "string"], "default": None}]
    schema = RecordSchema.of(json.dumps({"type": "record", "name": "HoodieCommitMetadata", "fields": fields}))
    parsed = CommitMetadata.parse(record_to_bytes(schema, {"operationType": "UPSERT"}))
    assert parsed == CommitMetadata(operation_type="UPSERT")


@given(_METADATA, st.sampled_from(VERSIONS))
def test_the_head_and_the_stats_of_a_commit_are_parsed_apart(metadata: CommitMetadata, version: TableVersion) -> None:
    content = metadata.to_bytes(version)
    whole = CommitMetadata.parse(content)
    assert CommitMetadata.parse_head(content) == replace(whole, partition_to_write_stats={})
    assert list(CommitMetadata.iter_stats(content)) == list(whole.write_stats())


def test_only_the_stats_that_are_asked_for_are_decoded() -> None:
    stats = tuple(WriteStat(file_id=f"f{number}", path=f"p/f{number}", num_writes=number) for number in range(50))
    content = CommitMetadata(partition_to_write_stats={"p": stats}).to_bytes(TableVersion.NINE)
    damaged = content.replace(b"f30", b"\xff\xff\xff")
    asked = CommitMetadata.iter_stats(damaged, path="a.commit")
    assert [next(asked) for _ in range(30)] == list(stats[:30])
    with pytest.raises(CorruptFileError, match=r"a\.commit"):
        next(asked)
    assert list(CommitMetadata.iter_stats(b"")) == []
    assert CommitMetadata.parse_head(b"") == CommitMetadata()
