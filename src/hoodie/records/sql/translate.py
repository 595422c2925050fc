"""Translate a syntax tree to a typed Arrow expression; kinds of nodes that are not listed are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.errors import HoodieError, InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.records.sql import arrays, dates, functions
from hoodie.records.sql.arithmetic import arithmetic, negate
from hoodie.records.sql.cast import arrow_type, cast, names_zone
from hoodie.records.sql.columns import Columns, is_column, resolve
from hoodie.records.sql.compare import Operator, compare, is_in, null_safe_equal
from hoodie.records.sql.parse import balanced, chain, operands, to_sql, unsupported, without_parens
from hoodie.records.sql.values import (
    MAX_PRECISION,
    Translate,
    Value,
    decimal_literal,
    evaluate,
    fold,
    integer_literal,
    literal,
    null_of,
)

_COMPARISONS: dict[type[exp.Expression], Operator] = {
    exp.EQ: eq,
    exp.NEQ: ne,
    exp.LT: lt,
    exp.LTE: le,
    exp.GT: gt,
    exp.GTE: ge,
}
_ARITHMETIC: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
}


@dataclass(slots=True)
class HeldRows:
    """Rows for which parts of an expression are evaluated while it is translated; values of parts become columns."""

    table: pa.Table

    def hold(self, values: pa.ChunkedArray) -> pc.Expression:
        """Append a column, and return the reference to it. No column of a table has a name with NUL."""
        name = f"\0{self.table.num_columns}"
        self.table = self.table.append_column(name, values)
        return pc.field(name)


@dataclass(frozen=True, slots=True)
class Translator:
    """Translates syntax trees for one schema; `joined` as in `columns.resolve`.

    With `rows`, each part that Spark evaluates for some rows only is evaluated for these rows, and the translation is
    valid for the table of `rows`.
    """

    schema: pa.Schema
    joined: int = 1
    rows: HeldRows | None = None
    _columns: Columns = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_columns", Columns(self.schema))

    def value(self, node: exp.Expression) -> Value:
        """Translate any expression.

        Raises: UnsupportedError that names the part without an Arrow form; SchemaMismatchError for unknown columns and
        wrong types.
        """
        node = without_parens(node)
        if is_column(node):
            return self._column(node)
        if type(node) in _COMPARISONS:
            left = self.held(self.value(node.this))
            right = self.where(left.expression.is_valid(), node.expression)
            return _boolean(compare(_COMPARISONS[type(node)], left, right))
        if type(node) in _ARITHMETIC:
            spine = chain(node)
            value = self.value(spine[-1].this)
            for link in reversed(spine):
                value = self.held(value)
                right = self.where(value.expression.is_valid(), link.expression)
                value = arithmetic(_ARITHMETIC[type(link)], value, right)
            return value
        translate = _NODES.get(type(node))
        if translate is None:
            raise unsupported(node)
        return translate(self, node)

    def condition(self, node: exp.Expression, *, where: pc.Expression | None = None) -> pc.Expression:
        """Translate an expression that must be boolean. Spark evaluates it only where `where` is true.

        Raises: as `value`; SchemaMismatchError if the expression is not boolean.
        """
        value = self.value(node) if where is None else self.where(where, node)
        if value.family == "null":
            return null_of(pa.bool_())
        if value.family != "boolean":
            raise SchemaMismatchError(f"expected a condition, found {to_sql(node)[:300]!r} of type {value.type}")
        return value.expression

    def where(self, needed: pc.Expression, node: exp.Expression) -> Value:
        """Translate a part whose values Spark needs where `needed` is true; elsewhere they may be null."""
        if self.rows is None or isinstance(without_parens(node), exp.Literal):
            return self.value(node)
        mask = pc.fill_null(evaluate(needed, self.rows.table), False)
        needed_rows = HeldRows(self.rows.table.filter(mask))
        value = replace(self, rows=needed_rows).value(node)
        if value.is_literal:
            return value
        values = evaluate(value.expression, needed_rows.table)
        # Each row takes the value of its place among the needed rows.
        places = pc.subtract(pc.cumulative_sum(mask.cast(pa.int64())), 1)
        return replace(value, expression=self.rows.hold(values.take(pc.if_else(mask, places, None))))

    def held(self, value: Value) -> Value:
        """Evaluate a value that is used more than once, if there are rows."""
        if self.rows is None or value.is_literal:
            return value
        return replace(value, expression=self.rows.hold(evaluate(value.expression, self.rows.table)))

    def held_condition(self, condition: pc.Expression) -> pc.Expression:
        """Evaluate a condition that is used more than once, if there are rows."""
        return self.held(_boolean(condition)).expression

    def without(self, needed: pc.Expression, decided: pc.Expression) -> pc.Expression:
        """Return where a later part is still needed: not where a part before it decided."""
        return needed if self.rows is None else self.held_condition(needed & ~pc.coalesce(decided, False))

    def _column(self, node: exp.Expression) -> Value:
        column = resolve(node, self._columns, joined=self.joined)
        if pa.types.is_dictionary(column.type):
            return Value(column.expression.cast(column.type.value_type), column.type.value_type)
        return Value(column.expression, column.type)


def _boolean(expression: pc.Expression) -> Value:
    return Value(expression, pa.bool_())


def _until(self: Translator, nodes: list[exp.Expression], *, decided: bool) -> list[pc.Expression]:
    """Translate conditions. Spark evaluates each only where no condition before it has the value `decided`."""
    found: list[pc.Expression] = []
    needed = pc.scalar(True)
    for node in nodes:
        found.append(self.held_condition(self.condition(node, where=needed)))
        needed = self.without(needed, found[-1] if decided else ~found[-1])
    return found


def _is(self: Translator, node: exp.Is) -> Value:
    if isinstance(node.expression, exp.Null):
        return _boolean(self.value(node.this).expression.is_null())
    if isinstance(node.expression, exp.Boolean):
        wanted = bool(node.expression.this)
        held = self.condition(node.this)
        return _boolean(pc.coalesce(held if wanted else ~held, False))
    raise unsupported(node)


def _between(self: Translator, node: exp.Between) -> Value:
    if node.args.get("symmetric"):
        raise unsupported(node)
    value = self.held(self.value(node.this))
    above = self.held_condition(compare(ge, value, self.where(value.expression.is_valid(), node.args["low"])))
    high = self.where(value.expression.is_valid() & pc.coalesce(above, True), node.args["high"])
    return _boolean(above & compare(le, value, high))


def _in(self: Translator, node: exp.In) -> Value:
    if not node.expressions or any(node.args.get(part) is not None for part in ("query", "unnest", "field")):
        raise unsupported(node, "only a list of values is supported")
    value = self.held(self.value(node.this))
    given = value.expression.is_valid()
    return _boolean(is_in(value, [self.where(given, one) for one in node.expressions]))


def _escape(self: Translator, node: exp.Escape) -> Value:
    if not isinstance(node.this, (exp.Like, exp.ILike)):
        raise unsupported(node)
    return functions.like(node.this, self.value, functions.literal_text(node.expression, node, self.value))


def _cast(self: Translator, node: exp.Cast) -> Value:
    if node.args.get("safe"):
        raise unsupported(node, "TRY_CAST; CAST gives NULL for text that cannot be read")
    if node.args.get("format") is not None:
        raise unsupported(node, "with a format")
    return cast(self.value(node.this), arrow_type(node.to))


def _number(self: Translator, node: exp.Literal) -> Value:
    if node.is_string:
        return literal(node.name, pa.string())
    written = node.name
    if "e" in written.lower():
        return literal(float(written), pa.float64())
    return decimal_literal(Decimal(written)) if "." in written else integer_literal(_integer(written))


def _integer(written: str) -> int:
    if len(written.lstrip("0")) > MAX_PRECISION:
        raise UnsupportedError(f"number {written[:50]}… has {len(written)} digits; a decimal holds {MAX_PRECISION}")
    return int(written)


def _negative(self: Translator, node: exp.Neg) -> Value:
    inner = without_parens(node.this)
    if isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal) and inner.this.name.isdecimal():
        # The sign belongs to the number: -9223372036854775808L is a bigint, though 9223372036854775808L is none.
        return cast(integer_literal(-_integer(inner.this.name)), arrow_type(inner.to))
    value = self.value(node.this)
    if isinstance(inner, exp.Literal) and isinstance(value.literal, int):
        # -2147483648 is an int in Spark though 2147483648 alone is not.
        return integer_literal(-value.literal)
    return fold(negate(value)) if value.is_literal and not value.is_null_literal else negate(value)


def _binary(self: Translator, node: exp.HexString) -> Value:
    try:
        return literal(bytes.fromhex(node.name), pa.binary())
    except ValueError as error:
        raise InvalidConfigError(f"X'{node.name}' is not a binary literal: {error}") from error


def _case(self: Translator, node: exp.Case) -> Value:
    tested = None if node.this is None else self.held(self.value(node.this))
    return _choose(self, node.args["ifs"], tested, node.args.get("default"))


def _choose(self: Translator, branches: list[exp.If], tested: Value | None, default: exp.Expression | None) -> Value:
    cases: list[tuple[pc.Expression, Value]] = []
    needed = pc.scalar(True)
    for branch in branches:
        if tested is None:
            condition = self.condition(branch.this, where=needed)
        else:
            condition = compare(eq, tested, self.where(needed, branch.this))
        condition = self.held_condition(condition)
        is_true = pc.coalesce(condition, False)
        cases.append((condition, self.where(needed & is_true, branch.args["true"])))
        needed = self.without(needed, is_true)
    return functions.choose(cases, None if default is None else self.where(needed, default))


def _coalesce(self: Translator, node: exp.Coalesce) -> Value:
    values: list[Value] = []
    needed = pc.scalar(True)
    for one in (node.this, *node.expressions):
        values.append(self.held(self.where(needed, one)))
        needed = self.without(needed, values[-1].expression.is_valid())
    return functions.coalesce(values)


def _nullif(self: Translator, node: exp.Nullif) -> Value:
    value = self.held(self.value(node.this))
    same = compare(eq, value, self.where(value.expression.is_valid(), node.expression))
    return functions.choose([(same, literal(None, pa.null()))], value)


def _named(self: Translator, node: exp.Anonymous) -> Value:
    name = node.name.lower()
    if name in ("isnull", "isnotnull") and len(node.expressions) == 1:
        value = self.value(node.expressions[0]).expression
        return _boolean(value.is_null() if name == "isnull" else value.is_valid())
    function = _NAMED.get(name)
    if function is None:
        raise unsupported(node, f"function {node.name!r} is not known")
    return function(node, self.value)


def _function(function: Callable[[Any, Translate], Value]) -> Callable[[Translator, Any], Value]:
    return lambda self, node: function(node, self.value)


_NAMED: dict[str, Callable[[Any, Translate], Value]] = {
    "date_add": dates.date_add,
    "dateadd": dates.date_add,
    "date_sub": dates.date_add,
    "date_trunc": dates.date_trunc,
    "regexp": functions.regexp,
}

_NODES: dict[type[exp.Expression], Callable[[Translator, Any], Value]] = {
    exp.And: lambda self, node: _boolean(balanced(and_, _until(self, operands(node, exp.And), decided=False))),
    exp.Or: lambda self, node: _boolean(balanced(or_, _until(self, operands(node, exp.Or), decided=True))),
    exp.Not: lambda self, node: _boolean(~self.condition(node.this)),
    exp.Is: _is,
    exp.NullSafeEQ: lambda self, node: _boolean(null_safe_equal(self.value(node.this), self.value(node.expression))),
    exp.NullSafeNEQ: lambda self, node: _boolean(~null_safe_equal(self.value(node.this), self.value(node.expression))),
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _function(functions.like),
    exp.ILike: _function(functions.like),
    exp.RegexpLike: _function(functions.regexp),
    exp.Escape: _escape,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Literal: _number,
    exp.RawString: lambda self, node: literal(node.name, pa.string()),
    exp.HexString: _binary,
    exp.Null: lambda self, node: literal(None, pa.null()),
    exp.Boolean: lambda self, node: literal(bool(node.this), pa.bool_()),
    exp.Neg: _negative,
    exp.If: lambda self, node: _choose(self, [node], None, node.args.get("false")),
    exp.Case: _case,
    exp.Nullif: _nullif,
    exp.Anonymous: _named,
    exp.Concat: _function(functions.concat),
    exp.DPipe: _function(functions.concat),
    exp.Coalesce: _coalesce,
    exp.Upper: _function(functions.change_case),
    exp.Lower: _function(functions.change_case),
    exp.Length: _function(functions.length),
    exp.Trim: _function(functions.trim),
    exp.Substring: _function(functions.substring),
    exp.Contains: _function(functions.contains),
    exp.StartsWith: _function(functions.contains),
    exp.EndsWith: _function(functions.contains),
    exp.Abs: _function(functions.absolute),
    exp.Round: _function(functions.rounded),
    exp.Year: _function(dates.date_part),
    exp.Month: _function(dates.date_part),
    exp.Day: _function(dates.date_part),
    exp.DayOfMonth: _function(dates.date_part),
    exp.Quarter: _function(dates.date_part),
    exp.Hour: _function(dates.time_part),
    exp.Minute: _function(dates.time_part),
    exp.Second: _function(dates.time_part),
    exp.TsOrDsToDate: _function(dates.to_date),
    exp.ArrayContains: _function(arrays.array_contains),
    exp.Interval: _function(dates.interval),
    exp.IsNan: _function(functions.is_nan),
}


def depends_on_zone(node: exp.Expression, translator: Translator) -> bool:
    """Return whether a condition without AND and OR may be true in one time zone and not in another.

    That is so if it has a time with a zone, and anything else than such times, tests for null, and times in text that
    names its zone.
    """
    parts = [part for part in node.find_all(exp.Expression) if not isinstance(part, exp.Literal)]
    values = [value for part in parts if (value := _value(part, translator)) is not None]
    if not any(map(_is_zoned, values)):
        return False
    if any(not _is_zoned(value) and value.family not in ("null", "boolean") for value in values):
        return True
    return not all(one.is_string and names_zone(one.name) for one in node.find_all(exp.Literal))


def _is_zoned(value: Value) -> bool:
    return bool(pa.types.is_timestamp(value.type) and value.type.tz is not None)


def _value(part: exp.Expression, translator: Translator) -> Value | None:
    try:
        return translator.value(part)
    except HoodieError:
        return None  # not an expression of its own, such as the type of a cast
