"""Options of clustering."""

from __future__ import annotations

from typing import Final

from hoodie.config.option import (
    NO_NAMES,
    Option,
    count,
    flag,
    layout,
    names,
    one_of,
    positive,
    slice_order,
    text,
    update_strategy,
)
from hoodie.config.patterns import check_pattern

CLUSTER_INLINE: Final = Option(
    "hoodie.clustering.inline",
    False,
    flag,
    "0.7",
    "A write after which a clustering is due schedules it and executes it before it returns.",
)
CLUSTER_INLINE_COMMITS: Final = Option(
    "hoodie.clustering.inline.max.commits",
    4,
    positive,
    "0.7",
    "Commits since the last clustering after which a clustering is due, with hoodie.clustering.inline.",
)
CLUSTER_SCHEDULE_INLINE: Final = Option(
    "hoodie.clustering.schedule.inline",
    False,
    flag,
    "0.9",
    "A write after which a clustering is due schedules it; another process executes it.",
)
CLUSTER_SCHEDULE_COMMITS: Final = Option(
    "hoodie.clustering.async.max.commits",
    4,
    positive,
    "0.9",
    "Commits since the last clustering after which a clustering is due, with hoodie.clustering.schedule.inline.",
)
CLUSTER_SORT_COLUMNS: Final = Option(
    "hoodie.clustering.plan.strategy.sort.columns",
    NO_NAMES,
    names,
    "0.7",
    "Columns by which a clustering sorts the rows; without columns it only makes files larger.",
)
CLUSTER_LAYOUT: Final = Option(
    "hoodie.layout.optimize.strategy",
    "linear",
    layout,
    "0.10",
    "The order of the rows: by the first column, then the second (linear), or along a curve through all columns "
    "(zorder, hilbert).",
)
CLUSTER_SAMPLE_ROWS: Final = Option(
    "hoodie.layout.optimize.build.curve.sample.size",
    200_000,
    positive,
    "0.10",
    "Rows of a clustering group from which a clustering derives the ranges of values.",
)
CLUSTER_SMALL_BYTES: Final = Option(
    "hoodie.clustering.plan.strategy.small.file.limit",
    300 * 1024 * 1024,
    count,
    "0.7",
    "Only file slices whose base file is smaller than this number of bytes are clustered.",
)
CLUSTER_TARGET_BYTES: Final = Option(
    "hoodie.clustering.plan.strategy.target.file.max.bytes",
    1024 * 1024 * 1024,
    positive,
    "0.7",
    "Bytes of a base file that a clustering writes.",
)
CLUSTER_GROUP_BYTES: Final = Option(
    "hoodie.clustering.plan.strategy.max.bytes.per.group",
    2 * 1024 * 1024 * 1024,
    positive,
    "0.7",
    "Bytes of the file slices that one task clusters together.",
)
CLUSTER_GROUPS_MAX: Final = Option(
    "hoodie.clustering.plan.strategy.max.num.groups",
    30,
    positive,
    "0.7",
    "Groups of file slices in one clustering plan.",
)
CLUSTER_SINGLE: Final = Option(
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled",
    True,
    flag,
    "0.14",
    "Whether a file slice is clustered alone if its rows are not sorted. Only slices with log files are: a base file "
    "alone would be copied.",
)
CLUSTER_SLICE_ORDER: Final = Option(
    "hoodie.clustering.plan.strategy.file.slices.sort.by",
    slice_order("size"),
    slice_order,
    "1.2",
    "Which file slices of a partition come first: SIZE (largest), INSTANT_TIME (oldest), or both, separated by a "
    "comma.",
)
CLUSTER_PARTITIONS: Final = Option(
    "hoodie.clustering.plan.strategy.partition.selected",
    NO_NAMES,
    names,
    "0.11",
    "Partition paths to cluster, separated by commas; without them all partitions.",
)
CLUSTER_PARTITION_PATTERN: Final = Option(
    "hoodie.clustering.plan.strategy.partition.regex.pattern",
    "",
    check_pattern,
    "0.11",
    "Regular expression, without look-around and back-references, of the partition paths to cluster; it must match the "
    "whole path.",
)
CLUSTER_PARTITION_MODE: Final = Option(
    "hoodie.clustering.plan.partition.filter.mode",
    "none",
    one_of("none", "recent_days", "selected_partitions", "day_rolling"),
    "0.11",
    "Partitions to cluster: all (none), the last in the order of their paths (recent_days), a range of paths "
    "(selected_partitions), or one of 24 shares, by the hour (day_rolling).",
)
CLUSTER_RECENT_PARTITIONS: Final = Option(
    "hoodie.clustering.plan.strategy.daybased.lookback.partitions",
    2,
    count,
    "0.7",
    "recent_days: number of partitions; 0: all.",
)
CLUSTER_SKIPPED_PARTITIONS: Final = Option(
    "hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions",
    0,
    count,
    "0.9",
    "recent_days: number of last partitions that are left out.",
)
CLUSTER_BEGIN_PARTITION: Final = Option(
    "hoodie.clustering.plan.strategy.cluster.begin.partition",
    "",
    text,
    "0.11",
    "selected_partitions: first partition path (inclusive).",
)
CLUSTER_END_PARTITION: Final = Option(
    "hoodie.clustering.plan.strategy.cluster.end.partition",
    "",
    text,
    "0.11",
    "selected_partitions: last partition path (inclusive).",
)
CLUSTER_UPDATES: Final = Option(
    "hoodie.clustering.updates.strategy",
    "reject",
    update_strategy,
    "0.7",
    "Writes that change file groups of a pending clustering are refused (reject), or change them, and the clustering "
    "leaves the groups out (allow). Names of Hudi's strategy classes are accepted.",
)
