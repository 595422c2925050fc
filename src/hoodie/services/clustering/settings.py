"""The settings of a clustering: limits of a plan, partitions, and the order of the rows (Hudi's options)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import compress

from hoodie.config import clustering
from hoodie.config.patterns import match_whole


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFilter:
    """Which partitions a plan includes. `selected`: these only; without them, all that match pattern and mode."""

    selected: tuple[str, ...] = ()
    pattern: str = ""
    mode: str = clustering.CLUSTER_PARTITION_MODE.default
    recent: int = clustering.CLUSTER_RECENT_PARTITIONS.default
    skipped: int = clustering.CLUSTER_SKIPPED_PARTITIONS.default
    begin: str = ""
    end: str = ""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> PartitionFilter:
        """Return the filter that these properties define. Raises: InvalidConfigError if a value does not parse."""
        return cls(
            selected=clustering.CLUSTER_PARTITIONS.get(properties),
            pattern=clustering.CLUSTER_PARTITION_PATTERN.get(properties),
            mode=clustering.CLUSTER_PARTITION_MODE.get(properties),
            recent=clustering.CLUSTER_RECENT_PARTITIONS.get(properties),
            skipped=clustering.CLUSTER_SKIPPED_PARTITIONS.get(properties),
            begin=clustering.CLUSTER_BEGIN_PARTITION.get(properties),
            end=clustering.CLUSTER_END_PARTITION.get(properties),
        )

    def choose(self, partitions: list[str], *, hour: int) -> list[str]:
        """Return the partitions to cluster, in ascending order; `hour` (0 to 23) is for the mode `day_rolling`."""
        ordered = sorted(partitions)
        if self.selected:
            ordered = [path for path in ordered if path in self.selected]
        elif self.pattern:
            ordered = list(compress(ordered, match_whole(self.pattern, ordered)))
        if self.mode == "day_rolling":
            return ordered[hour::24]
        if self.mode == "selected_partitions":
            return [path for path in ordered if self.begin <= path and (not self.end or path <= self.end)]
        if self.mode == "recent_days":
            kept = ordered[: max(0, len(ordered) - self.skipped)]
            return kept[-self.recent :] if self.recent else kept
        return ordered
