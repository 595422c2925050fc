"""Plan a clustering: settings, when it is due, which file slices it takes, and whether the table needs one.

A plan is a pure function of file slices. The settings are Hudi's options.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, groupby
from typing import Final

from hoodie.config import clustering
from hoodie.config.clustering import CLUSTER_LAYOUT, CLUSTER_SORT_COLUMNS
from hoodie.config.patterns import match_whole
from hoodie.display import size_text
from hoodie.files.compaction_operation import LOG_BYTES, LOG_FILES, READ_MIB, TOTAL_MIB, WRITE_MIB
from hoodie.files.slices import FileSlice
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.instants.service_metadata import ClusteringGroup, ClusteringPlan, ClusteringStrategy, SliceInfo
from hoodie.timeline import Action, Instant
from hoodie.view.pending_plans import FileGroup, stored_clustering
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimits:
    """Which file slices a plan includes, and how it groups them; sizes are bytes."""

    small_bytes: int = clustering.CLUSTER_SMALL_BYTES.default
    target_bytes: int = clustering.CLUSTER_TARGET_BYTES.default
    group_bytes: int = clustering.CLUSTER_GROUP_BYTES.default
    groups_max: int = clustering.CLUSTER_GROUPS_MAX.default
    clusters_single: bool = clustering.CLUSTER_SINGLE.default
    slice_order: tuple[str, ...] = clustering.CLUSTER_SLICE_ORDER.default

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> PlanLimits:
        """Return the limits that these properties define. Raises: InvalidConfigError if a value does not parse."""
        return cls(
            small_bytes=clustering.CLUSTER_SMALL_BYTES.get(properties),
            target_bytes=clustering.CLUSTER_TARGET_BYTES.get(properties),
            group_bytes=clustering.CLUSTER_GROUP_BYTES.get(properties),
            groups_max=clustering.CLUSTER_GROUPS_MAX.get(properties),
            clusters_single=clustering.CLUSTER_SINGLE.get(properties),
            slice_order=clustering.CLUSTER_SLICE_ORDER.get(properties),
        )


def choose_partitions(partitions: Iterable[str], properties: Mapping[str, str], *, hour: int) -> list[str]:
    """Return the partitions to cluster by these properties, in ascending order.

    Partitions that are selected by name, or that match a pattern, or all; then the mode decides. `hour` (0 to 23) is
    for the mode `day_rolling`. Raises: InvalidConfigError if a value does not parse.
    """
    selected = clustering.CLUSTER_PARTITIONS.get(properties)
    pattern = clustering.CLUSTER_PARTITION_PATTERN.get(properties)
    mode = clustering.CLUSTER_PARTITION_MODE.get(properties)
    recent = clustering.CLUSTER_RECENT_PARTITIONS.get(properties)
    skipped = clustering.CLUSTER_SKIPPED_PARTITIONS.get(properties)
    begin = clustering.CLUSTER_BEGIN_PARTITION.get(properties)
    end = clustering.CLUSTER_END_PARTITION.get(properties)
    ordered = sorted(partitions)
    if selected:
        ordered = [path for path in ordered if path in selected]
    elif pattern:
        ordered = list(compress(ordered, match_whole(pattern, ordered)))
    if mode == "day_rolling":
        return ordered[hour::24]
    if mode == "selected_partitions":
        return [path for path in ordered if begin <= path and (not end or path <= end)]
    if mode == "recent_days":
        kept = ordered[: max(0, len(ordered) - skipped)]
        return kept[-recent:] if recent else kept
    return ordered


def last_clustering(view: TableView) -> Instant | None:
    """Return the completed or pending clustering with the latest requested time; None if the timeline has none.

    Reads the metadata of completed replace commits that is not cached, newest first.
    """
    for instant in reversed(view.timeline.instants):
        if instant.action is Action.CLUSTERING:
            return instant
        if (
            instant.action is Action.REPLACE_COMMIT
            and instant.is_completed
            and view.commit_facts(instant).operation_type == WriteOperation.CLUSTER
        ):
            return instant
    return None


def writes_since(view: TableView, clustering: Instant | None) -> list[Instant]:
    """Return the completed writes and services that wrote data and were requested after a clustering, oldest first."""
    start = "" if clustering is None else clustering.requested_time
    return [found for found in view.completed_writes() if found.requested_time > start]


def changed_partitions(view: TableView) -> frozenset[str] | None:
    """Return the partitions that the next incremental plan must examine; None: all, as there was no clustering yet.

    These are the partitions written by commits that completed after the last plan was made, and the partitions that
    this plan did not cover. Reads the metadata of these commits and the last plan.
    """
    last = last_clustering(view)
    if last is None:
        return None
    plan = stored_clustering(view, last)
    changed = set(plan.missing_schedule_partitions or ()) if plan is not None else set()
    for instant in view.completed_writes():
        if (instant.completion_time or instant.requested_time) > last.requested_time and instant != last:
            changed |= {stat.partition_path or "" for stat in view.commit_metadata(instant).write_stats()}
    return frozenset(changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A clustering is due after this number of commits since the last one, which may be pending."""

    commits: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Trigger:
        """Return the rule of these properties; the option depends on whether the write executes the clustering."""
        runs = clustering.CLUSTER_INLINE.get(properties)
        option = clustering.CLUSTER_INLINE_COMMITS if runs else clustering.CLUSTER_SCHEDULE_COMMITS
        return cls(commits=option.get(properties))

    def is_due(self, view: TableView) -> bool:
        """Return whether a clustering should be scheduled now."""
        return len(writes_since(view, last_clustering(view))) >= self.commits


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
    wanted = (found for found in slices if found.group not in busy)
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

    def order(found: FileSlice) -> tuple[str | int, ...]:
        parts: dict[str, str | int] = {"size": -_data_bytes(found), "instant_time": found.base_instant_time}
        return (*(parts[name] for name in limits.slice_order), found.file_id)

    for found in sorted(small, key=order):
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


