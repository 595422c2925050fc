"""The `hoodie.*` options that hoodie uses: key, type, default, first release, meaning.

Options are given at creation (`properties=`, stored in hoodie.properties), or for one write (`properties=` of the
call, which take precedence). An option that is neither in this list nor a table property is refused: otherwise a
misspelt option would be ignored silently.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from hoodie.errors import InvalidConfigError

T = TypeVar("T")

INDEX_TYPE_KEY: Final = "hoodie.index.type"
COLUMN_STATS_BY_DEFAULT: Final = False
"""Whether new tables have column statistics if the options do not say so."""
DURABLE_KEY: Final = "hoodie.python.durable"
PYTHON_MERGER_KEY: Final = "hoodie.python.merger"


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """One typed option. `since` is the Hudi release that introduced it; `hoodie` if only hoodie has the option."""

    key: str
    default: T
    parse: Callable[[str], T]
    since: str
    doc: str

    def get(self, *properties: Mapping[str, str]) -> T:
        """Return the value from the first mapping that contains the option, else the default.

        Raises: InvalidConfigError if the text does not parse.
        """
        for found in properties:
            if self.key in found:
                try:
                    return self.parse(found[self.key])
                except ValueError as error:
                    raise InvalidConfigError(f"{self.key}={found[self.key]!r}: {error}. {self.doc}") from error
        return self.default


def flag(text: str) -> bool:
    """Parse true or false."""
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("true or false expected")
    return text.strip().lower() == "true"


def _positive(text: str) -> int:
    value = int(text)
    if value <= 0:
        raise ValueError("a number above 0 expected")
    return value


def _several(text: str) -> int:
    value = int(text)
    if value < 2:
        raise ValueError("a number from 2 up expected")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError("a number from 0 up expected")
    return value


def _hours_or_never(text: str) -> int:
    value = int(text)
    if value != -1 and value < 1:
        raise ValueError("-1, or a number above 0 expected")
    return value


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression expected, {error}") from error
    return text


def _factor(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise ValueError("a number above 0 expected")
    return value


def one_of(*names: str) -> Callable[[str], str]:
    """Return a parser that accepts these names, in upper or lower case, and returns the name in lower case."""

    def parse(text: str) -> str:
        if text.strip().lower() not in names:
            raise ValueError(f"one of {', '.join(names)} expected")
        return text.strip().lower()

    return parse


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


_NO_NAMES: Final[tuple[str, ...]] = ()


def _text(text: str) -> str:
    return text


def _layout(text: str) -> str:
    return one_of("linear", "zorder", "hilbert")(text.replace("-", "").replace("_", ""))


def _slice_order(text: str) -> tuple[str, ...]:
    return tuple(map(one_of("size", "instant_time"), _names(text)))


def _update_strategy(text: str) -> str:
    names = {"sparkrejectupdatestrategy": "reject", "sparkallowupdatestrategy": "allow"}
    name = text.strip().rpartition(".")[2].lower()
    return one_of("reject", "allow")(names.get(name, name))


MAX_FILE_BYTES: Final = Option(
    "hoodie.parquet.max.file.size", 120 * 1024 * 1024, _positive, "0.4", "Bytes at which a base file is full."
)
SMALL_FILE_BYTES: Final = Option(
    "hoodie.parquet.small.file.limit",
    100 * 1024 * 1024,
    _count,
    "0.4",
    "Base files smaller than this number of bytes receive inserts; 0 places all inserts in new file groups.",
)
CODEC: Final = Option(
    "hoodie.parquet.compression.codec",
    "zstd",
    one_of("zstd", "snappy", "gzip", "lz4", "uncompressed"),
    "0.4",
    "Compression of base files.",
)
RECORD_BYTES: Final = Option(
    "hoodie.copyonwrite.record.size.estimate",
    0,
    _count,
    "0.4",
    "Expected bytes of a record in a base file; 0: estimated from earlier commits, or from the data.",
)
UPDATE_PARTITION_PATH: Final = Option(
    "hoodie.simple.index.update.partition.path",
    True,
    flag,
    "0.6",
    "Global index: a record whose partition path changed moves to the new partition (true), or is updated in its old "
    "partition (false).",
)
RECORD_INDEX_ENABLE: Final = Option(
    "hoodie.metadata.record.index.enable",
    False,
    flag,
    "0.14",
    "Stored with index='record': JVM writers delete the record index of a table that does not store true.",
)
RECORD_INDEX_ENABLE_NEW: Final = Option(
    "hoodie.metadata.global.record.level.index.enable",
    False,
    flag,
    "1.1",
    f"The newer name of {RECORD_INDEX_ENABLE.key}; both are stored.",
)
PARTITIONED_RECORD_INDEX_ENABLE: Final = Option(
    "hoodie.metadata.record.level.index.enable",
    False,
    flag,
    "1.1",
    "Stored with index='partitioned_record': JVM writers delete the index of a table that does not store true.",
)
RECORD_UPDATE_PARTITION_PATH: Final = Option(
    "hoodie.record.index.update.partition.path",
    False,
    flag,
    "0.14",
    "Record index: a record whose partition path changed moves to the new partition (true, stored for new tables), or "
    "stays in its old partition (false).",
)
RECORD_INDEX_BUCKETS_MIN: Final = Option(
    "hoodie.metadata.record.index.min.filegroup.count",
    10,
    _positive,
    "0.14",
    "Number of index file groups in the record index of a new table, and the minimum that a build creates.",
)
RECORD_INDEX_BUCKETS_MAX: Final = Option(
    "hoodie.metadata.record.index.max.filegroup.count",
    10_000,
    _positive,
    "0.14",
    "Maximum number of index file groups that a build of the record index creates.",
)
RECORD_INDEX_GROWTH_FACTOR: Final = Option(
    "hoodie.metadata.record.index.growth.factor",
    2.0,
    _factor,
    "0.14",
    "Expected growth factor of a table while its record index keeps its number of index file groups.",
)
RECORD_INDEX_LOOK_UP: Final = Option(
    "hoodie.python.record.index.look.up",
    "auto",
    one_of("auto", "seek", "scan"),
    "hoodie",
    "How index file groups are searched: block by block (seek), as a whole (scan), or chosen by the share of keys "
    "that is looked up (auto).",
)
COLUMN_STATS_ENABLE: Final = Option(
    "hoodie.metadata.index.column.stats.enable",
    COLUMN_STATS_BY_DEFAULT,
    flag,
    "0.11",
    "New tables: store the range of each column in each file, so that reads with a condition skip files.",
)
PARTITION_STATS_ENABLE: Final = Option(
    "hoodie.metadata.index.partition.stats.enable",
    True,
    flag,
    "1.0",
    "New tables with partitions and column statistics: also store the range of each column in each partition.",
)
COLUMN_STATS_COLUMNS: Final = Option(
    "hoodie.metadata.index.column.stats.column.list",
    _NO_NAMES,
    _names,
    "0.11",
    "Columns that have statistics, separated by commas; fields of structs with dots. By default the first columns.",
)
COLUMN_STATS_COLUMNS_MAX: Final = Option(
    "hoodie.metadata.index.column.stats.max.columns.to.index",
    32,
    _positive,
    "1.0",
    "Number of columns that have statistics if they are not listed: the first columns whose type has statistics.",
)
COLUMN_STATS_FILE_GROUPS: Final = Option(
    "hoodie.metadata.index.column.stats.file.group.count",
    2,
    _positive,
    "0.11",
    "File groups of a new metadata partition column_stats.",
)
PARTITION_STATS_FILE_GROUPS: Final = Option(
    "hoodie.metadata.index.partition.stats.file.group.count",
    1,
    _positive,
    "1.0",
    "File groups of a new metadata partition partition_stats.",
)
METADATA_COMPACT_DELTA_COMMITS: Final = Option(
    "hoodie.metadata.compact.max.delta.commits",
    10,
    _positive,
    "0.7",
    "Delta commits of the metadata table after which the metadata table is compacted; stored with the table.",
)
COMBINE_BEFORE_INSERT: Final = Option(
    "hoodie.combine.before.insert",
    False,
    flag,
    "0.4",
    "insert merges rows with the same key in its batch; bulk writes never merge rows.",
)
INSERT_DUP_POLICY: Final = Option(
    "hoodie.datasource.insert.dup.policy",
    "none",
    one_of("none", "drop", "fail"),
    "0.14",
    "What insert does with rows whose key the table has: stores them as further rows without a look-up (none), ignores "
    "them (drop), or refuses the write (fail). bulk_insert looks up no keys.",
)
FILL_MISSING: Final = Option(
    "hoodie.write.set.null.for.missing.columns",
    False,
    flag,
    "0.14",
    "A write whose data lacks columns of the table sets them to null (true), or is refused (false).",
)
SCHEMA_EVOLUTION: Final = Option(
    "hoodie.python.schema.evolution",
    "typed",
    one_of("typed", "always", "never"),
    "hoodie",
    "Which data may change the table's schema. typed: Arrow and Spark data, and pandas columns of a type that pandas "
    "does not choose by default. always: lists of dicts, dicts of lists, CSV and JSON files and all pandas columns may "
    "add columns too, but no fields of structs. never: none; a write that would add or widen a column is refused.",
)
LOG_BLOCK_FORMAT: Final = Option(
    "hoodie.logfile.data.block.format",
    "parquet",
    one_of("parquet", "avro"),
    "0.7",
    "Format of the data blocks in log files of a merge-on-read table.",
)
PARTIAL_UPDATES: Final = Option(
    "hoodie.python.partial.updates",
    "compatible",
    one_of("compatible", "always", "never"),
    "hoodie",
    "When update logs the changed columns only. compatible: if late rows cannot fill the other columns and the JVM can "
    "read and write the table, which excludes ordering fields, a record index, and the column _hoodie_is_deleted. "
    "always: whenever log files can store partial rows. never: not at all.",
)
LOG_BLOCK_BYTES: Final = Option(
    "hoodie.logfile.data.block.max.size",
    128 * 1024 * 1024,
    _positive,
    "0.4",
    "Bytes of Arrow data at which a data block of a log file ends and the next block begins.",
)
COMPACT_INLINE: Final = Option(
    "hoodie.compact.inline",
    False,
    flag,
    "0.4",
    "Merge-on-read: a write after which a compaction is due schedules it and executes it before it returns.",
)
COMPACT_SCHEDULE_INLINE: Final = Option(
    "hoodie.compact.schedule.inline",
    False,
    flag,
    "0.9",
    "Merge-on-read: a write after which a compaction is due schedules it; a compactor executes it.",
)
COMPACT_DELTA_COMMITS: Final = Option(
    "hoodie.compact.inline.max.delta.commits",
    5,
    _positive,
    "0.4",
    "Delta commits after which a compaction is due, if the trigger strategy counts delta commits.",
)
COMPACT_DELTA_SECONDS: Final = Option(
    "hoodie.compact.inline.max.delta.seconds",
    3600,
    _positive,
    "0.6",
    "Seconds after the last compaction at which the next compaction is due, if the trigger strategy uses the time.",
)
COMPACT_DELTA_BYTES: Final = Option(
    "hoodie.python.compact.inline.max.delta.bytes",
    1024 * 1024 * 1024,
    _positive,
    "hoodie",
    "Bytes of log files since the last compaction at which the next compaction is due (trigger strategy LOG_SIZE).",
)
COMPACT_TRIGGER: Final = Option(
    "hoodie.compact.inline.trigger.strategy",
    "num_commits",
    one_of(
        "num_commits",
        "num_commits_after_last_request",
        "time_elapsed",
        "num_and_time",
        "num_or_time",
        "log_size",
    ),
    "0.6",
    "When a compaction is due; only hoodie has log_size.",
)
LOG_COMPACTION_BLOCKS: Final = Option(
    "hoodie.log.compaction.blocks.threshold",
    5,
    _positive,
    "0.12",
    "Log blocks that a file slice must have for a log compaction.",
)
LOG_COMPACTION_INLINE: Final = Option(
    "hoodie.log.compaction.inline",
    False,
    flag,
    "0.13",
    "Merge-on-read: `hoodie services run` folds many small log blocks of a file slice into one.",
)
COMPACTION_STRATEGY: Final = Option(
    "hoodie.compaction.strategy",
    "log_file_size",
    _text,
    "0.4",
    "Which file slices a compaction includes: log_file_size, log_file_num, bounded_io, day_based, unbounded, or the "
    "name of a strategy class of Hudi.",
)
COMPACTION_LOG_BYTES_MIN: Final = Option(
    "hoodie.compaction.logfile.size.threshold",
    0,
    _count,
    "0.5",
    "log_file_size: bytes of log files that a file slice must have to be compacted.",
)
COMPACTION_LOG_FILES_MIN: Final = Option(
    "hoodie.compaction.logfile.num.threshold",
    0,
    _count,
    "0.13",
    "log_file_num: log files that a file slice must have to be compacted.",
)
COMPACTION_TARGET_MIB: Final = Option(
    "hoodie.compaction.target.io",
    500 * 1024,
    _positive,
    "0.4",
    "Maximum MiB that one compaction reads and writes; day_based and unbounded have no limit.",
)
COMPACTION_TARGET_PARTITIONS: Final = Option(
    "hoodie.compaction.daybased.target.partitions",
    10,
    _positive,
    "0.4",
    "day_based: number of partitions in one compaction, newest dates first.",
)
CLEAN_AUTOMATIC: Final = Option(
    "hoodie.clean.automatic",
    True,
    flag,
    "0.4",
    "A commit after which a clean is due deletes the files of old file slices before the write returns.",
)
CLEAN_POLICY: Final = Option(
    "hoodie.clean.policy",
    "keep_latest_commits",
    one_of("keep_latest_commits", "keep_latest_by_hours", "keep_latest_file_versions"),
    "0.4",
    "What a clean retains: the files of the newest commits, of the commits of the last hours, or the newest file "
    "slices of each file group. Unless it is set, a retention option that is set alone decides.",
)
CLEAN_COMMITS_RETAINED: Final = Option(
    "hoodie.clean.commits.retained",
    10,
    _positive,
    "0.4",
    "keep_latest_commits: number of newest commits whose snapshots stay readable.",
)
CLEAN_HOURS_RETAINED: Final = Option(
    "hoodie.clean.hours.retained",
    24,
    _positive,
    "0.10",
    "keep_latest_by_hours: snapshots of the commits of this number of hours stay readable.",
)
CLEAN_VERSIONS_RETAINED: Final = Option(
    "hoodie.clean.fileversions.retained",
    3,
    _positive,
    "0.4",
    "keep_latest_file_versions: number of file slices that each file group keeps.",
)
CLEAN_TRIGGER: Final = Option(
    "hoodie.clean.trigger.strategy", "num_commits", one_of("num_commits"), "0.8", "When a clean is due: after commits."
)
CLEAN_TRIGGER_COMMITS: Final = Option(
    "hoodie.clean.trigger.max.commits",
    1,
    _positive,
    "0.8",
    "Number of commits after the last clean at which the next clean is due.",
)
CLEAN_INCREMENTAL: Final = Option(
    "hoodie.clean.incremental.enabled",
    True,
    flag,
    "0.5",
    "A clean looks only at the partitions that commits changed since the last clean (true), or at all (false).",
)
CLEAN_COMMITS_MAX: Final = Option(
    "hoodie.clean.max.commits.to.clean",
    2**63 - 1,
    _positive,
    "1.2",
    "Number of commits that one clean releases at most; the next clean goes on.",
)
EMPTY_CLEAN_HOURS: Final = Option(
    "hoodie.write.empty.clean.interval.hours",
    -1,
    _hours_or_never,
    "1.2",
    "Hours after the last clean at which a clean without files to delete is put on the timeline, so that later cleans "
    "do not look at the same commits again; -1: only after ten commits without files to delete.",
)
CLEAN_PARTITIONS_SELECTED: Final = Option(
    "hoodie.clean.partition.filter.selected",
    "",
    _text,
    "1.2",
    "Partition paths, separated by commas, to which a clean that is not incremental is limited.",
)
CLEAN_PARTITIONS_PATTERN: Final = Option(
    "hoodie.clean.partition.filter.regex",
    "",
    _pattern,
    "1.2",
    "Regular expression of the partition paths to which a clean that is not incremental is limited.",
)
TTL_INLINE: Final = Option(
    "hoodie.partition.ttl.inline",
    False,
    flag,
    "1.0",
    "A commit deletes the partitions that have expired before the write returns.",
)
TTL_STRATEGY: Final = Option(
    "hoodie.partition.ttl.management.strategy.type",
    "keep_by_time",
    one_of("keep_by_time", "keep_by_creation_time"),
    "1.0",
    "From when the time to live of a partition counts: from its last write, or from its creation.",
)
TTL_DAYS: Final = Option(
    "hoodie.partition.ttl.strategy.days.retain",
    -1,
    int,
    "1.0",
    "Days after which a partition has expired; 0 or less: no partition expires.",
)
TTL_PARTITIONS_SELECTED: Final = Option(
    "hoodie.partition.ttl.strategy.partition.selected",
    "",
    _text,
    "1.0",
    "Partition paths, separated by commas, that may expire; empty: all.",
)
TTL_PARTITIONS_MAX: Final = Option(
    "hoodie.partition.ttl.strategy.max.delete.partitions",
    1000,
    _positive,
    "1.0",
    "Number of partitions that one run deletes at most; the longest expired first.",
)
ARCHIVE_AUTOMATIC: Final = Option(
    "hoodie.archive.automatic",
    True,
    flag,
    "0.11",
    "Move the oldest instants of the timeline to its archive after a write, if there are more commits than "
    "hoodie.keep.max.commits.",
)
KEEP_COMMITS_MAX: Final = Option(
    "hoodie.keep.max.commits", 30, _positive, "0.4", "Commits on the active timeline with which nothing is archived."
)
KEEP_COMMITS_MIN: Final = Option(
    "hoodie.keep.min.commits", 20, _positive, "0.4", "Commits that archiving keeps on the active timeline."
)
ARCHIVE_BEYOND_SAVEPOINT: Final = Option(
    "hoodie.archive.beyond.savepoint",
    False,
    flag,
    "0.12",
    "Archive commits after the first savepoint too; savepointed commits stay on the active timeline.",
)
ARCHIVE_LAYER_FILES: Final = Option(
    "hoodie.timeline.compaction.batch.size",
    10,
    _several,
    "1.0",
    "Files of one layer of the archived timeline that are merged into one file of the next layer.",
)
ARCHIVE_FILE_BYTES: Final = Option(
    "hoodie.timeline.compaction.target.file.max.bytes",
    64 * 1024 * 1024,
    _positive,
    "1.1",
    "Files of the archived timeline with more bytes are not merged again. (In Hudi: 1,048,576,000. A merge here holds "
    "its files in memory.)",
)
ARCHIVE_MANIFESTS: Final = Option(
    "hoodie.timeline.manifest.retained.versions",
    3,
    _positive,
    "1.1",
    "Snapshots of the archived timeline whose files are kept for readers.",
)
LOCAL_BYTES_MAX: Final = Option(
    "hoodie.python.local.bytes.max",
    256 * 1024 * 1024,
    _count,
    "hoodie",
    "Work on files of at most this many bytes in total runs in threads of the driver, without a Spark job.",
)
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
    _positive,
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
    _positive,
    "0.9",
    "Commits since the last clustering after which a clustering is due, with hoodie.clustering.schedule.inline.",
)
CLUSTER_SORT_COLUMNS: Final = Option(
    "hoodie.clustering.plan.strategy.sort.columns",
    _NO_NAMES,
    _names,
    "0.7",
    "Columns by which a clustering sorts the rows; without columns it only makes files larger.",
)
CLUSTER_LAYOUT: Final = Option(
    "hoodie.layout.optimize.strategy",
    "linear",
    _layout,
    "0.10",
    "The order of the rows: by the first column, then the second (linear), or along a curve through all columns "
    "(zorder, hilbert).",
)
CLUSTER_SAMPLE_ROWS: Final = Option(
    "hoodie.layout.optimize.build.curve.sample.size",
    200_000,
    _positive,
    "0.10",
    "Rows of a clustering group from which a clustering derives the ranges of values.",
)
CLUSTER_SMALL_BYTES: Final = Option(
    "hoodie.clustering.plan.strategy.small.file.limit",
    300 * 1024 * 1024,
    _count,
    "0.7",
    "Only file slices whose base file is smaller than this number of bytes are clustered.",
)
CLUSTER_TARGET_BYTES: Final = Option(
    "hoodie.clustering.plan.strategy.target.file.max.bytes",
    1024 * 1024 * 1024,
    _positive,
    "0.7",
    "Bytes of a base file that a clustering writes.",
)
CLUSTER_GROUP_BYTES: Final = Option(
    "hoodie.clustering.plan.strategy.max.bytes.per.group",
    2 * 1024 * 1024 * 1024,
    _positive,
    "0.7",
    "Bytes of the file slices that one task clusters together.",
)
CLUSTER_GROUPS_MAX: Final = Option(
    "hoodie.clustering.plan.strategy.max.num.groups",
    30,
    _positive,
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
    _slice_order("size"),
    _slice_order,
    "1.2",
    "Which file slices of a partition come first: SIZE (largest), INSTANT_TIME (oldest), or both, separated by a "
    "comma.",
)
CLUSTER_PARTITIONS: Final = Option(
    "hoodie.clustering.plan.strategy.partition.selected",
    _NO_NAMES,
    _names,
    "0.11",
    "Partition paths to cluster, separated by commas; without them all partitions.",
)
CLUSTER_PARTITION_PATTERN: Final = Option(
    "hoodie.clustering.plan.strategy.partition.regex.pattern",
    "",
    _pattern,
    "0.11",
    "Regular expression of the partition paths to cluster; it must match the whole path.",
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
    _count,
    "0.7",
    "recent_days: number of partitions; 0: all.",
)
CLUSTER_SKIPPED_PARTITIONS: Final = Option(
    "hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions",
    0,
    _count,
    "0.9",
    "recent_days: number of last partitions that are left out.",
)
CLUSTER_BEGIN_PARTITION: Final = Option(
    "hoodie.clustering.plan.strategy.cluster.begin.partition",
    "",
    _text,
    "0.11",
    "selected_partitions: first partition path (inclusive).",
)
CLUSTER_END_PARTITION: Final = Option(
    "hoodie.clustering.plan.strategy.cluster.end.partition",
    "",
    _text,
    "0.11",
    "selected_partitions: last partition path (inclusive).",
)
CLUSTER_UPDATES: Final = Option(
    "hoodie.clustering.updates.strategy",
    "reject",
    _update_strategy,
    "0.7",
    "Writes that change file groups of a pending clustering are refused (reject), or change them, and the clustering "
    "leaves the groups out (allow). Names of Hudi's strategy classes are accepted.",
)
LOCK_WAIT_MS: Final = Option(
    "hoodie.write.lock.wait_time_ms",
    60_000,
    _count,
    "0.8",
    "Milliseconds that a write or a service waits for the table's lock.",
)
LOCK_RETRY_MS: Final = Option(
    "hoodie.write.lock.wait_time_ms_between_retry",
    100,
    _positive,
    "0.8",
    "Milliseconds between the first two attempts to get the table's lock; each further time is twice as long.",
)
LOCK_RETRY_MS_MAX: Final = Option(
    "hoodie.write.lock.max_wait_time_ms_between_retry",
    1_000,
    _positive,
    "0.8",
    "Milliseconds between two attempts to get the table's lock at most; never more than 5000.",
)
LOCK_ATTEMPTS: Final = Option(
    "hoodie.write.lock.num_retries",
    0,
    _count,
    "0.8",
    "Further attempts to get the table's lock after the first one; 0: until the waiting time is over.",
)
LOCK_CLIENT_RETRIES: Final = Option(
    "hoodie.write.lock.client.num_retries",
    0,
    _count,
    "0.8",
    "How often a write waits for the table's lock again after the waiting time was over.",
)
LOCK_CLIENT_RETRY_MS: Final = Option(
    "hoodie.write.lock.client.wait_time_ms_between_retry",
    5_000,
    _count,
    "0.8",
    "Milliseconds between two of these waits.",
)
LOCK_PROVIDER: Final = Option(
    "hoodie.write.lock.provider",
    "",
    _text,
    "0.8",
    "Class name of the table's lock provider, the same for all writers of a table; docs/operations/locks.md. The JVM "
    "reads it from the table's properties too. Without it: FileSystemBasedLockProvider.",
)
LOCK_FILE_SYSTEM_PATH: Final = Option(
    "hoodie.write.lock.filesystem.path",
    "",
    _text,
    "0.8",
    "Folder of the lock file; only the default, the table's folder .hoodie, is supported.",
)
LOCK_STORAGE_VALIDITY_SECONDS: Final = Option(
    "hoodie.write.lock.storage.validity.timeout.secs",
    300,
    _positive,
    "1.0.2",
    "StorageBasedLockProvider: seconds after which the lock of a dead writer ends; at least ten times the renewals.",
)
LOCK_STORAGE_RENEW_SECONDS: Final = Option(
    "hoodie.write.lock.storage.renew.interval.secs",
    30,
    _positive,
    "1.0.2",
    "StorageBasedLockProvider: seconds between two renewals of a lock that is held.",
)
LOCK_ZOOKEEPER_URL: Final = Option(
    "hoodie.write.lock.zookeeper.url", "", _text, "0.8", "Servers of ZooKeeper, such as `zk1:2181,zk2:2181`."
)
LOCK_ZOOKEEPER_PATH: Final = Option(
    "hoodie.write.lock.zookeeper.base_path",
    "",
    _text,
    "0.8",
    "ZookeeperBasedLockProvider: the node below which the table's lock node is.",
)
LOCK_ZOOKEEPER_KEY: Final = Option(
    "hoodie.write.lock.zookeeper.lock_key",
    "",
    _text,
    "0.8",
    "ZookeeperBasedLockProvider: name of the table's lock node; default is the name of the table.",
)
LOCK_ZOOKEEPER_SESSION_MS: Final = Option(
    "hoodie.write.lock.zookeeper.session_timeout_ms",
    60_000,
    _positive,
    "0.8",
    "Milliseconds after which ZooKeeper ends the lock of a dead writer.",
)
LOCK_ZOOKEEPER_CONNECT_MS: Final = Option(
    "hoodie.write.lock.zookeeper.connection_timeout_ms",
    15_000,
    _positive,
    "0.8",
    "Milliseconds that a writer waits for a connection to ZooKeeper.",
)
LOCK_TABLE_PATH: Final = Option(
    "hoodie.base.path",
    "",
    _text,
    "0.4",
    "ZookeeperBasedImplicitBasePathLockProvider: the table's path, letter by letter as the JVM writers give it.",
)
LOCK_EXPIRE_MINUTES: Final = Option(
    "hoodie.write.lock.filesystem.expire",
    0,
    _count,
    "0.12",
    "Minutes after which the lock file of a JVM writer counts as left by a dead one; 0: never. It does not concern "
    "locks of this library, which their holders renew.",
)
NON_BLOCKING: Final = "non_blocking_concurrency_control"
CONCURRENCY_MODE: Final = Option(
    "hoodie.write.concurrency.mode",
    "optimistic_concurrency_control",
    one_of("single_writer", "optimistic_concurrency_control", NON_BLOCKING),
    "0.8",
    "Which writes conflict. single_writer and optimistic_concurrency_control mean the same: the table's lock and the "
    "conflict check are always on. non_blocking_concurrency_control: upserts of several writers append to the log "
    "files of one file group; it requires a merge-on-read table with a record index.",
)
CONFLICT_RETRIES: Final = Option(
    "hoodie.write.num.retries.on.conflict.failures",
    10,
    _count,
    "0.14",
    "How often a write whose rows are staged is tried again after a conflict with another writer; 0: never.",
)
EARLY_CONFLICTS: Final = Option(
    "hoodie.write.concurrency.early.conflict.detection.enable",
    False,
    flag,
    "0.13",
    "Before files are written, list the markers of running writes, and give up if one writes to the same file groups.",
)
EARLY_COMMIT_CONFLICTS: Final = Option(
    "hoodie.write.concurrency.early.conflict.check.commit.conflict",
    False,
    flag,
    "0.13",
    "With early detection: load the timeline too, and give up if a write that completed changed the same file groups.",
)
INDEX_REBUILD_BYTES_MAX: Final = Option(
    "hoodie.python.index.rebuild.bytes.max",
    8 * 1024**3,
    _count,
    "hoodie",
    "A write builds a record index that is missing again if the data files have at most this many bytes in total.",
)
INDEX_TYPE: Final = Option(INDEX_TYPE_KEY, "simple", lambda text: text.strip().lower(), "0.4", "Index of the table.")
DURABLE: Final = Option(
    DURABLE_KEY,
    False,
    flag,
    "hoodie",
    "Tables on local file systems: an acknowledged commit survives a power failure. Fixed when the table is created; "
    "storage_options={'durable': 'true'} does the same for the writes of one handle.",
)
PYTHON_MERGER: Final = Option(PYTHON_MERGER_KEY, "", _text, "hoodie", "Name of the registered Python merger.")

OPTIONS: Final[Mapping[str, Option[Any]]] = {
    option.key: option
    for option in (
        MAX_FILE_BYTES,
        SMALL_FILE_BYTES,
        CODEC,
        RECORD_BYTES,
        UPDATE_PARTITION_PATH,
        RECORD_INDEX_ENABLE,
        RECORD_INDEX_ENABLE_NEW,
        PARTITIONED_RECORD_INDEX_ENABLE,
        RECORD_UPDATE_PARTITION_PATH,
        RECORD_INDEX_BUCKETS_MIN,
        RECORD_INDEX_BUCKETS_MAX,
        RECORD_INDEX_GROWTH_FACTOR,
        RECORD_INDEX_LOOK_UP,
        COLUMN_STATS_ENABLE,
        PARTITION_STATS_ENABLE,
        COLUMN_STATS_COLUMNS,
        COLUMN_STATS_COLUMNS_MAX,
        COLUMN_STATS_FILE_GROUPS,
        PARTITION_STATS_FILE_GROUPS,
        METADATA_COMPACT_DELTA_COMMITS,
        COMBINE_BEFORE_INSERT,
        INSERT_DUP_POLICY,
        FILL_MISSING,
        SCHEMA_EVOLUTION,
        LOG_BLOCK_FORMAT,
        LOG_BLOCK_BYTES,
        PARTIAL_UPDATES,
        COMPACT_INLINE,
        COMPACT_SCHEDULE_INLINE,
        COMPACT_DELTA_COMMITS,
        COMPACT_DELTA_SECONDS,
        COMPACT_DELTA_BYTES,
        COMPACT_TRIGGER,
        LOG_COMPACTION_BLOCKS,
        LOG_COMPACTION_INLINE,
        COMPACTION_STRATEGY,
        COMPACTION_LOG_BYTES_MIN,
        COMPACTION_LOG_FILES_MIN,
        COMPACTION_TARGET_MIB,
        COMPACTION_TARGET_PARTITIONS,
        CLEAN_AUTOMATIC,
        CLEAN_POLICY,
        CLEAN_COMMITS_RETAINED,
        CLEAN_HOURS_RETAINED,
        CLEAN_VERSIONS_RETAINED,
        CLEAN_TRIGGER,
        CLEAN_TRIGGER_COMMITS,
        CLEAN_INCREMENTAL,
        CLEAN_COMMITS_MAX,
        EMPTY_CLEAN_HOURS,
        CLEAN_PARTITIONS_SELECTED,
        CLEAN_PARTITIONS_PATTERN,
        TTL_INLINE,
        TTL_STRATEGY,
        TTL_DAYS,
        TTL_PARTITIONS_SELECTED,
        TTL_PARTITIONS_MAX,
        ARCHIVE_AUTOMATIC,
        KEEP_COMMITS_MAX,
        KEEP_COMMITS_MIN,
        ARCHIVE_BEYOND_SAVEPOINT,
        ARCHIVE_LAYER_FILES,
        ARCHIVE_FILE_BYTES,
        ARCHIVE_MANIFESTS,
        LOCAL_BYTES_MAX,
        CLUSTER_INLINE,
        CLUSTER_INLINE_COMMITS,
        CLUSTER_SCHEDULE_INLINE,
        CLUSTER_SCHEDULE_COMMITS,
        CLUSTER_SORT_COLUMNS,
        CLUSTER_LAYOUT,
        CLUSTER_SAMPLE_ROWS,
        CLUSTER_SMALL_BYTES,
        CLUSTER_TARGET_BYTES,
        CLUSTER_GROUP_BYTES,
        CLUSTER_GROUPS_MAX,
        CLUSTER_SINGLE,
        CLUSTER_SLICE_ORDER,
        CLUSTER_PARTITIONS,
        CLUSTER_PARTITION_PATTERN,
        CLUSTER_PARTITION_MODE,
        CLUSTER_RECENT_PARTITIONS,
        CLUSTER_SKIPPED_PARTITIONS,
        CLUSTER_BEGIN_PARTITION,
        CLUSTER_END_PARTITION,
        CLUSTER_UPDATES,
        LOCK_WAIT_MS,
        LOCK_RETRY_MS,
        LOCK_RETRY_MS_MAX,
        LOCK_ATTEMPTS,
        LOCK_CLIENT_RETRIES,
        LOCK_CLIENT_RETRY_MS,
        LOCK_PROVIDER,
        LOCK_FILE_SYSTEM_PATH,
        LOCK_STORAGE_VALIDITY_SECONDS,
        LOCK_STORAGE_RENEW_SECONDS,
        LOCK_ZOOKEEPER_URL,
        LOCK_ZOOKEEPER_PATH,
        LOCK_ZOOKEEPER_KEY,
        LOCK_ZOOKEEPER_SESSION_MS,
        LOCK_ZOOKEEPER_CONNECT_MS,
        LOCK_TABLE_PATH,
        LOCK_EXPIRE_MINUTES,
        CONCURRENCY_MODE,
        CONFLICT_RETRIES,
        EARLY_CONFLICTS,
        EARLY_COMMIT_CONFLICTS,
        INDEX_REBUILD_BYTES_MAX,
        INDEX_TYPE,
        DURABLE,
        PYTHON_MERGER,
    )
}


def check_options(properties: Mapping[str, str], *, also_known: Iterable[str] = ()) -> None:
    """Refuse unknown keys and values that do not parse; `also_known` are further accepted keys (table properties).

    Raises: InvalidConfigError; the message names the most similar known key.

    >>> check_options({"hoodie.index.typ": "simple"})
    Traceback (most recent call last):
    ...
    hoodie.errors.InvalidConfigError: unknown option 'hoodie.index.typ'; did you mean 'hoodie.index.type'?
    """
    known = {*OPTIONS, *also_known}
    for key in properties:
        if key in OPTIONS:
            OPTIONS[key].get(properties)
        elif key not in known:
            near = difflib.get_close_matches(key, known, 1, 0.5)
            advice = f"did you mean {near[0]!r}?" if near else "hoodie.config.OPTIONS lists all options"
            raise InvalidConfigError(f"unknown option {key!r}; {advice}")


def check_sizes(options: Mapping[str, str]) -> None:
    """Refuse options by which one file would be both full and small.

    Raises: InvalidConfigError: the limit of small files is above the maximum file size.
    """
    small, full = SMALL_FILE_BYTES.get(options), MAX_FILE_BYTES.get(options)
    if (SMALL_FILE_BYTES.key in options or MAX_FILE_BYTES.key in options) and small > full:
        raise InvalidConfigError(
            f"{SMALL_FILE_BYTES.key}={small} is above {MAX_FILE_BYTES.key}={full}: a file would be both full and "
            "small; lower the first option or raise the second"
        )
