"""Resolve the column names of an expression against a schema as Spark does: ignoring case, with dots for nesting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.errors import SchemaMismatchError
from hoodie.records.sql.parse import unsupported


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column or a nested field: its names from the top, spelled as in the schema, and its Arrow type."""

    path: tuple[str, ...]
    type: pa.DataType

    @property
    def name(self) -> str:
        """The dotted name."""
        return ".".join(self.path)

    @property
    def expression(self) -> pc.Expression:
        """The Arrow reference to this column."""
        return pc.field(*self.path)


def resolve(node: exp.Expression, schema: pa.Schema, *, flat: bool = False) -> ColumnRef:
    """Find the column that a syntax node names.

    `flat`: nested fields are separate columns, named by the dotted path (a table of partition values).

    Raises: SchemaMismatchError for a name that is unknown or matches two columns.
    """
    parts = _name_parts(node)
    return _resolve_parts([".".join(parts)] if flat else parts, schema)


def resolve_name(name: str, schema: pa.Schema) -> ColumnRef:
    """Find the column of a plain name; a dot separates nested fields, unless a column has exactly that name.

    Raises: as `resolve`.
    """
    return _resolve_parts([name] if name in schema.names else name.split("."), schema)


def _resolve_parts(parts: list[str], schema: pa.Schema) -> ColumnRef:
    fields: list[pa.Field] = list(schema)
    path: list[str] = []
    for position, part in enumerate(parts):
        found = [field for field in fields if field.name.lower() == part.lower()]
        if len(found) > 1:
            names = ", ".join(field.name for field in found)
            raise SchemaMismatchError(f"column {part!r} is ambiguous: it matches {names}")
        if not found:
            raise SchemaMismatchError(_unknown_column(".".join(parts[: position + 1]), schema))
        path.append(found[0].name)
        fields = list(found[0].type) if pa.types.is_struct(found[0].type) else []
    return ColumnRef(tuple(path), found[0].type)


def column_refs(node: exp.Expression, schema: pa.Schema) -> frozenset[ColumnRef]:
    """Resolve every column below a syntax node.

    Raises: SchemaMismatchError for an unknown or ambiguous name.
    """
    return frozenset(resolve(one, schema) for one in _column_nodes(node))


def is_column(node: exp.Expression) -> bool:
    """Return whether a syntax node is only the name of a column."""
    return isinstance(node, exp.Column) or (isinstance(node, exp.Dot) and is_column(node.this))


def _column_nodes(node: exp.Expression) -> Iterator[exp.Expression]:
    pending = [node]
    while pending:
        current = pending.pop()
        if is_column(current):
            yield current
        else:
            pending.extend(current.iter_expressions())


def _name_parts(node: exp.Expression) -> list[str]:
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return [*_name_parts(node.this), node.expression.name]
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
        return [part.name for part in node.parts]
    raise unsupported(node)


def _unknown_column(name: str, schema: pa.Schema) -> str:
    known = {path.lower(): path for path in _paths(schema)}
    near = [known[match] for match in get_close_matches(name.lower(), known, n=3)]
    hint = f"did you mean {', '.join(near)}?" if near else f"the columns are {', '.join(schema.names[:20])}"
    return f"no column {name!r}; {hint}"


def _paths(fields: pa.Schema | pa.StructType, prefix: str = "") -> Iterator[str]:
    for field in fields:
        yield prefix + field.name
        if pa.types.is_struct(field.type):
            yield from _paths(field.type, f"{prefix}{field.name}.")
