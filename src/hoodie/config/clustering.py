"""Options of clustering."""

from __future__ import annotations

from typing import Final

from hoodie.config.option import (
    NO_NAMES,
    Option,
    count,
    layout,
    one_of,
    positive,
    slice_order,
    update_strategy,
)
from hoodie.config.patterns import check_pattern

CLUSTER_INLINE: Final = Option(
    "hoodie.clustering.inline",
    False,
    "0.7",
    "A write after which a clustering is due schedules it and executes it before it returns.",
)
CLUSTER_INLINE_COMMITS: Final = Option(
    "hoodie.clustering.inline.max.commits",
    4,
    "0.7",
    "Commits since the last clustering after which a clustering is due, with hoodie.clustering.inline.",
    parse=positive,
)
CLUSTER_SCHEDULE_INLINE: Final = Option(
    "hoodie.clustering.schedule.inline",
    False,
    "0.9",
    "A write after which a clustering is due schedules it; another process executes it.",
)
CLUSTER_SCHEDULE_COMMITS: Final = Option(
    "hoodie.clustering.async.max.commits",
    4,
    "0.9",
    "Commits since the last clustering after which a clustering is due, with hoodie.clustering.schedule.inline.",
    parse=positive,
)
CLUSTER_SORT_COLUMNS: Final = Option(
    "hoodie.clustering.plan.strategy.sort.columns",
    NO_NAMES,
    "0.7",
    "Columns by which a clustering sorts the rows; without columns it only makes files larger.",
)
CLUSTER_LAYOUT: Final = Option(
    "hoodie.layout.optimize.strategy",
    "linear",
    "0.10",
    "The order of the rows: by the first column, then the second (linear), or along a curve through all columns "
    "(zorder, hilbert).",
    parse=layout,
)
CLUSTER_SAMPLE_ROWS: Final = Option(
    "hoodie.layout.optimize.build.curve.sample.size",
    200_000,
    "0.10",
    "Rows of a clustering group from which a clustering derives the ranges of values.",
    parse=positive,
)
CLUSTER_SMALL_BYTES: Final = Option(
    "hoodie.clustering.plan.strategy.small.file.limit",
    300 * 1024 * 1024,
    "0.7",
    "Only file slices whose base file is smaller than this number of bytes are clustered.",
    parse=count,
)
CLUSTER_TARGET_BYTES: Final = Option(
    "hoodie.clustering.plan.strategy.target.file.max.bytes",
    1024 * 1024 * 1024,
    "0.7",
    "Bytes of a base file that a clustering writes.",
    parse=positive,
)
CLUSTER_GROUP_BYTES: Final = Option(
    "hoodie.clustering.plan.strategy.max.bytes.per.group",
    2 * 1024 * 1024 * 1024,
    "0.7",
    "Bytes of the file slices that one task clusters together.",
    parse=positive,
)
CLUSTER_GROUPS_MAX: Final = Option(
    "hoodie.clustering.plan.strategy.max.num.groups",
    30,
    "0.7",
    "Groups of file slices in one clustering plan.",
    parse=positive,
)
CLUSTER_SINGLE: Final = Option(
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled",
    True,
    "0.14",
    "Whether a file slice is clustered alone if its rows are not sorted. Only slices with log files are: a base file "
    "alone would be copied.",
)
CLUSTER_SLICE_ORDER: Final = Option(
    "hoodie.clustering.plan.strategy.file.slices.sort.by",
    slice_order("size"),
    "1.2",
    "Which file slices of a partition come first: SIZE (largest), INSTANT_TIME (oldest), or both, separated by a "
    "comma.",
    parse=slice_order,
)
CLUSTER_PARTITIONS: Final = Option(
    "hoodie.clustering.plan.strategy.partition.selected",
    NO_NAMES,
    "0.11",
    "Partition paths to cluster, separated by commas; without them all partitions.",
)
CLUSTER_PARTITION_PATTERN: Final = Option(
    "hoodie.clustering.plan.strategy.partition.regex.pattern",
    "",
    "0.11",
    "Regular expression, without look-around and back-references, of the partition paths to cluster; it must match the "
    "whole path.",
    parse=check_pattern,
)
CLUSTER_PARTITION_MODE: Final = Option(
    "hoodie.clustering.plan.partition.filter.mode",
    "none",
    "0.11",
    "Partitions to cluster: all (none), the last in the order of their paths (recent_days), a range of paths "
    "(selected_partitions), or one of 24 shares, by the hour (day_rolling).",
    parse=one_of("none", "recent_days", "selected_partitions", "day_rolling"),
)
CLUSTER_RECENT_PARTITIONS: Final = Option(
    "hoodie.clustering.plan.strategy.daybased.lookback.partitions",
    2,
    "0.7",
    "recent_days: number of partitions; 0: all.",
    parse=count,
)
CLUSTER_SKIPPED_PARTITIONS: Final = Option(
    "hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions",
    0,
    "0.9",
    "recent_days: number of last partitions that are left out.",
    parse=count,
)
CLUSTER_BEGIN_PARTITION: Final = Option(
    "hoodie.clustering.plan.strategy.cluster.begin.partition",
    "",
    "0.11",
    "selected_partitions: first partition path (inclusive).",
)
CLUSTER_END_PARTITION: Final = Option(
    "hoodie.clustering.plan.strategy.cluster.end.partition",
    "",
    "0.11",
    "selected_partitions: last partition path (inclusive).",
)
CLUSTER_UPDATES: Final = Option(
    "hoodie.clustering.updates.strategy",
    "reject",
    "0.7",
    "Writes that change file groups of a pending clustering are refused (reject), or change them, and the clustering "
    "leaves the groups out (allow). Names of Hudi's strategy classes are accepted.",
    parse=update_strategy,
)
