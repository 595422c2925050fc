"""What a table waits for: pending plans, dead and running writes, and log files that no compaction has merged.

One head of a heartbeat for each pending instant, and a read of each pending plan. Data folders are listed only if a
compaction seems due: of the partitions where its delta commits wrote log files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import pyarrow as pa

from hoodie.commit.idle import JVM_IDLE_MINUTES, JVM_IDLE_MS, idle_ms
from hoodie.commit.pending import executor_text, inflight_content
from hoodie.commit.writable import target_of_restore
from hoodie.config.compaction import COMPACT_DELTA_COMMITS
from hoodie.display import command_text, counted
from hoodie.errors import HoodieError
from hoodie.format.table.table_config import TableType
from hoodie.index.record.building.plan import build_of
from hoodie.read.history import parsed_time
from hoodie.read.inspect.parts import slice_parts
from hoodie.read.report import report_schema
from hoodie.results import Severity
from hoodie.storage import together
from hoodie.timeline import Action, Instant, State, is_live
from hoodie.timeline.heartbeat import heartbeat_path
from hoodie.timeline.owner import Owner
from hoodie.view.pending_plans import stored_clustering, stored_plan
from hoodie.view.table_view import TableView

WAITS_SCHEMA = report_schema("kind string, instant string?, state string, since time?, about string, command string")
Findings = Iterable[Mapping[str, str]]
"""What is wrong on a timeline: kind, severity, key, meaning and remedy of each finding."""
_KINDS: Final[Mapping[Action, str]] = {
    Action.COMPACTION: "compaction",
    Action.LOG_COMPACTION: "log_compaction",
    Action.CLUSTERING: "clustering",
    Action.CLEAN: "clean",
    Action.ROLLBACK: "rollback",
    Action.RESTORE: "restore",
    Action.INDEXING: "indexing",
    Action.SAVEPOINT: "savepoint",
}
_BACKLOG: Final = "log backlog"
_REPAIR: Final = "hoodie repair TABLE --execute"


def waits(view: TableView, findings: Findings) -> pa.Table:
    """Return the pending instants, oldest first, then the log backlog; `findings` are those of the timeline.

    `since` is the requested time. `about` begins with `running`, `pending`, `dead` or `planned`. `command` carries
    the instant on; it is empty for an instant whose writer runs or may run, and where only JVM Hudi can act. A plan
    that cannot be read is a row whose `about` is the error.
    """
    found = {finding["key"]: finding for finding in findings}
    rows = [_row(view, instant, found.get(instant.requested_time)) for instant in view.timeline.pending()]
    return pa.Table.from_pylist([*rows, *_backlog(view)], schema=WAITS_SCHEMA)


def _row(view: TableView, instant: Instant, finding: Mapping[str, str] | None) -> dict[str, Any]:
    try:
        about, command = _about(view, instant, finding)
    except (HoodieError, OSError) as error:
        about, command = str(error), _REPAIR
    return {
        "kind": _KINDS.get(instant.action, "write"),
        "instant": instant.requested_time,
        "state": instant.state.name.lower(),
        "since": parsed_time(instant.requested_time, view.layout.zone),
        "about": about,
        "command": command_text(command, view.store.uri("")),
    }


def _about(view: TableView, instant: Instant, finding: Mapping[str, str] | None) -> tuple[str, str]:
    """Return what an instant waits for, and the command that carries it on."""
    if is_live(view.store, instant.requested_time):
        return "running: its writer has a heartbeat", ""
    if finding is not None and finding["severity"] == Severity.ERROR and instant.action is not Action.RESTORE:
        return finding["meaning"], finding["remedy"]
    if _may_run(view, instant):
        return (
            f"pending: no heartbeat; a JVM writer may still run, until {JVM_IDLE_MINUTES} minutes after its last file",
            "",
        )
    planned = _PLANNED.get(instant.action)
    if planned is not None:
        about, command = planned(view, instant)
        return (about if instant.state is State.REQUESTED else f"dead: its runner has no heartbeat; {about}"), command
    about = "its writer has no heartbeat" if finding is None else finding["meaning"]
    if instant.action is Action.CLEAN:
        return f"dead: {about}", "hoodie clean TABLE"
    if instant.action is Action.RESTORE:
        commit = target_of_restore(view, instant)
        return f"dead: {about}", f"hoodie restore TABLE {commit}" if commit else _REPAIR
    if instant.action is Action.SAVEPOINT:
        return f"dead: {about}", f"hoodie savepoint create TABLE {instant.requested_time}"
    return f"dead: {about}", _REPAIR if finding is None else finding["remedy"]


def _may_run(view: TableView, instant: Instant) -> bool:
    """Return whether a JVM may execute a write or plan: with the EAGER policy for failed writes it has no heartbeat."""
    is_write = instant.action not in _KINDS
    if not is_write and (not instant.action.is_planned or instant.state is State.REQUESTED):
        return False
    if view.store.head(heartbeat_path(instant.requested_time)) is not None:
        return False
    if Owner.parse(executor_text(inflight_content(view, instant) or b"")) is not None:
        return False
    return idle_ms(view, instant, State.REQUESTED, State.INFLIGHT) < JVM_IDLE_MS


def _of_compaction(view: TableView, instant: Instant) -> tuple[str, str]:
    plan = stored_plan(view, instant)
    groups = counted(len(plan.operations) if plan else 0, "file groups")
    return f"planned: {groups}", f"hoodie compact TABLE --instant {instant.requested_time}"


def _of_clustering(view: TableView, instant: Instant) -> tuple[str, str]:
    plan = stored_clustering(view, instant)
    groups = counted(sum(len(group.slices) for group in plan.input_groups) if plan else 0, "file groups")
    return f"planned: {groups}", f"hoodie cluster TABLE --instant {instant.requested_time}"


def _of_indexing(view: TableView, instant: Instant) -> tuple[str, str]:
    build = build_of(view, instant)
    if build is None:
        return "planned: an index build of JVM Hudi, whose indexer completes it", ""
    name = "record" if build.is_of_records else build.names[0]
    return f"planned: {', '.join(build.names)}", f"hoodie index build TABLE {name}"


_PLANNED: Final[Mapping[Action, Callable[[TableView, Instant], tuple[str, str]]]] = {
    Action.COMPACTION: _of_compaction,
    Action.LOG_COMPACTION: _of_compaction,
    Action.CLUSTERING: _of_clustering,
    Action.INDEXING: _of_indexing,
}


def _backlog(view: TableView) -> list[dict[str, Any]]:
    """Return a row if as many delta commits as make a compaction due are newer than the last compaction and its plan.

    There is none if no log file that they wrote waits. Compactions of merge-on-read tables complete as commits.
    """
    if view.config.table_type is not TableType.MERGE_ON_READ:
        return []
    is_compaction = {Action.COMMIT, Action.COMPACTION}
    last = max((found.requested_time for found in view.timeline if found.action in is_compaction), default="")
    deltas = [
        found
        for found in view.timeline.completed()
        if found.action is Action.DELTA_COMMIT and found.requested_time > last
    ]
    due = COMPACT_DELTA_COMMITS.get(view.config.raw)
    if len(deltas) < due:
        return []
    with suppress(HoodieError, OSError):  # a damaged commit is a finding; the compaction is due nevertheless
        logged = together(view.store, *(partial(_logged_partitions, view, instant) for instant in deltas))
        parts = slice_parts(view, sorted(set().union(*logged)))
        if not any(found.log_files for part in parts for found in part):
            return []
    commits = counted(len(deltas), "delta commits")
    return [
        {
            "kind": _BACKLOG,
            "instant": None,
            "state": "due",
            "since": parsed_time(deltas[0].requested_time, view.layout.zone),
            "about": f"{commits} since the last compaction; it is due after {due}",
            "command": command_text("hoodie compact TABLE", view.store.uri("")),
        }
    ]


def _logged_partitions(view: TableView, instant: Instant) -> set[str]:
    stats = view.commit_metadata(instant).partition_to_write_stats
    return {path for path, written in stats.items() if any(stat.is_log_append for stat in written)}
