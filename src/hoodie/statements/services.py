"""Procedures that run table services, keep a commit, or take the table back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import pyarrow as pa

from hoodie.config import retention
from hoodie.errors import InstantNotFoundError, InvalidConfigError
from hoodie.statements.procedure import TABLE_OR_PATH, Call, Procedure, optional, required, unsupported
from hoodie.timeline import Action

_OPTIONS: Final = optional("options")
_RUN, _SCHEDULE, _EXECUTE = ("run", "scheduleandexecute"), ("schedule",), ("execute",)
_PLANS: Final = pa.schema([("timestamp", pa.string()), ("operation_size", pa.int32()), ("state", pa.string())])
_CLUSTERINGS: Final = pa.schema(
    [
        ("timestamp", pa.string()),
        ("input_group_size", pa.int32()),
        ("state", pa.string()),
        ("involved_partitions", pa.string()),
    ]
)
_CLEANS: Final = pa.schema(
    [
        ("start_clean_time", pa.string()),
        ("time_taken_in_millis", pa.int64()),
        ("total_files_deleted", pa.int32()),
        ("earliest_commit_to_retain", pa.string()),
    ]
)
_SAVEPOINTS: Final = pa.schema([("savepoint_time", pa.string())])


def _done(column: str) -> pa.Table:
    """Return the row of a procedure that worked; one that does not work raises an error."""
    return pa.table({column: pa.array([True])})


def _names(text: str | None) -> list[str]:
    """Split names at the commas between them."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _chosen(call: Call, pending: Iterable[str], schedule: Callable[[], str | None]) -> tuple[list[str], bool]:
    """Return the plans of a call, and whether they are executed; a new plan is made if `op` says so.

    As in Hudi, `run` executes the new plan; if there is nothing new to do, the pending ones.
    Raises: InvalidConfigError; InstantNotFoundError for instants that are not pending.
    """
    waiting = sorted(pending)
    named = _names(call["instants"] or call.values.get("timestamp"))
    op = (call["op"] or "run").lower()
    if op not in (*_RUN, *_SCHEDULE, *_EXECUTE):
        raise InvalidConfigError(f"CALL: op => {call['op']!r}: expected run, schedule, execute or scheduleAndExecute")
    if named:
        lost = sorted(set(named) - set(waiting))
        if lost:
            raise InstantNotFoundError(f"CALL: {lost} are not pending; pending are {waiting}")
        return named, True
    if op in _EXECUTE:
        return waiting[: call.values.get("limit")], True
    made = schedule()
    if op in _SCHEDULE:
        return [] if made is None else [made], False
    return waiting[: call.values.get("limit")] if made is None else [made], True


def _run_compaction(call: Call) -> pa.Table:
    table, options = call.table, call.options()
    known = [found.instant for found in table.pending_compactions() if found.action == Action.COMPACTION]
    chosen, executes = _chosen(call, known, lambda: table.schedule_compaction(properties=options))
    sizes = {found.instant: found.file_slices for found in table.pending_compactions()}
    for instant in chosen if executes else ():
        table.compact(instant, properties=options)
    rows = [_plan(instant, sizes.get(instant), executes) for instant in sorted(chosen, reverse=True)]
    return pa.Table.from_pylist(rows, schema=_PLANS)


def _plan(instant: str, size: int | None, is_done: bool) -> dict[str, Any]:
    return {"timestamp": instant, "operation_size": size, "state": "COMPLETED" if is_done else "REQUESTED"}


def _show_compaction(call: Call) -> pa.Table:
    found = sorted(call.table.pending_compactions(), key=lambda plan: plan.instant, reverse=True)[: call["limit"]]
    rows = [{"timestamp": p.instant, "operation_size": p.file_slices, "state": _state(p.state)} for p in found]
    return pa.Table.from_pylist(rows, schema=_PLANS)


def _state(state: str) -> str:
    return "REQUESTED" if state == "waiting" else "INFLIGHT"


