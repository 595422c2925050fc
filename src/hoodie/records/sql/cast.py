"""CAST with Spark's results: type names, and values of one Arrow type as values of another.

Text that cannot be read as the target type gives NULL (as in Spark without ANSI mode). A number that does not fit is an
error (as in Spark with ANSI mode). Dates and timestamps in text have the forms that Spark reads; times without a zone
are UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.errors import SchemaMismatchError, UnsupportedError
from hoodie.records.sql.parse import unsupported
from hoodie.records.sql.values import (
    MAX_PRECISION,
    TICKS_PER_SECOND,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Family,
    Value,
    bounds_of,
    decimal_of,
    fold,
    literal,
    null_of,
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
_TYPES: dict[object, pa.DataType] = {
    exp.DataType.Type.BOOLEAN: pa.bool_(),
    exp.DataType.Type.TINYINT: pa.int8(),
    exp.DataType.Type.SMALLINT: pa.int16(),
    exp.DataType.Type.INT: pa.int32(),
    exp.DataType.Type.BIGINT: pa.int64(),
    exp.DataType.Type.FLOAT: pa.float32(),
    exp.DataType.Type.DOUBLE: pa.float64(),
    exp.DataType.Type.TEXT: pa.string(),
    exp.DataType.Type.BINARY: pa.binary(),
    exp.DataType.Type.DATE: pa.date32(),
    exp.DataType.Type.TIMESTAMP: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPLTZ: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPNTZ: TIMESTAMP_NTZ,
}
_DEFAULT_PRECISION = 10
_DIGITS_MAX = 10
_DATE: Final = re.compile(r"\s*(?P<year>[+-]?\d{4,7})(-(?P<month>\d{1,2})(-(?P<day>\d{1,2})([ T].*)?)?)?\s*", re.DOTALL)
_TIMESTAMP: Final = re.compile(
    r"\s*(?P<year>[+-]?\d{4,6})(-(?P<month>\d{1,2})(-(?P<day>\d{1,2})"
    r"([ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(:(?P<second>\d{1,2})(\.(?P<fraction>\d{0,9}))?)?"
    r"\s*(?P<zone>Z|UTC|[+-]\d{1,2}(:?\d{2})?)?)?)?)?\s*"
)
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_YEARS, _DAYS_OF_YEARS = 400, 146_097
"""The calendar repeats every 400 years."""
_DAY = (
    r"(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    r"|02-(?:0[1-9]|1\d|2[0-8]))|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?"
_OTHER_YEAR = r"(?:[+-]\d{4,7}|\d{5,7})(?:-\d{1,2}(?:-\d{1,2}(?:[ T].*)?)?)?"
_DATE_PATTERN = rf"^(?:{_DAY}|{_OTHER_YEAR})$"
"""Texts that `_date_text` completed and that are dates; those with years of other than four digits Arrow refuses."""
_TIMESTAMP_PATTERN = rf"^{_DAY}(?:[ T]{_TIME})?$|^{_OTHER_YEAR}$|^{_DAY}[ T]\s*\d{{1,2}}:"
"""Texts that are timestamps, and those that may be one for Spark and that Arrow refuses (zones, hours of one digit)."""


def cast(value: Value, target: pa.DataType) -> Value:
    """Convert to another type as Spark's CAST does; a literal stays a literal.

    Raises: UnsupportedError for a pair of types that Arrow cannot convert with Spark's results; SchemaMismatchError for
    a literal that is not a value of the target type.
    """
    if value.type == target:
        return value
    family = Value(value.expression, target).family
    if value.family == "null":
        return Value(null_of(target), target, is_literal=value.is_literal)
    if value.is_literal and isinstance(value.literal, str) and family == "timestamp":
        exact = TIMESTAMP_NTZ if target.tz is None else TIMESTAMP
        return cast(literal(_parse_timestamp(value.literal, zoned=target.tz is not None), exact), target)
    if value.is_literal and isinstance(value.literal, str) and family == "date":
        return literal(_parse_date(value.literal), target)
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


def _boolean_to_number(value: Value, target: pa.DataType) -> pc.Expression:
    return value.expression.cast(pa.int8()).cast(target)


def _truncated(value: Value, target: pa.DataType) -> pc.Expression:
    return pc.trunc(value.expression).cast(target)


def _integer_to_decimal(value: Value, target: pa.DataType) -> pc.Expression:
    # Arrow requires a decimal with room for every integer of the type, whatever the values.
    widest = decimal_of(Value(value.expression, value.type))
    roomy = pa.decimal128(max(widest.precision, 19), 0)
    return round_decimal(value.expression.cast(pa.int64()).cast(roomy), roomy, target)


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
    return pc.if_else(pc.match_substring_regex(text, pattern=pattern), text, null_of(value.type))


def _text_to_boolean(value: Value, target: pa.DataType) -> pc.Expression:
    word = pc.utf8_lower(_trimmed(value))
    no = pc.if_else(pc.is_in(word, value_set=pa.array(_FALSE_WORDS, value.type)), False, null_of(target))
    return pc.if_else(pc.is_in(word, value_set=pa.array(_TRUE_WORDS, value.type)), True, no)


def _text_to_integer(value: Value, target: pa.DataType) -> pc.Expression:
    digits = _if_matches(_trimmed(value), _INTEGER, value)
    number = pc.replace_substring_regex(digits, pattern=r"^\+|\..*$", replacement="").cast(_ANY_INTEGER)
    low, high = (pc.scalar(pa.scalar(end, _ANY_INTEGER)) for end in bounds_of(target))
    return pc.if_else((number >= low) & (number <= high), number, null_of(_ANY_INTEGER)).cast(target)


def _text_to_decimal(value: Value, target: pa.DataType) -> pc.Expression:
    digits = pc.replace_substring_regex(_if_matches(_trimmed(value), _FLOAT, value), pattern=r"^\+", replacement="")
    return round_decimal(digits.cast(_WIDEST_DECIMAL), _WIDEST_DECIMAL, target)


def _text_to_date(value: Value, target: pa.DataType) -> pc.Expression:
    day = pc.replace_substring_regex(
        _date_text(_trimmed(value)), pattern=r"^(\d{4}-\d{2}-\d{2})[ T].*$", replacement=r"\1"
    )
    return _if_matches(day, _DATE_PATTERN, value).cast(target)


def _text_to_timestamp(value: Value, target: pa.DataType) -> pc.Expression:
    # Spark ignores digits beyond microseconds.
    text = pc.replace_substring_regex(_date_text(_trimmed(value)), pattern=r"(\.\d{6})\d{1,3}$", replacement=r"\1")
    return _if_matches(text, _TIMESTAMP_PATTERN, value).cast(TIMESTAMP_NTZ).cast(target)


def _timestamp_to_date(value: Value, target: pa.DataType) -> pc.Expression:
    # Arrow's floor_temporal overflows within the first day of the range.
    days = floor_divide(utc(value).cast(pa.int64()), TICKS_PER_SECOND[value.type.unit] * 86_400)
    return days.cast(pa.int32()).cast(target)


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
    ("integer", "boolean"): lambda value, _: value.expression != pc.scalar(pa.scalar(0, pa.int8()).cast(value.type)),
    ("integer", "integer"): _plain,
    ("integer", "decimal"): _integer_to_decimal,
    ("integer", "float"): _unchecked,
    ("integer", "string"): _plain,
    ("decimal", "integer"): _truncated,
    ("decimal", "decimal"): lambda value, target: round_decimal(value.expression, value.type, target),
    ("decimal", "float"): _decimal_to_float,
    ("decimal", "string"): _decimal_to_text,
    ("float", "integer"): _truncated,
    ("float", "float"): _unchecked,
    ("string", "boolean"): _text_to_boolean,
    ("string", "integer"): _text_to_integer,
    ("string", "float"): lambda value, target: _if_matches(_trimmed(value), _FLOAT, value).cast(target),
    ("string", "decimal"): _text_to_decimal,
    ("string", "date"): _text_to_date,
    ("string", "timestamp"): _text_to_timestamp,
    ("string", "string"): _plain,
    ("string", "binary"): _plain,
    ("binary", "binary"): _plain,
    ("date", "timestamp"): lambda value, target: value.expression.cast(pa.timestamp(target.unit)).cast(target),
    ("date", "string"): _date_to_text,
    ("timestamp", "date"): _timestamp_to_date,
    ("timestamp", "timestamp"): _plain,
    ("timestamp", "string"): _timestamp_to_text,
}


def _parse_date(text: str) -> int:
    """Read `[+-]yyyy[-M[-d]]` with years of up to seven digits; return the days since 1970.

    Raises: SchemaMismatchError for any other text.
    """
    match = _DATE.fullmatch(text)
    if match is None:
        raise SchemaMismatchError(f"{text!r} is not a date; write it like '2024-01-31'")
    days = _days(match, text, "date")
    if not -(2**31) <= days < 2**31:
        raise SchemaMismatchError(f"{text!r} is not a date: its year is out of range")
    return days


def _parse_timestamp(text: str, *, zoned: bool) -> int:
    """Read `[+-]yyyy[-M[-d[ H:m[:s[.ffffff]]][zone]]]`; return the microseconds since 1970.

    With `zoned` they are counted in UTC, else on the local clock as written.

    Raises: SchemaMismatchError for any other text, region names of time zones included.
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise SchemaMismatchError(
            f"{text!r} is not a timestamp; write it like '2024-01-31 12:00:00', in UTC or with an offset"
        )
    part = match.groupdict()
    hour, minute, second = (int(part[name] or 0) for name in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        raise SchemaMismatchError(f"{text!r} is not a timestamp: hours go to 23, minutes and seconds to 59")
    moment = timedelta(
        hours=hour, minutes=minute, seconds=second, microseconds=int((part["fraction"] or "").ljust(6, "0")[:6])
    )
    if zoned:
        moment -= _offset(part["zone"])
    microseconds = _days(match, text, "timestamp") * 86_400_000_000 + moment // timedelta(microseconds=1)
    if not -(2**63) <= microseconds < 2**63:
        raise SchemaMismatchError(f"{text!r} is not a timestamp: its year is out of range")
    return microseconds


def _days(match: re.Match[str], text: str, kind: str) -> int:
    """Return the days since 1970; Python's dates have the years 1 to 9999 only."""
    year = int(match["year"])
    near = 2000 + year % _YEARS
    try:
        day = date(near, int(match["month"] or 1), int(match["day"] or 1))
    except ValueError as error:
        raise SchemaMismatchError(f"{text!r} is not a {kind}: {error}") from error
    return day.toordinal() - _EPOCH_DAY + (year - near) // _YEARS * _DAYS_OF_YEARS


def names_zone(text: str) -> bool:
    """Return whether the text is a timestamp with a zone, which is the same time in every time zone."""
    match = _TIMESTAMP.fullmatch(text)
    return match is not None and match["zone"] is not None


def _date_text(text: pc.Expression) -> pc.Expression:
    """Complete the date at the start of each text to `yyyy-MM-dd`; other text stays as it is."""
    for pattern, replacement in (
        (r"^(\d{4})$", r"\1-01"),
        (r"^(\d{4}-\d{1,2})$", r"\1-01"),
        (r"^(\d{4})-(\d)-", r"\1-0\2-"),
        (r"^(\d{4}-\d{2})-(\d)($|[ T])", r"\1-0\2\3"),
    ):
        text = pc.replace_substring_regex(text, pattern=pattern, replacement=replacement)
    return text


def floor_divide(number: pc.Expression, divisor: int) -> pc.Expression:
    """Divide whole numbers of 64 bits, rounded down; no number overflows."""
    by = pc.scalar(pa.scalar(divisor, pa.int64()))
    quotient = pc.divide(number, by)
    is_below = pc.multiply(quotient, by) > number
    return pc.if_else(is_below, pc.subtract(quotient, pc.scalar(pa.scalar(1, pa.int64()))), quotient)


def year(day: pc.Expression) -> pc.Expression:
    """Return the year of dates; Arrow itself has years of 16 bits and returns others for dates beyond."""
    days = day.cast(pa.int32()).cast(pa.int64())
    cycles = floor_divide(days, _DAYS_OF_YEARS)
    rest = pc.subtract(days, pc.multiply(cycles, pc.scalar(pa.scalar(_DAYS_OF_YEARS, pa.int64()))))
    first = pc.year(rest.cast(pa.int32()).cast(pa.date32()))
    return pc.add(first, pc.multiply(cycles, pc.scalar(pa.scalar(_YEARS, pa.int64()))))


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone in ("Z", "UTC"):
        return timedelta()
    hours, minutes = int(re.split(r":", zone[1:])[0][:2]), int(zone[-2:]) if len(zone) > 3 else 0
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if zone[0] == "-" else offset


def arrow_type(node: exp.DataType) -> pa.DataType:
    """Return the Arrow type of a type name. Raises: UnsupportedError for nested types, intervals and sized text."""
    texts = [one.this.name for one in node.expressions if isinstance(one, exp.DataTypeParam)]
    if not all(text.isdecimal() and len(text) < _DIGITS_MAX for text in texts):
        raise unsupported(node, "the size of a type is a whole number")
    sizes = [int(text) for text in texts]
    if node.this == exp.DataType.Type.DECIMAL:
        precision, scale = (*sizes, *(_DEFAULT_PRECISION, 0)[len(sizes) :])[:2]
        if len(sizes) > 2 or not 0 < precision <= MAX_PRECISION or scale > precision:
            raise unsupported(node, f"a decimal has 1 to {MAX_PRECISION} digits, and not more behind the point")
        return pa.decimal128(precision, scale)
    found = _TYPES.get(node.this)
    if found is None or sizes:
        raise unsupported(node, "the type is not known")
    return found
