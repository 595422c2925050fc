"""Options of writes: sizes of files, duplicates, columns, log blocks, merging."""

from __future__ import annotations

from typing import Final

from hoodie.config.option import Option, count, one_of, positive

DURABLE_KEY: Final = "hoodie.python.durable"
PYTHON_MERGER_KEY: Final = "hoodie.python.merger"
MAX_FILE_BYTES: Final = Option(
    "hoodie.parquet.max.file.size", 120 * 1024 * 1024, "0.4", "Bytes at which a base file is full.", parse=positive
)
SMALL_FILE_BYTES: Final = Option(
    "hoodie.parquet.small.file.limit",
    100 * 1024 * 1024,
    "0.4",
    "Base files smaller than this number of bytes receive inserts; 0 places all inserts in new file groups.",
    parse=count,
)
CODEC: Final = Option(
    "hoodie.parquet.compression.codec",
    "zstd",
    "0.4",
    "Compression of base files.",
    parse=one_of("zstd", "snappy", "gzip", "lz4", "uncompressed"),
)
RECORD_BYTES: Final = Option(
    "hoodie.copyonwrite.record.size.estimate",
    0,
    "0.4",
    "Expected bytes of a record in a base file; 0: estimated from earlier commits, or from the data.",
    parse=count,
)
UPDATE_PARTITION_PATH: Final = Option(
    "hoodie.simple.index.update.partition.path",
    True,
    "0.6",
    "Global index: a record whose partition path changed moves to the new partition (true), or is updated in its old "
    "partition (false).",
)
COMBINE_BEFORE_INSERT: Final = Option(
    "hoodie.combine.before.insert",
    False,
    "0.4",
    "insert and the overwrites merge rows with the same key in their data; bulk_insert never merges rows.",
)
INSERT_DUP_POLICY: Final = Option(
    "hoodie.datasource.insert.dup.policy",
    "none",
    "0.14",
    "What insert does with rows whose key the table has: stores them as further rows without a look-up (none), ignores "
    "them (drop), or refuses the write (fail). bulk_insert and the overwrites look up no keys, and refuse the option.",
    parse=one_of("none", "drop", "fail"),
)
NEW_KEY_ENCODING: Final = Option(
    "hoodie.write.complex.keygen.new.encoding",
    False,
    "1.1",
    "How a complex key generator writes keys of one field in tables of version 8: as the value (true), or as "
    "field:value (false). A new table requires it; in others the stored keys show it.",
)
COMPLEX_KEY_CHECK: Final = Option(
    "hoodie.write.complex.keygen.validation.enable",
    True,
    "1.1",
    "Refuses the downgrade of a table with complex keys of one column, which Hudi 1.0 and 0.15 write in another form.",
)
BULK_SORT_MODE: Final = Option(
    "hoodie.bulkinsert.sort.mode",
    "auto",
    "0.5",
    "bulk_insert and overwrites without arguments sort and distribution: none is distribution='none', global_sort is "
    "sort='global', the other two of Hudi's values are distribution='partition'. Hudi's default is none, and its "
    "partition_sort is refused. Only hoodie has auto: distribution='auto'.",
    parse=one_of("auto", "none", "global_sort", "partition_path_repartition", "partition_path_repartition_and_sort"),
)
STREAM_IDENTIFIER: Final = Option(
    "hoodie.datasource.write.streaming.checkpoint.identifier",
    "default_single_writer",
    "0.13",
    "Name of a stream in the commits of its batches: several streams into one table need one each.",
)
FILL_MISSING: Final = Option(
    "hoodie.write.set.null.for.missing.columns",
    False,
    "0.14",
    "A write whose data lacks columns of the table sets them to null (true), or is refused (false).",
)
SCHEMA_EVOLUTION: Final = Option(
    "hoodie.python.schema.evolution",
    "typed",
    "hoodie",
    "Which data may change the table's schema. typed: Arrow and Spark data, and pandas columns of a type that pandas "
    "does not choose by default. always: lists of dicts, dicts of lists, CSV and JSON files and all pandas columns may "
    "add columns too, but no fields of structs. never: none; a write that would add or widen a column is refused.",
    parse=one_of("typed", "always", "never"),
)
LOG_BLOCK_FORMAT: Final = Option(
    "hoodie.logfile.data.block.format",
    "parquet",
    "0.7",
    "Format of the data blocks in log files of a merge-on-read table. In tables of version 6, and with an ordering "
    "column of texts, the default is avro.",
    parse=one_of("parquet", "avro"),
)
PARTIAL_UPDATES: Final = Option(
    "hoodie.python.partial.updates",
    "compatible",
    "hoodie",
    "When update reads and writes the changed columns only. compatible: in copy-on-write tables without change data "
    "capture; in log files if late rows cannot fill the other columns and the JVM can read and write the table, which "
    "excludes ordering fields, a record index, and the column _hoodie_is_deleted. always: whenever log files can store "
    "partial rows. never: not at all.",
    parse=one_of("compatible", "always", "never"),
)
LOG_BLOCK_BYTES: Final = Option(
    "hoodie.logfile.data.block.max.size",
    128 * 1024 * 1024,
    "0.4",
    "Bytes of Arrow data at which a data block of a log file ends and the next block begins.",
    parse=positive,
)
LOCAL_BYTES_MAX: Final = Option(
    "hoodie.python.local.bytes.max",
    256 * 1024 * 1024,
    "hoodie",
    "Work on files of at most this many bytes in total runs in threads of the driver, without a Spark job.",
    parse=count,
)
DURABLE: Final = Option(
    DURABLE_KEY,
    False,
    "hoodie",
    "Tables on local file systems: an acknowledged commit survives a power failure. Fixed when the table is created; "
    "storage_options={'durable': 'true'} does the same for the writes of one handle.",
)
PYTHON_MERGER: Final = Option(PYTHON_MERGER_KEY, "", "hoodie", "Name of the registered Python merger.")
