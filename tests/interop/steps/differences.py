"""What may differ after a step, and why; docs/migrating.md shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

DIFFERENCES: Final[Mapping[str, Mapping[str, str]]] = {
    "quick_start": {
        "incremental query from the first commit": (
            "a row that was written back unchanged is no change: JVM Hudi returns it again"
        ),
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
    "reading": {
        "copy-on-write: incremental from earliest": "all changes: JVM Hudi returns no row",
        "merge-on-read: incremental from earliest": "all changes: JVM Hudi returns no row",
        "merge-on-read: query type read_optimized": (
            "inserts of tables with a record index can go to log files, which this query leaves out"
        ),
        "a schema of the caller's": "columns can be chosen by the schema: JVM Hudi fails without the partition column",
    },
}
PROPERTIES: Final[Mapping[str, str]] = {
    "hoodie.index.type": "the index of new tables is the record index; it is stored",
    "hoodie.metadata.record.index.enable": "",
    "hoodie.metadata.global.record.level.index.enable": "",
    "hoodie.record.index.update.partition.path": "",
    "hoodie.table.metadata.partitions": "statistics are built on demand, the record index by default",
    "hoodie.table.metadata.partitions.inflight": "",
    "hoodie.table.index.defs.path": "",
    "hoodie.table.timeline.timezone": "the times of new tables are in UTC",
    "hoodie.table.partition_extractor_class": "a property of Hive synchronisation",
    "hoodie.table.create.schema": "JVM Hudi stores it at the first commit",
}
"""Properties that differ by intent, and why; an empty text: as the one before."""


def comparable(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of the outcome of a step is compared: whether it failed, rows, schemas, and properties."""
    table = dict(outcome["table"])
    table["properties"] = {key: text for key, text in table.get("properties", {}).items() if key not in PROPERTIES}
    parts = {"table": table, "result": outcome.get("result", {})}
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
