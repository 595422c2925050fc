"""Procedures that clean a table, and list its cleans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from hoodie.config import retention
from hoodie.format.instants.service_metadata import CleanerPlan, CleanMetadata
from hoodie.services.cleaning.clean import has_waited
from hoodie.statements.procedures.procedure import (
    FILTER,
    OPTIONS,
    Call,
    Row,
    optional,
    procedure,
    required,
    unsupported,
)
from hoodie.statements.procedures.timeline import active_contents, archived_contents
from hoodie.timeline import Action, Instant, State, read_instant

_CLEAN: Final = "clean_time string, state_transition_time string, action string, start_clean_time string"
_SHOWN: Final = (required("table"), optional("limit", 10), optional("showArchived", False), FILTER)


@procedure(
    parameters=(
        required("table"),
        unsupported("schedule_in_line", bool, True),
        optional("clean_policy"),
        optional("retain_commits", kind=int),
        optional("hours_retained", kind=int),
        optional("file_versions_retained", kind=int),
        unsupported("trigger_strategy"),
        optional("trigger_max_commits", kind=int),
        OPTIONS,
    ),
    columns="start_clean_time string, time_taken_in_millis long, total_files_deleted integer, "
    "earliest_commit_to_retain string, bootstrap_part_metadata string, version integer",
)
def run_clean(call: Call) -> Iterable[Row]:
    """Delete the files that no retained snapshot needs."""
    options = call.options(
        clean_policy=retention.CLEAN_POLICY.key,
        retain_commits=retention.CLEAN_COMMITS_RETAINED.key,
        hours_retained=retention.CLEAN_HOURS_RETAINED.key,
        file_versions_retained=retention.CLEAN_VERSIONS_RETAINED.key,
        trigger_max_commits=retention.CLEAN_TRIGGER_COMMITS.key,
    )
    table, trigger = call.table, retention.CLEAN_TRIGGER_COMMITS
    # As in JVM Hudi, a trigger of the call counts; `Table.clean` ignores it and cleans at once.
    if trigger.key in options and not has_waited(table.view(), trigger.get(options)):
        return []
    result = table.clean(properties=options)
    if result.instant is None:
        return []
    view = table.view()
    instant = view.timeline.get(result.instant, Action.CLEAN)
    assert instant is not None, result.instant
    found = CleanMetadata.parse(read_instant(view.store, view.layout, instant), path=str(instant))
    partitions = ", ".join(found.bootstrap_partition_metadata or {})
    return [{**_numbers(found), "bootstrap_part_metadata": f"{{{partitions}}}"}]


def _numbers(found: CleanMetadata) -> dict[str, Any]:
    return {
        "start_clean_time": found.start_clean_time,
        "time_taken_in_millis": found.time_taken_in_millis,
        "total_files_deleted": found.total_files_deleted,
        "earliest_commit_to_retain": found.earliest_commit_to_retain,
        "last_completed_commit_timestamp": found.last_completed_commit_timestamp,
        "version": found.version,
    }


def _cleans(call: Call) -> Iterator[tuple[Instant, CleanMetadata]]:
    """Yield the completed cleans, newest first, archived ones too with `showArchived`."""
    view = call.table.view()
    for instant, content in active_contents(view, Action.CLEAN):
        yield instant, CleanMetadata.parse(content, path=str(instant))
    if call["showArchived"]:
        for instant, content in archived_contents(view, Action.CLEAN):
            yield instant, CleanMetadata.parse(content, path=f"{instant} in the archived timeline")


def _of(instant: Instant) -> dict[str, Any]:
    return {
        "clean_time": instant.requested_time,
        "state_transition_time": instant.completion_time,
        "action": instant.action.value,
    }


@procedure(
    parameters=_SHOWN,
    columns=f"{_CLEAN}, time_taken_in_millis long, total_files_deleted integer, earliest_commit_to_retain string, "
    "last_completed_commit_timestamp string, version integer",
)
def show_cleans(call: Call) -> Iterable[Row]:
    """List the newest completed cleans with their counts."""
    return call.limited({**_of(instant), **_numbers(found)} for instant, found in _cleans(call))


@procedure(
    parameters=_SHOWN,
    columns=f"{_CLEAN}, partition_path string, policy string, delete_path_patterns integer, "
    "success_delete_files integer, failed_delete_files integer, is_partition_deleted boolean, "
    "time_taken_in_millis long, total_files_deleted integer",
)
def show_cleans_metadata(call: Call) -> Iterable[Row]:
    """List the partitions that the newest completed cleans changed."""
    return call.limited(
        {
            **_of(instant),
            **_numbers(found),
            "partition_path": part.partition_path,
            "policy": part.policy,
            "delete_path_patterns": len(part.delete_path_patterns),
            "success_delete_files": len(part.success_delete_files),
            "failed_delete_files": len(part.failed_delete_files),
            "is_partition_deleted": part.is_partition_deleted,
        }
        for instant, found in _cleans(call)
        for part in found.partition_metadata.values()
    )


@procedure(
    parameters=(required("table"), optional("limit", 10), unsupported("showArchived", bool, False), FILTER),
    columns="plan_time string, state string, action string, earliest_instant_to_retain string, "
    "last_completed_commit_timestamp string, policy string, version integer, "
    "total_partitions_to_clean integer, total_partitions_to_delete integer, extra_metadata string",
)
def show_clean_plans(call: Call) -> Iterable[Row]:
    """List the plans of the newest cleans."""
    view = call.table.view()
    cleans = (instant for instant in reversed(view.timeline.instants) if instant.action is Action.CLEAN)
    plans = ((clean, read_instant(view.store, view.layout, clean, State.REQUESTED)) for clean in cleans)
    parsed = ((found, CleanerPlan.parse(content, path=str(found))) for found, content in plans if content)
    return call.limited(
        {
            "plan_time": found.requested_time,
            "state": found.state.name,
            "action": found.action.value,
            "earliest_instant_to_retain": plan.earliest_instant_to_retain and plan.earliest_instant_to_retain.timestamp,
            "last_completed_commit_timestamp": plan.last_completed_commit_timestamp,
            "policy": plan.policy,
            "version": plan.version,
            "total_partitions_to_clean": len(plan.file_paths_to_be_deleted_per_partition or {}),
            "total_partitions_to_delete": len(plan.partitions_to_be_deleted or ()),
            "extra_metadata": ", ".join(f"{key}={text}" for key, text in (plan.extra_metadata or {}).items()) or None,
        }
        for found, plan in parsed
    )
