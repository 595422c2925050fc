"""The Spark functions that Arrow computes with the same results, one small function each."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.errors import SchemaMismatchError
from hoodie.records.sql import text
from hoodie.records.sql.cast import cast, round_decimal, utc
from hoodie.records.sql.compare import null_boolean
from hoodie.records.sql.dates import year
from hoodie.records.sql.parse import chain, unsupported
from hoodie.records.sql.values import Value, literal, shared_type

Translate = Callable[[exp.Expression], Value]

_DATE_PARTS: dict[type[exp.Expression], Callable[[pc.Expression], pc.Expression]] = {
    exp.Year: year,
    exp.Month: pc.month,
    exp.Day: pc.day,
    exp.DayOfMonth: pc.day,
    exp.Quarter: pc.quarter,
}
_TIME_PARTS: dict[type[exp.Expression], Callable[[pc.Expression], pc.Expression]] = {
    exp.Hour: pc.hour,
    exp.Minute: pc.minute,
    exp.Second: pc.second,
}


def common(values: list[Value]) -> tuple[list[Value], pa.DataType]:
    """Convert the branches of COALESCE, IF or CASE to one type.

    Raises: SchemaMismatchError if they have no common type.
    """
    seed = Value(values[0].expression, pa.null())
    for value in values:
        # Between branches a literal has its whole type: 1 is an int of ten digits; in arithmetic it has one digit.
        shared = shared_type(seed, Value(value.expression, value.type))
        if shared is None:
            raise SchemaMismatchError(
                f"branches of types {seed.type} and {value.type} have no common type; CAST one of them"
            )
        seed = Value(value.expression, shared)
    return [cast(value, seed.type) for value in values], seed.type


def coalesce(arguments: list[Value]) -> Value:
    """Translate COALESCE, NVL, IFNULL."""
    values, data_type = common(arguments)
    return Value(pc.coalesce(*[value.expression for value in values]), data_type)


def choose(cases: list[tuple[pc.Expression, Value]], default: Value | None) -> Value:
    """Translate CASE and IF: the first case whose condition is true (not NULL), else the default, else NULL."""
    nothing = Value(pc.scalar(None), pa.null(), is_literal=True)
    values, data_type = common([*[value for _, value in cases], default or nothing])
    chosen = values[-1].expression
    for (condition, _), value in zip(reversed(cases), reversed(values[:-1]), strict=True):
        # Arrow's if_else gives NULL for a NULL condition; SQL tests the next case.
        chosen = pc.if_else(pc.coalesce(condition, False), value.expression, chosen)
    return Value(chosen, data_type)


def change_case(node: exp.Upper | exp.Lower, translate: Translate) -> Value:
    """Translate UPPER and LOWER, character by character (`ß` stays one character)."""
    value = as_text(translate(node.this), node)
    change = pc.utf8_upper if isinstance(node, exp.Upper) else pc.utf8_lower
    return Value(change(value.expression), value.type)


def length(node: exp.Length, translate: Translate) -> Value:
    """Translate LENGTH: characters of text, bytes of binary."""
    value = translate(node.this)
    if value.family == "binary":
        return Value(pc.binary_length(value.expression).cast(pa.int32()), pa.int32())
    return Value(pc.utf8_length(as_text(value, node).expression).cast(pa.int32()), pa.int32())


def concat(node: exp.Concat | exp.DPipe, translate: Translate) -> Value:
    """Translate CONCAT and `||`."""
    parts = node.expressions
    if isinstance(node, exp.DPipe):
        spine = chain(node)
        parts = [spine[-1].this, *(link.expression for link in reversed(spine))]
    values, data_type = common([as_text(translate(part), node) for part in parts])
    return Value(text.concat(values, data_type), data_type)


def trim(node: exp.Trim, translate: Translate) -> Value:
    """Translate TRIM, LTRIM, RTRIM: spaces, or the literal characters given."""
    value = as_text(translate(node.this), node)
    position = str(node.args.get("position") or "BOTH").upper()
    characters = " " if node.expression is None else literal_text(node.expression, node, translate)
    return Value(text.trim(value, position, characters), value.type)


def substring(node: exp.Substring, translate: Translate) -> Value:
    """Translate SUBSTRING and SUBSTR with literal positions."""
    value = as_text(translate(node.this), node)
    start = 1 if node.args.get("start") is None else literal_integer(node.args["start"], node, translate)
    wanted = node.args.get("length")
    return Value(
        text.substring(value, start, None if wanted is None else literal_integer(wanted, node, translate)), value.type
    )


def contains(node: exp.Contains | exp.StartsWith | exp.EndsWith, translate: Translate) -> Value:
    """Translate CONTAINS, STARTSWITH, ENDSWITH with a literal."""
    value = as_text(translate(node.this), node)
    part = literal_text(node.expression, node, translate)
    if isinstance(node, exp.StartsWith):
        return Value(text.starts_with(value, part), pa.bool_())
    test = pc.match_substring if isinstance(node, exp.Contains) else pc.ends_with
    return Value(test(value.expression, pattern=part), pa.bool_())


def like(node: exp.Like | exp.ILike, translate: Translate, escape: str = "\\") -> Value:
    """Translate LIKE and ILIKE with a literal pattern."""
    pattern = translate(node.expression) if isinstance(node.expression, exp.Expression) else None
    if pattern is not None and pattern.is_null_literal:
        return Value(null_boolean(), pa.bool_())
    value = as_text(translate(node.this), node)
    wanted = literal_text(node.expression, node, translate)
    found = text.like(value, wanted, escape=escape, ignore_case=isinstance(node, exp.ILike))
    return Value(~found if node.args.get("negate") else found, pa.bool_())


def absolute(node: exp.Abs, translate: Translate) -> Value:
    """Translate ABS of a number; the smallest integer of a type is an error."""
    value = translate(node.this)
    if value.family not in ("integer", "decimal", "float"):
        raise unsupported(node, f"of {value.type}")
    return Value(pc.abs_checked(value.expression), value.type)


def rounded(node: exp.Round, translate: Translate) -> Value:
    """Translate ROUND, halves away from zero: decimals and integers to any digits, floats to integers only."""
    value = translate(node.this)
    decimals = node.args.get("decimals")
    digits = 0 if decimals is None else literal_integer(decimals, node, translate)
    if digits < 0 or value.family not in ("integer", "decimal", "float"):
        raise unsupported(node, f"of {value.type} to {digits} digits")
    if value.family == "integer" or (value.family == "decimal" and digits >= value.type.scale):
        return value
    if value.family == "decimal":
        target = pa.decimal128(min(38, value.type.precision - value.type.scale + digits + 1), digits)
        return Value(round_decimal(value.expression, value.type, target), target)
    if digits:
        # Spark rounds the shortest text of the number (1.005 gives 1.01), Arrow the binary value (1.0).
        raise unsupported(
            node, f"of {value.type} to digits after the point; CAST to a decimal column in the table instead"
        )
    return Value(pc.round(value.expression, round_mode="half_towards_infinity"), value.type)


def date_part(node: exp.Expression, translate: Translate) -> Value:
    """Translate YEAR, QUARTER, MONTH, DAY of a date, timestamp (in UTC) or text."""
    inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
    value = cast(translate(inner), pa.date32())
    return Value(_DATE_PARTS[type(node)](value.expression).cast(pa.int32()), pa.int32())


def time_part(node: exp.Expression, translate: Translate) -> Value:
    """Translate HOUR, MINUTE, SECOND of a timestamp, in UTC."""
    value = translate(node.this)
    if value.family != "timestamp":
        raise unsupported(node, f"of {value.type}")
    return Value(_TIME_PARTS[type(node)](utc(value)).cast(pa.int32()), pa.int32())


def to_date(node: exp.TsOrDsToDate, translate: Translate) -> Value:
    """Translate TO_DATE without a format."""
    if node.args.get("format") is not None:
        raise unsupported(node, "with a format")
    return cast(translate(node.this), pa.date32())


def is_nan(node: exp.IsNan, translate: Translate) -> Value:
    """Translate ISNAN; false for NULL, as in Spark."""
    value = translate(node.this)
    if value.family != "float":
        raise unsupported(node, f"of {value.type}")
    return Value(pc.coalesce(pc.is_nan(value.expression), False), pa.bool_())


def as_text(value: Value, node: exp.Expression) -> Value:
    """Convert an argument to text, as Spark does implicitly."""
    if value.family == "string":
        return value
    if value.family in ("nested", "binary"):
        raise unsupported(node, f"of {value.type}")
    return cast(value, pa.string())


def literal_text(argument: object, node: exp.Expression, translate: Translate) -> str:
    """Return the text of an argument that must be literal text."""
    value = translate(argument) if isinstance(argument, exp.Expression) else None
    if value is None or not value.is_literal or not isinstance(value.literal, str):
        raise unsupported(node, "only with literal text as an argument")
    return value.literal


def literal_integer(argument: exp.Expression, node: exp.Expression, translate: Translate) -> int:
    """Return the value of an argument that must be a literal integer."""
    value = translate(argument)
    if not value.is_literal or not isinstance(value.literal, int):
        raise unsupported(node, "only with a literal integer as an argument")
    return value.literal


def concat_literals(node: exp.Concat) -> Value | None:
    """Join adjacent literals (`'a' 'b'`); return None if the node is a call of CONCAT with other arguments."""
    if not all(isinstance(one, exp.Literal) and one.is_string for one in node.expressions):
        return None
    return literal("".join(one.name for one in node.expressions), pa.string())
