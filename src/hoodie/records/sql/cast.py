"""CAST between Arrow types with Spark's results.

Text that cannot be read as the target type gives NULL (as in Spark without ANSI mode). A number that does not fit is an
error (as in Spark with ANSI mode).
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError, UnsupportedError
from hoodie.records.sql.dates import (
    DATE_PATTERN,
    TIMESTAMP_PATTERN,
    date_text,
    floor_divide,
    parse_date,
    parse_timestamp,
)
from hoodie.records.sql.values import (
    TICKS_PER_SECOND,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Family,
    Value,
    bounds_of,
    decimal_of,
    fold,
    literal,
)

# Numbers of more digits fit no integer.
_INTEGER = r"^[+-]?0*\d{1,38}(\.\d*)?$"
_ANY_INTEGER = pa.decimal128(38, 0)
_FLOAT = r"(?i)^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$|^[+-]?(inf|infinity)$|^nan$"
_TRUE_WORDS = ("t", "true", "y", "yes", "1")
_FALSE_WORDS = ("f", "false", "n", "no", "0")
# Scale 37 leaves 39 digits before the point: one more than a decimal of Spark can have.
_WIDEST_DECIMAL = pa.decimal256(76, 37)
_LARGEST_PLAIN_SCALE = 6
# Arrow writes years of 16 bits. Steps of so many days fit 16 bits up to the year 32,745.
_DAYS_PER_STEP = 365


def cast(value: Value, target: pa.DataType) -> Value:
    """Convert to another type as Spark's CAST does; a literal stays a literal.

    Raises: UnsupportedError for a pair of types that Arrow cannot convert with Spark's results; SchemaMismatchError for
    a literal that is not a value of the target type.
    """
    if value.type == target:
        return value
    family = Value(value.expression, target).family
    if value.family == "null":
        return Value(pc.scalar(pa.scalar(None, target)), target, is_literal=value.is_literal)
    if value.is_literal and isinstance(value.literal, str) and family == "timestamp":
        exact = TIMESTAMP_NTZ if target.tz is None else TIMESTAMP
        return cast(literal(parse_timestamp(value.literal, zoned=target.tz is not None), exact), target)
    if value.is_literal and isinstance(value.literal, str) and family == "date":
        return literal(parse_date(value.literal), target)
    convert = _CASTS.get((value.family, family))
    if convert is None:
        raise UnsupportedError(f"CAST from {value.type} to {target} is not supported without Spark")
    converted = Value(convert(value, target), target)
    if not value.is_literal:
        return converted
    folded = fold(converted)
    if folded.literal is None and value.literal is not None:
        raise SchemaMismatchError(f"{value.literal!r} is not a value of type {target}")
    return folded


def round_decimal(expression: pc.Expression, source: pa.DataType, target: pa.DataType) -> pc.Expression:
    """Convert a decimal to another precision and scale, halves away from zero; evaluation fails if it does not fit."""
    if target.scale < source.scale:
        # Rounding may add a digit (9.99 to 10.0); Arrow's kernel requires a type with room for it.
        expression = expression.cast(pa.decimal256(min(source.precision + 1, 76), source.scale))
        expression = pc.round(expression, ndigits=target.scale, round_mode="half_towards_infinity")
    return expression.cast(target)


def utc(value: Value) -> pc.Expression:
    """Convert a timestamp to a local time in UTC, the session time zone that hoodie's expressions assume."""
    if value.type.tz in (None, "UTC"):
        return value.expression
    return value.expression.cast(pa.timestamp(value.type.unit, "UTC"))


def _plain(value: Value, target: pa.DataType) -> pc.Expression:
    return value.expression.cast(target)


def _unchecked(value: Value, target: pa.DataType) -> pc.Expression:
    # Spark casts to the nearest float; Arrow's checked cast refuses a long that no double equals.
    return value.expression.cast(target, safe=False)


def _to_boolean(value: Value, target: pa.DataType) -> pc.Expression:
    return value.expression != pc.scalar(pa.scalar(0, pa.int8()).cast(value.type))


def _boolean_to_number(value: Value, target: pa.DataType) -> pc.Expression:
    return value.expression.cast(pa.int8()).cast(target)


def _truncated(value: Value, target: pa.DataType) -> pc.Expression:
    return pc.trunc(value.expression).cast(target)


def _integer_to_decimal(value: Value, target: pa.DataType) -> pc.Expression:
    # Arrow requires a decimal with room for every integer of the type, whatever the values.
    widest = decimal_of(Value(value.expression, value.type))
    roomy = pa.decimal128(max(widest.precision, 19), 0)
    return round_decimal(value.expression.cast(pa.int64()).cast(roomy), roomy, target)


def _decimal_to_decimal(value: Value, target: pa.DataType) -> pc.Expression:
    return round_decimal(value.expression, value.type, target)


def _decimal_to_text(value: Value, target: pa.DataType) -> pc.Expression:
    if value.type.scale > _LARGEST_PLAIN_SCALE:
        raise UnsupportedError(
            f"CAST from {value.type} to text is not supported without Spark: Spark adds an exponent to small values"
        )
    return value.expression.cast(target)


def _decimal_to_float(value: Value, target: pa.DataType) -> pc.Expression:
    # Arrow's own cast is not exact: 0.6 becomes 0.6000000000000001. Text is parsed to the nearest float.
    return value.expression.cast(pa.string()).cast(target)


def _trimmed(value: Value) -> pc.Expression:
    return pc.utf8_trim_whitespace(value.expression)


def _if_matches(text: pc.Expression, pattern: str, value: Value) -> pc.Expression:
    nothing = pc.scalar(pa.scalar(None, value.type))
    return pc.if_else(pc.match_substring_regex(text, pattern=pattern), text, nothing)


