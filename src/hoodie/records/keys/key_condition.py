"""Find the record keys that a condition allows, so that a read with `where` can look them up in an index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from hoodie.errors import HoodieError
from hoodie.records.sql.columns import is_column, resolve
from hoodie.records.sql.compare import equal_scalars
from hoodie.records.sql.parse import operands, without_parens
from hoodie.records.sql.translate import Translator
from hoodie.records.sql.values import Value
from hoodie.records.sql.zones import depends_on_zone

KeysOf = Callable[[pa.Array], pa.StringArray]
"""Returns the record keys of the values of a column, in order."""


@dataclass(frozen=True, slots=True)
class WantedKeys:
    """Record keys: a matching row has one of them. `is_certain`: no other key text represents the same value."""

    keys: frozenset[str]
    is_certain: bool


def wanted_keys(node: exp.Expression, schema: pa.Schema, columns: Mapping[str, KeysOf]) -> WantedKeys | None:
    """Return the record keys that rows matching the condition `node` can have; None if it does not limit the keys.

    `columns` maps each top-level column that determines the key on its own to the function that makes keys of its
    values. Only `=`, `<=>` and `IN` with literals are used, joined by AND and OR; the scan evaluates everything else.
    """
    node = without_parens(node)
    if isinstance(node, exp.And | exp.Or):
        kind = exp.And if isinstance(node, exp.And) else exp.Or
        parts = [wanted_keys(part, schema, columns) for part in operands(node, kind)]
        limits = [part for part in parts if part is not None]
        if not limits or (kind is exp.Or and len(limits) < len(parts)):
            return None
        joined = frozenset.intersection if kind is exp.And else frozenset.union
        return WantedKeys(joined(*(part.keys for part in limits)), all(part.is_certain for part in limits))
    try:
        return _leaf(node, schema, columns)
    except HoodieError:
        # The engine that runs the condition refuses it, or supports types that are not compared here.
        return None


def _leaf(node: exp.Expression, schema: pa.Schema, columns: Mapping[str, KeysOf]) -> WantedKeys | None:
    if isinstance(node, exp.EQ | exp.NullSafeEQ):
        sides = [without_parens(node.this), without_parens(node.expression)]
        tested, options = (sides[0], sides[1:]) if is_column(sides[0]) else (sides[1], sides[:1])
    elif isinstance(node, exp.In) and node.expressions:
        tested, options = without_parens(node.this), node.expressions
    else:
        return None
    column = resolve(tested, schema) if is_column(tested) else None
    if column is None or column.name not in columns or len(column.path) > 1:
        return None
    if pa.types.is_temporal(column.type) and depends_on_zone(node, Translator(schema)):
        return None
    values = _equal_values(Value(column.expression, column.type), [Translator(schema).value(one) for one in options])
    if values is None:
        return None
    keys = columns[column.name](values) if len(values) else values
    return WantedKeys(frozenset(keys.to_pylist()), _has_one_text(column.type))


def _equal_values(column: Value, options: list[Value]) -> pa.Array | None:
    """List the values of the column's type that equal one of the literals; empty text is skipped: it is never a key."""
    scalars: list[pa.Scalar] = []
    for option in options:
        if option.is_null_literal:
            continue
        found = equal_scalars(option, column) if option.is_literal else None
        if found is None:
            return None
        scalars += [one for one in found if one.as_py() != ""]
    return pa.array([one.as_py() for one in scalars], column.type)


def _has_one_text(data_type: pa.DataType) -> bool:
    """Return whether all writers write a value as the same text; JVM releases differ for times and decimals."""
    return bool(
        pa.types.is_string(data_type) or pa.types.is_large_string(data_type) or pa.types.is_signed_integer(data_type)
    )
