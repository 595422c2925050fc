"""Contents of the requested and the completed file of a rollback, for the data table and for the metadata table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hoodie.format.instants.service_metadata import (
    InstantInfo,
    RollbackMetadata,
    RollbackPartitionMetadata,
    RollbackPlan,
    RollbackRequest,
)


def rollback_plan(target: InstantInfo, files: Iterable[tuple[str, Sequence[str]]]) -> RollbackPlan:
    """Create the plan of a rollback that deletes `files`: pairs of a partition path and absolute file paths.

    Each pair becomes one request. Several requests may have the same partition path.
    """
    requests = tuple(
        # Optional fields are not null, because a JVM that executes the plan fails on null.
        RollbackRequest(
            partition_path=partition,
            file_id="",
            latest_base_instant="",
            files_to_be_deleted=tuple(paths),
            log_blocks_to_be_deleted={},
        )
        for partition, paths in files
    )
    return RollbackPlan(instant_to_rollback=target, rollback_requests=requests)


def rollback_metadata(
    plan: RollbackPlan, target: InstantInfo, *, rollback_time: str, time_taken_in_millis: int = 0
) -> RollbackMetadata:
    """Create the content of a completed rollback that deleted all files of its plan."""
    deleted: dict[str, tuple[str, ...]] = {}
    for request in plan.rollback_requests:
        deleted[request.partition_path] = deleted.get(request.partition_path, ()) + request.files_to_be_deleted
    return RollbackMetadata(
        start_rollback_time=rollback_time,
        time_taken_in_millis=time_taken_in_millis,
        total_files_deleted=sum(map(len, deleted.values())),
        commits_rollback=(target.commit_time,),
        partition_metadata={
            partition: RollbackPartitionMetadata(partition_path=partition, success_delete_files=paths)
            for partition, paths in deleted.items()
        },
        instants_rollback=(target,),
    )
