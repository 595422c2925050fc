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
from hoodie.statements.procedures.procedure import TABLE, Call, Row, optional, procedure, required
from hoodie.statements.procedures.timeline import active_contents
from hoodie.timeline import Action, Instant, State

_PLANNED: Final = COMPACTION.actions | CLUSTERING.actions


@procedure(
    parameters=(
        optional("table"),
        optional("commit_time", ""),
        optional("user", ""),
        optional("comments", ""),
        optional("path"),
    ),
    columns="create_savepoint_result boolean",
)
def create_savepoint(call: Call) -> Iterable[Row]:
    """Keep the files of a commit, the newest by default."""
    table = call.table
    known = {savepoint.instant for savepoint in table.savepoints()}
    made = table.savepoint(call["commit_time"] or None, user=call["user"], comment=call["comments"]).instant
    return [{"create_savepoint_result": made not in known}]


@procedure(
    parameters=(optional("table"), optional("instant_time", ""), optional("path")),
    columns="delete_savepoint_result boolean",
)
def delete_savepoint(call: Call) -> Iterable[Row]:
    """Delete a savepoint, the newest by default; a clean may then delete its files."""
    table = call.table
    table.delete_savepoint(call["instant_time"] or _newest([savepoint.instant for savepoint in table.savepoints()]))
    return [{"delete_savepoint_result": True}]


@procedure(
    parameters=(optional("table"), optional("instant_time", ""), optional("path")),
    columns="rollback_savepoint_result boolean",
)
def rollback_to_savepoint(call: Call) -> Iterable[Row]:
    """Restore the table to a savepoint, the newest by default: everything after it is rolled back."""
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


@procedure(parameters=(required("table"), required("instant_time")), columns="rollback_result boolean")
def rollback_to_instant(call: Call) -> Iterable[Row]:
    """Roll back the newest commit, or a pending instant."""
    call.table.rollback(call["instant_time"], properties=call.options())
    return [{"rollback_result": True}]


@procedure(
    parameters=(*TABLE, required("pending_instant"), optional("delete_request_instant_file", False)),
    columns="instant string, time_cost string",
)
def run_rollback_inflight_tableservice(call: Call) -> Iterable[Row]:
    """Roll back an inflight compaction or clustering whose process died."""
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


@procedure(
    parameters=(required("table"), optional("limit", 10)),
    columns="instant string, rollback_instant string, total_files_deleted integer, time_taken_in_millis long, "
    "total_partitions integer",
)
def show_rollbacks(call: Call) -> Iterable[Row]:
    """List what the newest completed rollbacks rolled back."""
    return call.limited(
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


@procedure(
    parameters=(required("table"), optional("limit", 10), required("instant_time")),
    columns="instant string, rollback_instant string, partition string, deleted_file string, succeeded boolean",
)
def show_rollback_detail(call: Call) -> Iterable[Row]:
    """List the files that a completed rollback deleted."""
    return call.limited(
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


@procedure(parameters=TABLE, columns="savepoint_time string")
def show_savepoints(call: Call) -> Iterable[Row]:
    """List the savepoints, newest first."""
    return ({"savepoint_time": savepoint.instant} for savepoint in reversed(call.table.savepoints()))
