"""The procedures of Hudi that this release does not have, and what to use instead."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

_AUDIT: Final = "t.inspect.locks(); the audit of JVM Hudi's storage lock is not kept here"
_METADATA: Final = "t.repair(), which builds the metadata table anew if it is damaged or missing"
_BOOTSTRAP: Final = "hoodie.adopt makes a table of Parquet files"
_HIVE: Final = "the catalog of the Spark session: CREATE TABLE … LOCATION adds an entry; JVM Hudi synchronises Hive"
REFUSED: Final = MappingProxyType(
    {
        "cleanup_audit_lock": _AUDIT,
        "create_metadata_table": _METADATA,
        "delete_metadata_table": _METADATA,
        "hdfs_parquet_import": _BOOTSTRAP,
        "hive_sync": _HIVE,
        "init_metadata_table": _METADATA,
        "partition_bucket_index_manager": "JVM Hudi: this release does not change the buckets of partitions",
        "repair_deduplicate": "MERGE INTO, or t.upsert, which keep one row of each key",
        "repair_migrate_partition_meta": "nothing instead: both kinds of partition metadata files are read",
        "repair_overwrite_hoodie_props": "t.repair() for damaged properties, hoodie.rebuild_properties for lost ones",
        "run_bootstrap": _BOOTSTRAP,
        "set_audit_lock": _AUDIT,
        "show_audit_lock_status": _AUDIT,
        "show_bootstrap_mapping": "JVM Hudi",
        "show_bootstrap_partitions": "JVM Hudi",
        "show_metadata_column_stats_overlap": "show_metadata_table_column_stats",
        "show_metadata_table_stats": "t.inspect, and t.verify() for what the metadata table lacks",
        "sync_validate": _HIVE,
        "validate_audit_lock": _AUDIT,
    }
)
"""What to use instead, by the name of the procedure."""
