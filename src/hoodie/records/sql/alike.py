"""Decide whether this process computes an expression exactly as every Spark session does.

The results of this process are those of Spark (`records.expression`), but some results of Spark depend on the session:
ANSI mode decides about division by zero and text that cannot be read, the time zone about times, other options about
the precision of decimals. An expression is alike if no such option can change a value that it yields. If a value
overflows, this process raises an error, so that the caller can use Spark.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final

import pyarrow as pa
from sqlglot import exp

from hoodie.errors import SchemaMismatchError, UnsupportedError
from hoodie.records.sql.columns import is_column
from hoodie.records.sql.parse import parse_expression, without_parens
from hoodie.records.sql.translate import Translator
from hoodie.records.sql.values import Value, decimal_of

_NODES_MAX: Final = 200
"""Each operation is translated once for itself and once for each operation above it."""
_LEAVES: Final = (exp.Literal, exp.RawString, exp.Null, exp.Boolean)
_LOGIC: Final = (exp.And, exp.Or, exp.Not, exp.Is)
_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between)
_SUMS: Final = (exp.Add, exp.Sub, exp.Mul, exp.Neg)
_JOINS: Final = (exp.Concat, exp.DPipe)
_COMPARED: Final = frozenset({"integer", "decimal", "float"})
"""Kinds of numbers that are compared with each other; other values are compared with values of the same type."""
_WIDENED: Final = frozenset({"integer", "float"})
"""Kinds of branches that may have several types: the result has the widest of them."""


def is_alike(text: str, translator: Translator, as_type: pa.DataType) -> bool:
    """Return whether the expression, assigned to a column of the type, has the same values in every Spark session.

    False also for an expression that this process cannot compute. `translator` has the columns that it names.

    Raises: InvalidConfigError for text that is not an expression.
    """
    tree = without_parens(parse_expression(text))
    nodes = list(itertools.islice(_nodes(tree), _NODES_MAX + 1))
    try:
        return (
            len(nodes) <= _NODES_MAX
            and all(_is_node_alike(translator, node) for node in nodes)
            and _is_assigned_alike(translator.value(tree), as_type)
        )
    except (UnsupportedError, SchemaMismatchError):
        return False


def _nodes(tree: exp.Expression) -> Iterable[exp.Expression]:
    """Yield all operations below a tree, and the tree; a column is one node."""
    pending = [tree]
    while pending:
        node = without_parens(pending.pop())
        yield node
        if not is_column(node):
            pending.extend(node.iter_expressions())


def _is_node_alike(translator: Translator, node: exp.Expression) -> bool:
    """Return whether one operation is alike, if its operands are."""
    if is_column(node) or isinstance(node, (*_LEAVES, *_LOGIC)):
        return True
    if isinstance(node, (*_COMPARISONS, exp.In, exp.Nullif)):
        return _are_alike(_values(translator, node.iter_expressions()), _COMPARED)
    if isinstance(node, exp.Neg) and isinstance(without_parens(node.this), exp.Literal):
        return True
    if isinstance(node, _SUMS):
        return _are_added_alike(_values(translator, node.iter_expressions()))
    if isinstance(node, _JOINS):
        return all(value.family in ("string", "null") for value in _values(translator, node.iter_expressions()))
    if isinstance(node, exp.Coalesce):
        return _are_alike(_values(translator, node.iter_expressions()), _WIDENED)
    if isinstance(node, exp.Case):
        choices = [one.args["true"] for one in node.args["ifs"]] + [node.args.get("default")]
        tested = [] if node.this is None else [node.this, *(one.this for one in node.args["ifs"])]
        return _are_alike(_values(translator, choices), _WIDENED) and _are_alike(_values(translator, tested), _COMPARED)
    if isinstance(node, exp.If):
        if isinstance(node.parent, exp.Case):
            return True  # A branch of the node above.
        return _are_alike(_values(translator, [node.args["true"], node.args.get("false")]), _WIDENED)
    return False


def _values(translator: Translator, nodes: Iterable[exp.Expression | None]) -> list[Value]:
    return [translator.value(node) for node in nodes if node is not None]


def _are_alike(values: list[Value], numbers: frozenset[str]) -> bool:
    """Return whether all values are such numbers, or have one type.

    Integers beside floats of 32 bits are not alike. Texts of 32 and 64 bits have one type, and NULL has any.
    """
    families = {value.family for value in values} - {"null"}
    if families <= numbers:
        return not _mix_float_with_integer(values)
    types = {"string" if one.family == "string" else str(one.type) for one in values if one.family != "null"}
    return len(families) == 1 and "nested" not in families and len(types) == 1


def _are_added_alike(values: list[Value]) -> bool:
    """A decimal literal beside a float becomes a float; other sums of decimals depend on options of the session."""
    families = {"literal" if one.is_literal and one.family == "decimal" else one.family for one in values}
    return families == {"float", "literal"} or (families <= _WIDENED and not _mix_float_with_integer(values))


def _mix_float_with_integer(values: list[Value]) -> bool:
    """Return whether integers meet floats of 32 bits: only in ANSI mode both become doubles."""
    return any(one.type == pa.float32() for one in values) and any(one.family == "integer" for one in values)


def _is_assigned_alike(value: Value, target: pa.DataType) -> bool:
    """Return whether each value of the expression fits the type, or overflows here too."""
    given = value.type
    if given == target or value.family == "null":
        return True
    if pa.types.is_integer(given) and pa.types.is_integer(target):
        return value.is_literal or given.bit_width <= target.bit_width
    if pa.types.is_floating(target):
        return pa.types.is_integer(given) or value.is_literal
    if pa.types.is_decimal(target) and value.is_literal and value.family in ("integer", "decimal"):
        own = decimal_of(value)
        return bool(own.scale <= target.scale and own.precision - own.scale <= target.precision - target.scale)
    return value.family == "string" and (pa.types.is_string(target) or pa.types.is_large_string(target))
