"""Find the files or partitions that can hold rows matching a condition, by the range of each column; none is opened.

A part of the condition limits the places if it compares one column with a value, or tests it for null. It is translated
to a comparison of the column's bounds, with the rules by which rows are compared. Every other part counts as true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.errors import HoodieError
from hoodie.records.sql.columns import ALL_NAMES, ColumnRef, column_refs, is_column, resolve
from hoodie.records.sql.parse import operands, without_parens
from hoodie.records.sql.translate import Translator
from hoodie.records.sql.values import evaluate

Mask = npt.NDArray[np.bool_]
_BOUND: Final = "bound"
_LIST_MAX: Final = 1000
"""Longer lists of values limit nothing: each value is compared with the bounds of each place."""
_MIRRORED: Final[Mapping[type[exp.Expression], type[exp.Expression]]] = {
    exp.EQ: exp.EQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of one column in each place (file or partition), with the type of the column.

    Where `is_known`, all values are between `low` and `high`, inclusive; both are null where there is no value.
    """

    low: pa.Array
    high: pa.Array
    is_known: Mask
    may_be_null: Mask
    may_have_value: Mask


def bounded_columns(condition: exp.Expression, schema: pa.Schema) -> dict[str, ColumnRef]:
    """Return the columns whose bounds can limit a condition, by dotted name; fields of structs too.

    Raises: as `Condition.row_filter`.
    """
    # A misspelt column is an error here too, and a condition that only Spark can evaluate limits nothing.
    Translator(schema).condition(condition)
    found = {column.name: column for column in column_refs(condition, schema)}
    # A column whose name has a dot and a field of a struct have statistics of the same name.
    return {
        name: column
        for name, column in found.items()
        if "." not in "".join(column.path) and (len(column.path) == 1 or schema.get_field_index(name) < 0)
    }


def can_match(condition: exp.Expression, schema: pa.Schema, bounds: Mapping[str, Bounds], count: int) -> Mask:
    """Mark the places that can hold rows matching the condition; `bounds` by dotted name of the column.

    Columns without bounds limit nothing. Raises: as `Condition.row_filter`.
    """
    found = _limit(without_parens(condition), _Leaves(schema, bounds))
    return np.ones(count, np.bool_) if found is None else found


def _limit(node: exp.Expression, leaves: _Leaves) -> Mask | None:
    """Return the places where the condition can be true; None if it limits nothing."""
    if isinstance(node, exp.And):
        return _all_of([_limit(one, leaves) for one in operands(node, exp.And)])
    if isinstance(node, exp.Or):
        return _any_of([_limit(one, leaves) for one in operands(node, exp.Or)])
    try:
        return leaves.limit(node)
    except (HoodieError, pa.ArrowException):
        # The bounds cannot be compared as the rows are: nothing is known of this part.
        return None


def _all_of(parts: list[Mask | None]) -> Mask | None:
    said = [part for part in parts if part is not None]
    return reduce(np.logical_and, said) if said else None


def _any_of(parts: list[Mask | None]) -> Mask | None:
    said = [part for part in parts if part is not None]
    return reduce(np.logical_or, said) if len(said) == len(parts) else None


