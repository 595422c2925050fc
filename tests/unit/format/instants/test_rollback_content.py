"""Plans and results of rollbacks."""

from __future__ import annotations

from hoodie.format.instants.rollback_content import rollback_metadata, rollback_plan
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
