"""Contents of the requested and the completed file of a rollback, for the data table and for the metadata table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hoodie.format.filenames import parse_data_file
from hoodie.format.instants.service_metadata import (
    InstantInfo,
    RollbackMetadata,
    RollbackPartitionMetadata,
    RollbackPlan,
    RollbackRequest,
)

_REPLACE_COMMIT = "replacecommit"


def rollback_plan(target: InstantInfo, files: Iterable[tuple[str, Sequence[str]]]) -> RollbackPlan:
    """Create the plan of a rollback that deletes `files`: pairs of a partition path and absolute file paths.

    Each pair becomes one request. Several requests may have the same partition path.
    """
    requests = (_request(partition, paths) for partition, paths in files)
    return RollbackPlan(instant_to_rollback=target, rollback_requests=tuple(requests))


def pending_rollback_plan(target: InstantInfo, files: Iterable[tuple[str, Sequence[str]]]) -> RollbackPlan:
    """Create the plan of a rollback of an instant that never completed; `files` as for `rollback_plan`.

    Each file becomes one request with its file id and the target's time, as in the plans that the JVM makes of markers.
    """
    requests = (
        _request(partition, [path], file_id=_file_id(path), target_time=target.commit_time)
        for partition, paths in files
        for path in paths
    )
    return RollbackPlan(instant_to_rollback=target, rollback_requests=tuple(requests))


def may_have_completed(plan: RollbackPlan) -> bool:
    """Return whether the target of a plan may have been a completed instant, whose rows readers have seen.

    A plan for a completed instant has no file ids. Plans by listing of a pending instant have none either: the answer
    is True for them too.
    """
    if any(request.file_id and request.files_to_be_deleted for request in plan.rollback_requests):
        return False
    target = plan.instant_to_rollback
    # Without files only a deletion of partitions has changed what readers see.
    return bool(plan.rollback_requests) or (target is not None and target.action == _REPLACE_COMMIT)


def _request(partition: str, paths: Sequence[str], *, file_id: str = "", target_time: str = "") -> RollbackRequest:
    """Create a request. Optional fields are not null, because a JVM that executes the plan fails on null."""
    return RollbackRequest(
        partition_path=partition,
        file_id=file_id,
        latest_base_instant=target_time,
        files_to_be_deleted=tuple(paths),
        log_blocks_to_be_deleted={},
    )


def _file_id(path: str) -> str:
    parsed = parse_data_file(path)
    return "" if parsed is None else parsed.file_id


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
