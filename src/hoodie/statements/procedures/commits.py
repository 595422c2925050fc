"""Procedures that list the writes of a table, of the active timeline and of the archive, with their counts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from hoodie.errors import InstantNotFoundError
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.statements.procedures.procedure import Call, Row, optional, procedure, required
from hoodie.timeline import Action, Instant, instant_time_of_ms
from hoodie.view.table_view import TableView

Commits = Iterator[tuple[Instant, CommitMetadata]]
_TOTALS: Final = (
    "total_bytes_written long, total_files_added long, total_files_updated long, total_partitions_written long, "
    "total_records_written long, total_update_records_written long, total_errors long"
)
_COMMIT: Final = "commit_time string, state_transition_time string"
_METADATA: Final = (
    f"{_COMMIT}, action string, partition string, file_id string, previous_commit string, num_writes long, "
    "num_inserts long, num_deletes long, num_update_writes long, total_errors long, total_log_blocks long, "
    "total_corrupt_log_blocks long, total_rollback_blocks long, total_log_records long, "
    "total_updated_records_compacted long, total_bytes_written long"
)
_LIMITED: Final = (required("table"), optional("limit", 10))
_OF_INSTANT: Final = (*_LIMITED, required("instant_time"))
_ARCHIVED: Final = (*_LIMITED, optional("start_ts", ""), optional("end_ts", ""))
_DAY_MS: Final = 24 * 3600 * 1000
_TOTAL: Final = "Total"


def newest_commits(view: TableView, wanted: str | None = None) -> Commits:
    """Yield the completed writes of the active timeline with their metadata, newest first; only `wanted` if given."""
    for instant in reversed(view.timeline.instants):
        if instant.is_completed and instant.action.writes_data and wanted in (None, instant.requested_time):
            yield instant, view.commit_metadata(instant)


def _archived_commits(call: Call) -> Commits:
    """Yield archived writes, newest first; without bounds those of ten days, without the last day, as in Hudi."""
    view = call.table.view()
    now_ms = time.time_ns() // 1_000_000
    start = call["start_ts"] or instant_time_of_ms(now_ms - 10 * _DAY_MS, view.layout.zone)
    end = call["end_ts"] or instant_time_of_ms(now_ms - _DAY_MS, view.layout.zone)
    wanted = [found for found in view.archived_writes() if start <= found.requested_time <= end]
    yield from sorted(view.archived_commits(wanted), key=lambda found: found[0].requested_time, reverse=True)


def _commit_of(call: Call) -> tuple[Instant, CommitMetadata]:
    """Return the completed write of `instant_time`. Raises: InstantNotFoundError."""
    view, wanted = call.table.view(), call["instant_time"]
    instant = view.timeline.writes().completed().get(wanted)
    if instant is None:
        known = [found.requested_time for found in view.timeline.writes().completed()]
        raise InstantNotFoundError(f"CALL: no completed write {wanted}; the active timeline has {', '.join(known)}")
    return instant, view.commit_metadata(instant)


def _of(instant: Instant) -> dict[str, Any]:
    return {
        "commit_time": instant.requested_time,
        "state_transition_time": instant.completion_time,
        "action": instant.action.value,
    }


def totals_of(written: Iterable[WriteStat]) -> dict[str, int]:
    """Return the sums of write statistics, by the names of `show_commits`."""
    stats = list(written)
    return {
        "total_bytes_written": sum(stat.total_write_bytes for stat in stats),
        "total_files_added": sum(stat.is_new_file_group for stat in stats),
        "total_files_updated": sum(not stat.is_new_file_group for stat in stats),
        "total_partitions_written": len({stat.partition_path for stat in stats}),
        "total_records_written": sum(stat.num_writes for stat in stats),
        "total_update_records_written": sum(stat.num_update_writes for stat in stats),
        "total_errors": sum(stat.total_write_errors for stat in stats),
    }


def _with_totals(found: Commits) -> Iterator[Row]:
    return ({**_of(instant), **totals_of(commit.write_stats())} for instant, commit in found)


def _with_stats(found: Commits) -> Iterator[Row]:
    return ({**_of(instant), **_numbers(stat)} for instant, commit in found for stat in commit.write_stats())


def _numbers(stat: WriteStat) -> Row:
    return {
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


@procedure(parameters=_LIMITED, columns=f"{_COMMIT}, action string, {_TOTALS}")
def show_commits(call: Call) -> Iterable[Row]:
    """List the newest completed writes with their counts."""
    return call.limited(_with_totals(newest_commits(call.table.view())))


@procedure(parameters=_LIMITED, columns=_METADATA)
def show_commits_metadata(call: Call) -> Iterable[Row]:
    """List the files that the newest completed writes wrote."""
    return call.limited(_with_stats(newest_commits(call.table.view())))


@procedure(parameters=_ARCHIVED, columns=f"{_COMMIT}, {_TOTALS}")
def show_archived_commits(call: Call) -> Iterable[Row]:
    """List the newest archived writes with their counts, by default those of ten days without the last one."""
    return call.limited(_with_totals(_archived_commits(call)))


@procedure(parameters=_ARCHIVED, columns=_METADATA)
def show_archived_commits_metadata(call: Call) -> Iterable[Row]:
    """List the files that the newest archived writes wrote."""
    return call.limited(_with_stats(_archived_commits(call)))


@procedure(
    parameters=_OF_INSTANT,
    columns="action string, partition_path string, file_id string, previous_commit string, total_records_updated long, "
    "total_records_written long, total_bytes_written long, total_errors long, file_size long",
)
def show_commit_files(call: Call) -> Iterable[Row]:
    """List the files that a completed write wrote."""
    instant, commit = _commit_of(call)
    return call.limited(
        {
            **_numbers(stat),
            "action": instant.action.value,
            "partition_path": stat.partition_path,
            "total_records_updated": stat.num_update_writes,
            "total_records_written": stat.num_writes,
            "file_size": stat.file_size_bytes,
        }
        for stat in commit.write_stats()
    )


@procedure(
    parameters=_OF_INSTANT,
    columns="action string, partition_path string, total_files_added long, total_files_updated long, "
    "total_records_inserted long, total_records_updated long, total_bytes_written long, total_errors long",
)
def show_commit_partitions(call: Call) -> Iterable[Row]:
    """List the partitions that a completed write changed, with their counts."""
    instant, commit = _commit_of(call)
    return call.limited(
        {
            **totals_of(stats),
            "action": instant.action.value,
            "partition_path": path,
            "total_records_inserted": sum(stat.num_inserts for stat in stats),
            "total_records_updated": sum(stat.num_update_writes for stat in stats),
        }
        for path, stats in commit.partition_to_write_stats.items()
    )


@procedure(
    parameters=_OF_INSTANT,
    columns="action string, total_bytes_written long, total_records_written long, avg_record_size long",
)
def show_commit_write_stats(call: Call) -> Iterable[Row]:
    """Count the records and bytes that a completed write wrote."""
    instant, commit = _commit_of(call)
    totals = totals_of(commit.write_stats())
    size_bytes, records = totals["total_bytes_written"], totals["total_records_written"]
    average = -(-size_bytes // records) if records else None
    return call.limited([{**totals, "action": instant.action.value, "avg_record_size": average}])


@procedure(
    parameters=(required("table"), optional("limit", 100), optional("instant_time"), optional("metadata_key")),
    columns="instant_time string, action string, metadata_key string, metadata_value string",
)
def show_commit_extra_metadata(call: Call) -> Iterable[Row]:
    """List the extra metadata of a completed write, by default of the newest."""
    key, wanted = call["metadata_key"], call["instant_time"] or None
    return call.limited(
        {
            "instant_time": instant.requested_time,
            "action": instant.action.value,
            "metadata_key": name,
            "metadata_value": value,
        }
        for instant, commit in islice(newest_commits(call.table.view(), wanted), 1)
        for name, value in commit.extra_metadata.items()
        if key in (None, name)
    )


@procedure(
    parameters=_LIMITED,
    columns="commit_time string, total_upserted long, total_written long, write_amplification_factor string",
)
def stats_wa(call: Call) -> Iterable[Row]:
    """Return for each commit how many records it wrote for each record that it updated.

    The oldest commit is first, the sum of all is last; deltacommits are left out.
    """
    rows = []
    for instant, commit in reversed(list(newest_commits(call.table.view()))):
        if instant.action is not Action.DELTA_COMMIT:
            totals = totals_of(commit.write_stats())
            updated, written = totals["total_update_records_written"], totals["total_records_written"]
            rows.append(_amplification(instant.requested_time, updated, written))
    everything = (sum(row[name] for row in rows) for name in ("total_upserted", "total_written"))
    return call.limited([*rows, _amplification(_TOTAL, *everything)])


def _amplification(commit_time: str, updated: int, written: int) -> Row:
    # As DecimalFormat("#.00") writes it: without the zero before the point.
    factor = f"{written / updated:.2f}".removeprefix("0") if updated else "0"
    return {
        "commit_time": commit_time,
        "total_upserted": updated,
        "total_written": written,
        "write_amplification_factor": factor,
    }


@procedure(parameters=(required("table"), required("path")), columns="compare_detail string")
def commits_compare(call: Call) -> Iterable[Row]:
    """Count the commits by which a table is behind or ahead of the table at a path."""
    source, target = call.names.named(call["table"]).view(), call.names.at(call["path"]).view()
    ours, theirs = ([found.requested_time for found in view.timeline.writes().completed()] for view in (source, target))
    behind = [time for time in theirs if not ours or time > ours[-1]]
    ahead = [time for time in ours if not theirs or time > theirs[-1]]
    word, missing = ("behind", behind) if behind else ("ahead", ahead)
    text = f"Source {source.config.name} is {word} by {len(missing)} commits. "
    return [{"compare_detail": f"{text}Commits to catch up - [{', '.join(missing)}]"}]
