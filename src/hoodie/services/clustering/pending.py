"""Clustering as a planned service: its stored plans, the work that a plan means, and the pending plans of a table."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hoodie.commit.writable import check_writable
from hoodie.config.indexes import INDEX_TYPE
from hoodie.display import size_text
from hoodie.errors import UnsupportedError
from hoodie.files.compaction_operation import LOG_BYTES, READ_MIB
from hoodie.files.slices import FileSlice
from hoodie.format.filenames import name_of
from hoodie.format.instants.service_metadata import ClusteringGroup, ClusteringPlan, SliceInfo
from hoodie.services.clustering.plan import RowOrder
from hoodie.services.clustering.task import GroupTask
from hoodie.services.planned.claim import runner_of
from hoodie.services.planned.pending import PendingPlans
from hoodie.services.planned.service import PlannedService
from hoodie.timeline import Action, parse_instant_time
from hoodie.view.pending_plans import FileGroup, stored_clustering
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


def _partitions_of(plan: ClusteringPlan) -> set[str]:
    return {piece.partition_path for group in plan.input_groups for piece in group.slices}


CLUSTERING: Final = PlannedService(
    name="clustering",
    actions=frozenset({Action.CLUSTERING}),
    stored_plan=stored_clustering,
    partitions_of=_partitions_of,
)


_STRATEGIES = frozenset(
    {
        "SparkSortAndSizeExecutionStrategy",
        "SparkSingleFileSortExecutionStrategy",
        "JavaSortAndSizeExecutionStrategy",
        "FlinkSortAndSizeExecutionStrategy",
        "SparkStreamCopyClusteringExecutionStrategy",
    }
)
"""Strategy classes of Hudi whose plans ask for larger or sorted files. Others change the buckets of a bucket index."""


def check_clusterable(view: TableView) -> None:
    """Refuse tables whose rows cannot go to other file groups, and those that this release does not rewrite.

    Raises: UnsupportedError.
    """
    check_writable(view, "cluster")
    if INDEX_TYPE.get(view.config.raw) == "bucket":
        raise UnsupportedError(
            f"{view.store.uri('')} has a bucket index, by which the name of a file group decides which keys it has: "
            "rows cannot go to other file groups, here or with JVM Hudi; compact it instead"
        )


def check_strategy(view: TableView, instant_time: str, plan: ClusteringPlan) -> None:
    """Refuse a plan that another kind of execution needs than writing the rows to new files.

    Raises: UnsupportedError.
    """
    name = (plan.strategy.strategy_class_name or "") if plan.strategy is not None else ""
    if name and name.rpartition(".")[2] not in _STRATEGIES:
        raise UnsupportedError(
            f"the clustering {instant_time} of {view.store.uri('')} is planned for {name}, which this release does not "
            f"execute: execute it with JVM Hudi, or roll it back with t.rollback({instant_time!r})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The tasks of a plan. `changed`: file groups that changed, or were replaced, since the plan was made."""

    tasks: tuple[GroupTask, ...]
    changed: tuple[FileGroup, ...]

    @property
    def inputs(self) -> frozenset[FileGroup]:
        """Return the file groups that the tasks read; the clustering replaces them."""
        return frozenset((found.partition_path, found.file_id) for task in self.tasks for found in task.slices)

    @property
    def size_bytes(self) -> int:
        """Return the bytes that the tasks read."""
        return sum(task.size_bytes for task in self.tasks)


def work_of(view: TableView, plan: ClusteringPlan) -> Work:
    """Return the work of a plan as of a view.

    The slices are those of the view: no path of the plan is opened. A file group whose newest slice is not the slice of
    the plan is left out: the plan does not know the rows that a later write added to it.
    """
    slices = {(found.partition_path, found.file_id): found for found in list_slices(view, _partitions_of(plan))}
    tasks: list[GroupTask] = []
    changed: list[FileGroup] = []
    for group in plan.input_groups:
        by_partition: dict[str, list[FileSlice]] = {}
        for piece in group.slices:
            found = _unchanged(piece, slices)
            if found is None:
                changed.append((piece.partition_path, piece.file_id))
            else:
                by_partition.setdefault(piece.partition_path, []).append(found)
        tasks += [GroupTask(tuple(members), _share(group, members)) for members in by_partition.values()]
    return Work(tasks=tuple(tasks), changed=tuple(changed))


def _unchanged(piece: SliceInfo, slices: Mapping[FileGroup, FileSlice]) -> FileSlice | None:
    found = slices.get((piece.partition_path, piece.file_id))
    if found is None:
        return None
    base = "" if found.base_file is None else found.base_file.name
    logs = {log.name.name for log in found.log_files}
    planned_logs = {name_of(path) for path in piece.delta_file_paths or ()}
    return found if name_of(piece.data_file_path or "") == base and planned_logs == logs else None


def _share(group: ClusteringGroup, members: Sequence[FileSlice]) -> int:
    """Return how many files the members of a group become, if other members are left out."""
    files = (group.num_output_file_groups or 1) * len(members) / len(group.slices)
    return max(1, round(files))


_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingClustering:
    """One pending plan. `state`: waiting, running or interrupted; `runner` is the process that executes it, or did.

    `by` are the columns by which rows are sorted; `layout` is empty if the executor's options decide it, or if rows are
    not sorted. `bytes_to_read` is approximate.
    """

    instant: str
    state: str
    runner: str
    groups: int
    file_slices: int
    files_after: int
    bytes_to_read: int
    by: tuple[str, ...]
    layout: str
    age_seconds: float

    def __str__(self) -> str:
        who = f" ({self.runner})" if self.runner else ""
        order = f" {self.layout} by {', '.join(self.by)}".replace("  ", " ") if self.by else ""
        return (
            f"{self.instant} clustering{order}  {self.state}{who}: {self.file_slices:,} file slices in {self.groups:,} "
            f"groups to {self.files_after:,} files, {size_text(self.bytes_to_read)} to read, scheduled "
            f"{self.age_seconds:,.0f} s ago"
        )


PendingClusterings = PendingPlans[PendingClustering]
"""The pending plans of a table, oldest first."""


def pending_clusterings(state: TableState) -> PendingClusterings:
    """Return the pending clusterings of a table, those of the JVM too; one small file is read for each.

    Raises: CorruptFileError if a plan does not parse.
    """
    view = TableView.load(state)
    found = []
    for instant in CLUSTERING.pending_plans(view):
        plan = CLUSTERING.stored_plan(view, instant)
        groups = () if plan is None else plan.input_groups
        params = (plan.strategy.strategy_params or {}) if plan is not None and plan.strategy is not None else {}
        order = RowOrder.of(params)
        metrics = [group.metrics or {} for group in groups]
        runner = runner_of(view, instant)
        requested = parse_instant_time(instant.requested_time, view.layout.zone).timestamp()
        found.append(
            PendingClustering(
                instant=instant.requested_time,
                state=runner.state.value,
                runner=str(runner),
                groups=len(groups),
                file_slices=sum(len(group.slices) for group in groups),
                files_after=sum(group.num_output_file_groups or 1 for group in groups),
                bytes_to_read=sum(int(one.get(READ_MIB, 0) * _MIB or one.get(LOG_BYTES, 0)) for one in metrics),
                by=order.columns,
                layout=order.layout if order.columns else "",
                age_seconds=max(0.0, time.time() - requested),
            )
        )
    return PendingPlans(CLUSTERING.name, tuple(found))
