"""Plans and results of rollbacks."""

from __future__ import annotations

from hoodie.format.instants.rollback_content import (
    may_have_completed,
    pending_rollback_plan,
    rollback_metadata,
    rollback_plan,
)
from hoodie.format.instants.service_metadata import InstantInfo, RollbackMetadata, RollbackPlan

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
