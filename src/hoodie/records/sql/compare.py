"""Comparisons with Spark's results: coercion of the operands, NaN equal to itself and above every number, IN with NULL.

A literal is converted to the column's type wherever that is exact: the column needs no cast, and Parquet statistics
apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne, or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError, UnsupportedError
from hoodie.records.sql.cast import cast
from hoodie.records.sql.parse import balanced
from hoodie.records.sql.values import (
    TICKS_PER_SECOND,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Family,
    Value,
    bounds_of,
    family_of,
    null_of,
    shared_type,
)

# One of the six comparison functions of `operator`, which Arrow expressions overload.
Operator = Callable[[Any, Any], Any]

_MIRRORED: dict[Operator, Operator] = {eq: eq, ne: ne, lt: gt, gt: lt, le: ge, ge: le}
_NUMBERS: frozenset[Family] = frozenset({"integer", "decimal", "float"})
_SECONDS_PER_DAY = 86_400
# Up to this value every integer equals a different double, so integers and doubles compare the same.
_EXACT_DOUBLE_MAX = 2**53
_LONGEST_OR = 16


@dataclass(frozen=True, slots=True)
class _Grid:
    """The values of a column type as whole multiples of a step: `low` to `high`, both inclusive."""

    ticks_per_unit: Fraction
    low: int
    high: int
    make: Callable[[int], pa.Scalar]


def compare(operator: Operator, left: Value, right: Value) -> pc.Expression:
    """Compare two operands; the result is NULL where an operand is NULL.

    Raises: SchemaMismatchError for types that Spark does not compare, or text that is not a value of the other
    operand's type.
    """
    if left.is_null_literal or right.is_null_literal:
        return null_of(pa.bool_())
    if left.is_literal and not right.is_literal:
        return compare(_MIRRORED[operator], right, left)
    right = _read_text(right, left)
    left = _read_text(left, right)
    if right.is_literal and not left.is_literal:
        direct = _compare_on_grid(operator, left, right)
        if direct is not None:
            return direct
        left, right = _exact_float(left, right)
    shared = shared_type(left, right)
    if shared is None or family_of(shared) == "nested":
        is_day = {left.family, right.family} in ({"date", "integer"}, {"timestamp", "integer"})
        advice = "write a date in quotes: day = '2026-11-05'" if is_day else "CAST one of them"
        raise SchemaMismatchError(f"cannot compare {left.type} with {right.type}; {advice}")
    if family_of(shared) == "string" and left.type != right.type:
        left, right = cast(left, pa.large_string()), cast(right, pa.large_string())
    left, right = cast(left, shared), cast(right, shared)
    if family_of(shared) == "float":
        return _compare_floats(operator, left, right)
    return operator(left.expression, right.expression)


def null_safe_equal(left: Value, right: Value) -> pc.Expression:
    """Compare with `<=>`: NULL equals NULL, and the result is never NULL."""
    if right.is_null_literal:
        return left.expression.is_null()
    if left.is_null_literal:
        return right.expression.is_null()
    same = compare(eq, left, right)
    if right.is_literal or left.is_literal:
        given = left if right.is_literal else right
        return given.expression.is_valid() & same
    return pc.coalesce(same, left.expression.is_null() & right.expression.is_null())


def is_in(value: Value, options: list[Value]) -> pc.Expression:
    """Test membership: true when an option is equal, else NULL when the value or an option is NULL, else false."""
    given = [option for option in options if not option.is_null_literal]
    if value.is_null_literal or not given:
        return null_of(pa.bool_())
    if any((value.family == "string") != (option.family == "string") for option in given if option.family in _NUMBERS):
        raise UnsupportedError("IN between text and numbers depends on Spark's settings; CAST one of them")
    found = _in_value_set(value, given) if len(given) > _LONGEST_OR else None
    if found is None:
        found = balanced(or_, [compare(eq, value, option) for option in given])
    return found | null_of(pa.bool_()) if len(given) < len(options) else found


def _in_value_set(value: Value, options: list[Value]) -> pc.Expression | None:
    """Use Arrow's hash set for a long list; return None if the types require separate comparisons."""
    if value.family in ("float", "nested") or not all(option.is_literal for option in options):
        return None
    scalars: list[pa.Scalar] = []
    for option in options:
        equal = equal_scalars(option, value)
        if equal is None:
            return None
        scalars += equal
    found = pc.is_in(value.expression, value_set=pa.array(scalars, value.type))
    return pc.if_else(value.expression.is_valid(), found, null_of(pa.bool_()))


def equal_scalars(option: Value, column: Value) -> list[pa.Scalar] | None:
    """List the values of a column's type that equal a literal (none or one); return None if that is not possible."""
    option = _read_text(option, column)
    if option.family == column.family and column.family in ("string", "binary", "boolean"):
        return [pa.scalar(option.literal, column.type)]
    grid, number = _grid_of(column), _number(option, column)
    if grid is None or number is None:
        return None
    tick = number * grid.ticks_per_unit
    fits = tick.denominator == 1 and grid.low <= tick <= grid.high
    return [grid.make(int(tick))] if fits else []


