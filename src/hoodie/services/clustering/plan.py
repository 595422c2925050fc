"""Plan a clustering: group the small file slices of each partition. Pure functions of file slices.

Implements docs/format/table.md §9.3. A group becomes one task, which writes base files of the target size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from hoodie.config.clustering import CLUSTER_LAYOUT, CLUSTER_SORT_COLUMNS
from hoodie.files.compaction_operation import LOG_BYTES, LOG_FILES, READ_MIB, TOTAL_MIB, WRITE_MIB
from hoodie.files.slices import FileSlice
from hoodie.format.instants.service_metadata import ClusteringGroup, ClusteringPlan, ClusteringStrategy, SliceInfo
from hoodie.services.clustering.settings import PlanLimits
from hoodie.view.pending_plans import FileGroup

EXECUTION_STRATEGY: Final = "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy"
"""The class that the JVM loads to execute a plan. On disk: do not change."""
_MIB = 1024 * 1024
Uri = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOrder:
    """The order of the rows of a group: by `columns`, in a `layout` (linear, zorder, hilbert); none without columns."""

    columns: tuple[str, ...] = ()
    layout: str = CLUSTER_LAYOUT.default

    def to_params(self) -> dict[str, str]:
        """Return the parameters that a plan stores. The JVM stores the columns only."""
        if not self.columns:
            return {}
        return {CLUSTER_SORT_COLUMNS.key: ",".join(self.columns), CLUSTER_LAYOUT.key: self.layout}

    @classmethod
    def of(cls, *properties: Mapping[str, str]) -> RowOrder:
        """Return the order that the first of these mappings defines. Raises: InvalidConfigError."""
        return cls(columns=CLUSTER_SORT_COLUMNS.get(*properties), layout=CLUSTER_LAYOUT.get(*properties))


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A clustering plan, and the partitions with file slices that did not fit into it."""

    plan: ClusteringPlan
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What a plan shall do. `uri` returns the URI of a path in the table; `missing`: see `ClusteringPlan`."""

    order: RowOrder = field(default_factory=RowOrder)
    limits: PlanLimits = field(default_factory=PlanLimits)
    uri: Uri = str
    missing: frozenset[str] = frozenset()


def plan_clustering(slices: Iterable[FileSlice], busy: Collection[FileGroup], request: PlanRequest) -> Planned:
    """Return the plan for the newest file slices, ordered by partition; it may have no groups.

    Slices of `busy` file groups, which are in another pending plan, are skipped. Partitions whose groups exceed the
    maximum number of groups are returned as left out; they are also in the plan, for the next planner.
    """
    groups: list[ClusteringGroup] = []
    left_out: list[str] = []
    wanted = (found for found in slices if (found.partition_path, found.file_id) not in busy)
    for path, found in groupby(wanted, key=lambda one: one.partition_path):
        for members in group_slices(found, request.limits, is_sorted=bool(request.order.columns)):
            if len(groups) == request.limits.groups_max:
                left_out.append(path)
                break
            groups.append(_group(members, request))
    strategy = ClusteringStrategy(strategy_class_name=EXECUTION_STRATEGY, strategy_params=request.order.to_params())
    plan = ClusteringPlan(
        input_groups=tuple(groups),
        strategy=strategy,
        extra_metadata={},
        missing_schedule_partitions=tuple(sorted({*request.missing, *left_out})),
    )
    return Planned(plan=plan, left_out=tuple(left_out))


def group_slices(slices: Iterable[FileSlice], limits: PlanLimits, *, is_sorted: bool) -> Iterator[list[FileSlice]]:
    """Yield the groups of one partition's small file slices, in the order in which they are planned.

    A group that would only be copied is left out: rows that are not sorted, one base file without log files.
    """
    small = [found for found in slices if found.base_file is None or found.base_file.size_bytes < limits.small_bytes]
    group: list[FileSlice] = []
    group_bytes = 0
    for found in sorted(small, key=_sort_key(limits.slice_order)):
        size_bytes = _data_bytes(found)
        if group and group_bytes + size_bytes > limits.group_bytes:
            if _is_useful(group, limits, is_sorted=is_sorted):
                yield group
            group, group_bytes = [], 0
        group.append(found)
        group_bytes += size_bytes
    if group and _is_useful(group, limits, is_sorted=is_sorted):
        yield group


def output_files(members: Sequence[FileSlice], target_bytes: int) -> int:
    """Return how many base files a group becomes, by the bytes of its slices."""
    return max(1, math.ceil(sum(map(_data_bytes, members)) / target_bytes))


def _is_useful(group: Sequence[FileSlice], limits: PlanLimits, *, is_sorted: bool) -> bool:
    if is_sorted or len(group) > 1 or output_files(group, limits.target_bytes) > 1:
        return True
    return limits.clusters_single and bool(group[0].log_files)


def _sort_key(order: tuple[str, ...]) -> Callable[[FileSlice], tuple[str | int, ...]]:
    def key(found: FileSlice) -> tuple[str | int, ...]:
        parts: dict[str, str | int] = {"size": -_data_bytes(found), "instant_time": found.base_instant_time}
        return (*(parts[name] for name in order), found.file_id)

    return key


def _data_bytes(found: FileSlice) -> int:
    """Return the bytes of the base file, or those of the log files if there is no base file."""
    return found.base_file.size_bytes if found.base_file is not None else found.size_bytes


def _group(members: Sequence[FileSlice], request: PlanRequest) -> ClusteringGroup:
    return ClusteringGroup(
        slices=tuple(_slice_info(found, request.uri) for found in members),
        metrics=_metrics(members),
        num_output_file_groups=output_files(members, request.limits.target_bytes),
    )


def _slice_info(found: FileSlice, uri: Uri) -> SliceInfo:
    return SliceInfo(
        data_file_path="" if found.base_file is None else uri(found.base_file.path),
        delta_file_paths=tuple(uri(log.path) for log in found.log_files),
        file_id=found.file_id,
        partition_path=found.partition_path,
    )


def _metrics(members: Sequence[FileSlice]) -> dict[str, float]:
    log_bytes = sum(log.size_bytes for found in members for log in found.log_files)
    base_bytes = sum(found.base_file.size_bytes for found in members if found.base_file is not None)
    read, written = float((base_bytes + log_bytes) // _MIB), float(base_bytes // _MIB)
    return {
        LOG_FILES: float(sum(len(found.log_files) for found in members)),
        LOG_BYTES: float(log_bytes),
        READ_MIB: read,
        WRITE_MIB: written,
        TOTAL_MIB: read + written,
    }
