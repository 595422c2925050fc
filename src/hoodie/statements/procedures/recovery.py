"""Procedures that keep a commit, take the table back, and list rollbacks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final

from hoodie.errors import InstantNotFoundError
from hoodie.format.instants.service_metadata import RollbackMetadata
from hoodie.services.clustering.clustering import CLUSTERING
from hoodie.services.compaction.compaction import COMPACTION
from hoodie.services.planned.pending import roll_back_plan
from hoodie.statements.procedures.procedure import (
    TABLE_OR_PATH,
    Call,
    Procedure,
    Row,
    columns,
    limited,
    optional,
    required,
)
from hoodie.statements.procedures.timeline import active_contents
from hoodie.timeline import Action, Instant, State

_PLANNED: Final = COMPACTION.actions | CLUSTERING.actions


def _create_savepoint(call: Call) -> Iterable[Row]:
    table = call.table
    known = {savepoint.instant for savepoint in table.savepoints()}
    made = table.savepoint(call["commit_time"] or None, user=call["user"], comment=call["comments"]).instant
    return [{"create_savepoint_result": made not in known}]


def _delete_savepoint(call: Call) -> Iterable[Row]:
    table = call.table
    table.delete_savepoint(call["instant_time"] or _newest([savepoint.instant for savepoint in table.savepoints()]))
    return [{"delete_savepoint_result": True}]


def _rollback_to_savepoint(call: Call) -> Iterable[Row]:
    table = call.table
    known = [savepoint.instant for savepoint in table.savepoints()]
    wanted = call["instant_time"] or _newest(known)
    if wanted not in known:
        raise InstantNotFoundError(f"CALL rollback_to_savepoint: no savepoint {wanted}; there are {known}")
    table.restore(wanted, properties=call.options())
    return [{"rollback_savepoint_result": True}]


def _newest(savepoints: list[str]) -> str:
    if not savepoints:
        raise InstantNotFoundError("CALL: the table has no savepoint; create_savepoint makes one")
    return savepoints[-1]


def _rollback_to_instant(call: Call) -> Iterable[Row]:
    call.table.rollback(call["instant_time"], properties=call.options())
    return [{"rollback_result": True}]


def _run_rollback_inflight(call: Call) -> Iterable[Row]:
    """Roll back an inflight compaction or clustering; its plan stays unless it is to be deleted."""
    view, wanted = call.table.view(), call["pending_instant"]
    instant = view.timeline.get(wanted)
    if instant is None or instant.state is not State.INFLIGHT or instant.action not in _PLANNED:
        raise InstantNotFoundError(
            f"CALL run_rollback_inflight_tableservice: {wanted} is no inflight compaction or clustering of "
            f"{view.store.uri('')}; it is {instant or 'not on the timeline'}"
        )
    start = time.monotonic_ns()
    remove = call["delete_request_instant_file"]
    if instant.action in COMPACTION.actions:
        roll_back_plan(COMPACTION, view.state, wanted, remove_plan=remove)
    else:
        roll_back_plan(CLUSTERING, view.state, wanted, remove_plan=remove)
    return [{"instant": wanted, "time_cost": str((time.monotonic_ns() - start) // 1_000_000)}]


def _rollbacks(call: Call) -> Iterator[tuple[Instant, RollbackMetadata]]:
    """Yield the completed rollbacks of the active timeline, newest first."""
    for instant, content in active_contents(call.table.view(), Action.ROLLBACK):
        yield instant, RollbackMetadata.parse(content, path=str(instant))


def _show_rollbacks(call: Call) -> Iterable[Row]:
    rows = (
        {
            "instant": found.start_rollback_time,
            "rollback_instant": commit,
            "total_files_deleted": found.total_files_deleted,
            "time_taken_in_millis": found.time_taken_in_millis,
            "total_partitions": len(found.partition_metadata),
        }
        for _, found in _rollbacks(call)
        for commit in found.commits_rollback
    )
    return limited(call, rows)


def _show_rollback_detail(call: Call) -> Iterable[Row]:
    rows = (
        {
            "instant": found.start_rollback_time,
            "rollback_instant": f"[{', '.join(found.commits_rollback)}]",
            "partition": path,
            "deleted_file": name,
            "succeeded": succeeded,
        }
        for instant, found in _rollbacks(call)
        if instant.requested_time == call["instant_time"]
        for path, part in found.partition_metadata.items()
        for succeeded, names in ((True, part.success_delete_files), (False, part.failed_delete_files))
        for name in names
    )
    return limited(call, rows)


def _show_savepoints(call: Call) -> Iterable[Row]:
    return ({"savepoint_time": savepoint.instant} for savepoint in reversed(call.table.savepoints()))


RECOVERY: Final = (
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
        columns=columns("create_savepoint_result boolean"),
        run=_create_savepoint,
    ),
    Procedure(
        name="delete_savepoint",
        about="Delete a savepoint, the newest by default; a clean may then delete its files.",
        parameters=(optional("table"), optional("instant_time", ""), optional("path")),
        columns=columns("delete_savepoint_result boolean"),
        run=_delete_savepoint,
    ),
    Procedure(
        name="show_savepoints",
        about="List the savepoints, newest first.",
        parameters=TABLE_OR_PATH,
        columns=columns("savepoint_time string"),
        run=_show_savepoints,
    ),
    Procedure(
        name="rollback_to_savepoint",
        about="Restore the table to a savepoint, the newest by default: everything after it is rolled back.",
        parameters=(optional("table"), optional("instant_time", ""), optional("path")),
        columns=columns("rollback_savepoint_result boolean"),
        run=_rollback_to_savepoint,
    ),
    Procedure(
        name="rollback_to_instant",
        about="Roll back the newest commit, or a pending instant.",
        parameters=(required("table"), required("instant_time")),
        columns=columns("rollback_result boolean"),
        run=_rollback_to_instant,
    ),
    Procedure(
        name="run_rollback_inflight_tableservice",
        about="Roll back an inflight compaction or clustering whose process died.",
        parameters=(*TABLE_OR_PATH, required("pending_instant"), optional("delete_request_instant_file", False)),
        columns=columns("instant string, time_cost string"),
        run=_run_rollback_inflight,
    ),
    Procedure(
        name="show_rollbacks",
        about="List what the newest completed rollbacks rolled back.",
        parameters=(required("table"), optional("limit", 10)),
        columns=columns(
            "instant string, rollback_instant string, total_files_deleted integer, time_taken_in_millis long, "
            "total_partitions integer"
        ),
        run=_show_rollbacks,
    ),
    Procedure(
        name="show_rollback_detail",
        about="List the files that a completed rollback deleted.",
        parameters=(required("table"), optional("limit", 10), required("instant_time")),
        columns=columns(
            "instant string, rollback_instant string, partition string, deleted_file string, succeeded boolean"
        ),
        run=_show_rollback_detail,
    ),
)
