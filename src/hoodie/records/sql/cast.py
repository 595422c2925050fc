"""CAST between Arrow types with Spark's results.

Text that cannot be read as the target type gives NULL (as in Spark without ANSI mode). A number that does not fit is an
error (as in Spark with ANSI mode).
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError, UnsupportedError
from hoodie.records.sql.dates import date_text, parse_timestamp
from hoodie.records.sql.values import TIMESTAMP_NTZ, Family, Value, decimal_of, fold, literal

_INTEGER = r"^[+-]?\d+(\.\d*)?$"
_FLOAT = r"(?i)^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$|^[+-]?(inf|infinity)$|^nan$"
_DATE = r"^\d{4}-\d{2}-\d{2}$"
_TIMESTAMP = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?$"
_TRUE_WORDS = ("t", "true", "y", "yes", "1")
_FALSE_WORDS = ("f", "false", "n", "no", "0")
# Scale 37 leaves 39 digits before the point: one more than a decimal of Spark can have.
_WIDEST_DECIMAL = pa.decimal256(76, 37)
_LARGEST_PLAIN_SCALE = 6


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
        return literal(parse_timestamp(value.literal, zoned=target.tz is not None), target)
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
    return pc.replace_substring_regex(digits, pattern=r"^\+|\..*$", replacement="").cast(target)


def _text_to_float(value: Value, target: pa.DataType) -> pc.Expression:
    return _if_matches(_trimmed(value), _FLOAT, value).cast(target)


def _text_to_decimal(value: Value, target: pa.DataType) -> pc.Expression:
    digits = pc.replace_substring_regex(_if_matches(_trimmed(value), _FLOAT, value), pattern=r"^\+", replacement="")
    return round_decimal(digits.cast(_WIDEST_DECIMAL), _WIDEST_DECIMAL, target)


def _text_to_date(value: Value, target: pa.DataType) -> pc.Expression:
    day = pc.replace_substring_regex(
        date_text(_trimmed(value)), pattern=r"^(\d{4}-\d{2}-\d{2})[ T].*$", replacement=r"\1"
    )
    return _if_matches(day, _DATE, value).cast(target)


def _text_to_timestamp(value: Value, target: pa.DataType) -> pc.Expression:
    return _if_matches(date_text(_trimmed(value)), _TIMESTAMP, value).cast(TIMESTAMP_NTZ).cast(target)


def _date_to_timestamp(value: Value, target: pa.DataType) -> pc.Expression:
    return value.expression.cast(pa.timestamp(target.unit)).cast(target)


def _timestamp_to_date(value: Value, target: pa.DataType) -> pc.Expression:
    return pc.floor_temporal(utc(value), unit="day").cast(target)


def _timestamp_to_timestamp(value: Value, target: pa.DataType) -> pc.Expression:
    return value.expression.cast(target)


def _timestamp_to_text(value: Value, target: pa.DataType) -> pc.Expression:
    text = utc(value).cast(pa.timestamp(value.type.unit)).cast(target)
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
    ("date", "string"): _plain,
    ("timestamp", "date"): _timestamp_to_date,
    ("timestamp", "timestamp"): _timestamp_to_timestamp,
    ("timestamp", "string"): _timestamp_to_text,
}
