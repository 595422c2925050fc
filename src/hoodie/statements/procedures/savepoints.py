"""Procedures that keep a commit, and that take the table back."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from hoodie.errors import InstantNotFoundError
from hoodie.statements.procedure import TABLE_OR_PATH, Call, Procedure, optional, required

_SAVEPOINTS: Final = pa.schema([("savepoint_time", pa.string())])


def _done(column: str) -> pa.Table:
    """Return the row of a procedure that worked; one that does not work raises an error."""
    return pa.table({column: pa.array([True])})


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


SAVEPOINTS: Final = (
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
