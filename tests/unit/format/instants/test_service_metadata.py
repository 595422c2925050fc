"""Plans and metadata of table services, against files of the reference."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.format.avro.file import RecordSchema, parse_record, record_to_bytes
from hoodie.format.avro.record_mapping import InstantRecord
from hoodie.format.instants.service_metadata import (
    ActionInstant,
    CleanerPlan,
    CleanFileInfo,
    CleanMetadata,
    ClusteringGroup,
    ClusteringPlan,
    CompactionOperation,
    CompactionPlan,
    IndexPartitionInfo,
    IndexPlan,
    InstantInfo,
    RequestedReplaceMetadata,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    SavepointMetadata,
    SliceInfo,
    may_have_completed,
    pending_rollback_plan,
    rollback_metadata,
    rollback_plan,
)
from tests.unit.format.test_codecs import INSTANTS, KINDS


def test_a_compaction_plan(golden_tables: Path) -> None:
    (file,) = (golden_tables / "v9_mor" / ".hoodie" / "timeline").glob("*.compaction.requested")
    plan = CompactionPlan.parse(file.read_bytes())
    first = plan.operations[0]
    assert plan.version == 2
    assert first.file_id == "62afd6a6-a96a-47db-9632-b315afc7e966-0"
    assert first.partition_path == "city=sf"
    assert first.base_instant_time == "20261121123635698"
    assert first.data_file_path == f"{first.file_id}_0-809-2334_20261121123635698.parquet"
    assert len(first.delta_file_paths) == 3
    assert first.metrics is not None
    assert first.metrics["TOTAL_LOG_FILES"] == 3.0


def test_rollbacks() -> None:
    plan = RollbackPlan.parse(INSTANTS["rollback.requested"])
    assert plan.instant_to_rollback == InstantInfo(commit_time="20261121150532055", action="commit")
    (request,) = plan.rollback_requests
    assert request.partition_path == "p=a"
    assert request.files_to_be_deleted[0].startswith("/")
    done = RollbackMetadata.parse(INSTANTS["rollback"])
    assert done.commits_rollback == ("20261121150532055",)
    assert done.partition_metadata["p=a"].success_delete_files == request.files_to_be_deleted


def test_a_restore_holds_its_rollbacks() -> None:
    plan = RestorePlan.parse(INSTANTS["restore.requested"])
    done = RestoreMetadata.parse(INSTANTS["restore"])
    assert plan.savepoint_to_restore_timestamp == "20261121150528300"
    assert set(done.hoodie_restore_metadata) == {instant.commit_time for instant in plan.instants_to_rollback}
    for instant, rollbacks in done.hoodie_restore_metadata.items():
        assert [rollback.commits_rollback for rollback in rollbacks] == [(instant,)]


def test_a_savepoint_names_its_files() -> None:
    done = SavepointMetadata.parse(INSTANTS["savepoint"])
    assert (done.savepointed_by, done.comments) == ("me", "kept")
    assert {len(kept.savepoint_data_file) for kept in done.partition_metadata.values()} == {1}


def test_a_clean() -> None:
    plan = CleanerPlan.parse(INSTANTS["clean.requested"])
    done = CleanMetadata.parse(INSTANTS["clean"])
    assert plan.earliest_instant_to_retain == ActionInstant(
        timestamp=done.earliest_commit_to_retain, action="commit", state="COMPLETED"
    )
    assert plan.file_paths_to_be_deleted_per_partition is not None
    planned = {
        Path(file.file_path).name for files in plan.file_paths_to_be_deleted_per_partition.values() for file in files
    }
    deleted = {name for done_in in done.partition_metadata.values() for name in done_in.success_delete_files}
    assert planned == deleted
    assert done.total_files_deleted == len(deleted)


def test_requested_replace_of_clustering_and_of_insert_overwrite() -> None:
    clustering = RequestedReplaceMetadata.parse(INSTANTS["clustering.requested"])
    assert clustering.operation_type == "CLUSTER"
    assert clustering.clustering_plan is not None
    (group,) = clustering.clustering_plan.input_groups
    assert group.slices[0].partition_path == "p=a"
    overwrite = RequestedReplaceMetadata.parse(INSTANTS["insert_overwrite.replacecommit.requested"])
    assert overwrite.clustering_plan is None
    assert overwrite.operation_type is None
    assert RequestedReplaceMetadata.parse(b"").clustering_plan is None


def test_what_the_reference_never_made_here_survives_too() -> None:
    records: list[InstantRecord] = [
        RollbackPlan(
            rollback_requests=(RollbackRequest(partition_path="p", log_blocks_to_be_deleted={"/t/p/.f_1.log.1": 7}),)
        ),
        CleanerPlan(policy="KEEP_LATEST_COMMITS", files_to_be_deleted_per_partition={"p": ("a", "b")}, version=1),
        CleanerPlan(
            policy="KEEP_LATEST_FILE_VERSIONS",
            file_paths_to_be_deleted_per_partition={"p": (CleanFileInfo(file_path="/t/p/a"),)},
            partitions_to_be_deleted=None,
        ),
        IndexPlan(index_partition_infos=(IndexPartitionInfo(metadata_partition_path="files", index_upto_instant="1"),)),
        RequestedReplaceMetadata(
            clustering_plan=ClusteringPlan(input_groups=(ClusteringGroup(slices=(SliceInfo(file_id="f"),)),))
        ),
    ]
    for record in records:
        assert type(record).parse(record.to_bytes()) == record


_TEXTS = st.text(max_size=10)


@given(
    st.lists(
        st.builds(
            CompactionOperation,
            base_instant_time=_TEXTS,
            delta_file_paths=st.lists(_TEXTS, max_size=3).map(tuple),
            data_file_path=st.none() | _TEXTS,
            file_id=_TEXTS,
            partition_path=_TEXTS,
            metrics=st.none() | st.dictionaries(_TEXTS, st.floats(allow_nan=False), max_size=2),
        ),
        max_size=3,
    ),
    st.dictionaries(_TEXTS, _TEXTS, max_size=2),
)
def test_compaction_plans_round_trip(operations: list[CompactionOperation], extra: dict[str, str]) -> None:
    plan = CompactionPlan(operations=tuple(operations), extra_metadata=extra)
    assert CompactionPlan.parse(plan.to_bytes()) == plan


@pytest.mark.parametrize("kind", list(dict.fromkeys(KINDS.values())), ids=lambda kind: kind.__name__)
def test_another_record_is_corrupt(kind: type[InstantRecord]) -> None:
    other = "savepoint" if kind is not SavepointMetadata else "clean"
    with pytest.raises(CorruptFileError, match="expected, found Hoodie"):
        kind.parse(INSTANTS[other])


@pytest.mark.parametrize("kind", [RollbackMetadata, RestoreMetadata, SavepointMetadata, CleanMetadata, CleanerPlan])
def test_an_empty_file_is_corrupt_where_fields_are_needed(kind: type[InstantRecord]) -> None:
    with pytest.raises(CorruptFileError, match=r"the field \w+\.\w+ expected, found none"):
        kind.parse(b"")


def test_a_field_of_another_type_is_corrupt() -> None:
    schema, record = parse_record(INSTANTS["savepoint"])
    changed = schema.text.replace('"name":"savepointedAt","type":"long"', '"name":"savepointedAt","type":"double"')
    assert changed != schema.text
    data = record_to_bytes(RecordSchema.of(changed), record)
    with pytest.raises(CorruptFileError, match="savepointedAt: int expected"):
        SavepointMetadata.parse(data)


TARGET = InstantInfo(commit_time="100", action="deltacommit")


def test_each_pair_is_a_request_without_nulls() -> None:
    plan = rollback_plan(TARGET, [("p", ["/t/p/a", "/t/p/b"]), ("p", ["/t/p/c"]), ("q", [])])
    assert RollbackPlan.parse(plan.to_bytes()) == plan
    assert plan.instant_to_rollback == TARGET
    assert [(found.partition_path, found.files_to_be_deleted) for found in plan.rollback_requests] == [
        ("p", ("/t/p/a", "/t/p/b")),
        ("p", ("/t/p/c",)),
        ("q", ()),
    ]
    for found in plan.rollback_requests:
        assert (found.file_id, found.latest_base_instant, found.log_blocks_to_be_deleted) == ("", "", {})


def test_the_plan_of_a_pending_instant_has_a_request_for_each_file() -> None:
    plan = pending_rollback_plan(TARGET, [("p", ["/t/p/f1-0_0-1-2_100.parquet", "/t/p/.f2-0_100.log.1_0-1-2"])])
    assert RollbackPlan.parse(plan.to_bytes()) == plan
    assert [(found.file_id, found.latest_base_instant) for found in plan.rollback_requests] == [
        ("f1-0", "100"),
        ("f2-0", "100"),
    ]
    assert not may_have_completed(plan)


def test_whether_readers_may_have_seen_the_target() -> None:
    assert may_have_completed(rollback_plan(TARGET, [("p", ["/t/p/f1-0_0-1-2_100.parquet"])]))
    # A write that died before its first file, and a deletion of partitions, which writes none.
    assert not may_have_completed(rollback_plan(TARGET, []))
    assert may_have_completed(rollback_plan(InstantInfo(commit_time="100", action="replacecommit"), []))


def test_the_result_unites_the_requests_of_a_partition() -> None:
    plan = rollback_plan(TARGET, [("p", ["/t/p/a"]), ("q", ["/t/q/b"]), ("p", ["/t/p/c"])])
    done = rollback_metadata(plan, TARGET, rollback_time="200", time_taken_in_millis=7)
    assert RollbackMetadata.parse(done.to_bytes()) == done
    assert (done.start_rollback_time, done.time_taken_in_millis, done.total_files_deleted) == ("200", 7, 3)
    assert (done.commits_rollback, done.instants_rollback) == (("100",), (TARGET,))
    assert {path: found.success_delete_files for path, found in done.partition_metadata.items()} == {
        "p": ("/t/p/a", "/t/p/c"),
        "q": ("/t/q/b",),
    }
