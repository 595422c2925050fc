"""Procedures of the table of operations: one for each row that no procedure of Hudi does."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from hoodie.statements.procedures.procedure import OPTIONS, TABLE, Call, Parameter, Procedure, Row, columns_of
from hoodie.table.operations import OPERATIONS, Operation, kind_of


def procedure_of_row(operation: Operation) -> Procedure:
    """Return the procedure of an operation; its rows are the facts of the result."""
    return Procedure(
        name=operation.name.replace(" ", "_").replace("-", "_"),
        about=operation.about.partition("\n")[0],
        parameters=(*TABLE, *map(_parameter, operation.signature().values())),
        columns=columns_of("fact string, value string"),
        run=partial(_run, operation),
    )


def _parameter(declared: inspect.Parameter) -> Parameter:
    kind, _ = kind_of(declared)
    if kind is dict:
        return OPTIONS
    is_required = declared.default is inspect.Parameter.empty
    kind = str if kind is list else kind  # names with commas between them
    default = None if is_required else declared.default
    return Parameter(name=declared.name, kind=kind, default=default, is_required=is_required)


def _run(operation: Operation, call: Call) -> Iterable[Row]:
    found = operation.run(call.table, {name: _value(one, call) for name, one in operation.signature().items()})
    return [{"fact": name, "value": str(value)} for name, value in found.facts().items() if str(value)]


def _value(declared: inspect.Parameter, call: Call) -> Any:
    kind, _ = kind_of(declared)
    if kind is dict:
        return call.options()
    return (call.names_in(declared.name) or None) if kind is list else call[declared.name]


OWN: Final = tuple(procedure_of_row(operation) for operation in OPERATIONS if operation.procedure is None)
"""The procedures that Hudi does not have."""
