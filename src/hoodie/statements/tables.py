"""Procedures that tell what the instants of a table did, and describe its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.statements.procedure import TABLE_OR_PATH, Call, Procedure, optional, required, unsupported
from hoodie.timeline import Instant
from hoodie.view.table_view import TableView

_TEXT, _COUNT = pa.string(), pa.int64()
_COMMIT: Final = [("commit_time", _TEXT), ("state_transition_time", _TEXT), ("action", _TEXT)]
COMMITS_SCHEMA: Final = pa.schema(
    [
        *_COMMIT,
        ("total_bytes_written", _COUNT),
        ("total_files_added", _COUNT),
        ("total_files_updated", _COUNT),
        ("total_partitions_written", _COUNT),
        ("total_records_written", _COUNT),
        ("total_update_records_written", _COUNT),
        ("total_errors", _COUNT),
    ]
)
METADATA_SCHEMA: Final = pa.schema(
    [
        *_COMMIT,
        ("partition", _TEXT),
        ("file_id", _TEXT),
        ("previous_commit", _TEXT),
        ("num_writes", _COUNT),
        ("num_inserts", _COUNT),
        ("num_deletes", _COUNT),
        ("num_update_writes", _COUNT),
        ("total_errors", _COUNT),
        ("total_log_blocks", _COUNT),
        ("total_corrupt_log_blocks", _COUNT),
        ("total_rollback_blocks", _COUNT),
        ("total_log_records", _COUNT),
        ("total_updated_records_compacted", _COUNT),
        ("total_bytes_written", _COUNT),
    ]
)
TIMELINE_SCHEMA: Final = pa.schema(
    [("instant_time", _TEXT), ("action", _TEXT), ("state", _TEXT), ("completed_time", _TEXT), ("timeline_type", _TEXT)]
)
EXTRA_SCHEMA: Final = pa.schema(
    [("instant_time", _TEXT), ("action", _TEXT), ("metadata_key", _TEXT), ("metadata_value", _TEXT)]
)
PROPERTIES_SCHEMA: Final = pa.schema([("key", _TEXT), ("value", _TEXT)])
SIZES_SCHEMA: Final = pa.schema(
    [
        ("commit_time", pa.string()),
        ("min", pa.int64()),
        ("10th", pa.float64()),
        ("50th", pa.float64()),
        ("avg", pa.float64()),
        ("95th", pa.float64()),
        ("max", pa.int64()),
        ("num_files", pa.int32()),
        ("std_dev", pa.float64()),
    ]
)
_ALL: Final = "ALL"


def _newest_commits(view: TableView) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Yield the completed writes of the active timeline with their metadata, newest first."""
    for instant in reversed(view.timeline.instants):
        if instant.is_completed and instant.action.writes_data:
            yield instant, view.commit_metadata(instant)