def _data_bytes(found: FileSlice) -> int:
    """Return the bytes of the base file, or those of the log files if there is no base file."""
    return found.base_file.size_bytes if found.base_file is not None else found.size_bytes


def _group(members: Sequence[FileSlice], request: PlanRequest) -> ClusteringGroup:
    uri = request.uri
    slices = (
        SliceInfo(
            data_file_path="" if found.base_file is None else uri(found.base_file.path),
            delta_file_paths=tuple(uri(log.path) for log in found.log_files),
            file_id=found.file_id,
            partition_path=found.partition_path,
        )
        for found in members
    )
    return ClusteringGroup(
        slices=tuple(slices),
        metrics=_metrics(members),
        num_output_file_groups=output_files(members, request.limits.target_bytes),
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


_FILES_MIN = 10
"""Small files in one partition from which advice is given; fewer cost a read little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallFiles:
    """Small file slices that a clustering would make fewer. `partitions` are paths, most slices to save first."""

    file_slices: int = 0
    files_after: int = 0
    size_bytes: int = 0
    partitions: tuple[str, ...] = ()

    @property
    def is_advised(self) -> bool:
        """Return whether a clustering is worth its work."""
        return self.file_slices > 0

    def __str__(self) -> str:
        if not self.is_advised:
            return "no partition has many small files that a clustering would join"
        return (
            f"{self.file_slices:,} small file slices ({size_text(self.size_bytes)}) in {len(self.partitions):,} "
            f"partitions could be {self.files_after:,} base files: t.cluster() joins them"
        )


def small_files(
    slices: Iterable[FileSlice], busy: Collection[FileGroup] = (), limits: PlanLimits | None = None
) -> SmallFiles:
    """Return the partitions in which clustering would replace at least ten small file slices by at most half as many.

    `slices` are the newest file slices, ordered by partition. `busy` file groups are in a pending plan; they are not
    counted. Memory: the slices of one partition.
    """
    limits = limits or PlanLimits()
    saved: dict[str, int] = {}
    before = after = size_bytes = 0
    free = (found for found in slices if found.group not in busy)
    for path, found in groupby(free, key=lambda one: one.partition_path):
        groups = list(group_slices(found, limits, is_sorted=False))
        count = sum(map(len, groups))
        files = sum(output_files(group, limits.target_bytes) for group in groups)
        if count >= _FILES_MIN and files * 2 <= count:
            saved[path] = count - files
            before, after = before + count, after + files
            size_bytes += sum(member.size_bytes for group in groups for member in group)
    partitions = tuple(sorted(saved, key=lambda path: (-saved[path], path)))
    return SmallFiles(file_slices=before, files_after=after, size_bytes=size_bytes, partitions=partitions)
