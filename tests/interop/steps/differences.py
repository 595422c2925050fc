"""What may differ after a step, and why; docs/migrating.md shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

_NO_SETTING: Final = "it works: JVM Hudi asks for settings of the session"
_FIXED: Final = "the statement is refused, so that the next insert succeeds: JVM Hudi stores another key in the catalog"
_BEFORE: Final = "refused before anything is written: JVM Hudi commits the rows, and then fails"
_NO_METADATA: Final = "the table function is not there; t.inspect has the files"
_NO_PROCEDURE: Final = "the procedure is not there: it is refused with what to use instead"
_STAYS: Final = (
    "the row stays in its partition, and its partition column has the value that was written: JVM Hudi shows the "
    "value of the folder"
)
_NO_INDEX: Final = "refused: secondary and expression indexes are not built; queries return the same rows without"
DIFFERENCES: Final[Mapping[str, Mapping[str, str]]] = {
    "quick_start": {
        "incremental query from the first commit": (
            "a row that was written back unchanged is no change: JVM Hudi returns it again"
        )
    },
    "writing": {
        "mode ignore does nothing with an existing table": (
            "both refuse it: JVM Hudi fails; Spark has no such mode for a Python source"
        ),
        "delete flag _hoodie_is_deleted in a table that lacks the column": (
            "the flag says what to do with a row, and is not stored: in JVM Hudi it becomes a column"
        ),
        "a write without the delete flag after one that had it": (
            "the write succeeds: in JVM Hudi the data lacks the column that the flag became"
        ),
        "a missing key column is refused": "no table is left behind: JVM Hudi leaves an empty table with this key",
    },
    "sql_ddl": {
        "describe a table with types and comments": "comments of columns are not stored",
        "describe extended works": "the details are location and type: Spark's catalog shows none of a Python source",
        "create or replace table": "it works: JVM Hudi has no REPLACE TABLE",
        "create or replace table as select": "it works: JVM Hudi has no REPLACE TABLE",
        "rename a column without schema.on.read": _NO_SETTING,
        "drop a column without schema.on.read": _NO_SETTING,
        "a column with a default": "refused: JVM Hudi ignores the default",
        "set and unset properties": (
            "options are stored in hoodie.properties, for all writers; other texts are refused: JVM Hudi stores both "
            "in the catalog"
        ),
        "set a property that the definition of the table has": _FIXED,
        "an insert under another key is refused": _FIXED,
        "the key of the definition again": _FIXED,
        "schema evolution: the first place of the table": "it works: JVM Hudi refuses it",
        "schema evolution: another type of the key": (
            "refused: JVM Hudi changes it, and texts of keys that are made later may differ"
        ),
        "schema evolution: rename a column, where columns may not be dropped": _NO_SETTING,
        "the properties of the table": "the properties are those of hoodie.properties; JVM Hudi shows the catalog's",
    },
    "sql_dml": {
        "an operation as property of the table": "refused: set the operation in the session",
        "insert overwrite of a static and a dynamic partition": (
            "refused: JVM Hudi replaces all partitions with the given value; give all values, or set the mode dynamic"
        ),
        "merge with a delete before an update without a condition": (
            "the first clause that matches takes the row: in JVM Hudi the update does"
        ),
        "merge of two rows of a key": "refused: JVM Hudi takes one of the source rows",
        "merge without the ordering column": "the row keeps its ordering value: JVM Hudi refuses the statement",
        "merge on a column that is no key": "refused: JVM Hudi ignores the condition, and merges by the key",
        "merge by the key, when the source row has another partition": (
            "the index of new tables finds keys in all partitions, so that the row moves"
        ),
        "merge that deletes and inserts, of a table without a key": (
            "the row that meets is deleted: JVM Hudi inserts its source row, unless a clause updates"
        ),
        "merge of two rows for a row, of a table without a key": "refused: JVM Hudi takes one of the source rows",
        "merge that updates all columns of a partitioned table without a key": (
            "refused if `on` does not compare the partition columns: JVM Hudi leaves the row in its partition"
        ),
        "merge that sets some columns and inserts, of a merge-on-read table without a key": (
            "other columns keep their values: in JVM Hudi they become null, if the row was not changed before"
        ),
        "a table by its path": "it works: JVM Hudi knows no hudi.`path`",
        "version as of a requested time": "it works as TIMESTAMP AS OF: JVM Hudi refuses it",
        "change data of a table without change data is refused": "the changes are computed from the files",
        "the metadata of a table": _NO_METADATA,
        "the metadata of a table, by path": _NO_METADATA,
        "the slices of the files, by path": _NO_METADATA,
    },
    "procedures": {
        "an unknown argument": "refused: JVM Hudi ignores it",
        "show_metadata_table_stats": _NO_PROCEDURE,
        "show_metadata_column_stats_overlap": _NO_PROCEDURE,
        "repair_add_partition_meta": "all partitions are looked at: in JVM Hudi folders three levels down",
        "repair_overwrite_hoodie_props": _NO_PROCEDURE,
        "repair_deduplicate": _NO_PROCEDURE,
        "show_audit_lock_status": _NO_PROCEDURE,
        "show_logfile_metadata": "blocks of log files are Parquet by default, in JVM Hudi Avro",
        "show_logfile_metadata of a delete block": "delete blocks are listed: JVM Hudi fails",
        "delete_metadata_table": _NO_PROCEDURE,
    },
    "procedure_services": {
        "run_clustering: schedule, sorted, and the partitions shown": "the plan is returned: JVM Hudi returns no row",
        "run_clustering of single files, without an order": (
            "one file alone is rewritten only to sort it: JVM Hudi writes it again as it is"
        ),
        "run_ttl": "no partition is expired, so that there is no row: JVM Hudi fails",
    },
    "reading": {
        "copy-on-write: incremental from earliest": "all changes: JVM Hudi returns no row",
        "merge-on-read: incremental from earliest": "all changes: JVM Hudi returns no row",
        "merge-on-read: query type read_optimized": (
            "inserts of tables with a record index can go to log files, which this query leaves out"
        ),
        "a schema of the caller's": "columns can be chosen by the schema: JVM Hudi fails without the partition column",
    },
    "concurrency": {
        "optimistic concurrency control without a lock provider": (
            "it works, with the file-system lock: JVM Hudi fails with a NullPointerException"
        ),
        "the file-system lock in a folder of its own": "refused: the lock file is in the folder of the table",
        "non-blocking: a merge-on-read table without a bucket index": "it works with the record index too",
    },
    "streaming": {
        "another checkpoint, under the identifier of the first query": (
            "refused: JVM Hudi leaves out batches of the new query whose numbers the first query used, and loses rows"
        ),
        "change data of a table without it": "the changes are computed from the files: JVM Hudi returns rows",
    },
    "compaction": {"an unknown trigger is refused": _BEFORE, "an unknown strategy is refused": _BEFORE},
    "clustering": {
        "one file alone, without sort columns": "it stays: JVM Hudi copies it",
        "an unknown plan strategy is refused": _BEFORE,
        "an unknown layout is refused": _BEFORE,
        "a sort column that the table lacks": (
            "the write succeeds, and a warning names the column: JVM Hudi commits the rows, and then fails"
        ),
    },
    "cleaning": {"an unknown trigger strategy is refused": _BEFORE},
    "indexes": {
        "GLOBAL_SIMPLE with hoodie.simple.index.update.partition.path off: a row stays": _STAYS,
        "GLOBAL_BLOOM with hoodie.bloom.index.update.partition.path off": _STAYS,
        "RECORD_INDEX": _STAYS,
        "GLOBAL_RECORD_LEVEL_INDEX": _STAYS,
        "another number of buckets": "refused: JVM Hudi writes the keys a second time",
        "BUCKET with consistent hashing, merge-on-read": (
            "refused: tables with consistent hashing can be read only; use hoodie.index.bucket.engine=SIMPLE"
        ),
        "INMEMORY": "refused: an index in memory finds no keys of other processes; omit it, or use SIMPLE",
        "an unknown index is refused": "no table is left behind: JVM Hudi leaves an empty table",
        "hoodie.metadata.record.index.enable without an index type": (
            "the record index finds keys in all partitions, so that a row moves: JVM Hudi writes by the simple index"
        ),
        "CREATE INDEX IF NOT EXISTS": "nothing to do: JVM Hudi fails",
        "CREATE INDEX of a column: a secondary index": _NO_INDEX,
        "CREATE INDEX USING column_stats with an expression": _NO_INDEX,
        "CREATE INDEX USING bloom_filters with an expression": _NO_INDEX,
        "DROP INDEX of a secondary index and of expression indexes": _NO_INDEX,
    },
}
PROPERTIES: Final[Mapping[str, str]] = {
    "hoodie.index.type": "the index of new tables is the record index; an index is stored with its options",
    "hoodie.metadata.record.index.enable": "",
    "hoodie.metadata.global.record.level.index.enable": "",
    "hoodie.metadata.record.level.index.enable": "",
    "hoodie.record.index.update.partition.path": "",
    "hoodie.simple.index.update.partition.path": "",
    "hoodie.bloom.index.update.partition.path": "",
    "hoodie.index.bucket.engine": "",
    "hoodie.bucket.index.num.buckets": "",
    "hoodie.bucket.index.hash.field": "",
    "hoodie.datasource.write.recordkey.field": "",
    "hoodie.table.metadata.partitions": "statistics are built on demand, the record index by default",
    "hoodie.table.metadata.partitions.inflight": "",
    "hoodie.table.index.defs.path": "",
    "hoodie.table.timeline.timezone": "the times of new tables are in UTC",
    "hoodie.table.partition_extractor_class": "a property of Hive synchronisation",
    "hoodie.archivelog.folder": "JVM Hudi's SQL stores a folder that version 9 does not use",
    "hoodie.populate.meta.fields": "defaults are stored: JVM Hudi's SQL leaves them out",
    "hoodie.table.base.file.format": "",
    "hoodie.table.cdc.enabled": "",
    "hoodie.table.cdc.supplemental.logging.mode": "",
    "hoodie.partition.metafile.use.base.format": "",
    "hoodie.table.multiple.base.file.formats.enable": "",
    "hoodie.table.partition.fields": "an empty list is stored, or is not",
    "hoodie.table.create.schema": "JVM Hudi stores it at the first commit",
}
"""Properties that differ by intent, and why; an empty text: as the one before."""
_IF_SET: Final = ("hoodie.table.partition.fields",)
"""Properties that are compared if they have a value."""


def comparable(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of the outcome of a step is compared: whether it failed, rows, schemas, and properties."""
    table = dict(outcome["table"])
    stored = table.get("properties", {})
    table["properties"] = {
        key: text for key, text in stored.items() if key not in PROPERTIES or (key in _IF_SET and text)
    }
    parts = {"table": table, "result": dict(outcome.get("result", {}))}
    for part in parts.values():
        part["rows"] = sorted((_row(row) for row in part.get("rows", [])), key=repr)
    return {"fails": "error" in outcome, **parts}


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _image(value) if name in ("before", "after") else _without_times(value) for name, value in row.items()
    }


def _without_times(value: Any) -> Any:
    """Automatic keys have the time of the commit, and numbers of tasks."""
    return re.sub(r"\d{17}(_\d+_\d+)?", "time", value) if isinstance(value, str) else value


def _image(text: str | None) -> Any:
    """JVM Hudi writes the images of change data with or without the meta columns, depending on its log."""
    values = json.loads(text or "null")
    return values and {name: value for name, value in values.items() if not name.startswith("_hoodie_")}