def _run_clustering(call: Call) -> pa.Table:
    table, options = call.table, call.options()
    by = _names(call["order"]) or None
    layout = (call["order_strategy"] or "").replace("-", "") or None
    parts = _names(call["selected_partitions"]) or None
    chosen, executes = _chosen(
        call,
        [found.instant for found in table.pending_clusterings()],
        lambda: table.schedule_clustering(by, layout=layout, partitions=parts, properties=options),
    )
    groups = {found.instant: found.groups for found in table.pending_clusterings()}
    for instant in chosen if executes else ():
        table.cluster(instant=instant, properties=options)
    rows = [
        {**_plan(instant, None, executes), "input_group_size": groups.get(instant), "involved_partitions": "*"}
        for instant in sorted(chosen, reverse=True)
    ]
    return pa.Table.from_pylist([{name: row[name] for name in _CLUSTERINGS.names} for row in rows], schema=_CLUSTERINGS)


def _show_clustering(call: Call) -> pa.Table:
    found = sorted(call.table.pending_clusterings(), key=lambda plan: plan.instant, reverse=True)[: call["limit"]]
    rows = [
        {
            "timestamp": plan.instant,
            "input_group_size": plan.groups,
            "state": _state(plan.state),
            "involved_partitions": "*",
        }
        for plan in found
    ]
    return pa.Table.from_pylist(rows, schema=_CLUSTERINGS)


def _run_clean(call: Call) -> pa.Table:
    options = call.options(
        clean_policy=retention.CLEAN_POLICY.key,
        retain_commits=retention.CLEAN_COMMITS_RETAINED.key,
        hours_retained=retention.CLEAN_HOURS_RETAINED.key,
        file_versions_retained=retention.CLEAN_VERSIONS_RETAINED.key,
        trigger_max_commits=retention.CLEAN_TRIGGER_COMMITS.key,
    )
    result = call.table.clean(properties=options)
    if result.instant is None:
        return _CLEANS.empty_table()
    row = {
        "start_clean_time": result.instant,
        "time_taken_in_millis": round(1000 * result.seconds.get("total", 0)),
        "total_files_deleted": result.counts.get("files_deleted", 0),
        "earliest_commit_to_retain": result.oldest_readable,
    }
    return pa.Table.from_pylist([row], schema=_CLEANS)


def _run_ttl(call: Call) -> pa.Table:
    options = call.options(ttl_policy=retention.TTL_STRATEGY.key, retain_days=retention.TTL_DAYS.key)
    result = call.table.expire_partitions(properties=options)
    return pa.table({"deleted_partitions": pa.array(sorted(result.partitions), pa.string())})


def _archive_commits(call: Call) -> pa.Table:
    options = call.options(
        min_commits=retention.KEEP_COMMITS_MIN.key,
        max_commits=retention.KEEP_COMMITS_MAX.key,
        retain_commits=retention.CLEAN_COMMITS_RETAINED.key,
    )
    call.table.archive(properties=options)
    return pa.table({"result": pa.array([0], pa.int32())})


def _drop_partition(call: Call) -> pa.Table:
    call.table.delete_partitions(_names(call["partition"]), properties=call.options())
    return _done("result")


def _create_savepoint(call: Call) -> pa.Table:
    call.table.savepoint(call["commit_time"] or None, user=call["user"], comment=call["comments"])
    return _done("create_savepoint_result")


def _delete_savepoint(call: Call) -> pa.Table:
    table = call.table
    table.delete_savepoint(call["instant_time"] or _newest([found.instant for found in table.savepoints()]))
    return _done("delete_savepoint_result")


def _rollback_to_savepoint(call: Call) -> pa.Table:
    table = call.table
    known = [found.instant for found in table.savepoints()]
    wanted = call["instant_time"] or _newest(known)
    if wanted not in known:
        raise InstantNotFoundError(f"CALL rollback_to_savepoint: no savepoint {wanted}; there are {known}")
    table.restore(wanted, properties=call.options())
    return _done("rollback_savepoint_result")


def _newest(savepoints: list[str]) -> str:
    if not savepoints:
        raise InstantNotFoundError("CALL: the table has no savepoint; create_savepoint makes one")
    return savepoints[-1]


def _rollback_to_instant(call: Call) -> pa.Table:
    call.table.rollback(call["instant_time"], properties=call.options())
    return _done("rollback_result")


