"""The procedures of `CALL`, with the names, parameters and columns of Hudi's where it has them."""

from __future__ import annotations

from types import MappingProxyType

import pyarrow as pa

from hoodie.errors import InvalidConfigError
from hoodie.statements.procedure import Call, Parameter, Procedure, optional
from hoodie.statements.procedures.commits import COMMITS
from hoodie.statements.procedures.files import FILES
from hoodie.statements.procedures.savepoints import SAVEPOINTS
from hoodie.statements.procedures.services import SERVICES

_RESULT = pa.schema(
    [("procedure", pa.string()), ("parameter", pa.string()), ("default", pa.string()), ("about", pa.string())]
)


def _help(call: Call) -> pa.Table:
    """Return a row for each procedure; with `cmd` a row for each of its parameters."""
    wanted = call["cmd"]
    rows: list[tuple[str, str | None, str | None, str]]
    if wanted is None:
        rows = [(found.name, None, None, found.about) for found in PROCEDURES.values()]
    elif wanted in PROCEDURES:
        rows = [
            (wanted, p.name, None if p.default is None else str(p.default), _need(p))
            for p in PROCEDURES[wanted].parameters
        ]
    else:
        raise InvalidConfigError(f"CALL help: no procedure {wanted!r}; there are {', '.join(PROCEDURES)}")
    return pa.Table.from_pylist([dict(zip(_RESULT.names, row, strict=True)) for row in rows], schema=_RESULT)


def _need(parameter: Parameter) -> str:
    if not parameter.is_supported:
        return "refused: it has no effect here"
    return f"{parameter.kind.__name__}, required" if parameter.is_required else parameter.kind.__name__


_HELP = Procedure(
    name="help", about="List the procedures, or the parameters of one.", parameters=(optional("cmd"),), run=_help
)
PROCEDURES = MappingProxyType({found.name: found for found in (*COMMITS, *FILES, *SERVICES, *SAVEPOINTS, _HELP)})
"""All procedures by name."""
