"""Content of the instant files of table services: compaction, clustering, clean, rollback, restore and so on.

Requested files contain plans, completed files contain metadata. File lists contain names without folders, unless a
docstring states otherwise.
On-disk format: docs/format/table.md §2.5; the record of each class there is `Hoodie` + the name of the class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hoodie.format.avro.record_mapping import InstantRecord, on_disk
from hoodie.format.filenames import parse_data_file

COMPACTION_PLAN_VERSION: Final = 2
"""Version 1 stored full paths instead of file names."""
CLEAN_VERSION: Final = 2
"""Version 1 stored file names by partition instead of full paths."""
_REPLACE_COMMIT = "replacecommit"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOperation:
    """One file slice to compact."""

    base_instant_time: str
    delta_file_paths: tuple[str, ...] = ()
    data_file_path: str | None = None
    """The base file; None if the slice has log files only."""
    file_id: str
    partition_path: str = ""
    metrics: Mapping[str, float] | None = field(default=None, hash=False)
    bootstrap_file_path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStrategy:
    """The compactor class of a compaction plan, and its parameters."""

    compactor_class_name: str | None = None
    strategy_params: Mapping[str, str] | None = field(default=None, hash=False)
    version: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan(InstantRecord):
    """Requested compaction or log compaction."""

    operations: tuple[CompactionOperation, ...] = ()
    extra_metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    version: int | None = COMPACTION_PLAN_VERSION
    strategy: CompactionStrategy | None = None
    preserve_hoodie_metadata: bool | None = False
    missing_schedule_partitions: tuple[str, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceInfo:
    """One file slice to cluster; both paths are full URIs."""

    data_file_path: str | None = None
    delta_file_paths: tuple[str, ...] | None = ()
    file_id: str
    partition_path: str = ""
    bootstrap_file_path: str | None = ""
    version: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringGroup:
    """File slices that one clustering task rewrites together."""

    slices: tuple[SliceInfo, ...] = ()
    metrics: Mapping[str, float] | None = field(default=None, hash=False)
    num_output_file_groups: int | None = 1
    extra_metadata: Mapping[str, str] | None = field(default=None, hash=False)
    version: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringStrategy:
    """The strategy class of a clustering plan, and its parameters."""

    strategy_class_name: str | None = None
    strategy_params: Mapping[str, str] | None = field(default=None, hash=False)
    version: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringPlan:
    """The file slices that a clustering rewrites, in groups."""

    input_groups: tuple[ClusteringGroup, ...] = ()
    strategy: ClusteringStrategy | None = None
    extra_metadata: Mapping[str, str] | None = field(default=None, hash=False)
    version: int | None = 1
    preserve_hoodie_metadata: bool | None = True
    missing_schedule_partitions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedReplaceMetadata(InstantRecord):
    """Requested clustering or replacecommit; for insert overwrite and delete partition all fields are None."""

    operation_type: str | None = None
    clustering_plan: ClusteringPlan | None = None
    extra_metadata: Mapping[str, str] | None = field(default=None, hash=False)
    version: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionInstant:
    """An instant by requested time, action and state (`COMPLETED`, …)."""

    timestamp: str
    action: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanFileInfo:
    """A file to delete; its path is absolute."""

    file_path: str
    is_bootstrap_base_file: bool | None = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerPlan(InstantRecord):
    """Requested clean."""

    earliest_instant_to_retain: ActionInstant | None = None
    last_completed_commit_timestamp: str = ""
    policy: str
    files_to_be_deleted_per_partition: Mapping[str, tuple[str, ...]] | None = field(default=None, hash=False)
    """File names, in plans of version 1."""
    version: int | None = CLEAN_VERSION
    file_paths_to_be_deleted_per_partition: Mapping[str, tuple[CleanFileInfo, ...]] | None = field(
        default=None, hash=False
    )
    partitions_to_be_deleted: tuple[str, ...] | None = ()
    extra_metadata: Mapping[str, str] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanPartitionMetadata:
    """The files that a clean deleted in one partition."""

    partition_path: str
    policy: str
    delete_path_patterns: tuple[str, ...] = ()
    success_delete_files: tuple[str, ...] = ()
    failed_delete_files: tuple[str, ...] = ()
    is_partition_deleted: bool | None = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanMetadata(InstantRecord):
    """Completed clean."""

    start_clean_time: str
    time_taken_in_millis: int
    total_files_deleted: int
    earliest_commit_to_retain: str
    last_completed_commit_timestamp: str = ""
    partition_metadata: Mapping[str, CleanPartitionMetadata] = field(default_factory=dict, hash=False)
    version: int | None = CLEAN_VERSION
    bootstrap_partition_metadata: Mapping[str, CleanPartitionMetadata] | None = field(default_factory=dict, hash=False)
    extra_metadata: Mapping[str, str] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstantInfo:
    """An instant by requested time and action."""

    commit_time: str
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackRequest:
    """The changes of a rollback in one partition; file paths are absolute.

    What is not given is not null: a JVM that executes the plan fails on null.
    """

    partition_path: str
    file_id: str | None = ""
    latest_base_instant: str | None = ""
    files_to_be_deleted: tuple[str, ...] = ()
    log_blocks_to_be_deleted: Mapping[str, int] | None = field(default_factory=dict, hash=False)
    """Version 6: log files to which the rollback appends a rollback block, with their sizes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackPlan(InstantRecord):
    """Requested rollback."""

    instant_to_rollback: InstantInfo | None = None
    rollback_requests: tuple[RollbackRequest, ...] = field(default=(), metadata=on_disk("RollbackRequests"))
    version: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackPartitionMetadata:
    """The files that a rollback deleted in one partition."""

    partition_path: str
    success_delete_files: tuple[str, ...] = ()
    failed_delete_files: tuple[str, ...] = ()
    rollback_log_files: Mapping[str, int] | None = field(default_factory=dict, hash=False)
    """Log files that contain the rollback blocks, with their sizes."""
    log_files_from_failed_commit: Mapping[str, int] | None = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackMetadata(InstantRecord):
    """Completed rollback."""

    start_rollback_time: str
    time_taken_in_millis: int
    total_files_deleted: int
    commits_rollback: tuple[str, ...] = ()
    partition_metadata: Mapping[str, RollbackPartitionMetadata] = field(default_factory=dict, hash=False)
    version: int | None = 1
    instants_rollback: tuple[InstantInfo, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan(InstantRecord):
    """Requested restore."""

    instants_to_rollback: tuple[InstantInfo, ...] = ()
    version: int | None = 2
    savepoint_to_restore_timestamp: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreMetadata(InstantRecord):
    """Completed restore; `hoodie_restore_metadata` maps each rolled back instant to its rollbacks."""

    start_restore_time: str
    time_taken_in_millis: int
    instants_to_rollback: tuple[str, ...] = ()
    hoodie_restore_metadata: Mapping[str, tuple[RollbackMetadata, ...]] = field(default_factory=dict, hash=False)
    version: int | None = 1
    restore_instant_info: tuple[InstantInfo, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointPartitionMetadata:
    """Base and log files of one partition that a savepoint keeps."""

    partition_path: str
    savepoint_data_file: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointMetadata(InstantRecord):
    """Completed savepoint."""

    savepointed_by: str
    savepointed_at: int
    """Milliseconds since the epoch."""
    comments: str
    partition_metadata: Mapping[str, SavepointPartitionMetadata] = field(default_factory=dict, hash=False)
    version: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPartitionInfo:
    """A metadata partition, and the last instant that its build includes."""

    version: int | None = 1
    metadata_partition_path: str | None = None
    index_upto_instant: str | None = None
    extra_metadata: Mapping[str, str] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPlan(InstantRecord):
    """Requested indexing."""

    version: int | None = 1
    index_partition_infos: tuple[IndexPartitionInfo, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCommitMetadata(InstantRecord):
    """Completed indexing."""

    version: int | None = 1
    operation_type: str | None = None
    index_partition_infos: tuple[IndexPartitionInfo, ...] = ()


def rollback_plan(target: InstantInfo, files: Iterable[tuple[str, Sequence[str]]]) -> RollbackPlan:
    """Create the plan of a rollback that deletes `files`: pairs of a partition path and absolute file paths.

    Each pair becomes one request. Several requests may have the same partition path.
    """
    requests = (RollbackRequest(partition_path=path, files_to_be_deleted=tuple(paths)) for path, paths in files)
    return RollbackPlan(instant_to_rollback=target, rollback_requests=tuple(requests))


def pending_rollback_plan(target: InstantInfo, files: Iterable[tuple[str, Sequence[str]]]) -> RollbackPlan:
    """Create the plan of a rollback of an instant that never completed; `files` as for `rollback_plan`.

    Each file becomes one request with its file id and the target's time, as in the plans that the JVM makes of markers.
    """
    requests = (
        RollbackRequest(
            partition_path=partition,
            file_id=found.file_id if found else "",
            latest_base_instant=target.commit_time,
            files_to_be_deleted=(path,),
        )
        for partition, paths in files
        for path, found in zip(paths, map(parse_data_file, paths), strict=True)
    )
    return RollbackPlan(instant_to_rollback=target, rollback_requests=tuple(requests))


def appending_requests(logs: Iterable[tuple[str, str, str, Mapping[str, int]]]) -> Iterator[RollbackRequest]:
    """Yield the requests to append a rollback block to file slices (version 6).

    `logs`: for each slice its partition path, its file id, its base instant, and the absolute paths and sizes of its
    newest log file and of those that the target wrote.
    """
    for partition, file_id, base_time, sizes in logs:
        yield RollbackRequest(
            partition_path=partition,
            file_id=file_id,
            latest_base_instant=base_time,
            log_blocks_to_be_deleted=dict(sizes),
        )


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


def rollback_metadata(
    plan: RollbackPlan,
    target: InstantInfo,
    *,
    rollback_time: str,
    time_taken_in_millis: int = 0,
    appended: Mapping[str, Mapping[str, int]] | None = None,
) -> RollbackMetadata:
    """Create the content of a completed rollback that deleted all files of its plan.

    `appended`: the log files with its rollback blocks, and their sizes, by partition path (version 6).
    """
    deleted: dict[str, tuple[str, ...]] = {}
    rolled_back: dict[str, dict[str, int]] = {}
    for request in plan.rollback_requests:
        path = request.partition_path
        deleted[path] = deleted.get(path, ()) + request.files_to_be_deleted
        rolled_back.setdefault(path, {}).update(request.log_blocks_to_be_deleted or {})
    return RollbackMetadata(
        start_rollback_time=rollback_time,
        time_taken_in_millis=time_taken_in_millis,
        total_files_deleted=sum(map(len, deleted.values())),
        commits_rollback=(target.commit_time,),
        partition_metadata={
            partition: RollbackPartitionMetadata(
                partition_path=partition,
                success_delete_files=paths,
                rollback_log_files=(appended or {}).get(partition, {}),
                log_files_from_failed_commit=rolled_back[partition],
            )
            for partition, paths in deleted.items()
        },
        instants_rollback=(target,),
    )