def _show_savepoints(call: Call) -> pa.Table:
    saved = [{"savepoint_time": found.instant} for found in reversed(call.table.savepoints())]
    return pa.Table.from_pylist(saved, schema=_SAVEPOINTS)


SERVICES: Final = (
    Procedure(
        name="run_compaction",
        about="Plan a compaction and execute it; op: run, schedule, execute or scheduleAndExecute.",
        parameters=(
            required("op"),
            *TABLE_OR_PATH,
            optional("timestamp"),
            _OPTIONS,
            optional("instants"),
            optional("limit", kind=int),
        ),
        run=_run_compaction,
    ),
    Procedure(
        name="show_compaction",
        about="List the pending compactions, newest first.",
        parameters=(*TABLE_OR_PATH, optional("limit", 20)),
        run=_show_compaction,
    ),
    Procedure(
        name="run_clustering",
        about="Plan a clustering and execute it, sorted by the columns of order; op as for run_compaction.",
        parameters=(
            *TABLE_OR_PATH,
            unsupported("predicate"),
            optional("order"),
            unsupported("show_involved_partition", bool, False),
            optional("op"),
            optional("order_strategy"),
            _OPTIONS,
            optional("instants"),
            optional("selected_partitions"),
            unsupported("partition_regex_pattern"),
            optional("limit", kind=int),
        ),
        run=_run_clustering,
    ),
    Procedure(
        name="show_clustering",
        about="List the pending clusterings, newest first.",
        parameters=(*TABLE_OR_PATH, optional("limit", 20), unsupported("show_involved_partition", bool, False)),
        run=_show_clustering,
    ),
    Procedure(
        name="run_clean",
        about="Delete the files that no retained snapshot needs.",
        parameters=(
            required("table"),
            unsupported("schedule_in_line", bool, True),
            optional("clean_policy"),
            optional("retain_commits", kind=int),
            optional("hours_retained", kind=int),
            optional("file_versions_retained", kind=int),
            unsupported("trigger_strategy"),
            optional("trigger_max_commits", kind=int),
            _OPTIONS,
        ),
        run=_run_clean,
    ),
    Procedure(
        name="run_ttl",
        about="Delete the partitions whose time to live is over.",
        parameters=(required("table"), optional("ttl_policy"), optional("retain_days", kind=int), _OPTIONS),
        run=_run_ttl,
    ),
    Procedure(
        name="archive_commits",
        about="Move the oldest instants of the timeline to its archive.",
        parameters=(
            *TABLE_OR_PATH,
            optional("min_commits", 20),
            optional("max_commits", 30),
            optional("retain_commits", 10),
            unsupported("enable_metadata", bool, False),
        ),
        run=_archive_commits,
    ),
    Procedure(
        name="drop_partition",
        about="Delete partitions, named by their paths with commas between them.",
        parameters=(required("table"), required("partition")),
        run=_drop_partition,
    ),
    Procedure(
        name="create_savepoint",
        about="Keep the files of a commit, the newest by default.",
        parameters=(
            optional("table"),
            optional("commit_time", ""),
            optional("user", ""),
            optional("comments", ""),
            optional("path"),
        ),
        run=_create_savepoint,
    ),
    Procedure(
        name="delete_savepoint",
        about="Delete a savepoint, the newest by default; a clean may then delete its files.",
        parameters=(optional("table"), optional("instant_time", ""), optional("path")),
        run=_delete_savepoint,
    ),
    Procedure(
        name="show_savepoints",
        about="List the savepoints, newest first.",
        parameters=TABLE_OR_PATH,
        run=_show_savepoints,
    ),
    Procedure(
        name="rollback_to_savepoint",
        about="Restore the table to a savepoint, the newest by default: everything after it is rolled back.",
        parameters=(optional("table"), optional("instant_time", ""), optional("path")),
        run=_rollback_to_savepoint,
    ),
    Procedure(
        name="rollback_to_instant",
        about="Roll back the newest commit, or a pending instant.",
        parameters=(required("table"), required("instant_time")),
        run=_rollback_to_instant,
    ),
)