@dataclass(frozen=True, slots=True)
class _Leaves:
    """Evaluates single comparisons on bounds."""

    schema: pa.Schema
    bounds: Mapping[str, Bounds]

    def limit(self, node: exp.Expression) -> Mask | None:
        negated = isinstance(node, exp.Not)
        inner = without_parens(node.this) if negated else node
        tested = _null_test(inner)
        if tested is not None:
            found = self._bounds(tested[0])
            if found is None:
                return None
            return found.may_have_value if tested[1] == negated else found.may_be_null
        if negated:
            return None
        if type(node) in _MIRRORED:
            return self._compared(type(node), node.this, node.expression)
        if isinstance(node, exp.NullSafeEQ):
            # A value that may be null equals null.
            is_given = any(isinstance(without_parens(side), exp.Literal) for side in (node.this, node.expression))
            return self._compared(exp.EQ, node.this, node.expression) if is_given else None
        translate = _OTHERS.get(type(node))
        return None if translate is None else translate(self, node)

    def _compared(self, kind: type[exp.Expression], left: exp.Expression, right: exp.Expression) -> Mask | None:
        """Return where `left kind right` can be true, for a column and a value on either side."""
        if not is_column(without_parens(left)):
            kind, left, right = _MIRRORED[kind], right, left
        found = self._bounds(left)
        if found is None or column_refs(right, self.schema):
            return None
        if kind is exp.EQ:
            sides = (found.low, exp.LTE), (found.high, exp.GTE)
            return _all_of([self._side(bound, found.is_known, kind, right) for bound, kind in sides])
        if kind in (exp.LT, exp.LTE):
            return self._side(found.low, found.is_known, kind, right)
        return self._side(found.high, found.is_known, kind, right, is_lower_limit=True)

    def _side(
        self,
        bound: pa.Array,
        known: Mask,
        kind: type[exp.Expression],
        value: exp.Expression,
        *,
        is_lower_limit: bool = False,
    ) -> Mask | None:
        """Compare the low or the high bound of each place with a value; None if that proves nothing.

        High bounds of floats prove nothing about greater values: other writers leave out NaN, which is above all
        numbers. A date and a time are compared in the session's time zone, which is not known here.
        """
        given = Translator(self.schema)
        if pa.types.is_floating(bound.type) and (is_lower_limit or not given.value(value).is_number_literal):
            return None
        if pa.types.is_date(bound.type) and given.value(value).family == "timestamp":
            return None
        schema = pa.schema([(_BOUND, bound.type)])
        node = kind(this=exp.column(_BOUND), expression=value.copy())
        compared = Translator(schema, joined=ALL_NAMES).condition(node)
        if "cast(" in str(compared):
            # Bounds in one order are no bounds of values that are cast to a type with another order.
            return None
        held = evaluate(compared, pa.table([bound], schema=schema)).combine_chunks()
        return np.asarray(pc.fill_null(held, False)) | ~known

    def _bounds(self, node: exp.Expression) -> Bounds | None:
        node = without_parens(node)
        return self.bounds.get(resolve(node, self.schema).name) if is_column(node) else None


def _null_test(node: exp.Expression) -> tuple[exp.Expression, bool] | None:
    """Return the tested column of a test for null, and whether null passes it."""
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return node.this, True
    if isinstance(node, exp.Anonymous) and node.name.lower() in ("isnull", "isnotnull") and len(node.expressions) == 1:
        return node.expressions[0], node.name.lower() == "isnull"
    return None


def _between(self: _Leaves, node: exp.Between) -> Mask | None:
    if node.args.get("symmetric"):
        return None
    low = self._compared(exp.GTE, node.this, node.args["low"])
    return _all_of([low, self._compared(exp.LTE, node.this, node.args["high"])])


def _in(self: _Leaves, node: exp.In) -> Mask | None:
    given = [one for one in node.expressions if not isinstance(without_parens(one), exp.Null)]
    if not given or len(given) > _LIST_MAX:
        return None
    return _any_of([self._compared(exp.EQ, node.this, one) for one in given])


def _like(self: _Leaves, node: exp.Like) -> Mask | None:
    pattern = without_parens(node.expression)
    # The parser reads NOT LIKE as a LIKE with a flag.
    if node.args.get("negate") or not isinstance(pattern, exp.Literal) or not pattern.is_string or "\\" in pattern.name:
        return None
    prefix = pattern.name.split("%")[0].split("_")[0]
    return _starts(self, node.this, prefix)


def _starts_with(self: _Leaves, node: exp.StartsWith) -> Mask | None:
    prefix = without_parens(node.expression)
    is_text = isinstance(prefix, exp.Literal) and prefix.is_string
    return _starts(self, node.this, prefix.name) if is_text else None


def _starts(self: _Leaves, node: exp.Expression, prefix: str) -> Mask | None:
    """Return where a text can begin with a prefix: it is not below it, and the low bound is not above such texts."""
    found = self._bounds(node)
    if found is None or not prefix or not pa.types.is_string(found.low.type):
        return None
    starts = pc.utf8_slice_codeunits(found.low, 0, len(prefix))
    # Arrow compares text by its UTF-8 bytes, as Spark does.
    inside = pc.and_(pc.greater_equal(found.high, prefix), pc.less_equal(starts, prefix))
    return np.asarray(pc.fill_null(inside, False)) | ~found.is_known


_OTHERS: Final[Mapping[type[exp.Expression], Callable[..., Mask | None]]] = {
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.StartsWith: _starts_with,
    exp.Column: lambda self, node: self._compared(exp.EQ, node, exp.true()),
}
