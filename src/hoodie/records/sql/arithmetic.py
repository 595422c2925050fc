"""Arithmetic with Spark's result types. Division by zero gives NULL; an overflow of the result type is an error."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import UnsupportedError
from hoodie.records.sql.cast import cast, round_decimal
from hoodie.records.sql.dates import add_days
from hoodie.records.sql.values import MAX_PRECISION, Value, decimal_of, null_of, shared_type

_NUMBERS = {"integer", "decimal", "float", "null"}
_SMALLEST_KEPT_SCALE = 6
_DECIMAL_256_DIGITS = 76
_Kernel = Callable[[pc.Expression, pc.Expression], pc.Expression]
_KERNELS: dict[str, _Kernel] = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}


def arithmetic(symbol: str, left: Value, right: Value) -> Value:
    """Compute `left symbol right` for `+ - * / div %`; days are added to dates.

    Raises: UnsupportedError for operands that are not numbers, `%` of fractions, and decimals beyond 76 digits.
    """
    if left.family == "date" and symbol in ("+", "-") and (later := add_days(left, symbol, right)) is not None:
        return later
    if {left.family, right.family} - _NUMBERS:
        raise UnsupportedError(f"{left.type} {symbol} {right.type} is not supported without Spark")
    if "null" in (left.family, right.family):
        both = right if left.family == "null" else left
        return Value(null_of(both.type), both.type)
    families = {left.family, right.family}
    if symbol in ("div", "%"):
        return _whole_division(symbol, left, right)
    if symbol == "/" and (families == {"integer"} or "float" in families):
        left, right = cast(left, pa.float64()), cast(right, pa.float64())
        return Value(pc.divide(left.expression, _null_if_zero(right)), pa.float64())
    if "decimal" in families and "float" not in families:
        return _decimal(symbol, left, right)
    shared = shared_type(left, right)
    return Value(_KERNELS[symbol](cast(left, shared).expression, cast(right, shared).expression), shared)


def negate(value: Value) -> Value:
    """Change the sign."""
    if value.family not in _NUMBERS - {"null"}:
        raise UnsupportedError(f"- {value.type} is not supported without Spark")
    return Value(pc.negate_checked(value.expression), value.type)


def _null_if_zero(value: Value) -> pc.Expression:
    zero = pc.scalar(pa.scalar(0, value.type))
    return pc.if_else(value.expression == zero, null_of(value.type), value.expression)


def _whole_division(symbol: str, left: Value, right: Value) -> Value:
    if {left.family, right.family} != {"integer"}:
        raise UnsupportedError(
            f"{left.type} {symbol} {right.type} is not supported without Spark; it is only for integers"
        )
    shared = pa.int64() if symbol == "div" else shared_type(left, right)
    left, right = cast(left, shared), cast(right, shared)
    divisor = _null_if_zero(right)
    if symbol == "div":
        return Value(pc.divide_checked(left.expression, divisor), shared)
    # The smallest integer divided by -1 fits no integer; the rest is 0, as of a division by 1.
    divisor = pc.if_else(divisor == pc.scalar(pa.scalar(-1, shared)), pc.scalar(pa.scalar(1, shared)), divisor)
    quotient = pc.divide(left.expression, divisor)
    return Value(pc.subtract(left.expression, pc.multiply(quotient, divisor)), shared)


def _decimal(symbol: str, left: Value, right: Value) -> Value:
    """Compute exactly, in 256 bits if needed, and round to the result scale of Spark's rules."""
    a, b = decimal_of(left), decimal_of(right)
    if symbol == "*":
        precision, scale = a.precision + b.precision + 1, a.scale + b.scale
    elif symbol == "/":
        scale = max(6, a.scale + b.precision + 1)
        precision = a.precision - a.scale + b.scale + scale
    else:
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale + 1
    target = _bounded(precision, scale)
    x, y = cast(left, a), cast(right, b)
    if symbol == "/":
        return Value(_divide(x, y, target), target)
    if precision <= MAX_PRECISION:
        return Value(_KERNELS[symbol](x.expression, y.expression).cast(target), target)
    if precision > _DECIMAL_256_DIGITS:
        raise UnsupportedError(f"{left.type} {symbol} {right.type} has too many digits; CAST one to a narrower decimal")
    exact = _KERNELS[symbol](_wide(x, a.scale), _wide(y, b.scale))
    return Value(round_decimal(exact, pa.decimal256(precision, scale), target), target)


def _divide(left: Value, right: Value, target: pa.DataType) -> pc.Expression:
    a, b = left.type, right.type
    # Arrow's quotient has scale `a.scale + b.precision - b.scale + 1` and is truncated, not rounded: compute one more
    # digit than the result keeps, and round that digit.
    scale = a.scale + max(0, target.scale + b.scale - a.scale - b.precision)
    precision = a.precision - a.scale + scale
    quotient_scale = max(4, scale + b.precision - b.scale + 1)
    quotient_precision = precision - scale + b.scale + quotient_scale
    if quotient_precision > _DECIMAL_256_DIGITS:
        raise UnsupportedError(f"{a} / {b} has too many digits; CAST one of them to a narrower decimal")
    divisor = Value(_wide(right, b.scale), pa.decimal256(b.precision, b.scale))
    dividend = left.expression.cast(pa.decimal256(precision, scale))
    quotient = pc.divide(dividend, _null_if_zero(divisor))
    return round_decimal(quotient, pa.decimal256(quotient_precision, quotient_scale), target)


def _wide(value: Value, scale: int) -> pc.Expression:
    return value.expression.cast(pa.decimal256(value.type.precision, scale))


def _bounded(precision: int, scale: int) -> pa.DataType:
    """Limit a decimal to 38 digits as Spark does.

    Digits before the point have priority; up to six digits after the point are kept in any case.
    """
    if precision <= MAX_PRECISION:
        return pa.decimal128(precision, scale)
    kept = max(MAX_PRECISION - (precision - scale), min(scale, _SMALLEST_KEPT_SCALE))
    return pa.decimal128(MAX_PRECISION, kept)