def _first(rows: Iterator[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    return [row for row, _ in zip(rows, range(limit), strict=False)]


def _of(instant: Instant) -> dict[str, Any]:
    return {
        "commit_time": instant.requested_time,
        "state_transition_time": instant.completion_time,
        "action": instant.action.value,
    }


def _show_commits(call: Call) -> pa.Table:
    rows = (_commit_row(*found) for found in _newest_commits(call.table.view()))
    return pa.Table.from_pylist(_first(rows, call["limit"]), schema=COMMITS_SCHEMA)


def _commit_row(instant: Instant, commit: CommitMetadata) -> dict[str, Any]:
    return {**_of(instant), **totals_of(commit)}


def totals_of(commit: CommitMetadata) -> dict[str, int]:
    """Return the counts of a completed write by the names of `show_commits`."""
    stats = list(commit.write_stats())
    return {
        "total_bytes_written": sum(stat.total_write_bytes for stat in stats),
        "total_files_added": sum(stat.is_new_file_group for stat in stats),
        "total_files_updated": sum(not stat.is_new_file_group for stat in stats),
        "total_partitions_written": len({stat.partition_path for stat in stats}),
        "total_records_written": sum(stat.num_writes for stat in stats),
        "total_update_records_written": sum(stat.num_update_writes for stat in stats),
        "total_errors": sum(stat.total_write_errors for stat in stats),
    }


def _show_commits_metadata(call: Call) -> pa.Table:
    rows = (
        {
            **_of(instant),
            "partition": stat.partition_path,
            "file_id": stat.file_id,
            "previous_commit": stat.prev_commit,
            "num_writes": stat.num_writes,
            "num_inserts": stat.num_inserts,
            "num_deletes": stat.num_deletes,
            "num_update_writes": stat.num_update_writes,
            "total_errors": stat.total_write_errors,
            "total_log_blocks": stat.total_log_blocks,
            "total_corrupt_log_blocks": stat.total_corrupt_log_blocks,
            "total_rollback_blocks": stat.total_rollback_blocks,
            "total_log_records": stat.total_log_records,
            "total_updated_records_compacted": stat.total_updated_records_compacted,
            "total_bytes_written": stat.total_write_bytes,
        }
        for instant, commit in _newest_commits(call.table.view())
        for stat in commit.write_stats()
    )
    return pa.Table.from_pylist(_first(rows, call["limit"]), schema=METADATA_SCHEMA)


def _show_timeline(call: Call) -> pa.Table:
    view = call.table.view()
    begin, end = call["startTime"], call["endTime"]
    active = [(found, "ACTIVE") for found in reversed(view.timeline.instants)]
    if call["showArchived"]:
        known = {(found.requested_time, found.action) for found, _ in active}
        archived = sorted(view.archive().completed(), key=lambda found: found.requested_time, reverse=True)
        active += [(found, "ARCHIVED") for found in archived if (found.requested_time, found.action) not in known]
    rows = (
        {
            "instant_time": instant.requested_time,
            "action": instant.action.value,
            "state": instant.state.name,
            "completed_time": instant.completion_time,
            "timeline_type": kind,
        }
        for instant, kind in active
        if (not begin or instant.requested_time >= begin) and (not end or instant.requested_time <= end)
    )
    return pa.Table.from_pylist(_first(rows, call["limit"]), schema=TIMELINE_SCHEMA)


def _show_extra_metadata(call: Call) -> pa.Table:
    view, key = call.table.view(), call["metadata_key"]
    wanted = call["instant_time"] or next((found.requested_time for found, _ in _newest_commits(view)), None)
    rows = (
        {
            "instant_time": instant.requested_time,
            "action": instant.action.value,
            "metadata_key": name,
            "metadata_value": value,
        }
        for instant, commit in _newest_commits(view)
        if instant.requested_time == wanted
        for name, value in commit.extra_metadata.items()
        if key in (None, name)
    )
    return pa.Table.from_pylist(_first(rows, call["limit"]), schema=EXTRA_SCHEMA)


def _show_properties(call: Call) -> pa.Table:
    raw = call.table.view().config.raw
    rows = ({"key": name, "value": raw[name]} for name in sorted(raw))
    return pa.Table.from_pylist(_first(rows, call["limit"]), schema=PROPERTIES_SCHEMA)


def _stats_file_sizes(call: Call) -> pa.Table:
    """Return the distribution of the sizes of the data files by the instant in their names, and of all of them."""
    files = call.table.inspect.files()
    wanted = call["partition_path"]
    by_instant: dict[str, list[int]] = {}
    columns = (files[name].to_pylist() for name in ("partition_path", "instant", "size_bytes"))
    for partition_path, instant, size_bytes in zip(*columns, strict=True):
        if not wanted or fnmatchcase(partition_path, wanted):
            by_instant.setdefault(instant, []).append(size_bytes)
    rows = [_sizes(instant, found) for instant, found in sorted(by_instant.items(), reverse=True)[: call["limit"]]]
    everything = [size for found in by_instant.values() for size in found]
    return pa.Table.from_pylist([*rows, _sizes(_ALL, everything)], schema=SIZES_SCHEMA)


def _sizes(instant: str, found: list[int]) -> Mapping[str, Any]:
    if not found:
        return {"commit_time": instant, "num_files": 0}
    sizes = np.asarray(found, np.int64)
    # The JVM's histogram places a quantile q at q * (n + 1).
    tenth, half, most = np.quantile(sizes, [0.1, 0.5, 0.95], method="weibull")
    return {
        "commit_time": instant,
        "min": int(sizes.min()),
        "10th": float(tenth),
        "50th": float(half),
        "avg": float(sizes.mean()),
        "95th": float(most),
        "max": int(sizes.max()),
        "num_files": len(found),
        "std_dev": float(sizes.std(ddof=1)) if len(found) > 1 else 0.0,
    }


TABLES: Final = (
    Procedure(
        name="show_commits",
        about="List the newest completed writes with their counts.",
        parameters=(required("table"), optional("limit", 10)),
        run=_show_commits,
    ),
    Procedure(
        name="show_commits_metadata",
        about="List the files that the newest completed writes wrote.",
        parameters=(required("table"), optional("limit", 10)),
        run=_show_commits_metadata,
    ),
    Procedure(
        name="show_timeline",
        about="List the newest instants in their states.",
        parameters=(
            *TABLE_OR_PATH,
            optional("limit", 20),
            optional("showArchived", False),
            unsupported("filter", default=""),
            optional("startTime", ""),
            optional("endTime", ""),
        ),
        run=_show_timeline,
    ),
    Procedure(
        name="show_commit_extra_metadata",
        about="List the extra metadata of a completed write, by default of the newest.",
        parameters=(
            required("table"),
            optional("limit", 100),
            optional("instant_time"),
            optional("metadata_key"),
        ),
        run=_show_extra_metadata,
    ),
    Procedure(
        name="show_table_properties",
        about="List the properties of the table.",
        parameters=(*TABLE_OR_PATH, optional("limit", 10), unsupported("filter", default="")),
        run=_show_properties,
    ),
    Procedure(
        name="stats_file_sizes",
        about="Tell how large the data files of each instant are, and all of them; partition_path may have wildcards.",
        parameters=(required("table"), optional("partition_path", ""), optional("limit", 10)),
        run=_stats_file_sizes,
    ),
)