def _text_to_boolean(value: Value, target: pa.DataType) -> pc.Expression:
    word = pc.utf8_lower(_trimmed(value))
    no = pc.if_else(
        pc.is_in(word, value_set=pa.array(_FALSE_WORDS, value.type)), False, pc.scalar(pa.scalar(None, target))
    )
    return pc.if_else(pc.is_in(word, value_set=pa.array(_TRUE_WORDS, value.type)), True, no)


def _text_to_integer(value: Value, target: pa.DataType) -> pc.Expression:
    digits = _if_matches(_trimmed(value), _INTEGER, value)
    number = pc.replace_substring_regex(digits, pattern=r"^\+|\..*$", replacement="").cast(_ANY_INTEGER)
    low, high = (pc.scalar(pa.scalar(end, _ANY_INTEGER)) for end in bounds_of(target))
    return pc.if_else((number >= low) & (number <= high), number, pc.scalar(pa.scalar(None, _ANY_INTEGER))).cast(target)


def _text_to_float(value: Value, target: pa.DataType) -> pc.Expression:
    return _if_matches(_trimmed(value), _FLOAT, value).cast(target)


def _text_to_decimal(value: Value, target: pa.DataType) -> pc.Expression:
    digits = pc.replace_substring_regex(_if_matches(_trimmed(value), _FLOAT, value), pattern=r"^\+", replacement="")
    return round_decimal(digits.cast(_WIDEST_DECIMAL), _WIDEST_DECIMAL, target)


def _text_to_date(value: Value, target: pa.DataType) -> pc.Expression:
    day = pc.replace_substring_regex(
        date_text(_trimmed(value)), pattern=r"^(\d{4}-\d{2}-\d{2})[ T].*$", replacement=r"\1"
    )
    return _if_matches(day, DATE_PATTERN, value).cast(target)


def _text_to_timestamp(value: Value, target: pa.DataType) -> pc.Expression:
    # Spark ignores digits beyond microseconds.
    text = pc.replace_substring_regex(date_text(_trimmed(value)), pattern=r"(\.\d{6})\d{1,3}$", replacement=r"\1")
    return _if_matches(text, TIMESTAMP_PATTERN, value).cast(TIMESTAMP_NTZ).cast(target)


def _date_to_timestamp(value: Value, target: pa.DataType) -> pc.Expression:
    return value.expression.cast(pa.timestamp(target.unit)).cast(target)


def _timestamp_to_date(value: Value, target: pa.DataType) -> pc.Expression:
    # Arrow's floor_temporal overflows within the first day of the range.
    days = floor_divide(utc(value).cast(pa.int64()), TICKS_PER_SECOND[value.type.unit] * 86_400)
    return days.cast(pa.int32()).cast(target)


def _timestamp_to_timestamp(value: Value, target: pa.DataType) -> pc.Expression:
    return value.expression.cast(target)


def _date_to_text(value: Value, target: pa.DataType) -> pc.Expression:
    return _dated_text(value.expression.cast(target), value.expression.cast(pa.int32()), _DAYS_PER_STEP)


def _dated_text(text: pc.Expression, ticks: pc.Expression, per_step: int) -> pc.Expression:
    """Give long years their sign, and let the evaluation fail where Arrow writes a remark in place of the year."""
    step = pc.divide(ticks.cast(pa.int64()), pc.scalar(pa.scalar(per_step, pa.int64()))).cast(pa.int16())
    signed = pc.replace_substring_regex(text, pattern=r"^(\d{5,})", replacement=r"+\1")
    return pc.if_else(step.is_valid(), signed, text)


def _timestamp_to_text(value: Value, target: pa.DataType) -> pc.Expression:
    text = utc(value).cast(pa.timestamp(value.type.unit)).cast(target)
    per_day = TICKS_PER_SECOND[value.type.unit] * 86_400
    text = _dated_text(text, value.expression.cast(pa.int64()), _DAYS_PER_STEP * per_day)
    return pc.replace_substring_regex(text, pattern=r"\.0+$|(\.\d*[1-9])0+$", replacement=r"\1")


_CASTS: dict[tuple[Family, Family], Callable[[Value, pa.DataType], pc.Expression]] = {
    ("boolean", "integer"): _boolean_to_number,
    ("boolean", "float"): _boolean_to_number,
    ("boolean", "string"): _plain,
    ("integer", "boolean"): _to_boolean,
    ("integer", "integer"): _plain,
    ("integer", "decimal"): _integer_to_decimal,
    ("integer", "float"): _unchecked,
    ("integer", "string"): _plain,
    ("decimal", "integer"): _truncated,
    ("decimal", "decimal"): _decimal_to_decimal,
    ("decimal", "float"): _decimal_to_float,
    ("decimal", "string"): _decimal_to_text,
    ("float", "integer"): _truncated,
    ("float", "float"): _unchecked,
    ("string", "boolean"): _text_to_boolean,
    ("string", "integer"): _text_to_integer,
    ("string", "float"): _text_to_float,
    ("string", "decimal"): _text_to_decimal,
    ("string", "date"): _text_to_date,
    ("string", "timestamp"): _text_to_timestamp,
    ("string", "string"): _plain,
    ("string", "binary"): _plain,
    ("binary", "binary"): _plain,
    ("date", "timestamp"): _date_to_timestamp,
    ("date", "string"): _date_to_text,
    ("timestamp", "date"): _timestamp_to_date,
    ("timestamp", "timestamp"): _timestamp_to_timestamp,
    ("timestamp", "string"): _timestamp_to_text,
}
