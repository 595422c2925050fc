"""Options of indexes, of statistics and of the metadata table."""

from __future__ import annotations

from typing import Final

from hoodie.config.option import NO_NAMES, Option, count, factor, one_of, positive, share

INDEX_TYPE_KEY: Final = "hoodie.index.type"
COLUMN_STATS_BY_DEFAULT: Final = False
"""Whether new tables have column statistics unless options enable them."""
RECORD_INDEX_ENABLE: Final = Option(
    "hoodie.metadata.record.index.enable",
    False,
    "0.14",
    "Stored with index='record': JVM writers delete the record index of a table that does not store true.",
)
RECORD_INDEX_ENABLE_NEW: Final = Option(
    "hoodie.metadata.global.record.level.index.enable",
    False,
    "1.1",
    f"The newer name of {RECORD_INDEX_ENABLE.key}; both are stored.",
)
PARTITIONED_RECORD_INDEX_ENABLE: Final = Option(
    "hoodie.metadata.record.level.index.enable",
    False,
    "1.1",
    "Stored with index='partitioned_record': JVM writers delete the index of a table that does not store true.",
)
RECORD_UPDATE_PARTITION_PATH: Final = Option(
    "hoodie.record.index.update.partition.path",
    False,
    "0.14",
    "Record index: a record whose partition path changed moves to the new partition (true, stored for new tables), or "
    "stays in its old partition (false).",
)
RECORD_INDEX_BUCKETS_MIN: Final = Option(
    "hoodie.metadata.record.index.min.filegroup.count",
    10,
    "0.14",
    "Number of index file groups in the record index of a new table, and the minimum that a build creates.",
    parse=positive,
)
RECORD_INDEX_BUCKETS_MAX: Final = Option(
    "hoodie.metadata.record.index.max.filegroup.count",
    10_000,
    "0.14",
    "Maximum number of index file groups that a build of the record index creates.",
    parse=positive,
)
RECORD_INDEX_GROWTH_FACTOR: Final = Option(
    "hoodie.metadata.record.index.growth.factor",
    2.0,
    "0.14",
    "Expected growth factor of a table while its record index keeps its number of index file groups.",
    parse=factor,
)
RECORD_INDEX_LOOK_UP: Final = Option(
    "hoodie.python.record.index.look.up",
    "auto",
    "hoodie",
    "How index file groups are searched: block by block (seek), as a whole (scan), or chosen by the share of keys "
    "that is looked up (auto).",
    parse=one_of("auto", "seek", "scan"),
)
COLUMN_STATS_ENABLE: Final = Option(
    "hoodie.metadata.index.column.stats.enable",
    COLUMN_STATS_BY_DEFAULT,
    "0.11",
    "New tables: store the range of each column in each file, so that reads with a condition skip files.",
)
PARTITION_STATS_ENABLE: Final = Option(
    "hoodie.metadata.index.partition.stats.enable",
    True,
    "1.0",
    "New tables with partitions and column statistics: also store the range of each column in each partition.",
)
COLUMN_STATS_COLUMNS: Final = Option(
    "hoodie.metadata.index.column.stats.column.list",
    NO_NAMES,
    "0.11",
    "Columns that have statistics, separated by commas; fields of structs with dots. By default the first columns.",
)
COLUMN_STATS_COLUMNS_MAX: Final = Option(
    "hoodie.metadata.index.column.stats.max.columns.to.index",
    32,
    "1.0",
    "Number of columns that have statistics if they are not listed: the first columns whose type has statistics.",
    parse=positive,
)
COLUMN_STATS_FILE_GROUPS: Final = Option(
    "hoodie.metadata.index.column.stats.file.group.count",
    2,
    "0.11",
    "File groups of a new metadata partition column_stats.",
    parse=positive,
)
PARTITION_STATS_FILE_GROUPS: Final = Option(
    "hoodie.metadata.index.partition.stats.file.group.count",
    1,
    "1.0",
    "File groups of a new metadata partition partition_stats.",
    parse=positive,
)
METADATA_COMPACT_DELTA_COMMITS: Final = Option(
    "hoodie.metadata.compact.max.delta.commits",
    10,
    "0.7",
    "Delta commits of the metadata table after which the metadata table is compacted; stored with the table.",
    parse=positive,
)
INDEX_REBUILD_BYTES_MAX: Final = Option(
    "hoodie.python.index.rebuild.bytes.max",
    8 * 1024**3,
    "hoodie",
    "A write builds a record index that is missing again if the data files have at most this many bytes in total.",
    parse=count,
)
INDEX_TYPE: Final = Option(
    INDEX_TYPE_KEY, "simple", "0.4", "Index of the table.", parse=lambda text: text.strip().lower()
)
BUCKET_ENGINE: Final = Option(
    "hoodie.index.bucket.engine",
    "simple",
    "0.11",
    "Stored with index='bucket': a fixed number of buckets (simple). Tables with consistent_hashing can be read only.",
    parse=one_of("simple", "consistent_hashing"),
)
BUCKET_COUNT: Final = Option(
    "hoodie.bucket.index.num.buckets",
    256,
    "0.11",
    "Number of buckets, and thus of file groups, of each partition; fixed when the table is created. `hoodie.create` "
    "stores 16 unless it is set; 256 is the value of a table that stores none.",
    parse=positive,
)
BUCKET_FIELDS: Final = Option(
    "hoodie.bucket.index.hash.field",
    NO_NAMES,
    "0.11",
    "Columns of the record key whose values decide the bucket; by default all columns of the record key, which are "
    "stored with index='bucket'. Fixed when the table is created.",
)
BUCKET_EXPRESSIONS: Final = Option(
    "hoodie.bucket.index.partition.expressions",
    "",
    "1.1",
    "Numbers of buckets by partition: `pattern,number;pattern,number`, where the first pattern found in the partition "
    "path counts. Read from the table; `hoodie.create` does not accept it.",
    parse=str.strip,
)
BUCKET_RULE: Final = Option(
    "hoodie.bucket.index.partition.rule.type",
    "regex",
    "1.1",
    "The kind of the patterns in hoodie.bucket.index.partition.expressions.",
    parse=one_of("regex"),
)
BLOOM_ENTRIES: Final = Option(
    "hoodie.index.bloom.num_entries",
    60_000,
    "0.4",
    "Bloom filters: number of keys for which a filter (simple) or one of its rows (dynamic_v0) is made. The size of a "
    "filter follows from it and from the rate of false positives, not from the keys in the file.",
    parse=positive,
)
BLOOM_RATE: Final = Option(
    "hoodie.index.bloom.fpp",
    1e-9,
    "0.4",
    "Bloom filters: share of absent keys that a filter reports as present, at the number of keys for which it is made.",
    parse=share,
)
BLOOM_FILTER_TYPE: Final = Option(
    "hoodie.bloom.index.filter.type",
    "dynamic_v0",
    "0.5",
    "Bloom filters: of one size (simple), or with a further row when a row is full (dynamic_v0).",
    parse=one_of("simple", "dynamic_v0"),
)
BLOOM_ENTRIES_MAX: Final = Option(
    "hoodie.bloom.index.filter.dynamic.max.entries",
    100_000,
    "0.5",
    "Bloom filters of type dynamic_v0: keys after which no row is added. More keys than this in one file raise the "
    "rate of false positives: set it to the number of records of a full file.",
    parse=positive,
)
BLOOM_PRUNE: Final = Option(
    "hoodie.bloom.index.prune.by.ranges",
    True,
    "0.4",
    "Bloom indexes: leave out files whose key range does not contain a key. false saves reading the ranges if keys are "
    "random.",
)
BLOOM_KEYS_PER_TASK: Final = Option(
    "hoodie.bloom.index.keys.per.bucket",
    10_000_000,
    "0.4",
    "Bloom indexes: number of comparisons of a key with a file that one task does at most.",
    parse=positive,
)
BLOOM_UPDATE_PARTITION_PATH: Final = Option(
    "hoodie.bloom.index.update.partition.path",
    True,
    "0.5",
    "Global bloom index: a record whose partition path changed moves to the new partition (true), or is updated in its "
    "old partition (false).",
)
BLOOM_USE_METADATA: Final = Option(
    "hoodie.bloom.index.use.metadata",
    False,
    "0.11",
    "Bloom indexes: read the filters from the metadata partition bloom_filters if the table has it, not from footers.",
)
BLOOM_FILTERS_ENABLE: Final = Option(
    "hoodie.metadata.index.bloom.filter.enable",
    False,
    "0.11",
    "New tables: store the bloom filter of each base file in the metadata table too.",
)
BLOOM_FILTERS_FILE_GROUPS: Final = Option(
    "hoodie.metadata.index.bloom.filter.file.group.count",
    4,
    "0.11",
    "File groups of a new metadata partition bloom_filters.",
    parse=positive,
)
HBASE_TABLE: Final = Option(
    "hoodie.index.hbase.table",
    "",
    "0.4",
    "Required with index='hbase', and stored: the HBase table of the index, with a namespace as `namespace:table`.",
)
HBASE_THRIFT_HOST: Final = Option(
    "hoodie.index.hbase.thrift.host", "127.0.0.1", "hoodie", "Host of an HBase Thrift 2 server."
)
HBASE_THRIFT_PORT: Final = Option(
    "hoodie.index.hbase.thrift.port", 9090, "hoodie", "Port of the HBase Thrift 2 server.", parse=positive
)
HBASE_THRIFT_SSL: Final = Option(
    "hoodie.index.hbase.thrift.ssl", False, "hoodie", "Whether the connection to the Thrift server uses TLS."
)
HBASE_THRIFT_CA_FILE: Final = Option(
    "hoodie.index.hbase.thrift.ssl.ca.file",
    "",
    "hoodie",
    "PEM file with the authorities that may sign the Thrift server's certificate; default: those of the system.",
)
HBASE_TIMEOUT_MS: Final = Option(
    "hoodie.index.hbase.timeout.ms",
    30_000,
    "hoodie",
    "Milliseconds after which a connection to the Thrift server, or an answer of it, is given up with an error.",
    parse=positive,
)
HBASE_GET_BATCH: Final = Option(
    "hoodie.index.hbase.get.batch.size", 1000, "0.4", "Keys of one request that reads the HBase index.", parse=positive
)
HBASE_PUT_BATCH: Final = Option(
    "hoodie.index.hbase.put.batch.size", 1000, "0.4", "Keys of one request that writes the HBase index.", parse=positive
)
HBASE_QPS_MAX: Final = Option(
    "hoodie.index.hbase.max.qps.per.region.server",
    0,
    "0.4",
    "Maximum number of keys that one write reads or writes in a second, for each region server that has a region of "
    "the HBase table; 0 for no limit.",
    parse=count,
)
HBASE_UPDATE_PARTITION_PATH: Final = Option(
    "hoodie.hbase.index.update.partition.path",
    False,
    "0.5.3",
    "HBase index: a record whose partition path changed moves to the new partition (true, stored for new tables), or "
    "stays in its old partition (false).",
)
HBASE_IDENTITY: Final = Option(
    "hoodie.python.index.hbase.id",
    "",
    "hoodie",
    "Stored: the identity of the HBase index, which a row of the HBase table has too. Each build sets a new one.",
)
HBASE_BUILT: Final = Option(
    "hoodie.python.index.hbase.built",
    "",
    "hoodie",
    "Stored: the newest commit when the HBase index was built. The index is incomplete if that commit is taken back.",
)
BUCKETS_SINCE: Final = Option(
    "hoodie.python.buckets.since",
    "",
    "hoodie",
    "Stored by a switch to a bucket index: the time since which rows are in the buckets. Reads of earlier states skip "
    "no files by them; a restore to one checks its rows.",
)
COLUMNS_SINCE: Final = Option(
    "hoodie.python.partitions.since",
    "",
    "hoodie",
    "Stored by a switch of the index: the time since which rows are in the partitions of their columns. Reads of "
    "earlier states skip no files by these; a restore to one checks its rows.",
)
