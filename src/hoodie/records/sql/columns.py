"""Resolve the column names of an expression against a schema as Spark does: ignoring case, with dots for nesting."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.errors import SchemaMismatchError
from hoodie.records.sql.parse import unsupported

ALL_NAMES: Final = sys.maxsize
"""For `joined`: all names of a node together name one column, as in a table of partition values."""


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


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a schema, to resolve many names: each level of names is put in a dictionary once."""

    schema: pa.Schema
    _levels: dict[tuple[str, ...], dict[str, list[pa.Field]]] = field(default_factory=dict, init=False, repr=False)

    def named(self, name: str, path: tuple[str, ...], fields: Iterable[pa.Field]) -> list[pa.Field]:
        """Return those of the fields below a path that have a name, ignoring case."""
        if path not in self._levels:
            level: dict[str, list[pa.Field]] = {}
            for child in fields:
                level.setdefault(child.name.lower(), []).append(child)
            self._levels[path] = level
        return self._levels[path].get(name.lower(), [])


def resolve(node: exp.Expression, columns: pa.Schema | Columns, *, joined: int = 1) -> ColumnRef:
    """Find the column that a syntax node names.

    `joined`: how many of the node's first names are, joined by dots, the name of one column: 2 for a table whose
    columns are named `side.column`.

    Raises: SchemaMismatchError for a name that is unknown or matches two columns.
    """
    parts = _name_parts(node)
    return resolve_parts([".".join(parts[:joined]), *parts[joined:]], columns)


def resolve_name(name: str, schema: pa.Schema) -> ColumnRef:
    """Find the column of a plain name; a dot separates nested fields, unless a column has exactly that name.

    Raises: as `resolve`.
    """
    return resolve_parts([name] if schema.get_field_index(name) >= 0 else name.split("."), schema)


def resolve_parts(parts: Sequence[str], columns: pa.Schema | Columns) -> ColumnRef:
    """Find the column of a name, and below it the fields of the further names. Raises: as `resolve`."""
    columns = columns if isinstance(columns, Columns) else Columns(columns)
    fields: Iterable[pa.Field] = columns.schema
    path: tuple[str, ...] = ()
    for position, part in enumerate(parts):
        found = columns.named(part, path, fields)
        if len(found) > 1:
            names = ", ".join(child.name for child in found)
            raise SchemaMismatchError(f"column {part!r} is ambiguous: it matches {names}")
        if not found:
            raise SchemaMismatchError(_unknown_column(".".join(parts[: position + 1]), columns.schema))
        path = (*path, found[0].name)
        fields = found[0].type if pa.types.is_struct(found[0].type) else ()
    return ColumnRef(path, found[0].type)


def column_refs(node: exp.Expression, columns: pa.Schema | Columns, *, joined: int = 1) -> frozenset[ColumnRef]:
    """Resolve every column below a syntax node; `joined` as in `resolve`.

    Raises: SchemaMismatchError for an unknown or ambiguous name.
    """
    return frozenset(resolve(one, columns, joined=joined) for one in _column_nodes(node))


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
    for child in fields:
        yield prefix + child.name
        if pa.types.is_struct(child.type):
            yield from _paths(child.type, f"{prefix}{child.name}.")