def _read_text(value: Value, other: Value) -> Value:
    """Convert text to the other operand's kind of value: long for integers, double for other numbers, date etc."""
    if value.family != "string" or other.family in ("string", "null"):
        return value
    target = {
        "integer": pa.int64(),
        "decimal": pa.float64(),
        "float": pa.float64(),
        "date": pa.date32(),
        "timestamp": TIMESTAMP_NTZ if pa.types.is_timestamp(other.type) and other.type.tz is None else TIMESTAMP,
        "boolean": pa.bool_(),
        "binary": other.type,
    }.get(other.family)
    if target is None:
        raise SchemaMismatchError(f"cannot compare {value.type} with {other.type}")
    return cast(value, target)


def _compare_on_grid(operator: Operator, column: Value, right: Value) -> pc.Expression | None:
    """Compare a column with the nearest values of its own type; return None if the types must be widened instead."""
    grid, number = _grid_of(column), _number(right, column)
    if grid is None or number is None:
        return None
    tick = number * grid.ticks_per_unit
    if tick > grid.high or tick < grid.low:
        answer = operator is ne or ((operator in (lt, le)) == (tick > grid.high) and operator is not eq)
        return pc.if_else(column.expression.is_valid(), answer, null_of(pa.bool_()))
    if tick.denominator == 1:
        return operator(column.expression, pc.scalar(grid.make(int(tick))))
    if operator in (eq, ne):
        return pc.if_else(column.expression.is_valid(), operator is ne, null_of(pa.bool_()))
    if operator in (lt, le):
        return le(column.expression, pc.scalar(grid.make(math.floor(tick))))
    return ge(column.expression, pc.scalar(grid.make(math.ceil(tick))))


def _grid_of(column: Value) -> _Grid | None:
    data_type = column.type
    if column.family == "integer":
        low, high = bounds_of(data_type)
        return _Grid(Fraction(1), low, high, lambda tick: pa.scalar(tick, data_type))
    if column.family == "decimal":
        high = 10**data_type.precision - 1
        return _Grid(
            Fraction(10) ** data_type.scale,
            -high,
            high,
            # Made from digits: arithmetic on Decimal rounds to the 28 digits of Python's default context.
            lambda tick: pa.scalar(
                Decimal((int(tick < 0), tuple(map(int, str(abs(tick)))), -data_type.scale)), data_type
            ),
        )
    if column.family == "date":
        return _Grid(
            Fraction(1, _SECONDS_PER_DAY), -(2**31), 2**31 - 1, lambda tick: pa.scalar(tick, pa.int32()).cast(data_type)
        )
    if column.family == "timestamp":
        ticks = Fraction(TICKS_PER_SECOND[data_type.unit])
        low, high = bounds_of(pa.int64())
        return _Grid(ticks, low, high, lambda tick: pa.scalar(tick, data_type))
    return None


def _number(right: Value, column: Value) -> Fraction | None:
    """Return a literal's exact value in the unit of the column's grid (1, or seconds since 1970), or None."""
    value = right.literal
    if column.family in ("integer", "decimal") and right.family in ("integer", "decimal"):
        assert isinstance(value, (int, Decimal))
        return Fraction(value)
    if column.family == "integer" and right.family == "float":
        assert isinstance(value, float)
        return Fraction(value) if math.isfinite(value) and abs(value) < _EXACT_DOUBLE_MAX else None
    if column.family in ("date", "timestamp") and isinstance(value, pa.Date32Scalar):
        return Fraction(value.value * _SECONDS_PER_DAY)
    if column.family in ("date", "timestamp") and isinstance(value, pa.TimestampScalar):
        return Fraction(value.value, TICKS_PER_SECOND[right.type.unit])
    return None


def _exact_float(left: Value, right: Value) -> tuple[Value, Value]:
    """Convert a number to a float column's type if that is exact; otherwise convert both to double, as Spark does."""
    if left.family != "float" or right.family not in _NUMBERS:
        return left, right
    right = cast(right, pa.float64())
    if left.type == pa.float32():
        number = right.literal
        assert isinstance(number, float)
        with np.errstate(over="ignore"):
            exact = math.isnan(number) or float(np.float32(number)) == number
        return (left, cast(right, left.type)) if exact else (cast(left, pa.float64()), right)
    return left, right


def _compare_floats(operator: Operator, left: Value, right: Value) -> pc.Expression:
    """Compare with NaN equal to NaN and greater than everything else."""
    a, b = left.expression, right.expression
    if right.is_literal and isinstance(right.literal, float) and not math.isnan(right.literal):
        return operator(a, b) | pc.is_nan(a) if operator in (gt, ge) else operator(a, b)
    if operator in (gt, le):
        a, b = b, a
    equal = (a == b) | (pc.is_nan(a) & pc.is_nan(b))
    less = (a < b) | (pc.is_nan(b) & ~pc.is_nan(a))
    answer = equal if operator in (eq, ne) else less
    return ~answer if operator in (ne, le, ge) else answer
