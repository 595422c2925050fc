"""CALL: find the procedure, check its arguments, run it.

Procedures have the names, parameters and columns of Hudi's where it has them.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot import exp

from hoodie.config.known import hint
from hoodie.errors import InvalidConfigError
from hoodie.records.sql.parse import parse_expression, to_sql, without_parens
from hoodie.statements.names import Names
from hoodie.statements.procedures.procedure import PATH, Call, Procedure
from hoodie.statements.procedures.registry import procedure_of
from hoodie.table.context import Text

_SYSTEM = "system"
"""The schema that the JVM's documentation puts before a procedure in some examples."""


def run_call(text: str, names: Names, properties: Text | None) -> pa.Table:
    """Run `name(argument => value, …)` and return its rows.

    Raises: InvalidConfigError for unknown procedures, and for missing, unknown or wrong arguments; UnsupportedError for
        procedures of Hudi that this release does not have.
    """
    name, arguments = _parsed(text)
    procedure = procedure_of(name)
    given = _bound(procedure, arguments)
    values = {**{parameter.name: parameter.default for parameter in procedure.parameters}, **given}
    call = Call(names=names, values=values, properties=dict(properties or {}), given=frozenset(given))
    return procedure.rows(call)


def _parsed(text: str) -> tuple[str, list[exp.Expression]]:
    node = without_parens(parse_expression(text.strip() or "help()"))
    if isinstance(node, exp.Dot) and to_sql(node.this).lower() == _SYSTEM:
        node = node.expression
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower(), list(node.expressions)
    if isinstance(node, exp.Column) and len(node.parts) == 1:
        return node.name.lower(), []
    raise InvalidConfigError(f"CALL: expected procedure(argument => value, …), found {text.strip()!r}")


def _bound(procedure: Procedure, arguments: list[exp.Expression]) -> dict[str, Any]:
    """Return the value of each parameter that is given. Raises: InvalidConfigError."""
    known = {parameter.name.lower(): parameter for parameter in procedure.parameters}
    if procedure.takes_path:
        known.setdefault(PATH.name, PATH)
    values: dict[str, Any] = {}
    for place, node in enumerate(arguments):
        if isinstance(node, exp.Kwarg):
            name, value = node.this.name.lower(), node.expression
        elif place < len(procedure.parameters) and len(values) == place:
            name, value = procedure.parameters[place].name.lower(), node
        else:
            raise InvalidConfigError(f"CALL {procedure.name}: too many arguments, or one without a name after a name")
        if name not in known:
            names = [parameter.name for parameter in known.values()]
            raise InvalidConfigError(
                f"CALL {procedure.name}: unknown argument {name!r}; expected one of {', '.join(names) or 'none'}"
                f"{hint(name, names)}"
            )
        if known[name].name in values:
            raise InvalidConfigError(f"CALL {procedure.name}: argument {name!r} is given twice: keep one")
        values[known[name].name] = known[name].checked(procedure.name, _value(value))
    for parameter in procedure.parameters:
        is_table = procedure.takes_path and parameter.name == "table"
        if parameter.is_required and parameter.name not in values and not (is_table and PATH.name in values):
            advice = ": name the table by table => '…' or path => '…'" if is_table else ""
            raise InvalidConfigError(f"CALL {procedure.name}: argument {parameter.name!r} is missing{advice}")
    return values


def _value(node: exp.Expression) -> Any:
    """Return the value of a literal. Raises: InvalidConfigError."""
    node = without_parens(node)
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        return -int(node.this.this) if node.this.this.isdigit() else -float(node.this.this)
    if isinstance(node, exp.Literal):
        text = str(node.this)
        return text if node.is_string else int(text) if text.isdigit() else float(text)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Null):
        return None
    raise InvalidConfigError(f"CALL: expected a literal as the value of an argument, found {to_sql(node)!r}")
