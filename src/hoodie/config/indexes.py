"""Options of indexes, of statistics and of the metadata table."""

from __future__ import annotations

from typing import Final

from hoodie.config.option import NO_NAMES, Option, count, factor, flag, names, one_of, positive

INDEX_TYPE_KEY: Final = "hoodie.index.type"
COLUMN_STATS_BY_DEFAULT: Final = False
"""Whether new tables have column statistics if the options do not say so."""
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
    positive,
    "0.14",
    "Number of index file groups in the record index of a new table, and the minimum that a build creates.",
)
RECORD_INDEX_BUCKETS_MAX: Final = Option(
    "hoodie.metadata.record.index.max.filegroup.count",
    10_000,
    positive,
    "0.14",
    "Maximum number of index file groups that a build of the record index creates.",
)
RECORD_INDEX_GROWTH_FACTOR: Final = Option(
    "hoodie.metadata.record.index.growth.factor",
    2.0,
    factor,
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
    NO_NAMES,
    names,
    "0.11",
    "Columns that have statistics, separated by commas; fields of structs with dots. By default the first columns.",
)
COLUMN_STATS_COLUMNS_MAX: Final = Option(
    "hoodie.metadata.index.column.stats.max.columns.to.index",
    32,
    positive,
    "1.0",
    "Number of columns that have statistics if they are not listed: the first columns whose type has statistics.",
)
COLUMN_STATS_FILE_GROUPS: Final = Option(
    "hoodie.metadata.index.column.stats.file.group.count",
    2,
    positive,
    "0.11",
    "File groups of a new metadata partition column_stats.",
)
PARTITION_STATS_FILE_GROUPS: Final = Option(
    "hoodie.metadata.index.partition.stats.file.group.count",
    1,
    positive,
    "1.0",
    "File groups of a new metadata partition partition_stats.",
)
METADATA_COMPACT_DELTA_COMMITS: Final = Option(
    "hoodie.metadata.compact.max.delta.commits",
    10,
    positive,
    "0.7",
    "Delta commits of the metadata table after which the metadata table is compacted; stored with the table.",
)
INDEX_REBUILD_BYTES_MAX: Final = Option(
    "hoodie.python.index.rebuild.bytes.max",
    8 * 1024**3,
    count,
    "hoodie",
    "A write builds a record index that is missing again if the data files have at most this many bytes in total.",
)
INDEX_TYPE: Final = Option(INDEX_TYPE_KEY, "simple", lambda text: text.strip().lower(), "0.4", "Index of the table.")
BUCKET_ENGINE: Final = Option(
    "hoodie.index.bucket.engine",
    "simple",
    one_of("simple", "consistent_hashing"),
    "0.11",
    "Stored with index='bucket': a fixed number of buckets (simple). Tables with consistent_hashing can be read only.",
)
BUCKET_COUNT: Final = Option(
    "hoodie.bucket.index.num.buckets",
    256,
    positive,
    "0.11",
    "Number of buckets, and thus of file groups, of each partition; fixed when the table is created. `hoodie.create` "
    "stores 16 unless it is set; 256 is the value of a table that stores none.",
)
BUCKET_FIELDS: Final = Option(
    "hoodie.bucket.index.hash.field",
    NO_NAMES,
    names,
    "0.11",
    "Columns of the record key whose values decide the bucket; by default all columns of the record key, which are "
    "stored with index='bucket'. Fixed when the table is created.",
)
BUCKET_EXPRESSIONS: Final = Option(
    "hoodie.bucket.index.partition.expressions",
    "",
    str.strip,
    "1.1",
    "Numbers of buckets by partition: `pattern,number;pattern,number`, where the first pattern found in the partition "
    "path counts. Read from the table; `hoodie.create` does not accept it.",
)
BUCKET_RULE: Final = Option(
    "hoodie.bucket.index.partition.rule.type",
    "regex",
    one_of("regex"),
    "1.1",
    "The kind of the patterns in hoodie.bucket.index.partition.expressions.",
)
