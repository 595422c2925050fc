"""Fit texts of files (fields of CSV, numbers and strings of JSON) to the type of a table's column.

The rules are those of `fit`: a text fits if its value is kept exactly. Whole numbers must be equal to the stored
number, or be its shortest text; fractions become the nearest double, as in Python, but no infinity and no zero. A text
names its time zone exactly if the column has one. Years beyond 9999 or before 0 have a sign, as in Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.conform import wide_decimals
from hoodie.format.schema.fit import RowOf, first_misfit, narrowed, shortened

_NUMBER: Final = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_WORD: Final = r"(?i)^[+-]?(inf|infinity)$|^nan$"
_WHOLE: Final = r"^[+-]?\d+\.?0*$"
_NOT_ZERO: Final = r"^[^eE]*[1-9]"
_DATE: Final = r"^\d{4}-\d{2}-\d{2}$"
_ZONE: Final = r"(Z|[+-]\d{2}(?::?\d{2})?)"
_CLOCK: Final = r"\d{2}(?::\d{2}(?::\d{2}(?:\.\d{1,9})?)?)?"
_TIMESTAMP: Final = rf"^\d{{4}}-\d{{2}}-\d{{2}}([ T]{_CLOCK})?{_ZONE}?$"
_FAR: Final = re.compile(rf"(?P<day>[+-]\d{{4,6}}-\d{{2}}-\d{{2}})(?:[ T](?P<clock>{_CLOCK}))?(?P<zone>{_ZONE})?")
_UNITS_A_DAY: Final = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_TIME: Final = r"^\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?$"
_TRUE: Final = pa.array(["true", "1"])
_FALSE: Final = pa.array(["false", "0"])
_EXACT_MAX: Final = float(1 << 53)
_LONG_MAX: Final = float(1 << 63)

_Convert = Callable[[pa.Array, pa.DataType], pa.Array]


def fit_texts(texts: pa.Array, wanted: pa.DataType, path: str, row_of: RowOf) -> pa.Array:
    """Convert an array of strings to an array of a type that is not nested; null stays null.

    White space around numbers and times is ignored. Binary columns get the bytes of the text. `path`: name of the
    column in errors; `row_of`: number of the row of a place.

    Raises: SchemaMismatchError: a text does not fit; the message names column, row, text and what was expected.
    """
    if pa.types.is_string(wanted):
        return texts
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), wanted)
    convert, expected = _conversion(wanted)
    if convert is None:
        raise SchemaMismatchError(f"column {path!r}: a text cannot become {wanted}; write the rows as JSON or Parquet")
    if convert is not _binary:
        texts = pc.utf8_trim_whitespace(texts)
    try:
        return convert(texts, wanted)
    except pa.ArrowInvalid:
        place = first_misfit(texts, lambda part: convert(part, wanted))
    raise SchemaMismatchError(
        f"column {path!r}, row {row_of(place)}: {shortened(texts[place].as_py())} does not fit {wanted}, the column's "
        f"type; expected {expected}"
    )


def type_of_texts(texts: pa.Array, *, is_quoted: bool = False) -> pa.DataType:
    """Return a type that all texts fit; string if there is no other, null if all texts are null.

    Numbers with leading zeros or a plus sign stay strings, because they often are codes. `is_quoted`: the texts are
    strings of JSON, so that they are neither numbers nor Booleans.
    """
    present = pc.utf8_trim_whitespace(texts.drop_null())
    if not len(present):
        return pa.null()
    for pattern, wanted in _INFERRED:
        is_plain = not (pa.types.is_date(wanted) or pa.types.is_timestamp(wanted))
        if (is_quoted and is_plain) or pc.all(pc.match_substring_regex(present, pattern)).as_py() is False:
            continue
        try:
            fit_texts(present, wanted, "", int)
        except SchemaMismatchError:
            continue
        return wanted
    return pa.string()


_INFERRED: Final = (
    (r"^-?(0|[1-9]\d*)$", pa.int64()),
    (r"^-?(0|[1-9]\d*)$", pa.decimal128(38, 0)),
    (r"(?i)^-?(0|[1-9]\d*|0?\.\d+|[1-9]\d*\.\d*|0\.)(e[+-]?\d+)?$|^-?inf(inity)?$|^nan$", pa.float64()),
    (r"(?i)^(true|false)$", pa.bool_()),
    (_DATE, pa.date32()),
    (_TIMESTAMP, pa.timestamp("us")),
    (_TIMESTAMP, pa.timestamp("us", "UTC")),
)
"""Patterns of texts, and the types that they may have; the first that all texts fit is the column's."""


def _conversion(wanted: pa.DataType) -> tuple[_Convert | None, str]:
    """Return the function for a type, and what it expects."""
    if pa.types.is_timestamp(wanted):
        zone, end = ("without", "") if wanted.tz is None else ("with", "Z")
        return _timestamp, f"a time {zone} a zone, such as 2024-01-31T12:00:00{end}, of at most {wanted.unit} precision"
    for is_kind, convert, expected in _CONVERSIONS:
        if is_kind(wanted):
            return convert, expected
    return None, ""


def _integer(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    digits = _numbers(texts)
    if pc.any(pc.match_substring_regex(digits, "[.eE]")).as_py():
        digits = wide_decimals(digits, 0)
    return pc.cast(digits, wanted)


def _decimal(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    return pc.cast(wide_decimals(_numbers(texts), wanted.scale), wanted)


def _numbers(texts: pa.Array) -> pa.Array:
    """Return the texts without plus signs. Raises: pa.ArrowInvalid if one is no number."""
    _check(pc.match_substring_regex(texts, _NUMBER))
    return pc.replace_substring_regex(texts, r"^\+", "")


def _float(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    is_word = pc.match_substring_regex(texts, _WORD)
    _check(pc.or_(is_word, pc.match_substring_regex(texts, _NUMBER)))
    plain = pc.replace_substring_regex(texts, r"^\+", "")
    found = pc.cast(plain, pa.float64())
    _check(pc.or_(is_word, pc.invert(pc.is_inf(found))))
    _check(pc.or_(pc.not_equal(found, 0.0), pc.invert(pc.match_substring_regex(plain, _NOT_ZERO))))
    is_big = pc.greater_equal(pc.abs(found), _EXACT_MAX)
    if pc.any(is_big).as_py():
        chosen = pc.and_(is_big, pc.match_substring_regex(plain, _WHOLE))
        _check_whole(plain.filter(chosen), found.filter(chosen))
    return narrowed(found, wanted) if wanted.bit_width < 64 else found


def _check_whole(texts: pa.Array, doubles: pa.Array) -> None:
    """Refuse whole numbers that are neither equal to their double nor its shortest text."""
    numbers = wide_decimals(pc.replace_substring_regex(texts, r"\.0*$", ""), 0)
    shortest = wide_decimals(pc.cast(doubles, pa.string()), 0)
    fits_long = pc.less(pc.abs(doubles), _LONG_MAX)
    exact = pc.cast(pc.cast(pc.if_else(fits_long, doubles, 0.0), pa.int64()), numbers.type)
    _check(pc.or_(pc.equal(numbers, shortest), pc.and_(fits_long, pc.equal(numbers, exact))))


def _boolean(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    words = pc.utf8_lower(texts)
    is_true = pc.is_in(words, _TRUE)
    _check(pc.or_(pc.or_(is_true, pc.is_in(words, _FALSE)), texts.is_null()))
    return pc.if_else(texts.is_valid(), is_true, pa.scalar(None, wanted))


def _date(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    return _with_far_years(texts, _DATE, wanted, pc.cast)


def _timestamp(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    return _with_far_years(texts, _TIMESTAMP, wanted, _near_timestamp)


def _near_timestamp(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    # Arrow refuses more digits than the unit has, even zeros.
    texts = pc.replace_substring_regex(texts, rf"(\.\d*[1-9])0+{_ZONE}?$", r"\1\2")
    return pc.cast(pc.replace_substring_regex(texts, rf"\.0+{_ZONE}?$", r"\1"), wanted)


def _time(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    _check(pc.match_substring_regex(texts, _TIME))
    # Arrow has no cast of text to times of day.
    moments = pc.binary_join_element_wise("1970-01-01", texts, "T")
    return pc.cast(_near_timestamp(moments, pa.timestamp(wanted.unit)), wanted)


def _with_far_years(texts: pa.Array, pattern: str, wanted: pa.DataType, convert: _Convert) -> pa.Array:
    """Convert texts that match the pattern with `convert`, and years with a sign, which Arrow cannot read, here."""
    is_near = pc.or_kleene(pc.match_substring_regex(texts, pattern), texts.is_null())
    if pc.all(is_near).as_py() is not False:
        return convert(texts, wanted)
    near = convert(pc.if_else(is_near, texts, pa.scalar(None, pa.string())), wanted)
    stored = pa.int32() if pa.types.is_date32(wanted) else pa.int64()
    far = [None if ok else _far(text, wanted) for text, ok in zip(texts.to_pylist(), is_near.to_pylist(), strict=True)]
    return pc.if_else(is_near, near, pa.array(far, stored).cast(wanted))


def _far(text: str, wanted: pa.DataType) -> int:
    """Return the stored number of a date or time whose year has a sign. Raises: pa.ArrowInvalid."""
    match = _FAR.fullmatch(text)
    if match is None or (pa.types.is_date(wanted) and match["clock"]):
        raise pa.ArrowInvalid("no date or time")
    try:
        day = int(np.datetime64(match["day"], "D").astype(np.int64))
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from error
    if pa.types.is_date(wanted):
        return day
    clock = pa.array([f"1970-01-01T{match['clock'] or '00'}{match['zone'] or ''}"])
    since_midnight = _near_timestamp(clock, wanted).cast(pa.int64())[0].as_py()
    number = day * _UNITS_A_DAY[wanted.unit] + int(since_midnight)
    if not -(1 << 63) <= number < 1 << 63:
        raise pa.ArrowInvalid("beyond 64 bits")
    return number


def _binary(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    return pc.cast(pc.cast(texts, pa.binary()), wanted)


def _check(fits: pa.BooleanArray) -> None:
    if pc.all(fits).as_py() is False:
        raise pa.ArrowInvalid("a text does not fit")


_CONVERSIONS: Final = (
    (pa.types.is_integer, _integer, "a whole number of this size"),
    (pa.types.is_floating, _float, "a number that this type holds without a loss, NaN, Infinity or -Infinity"),
    (pa.types.is_decimal, _decimal, "a number with no more digits"),
    (pa.types.is_boolean, _boolean, "true or false"),
    (pa.types.is_date, _date, "a date such as 2024-01-31"),
    (pa.types.is_time, _time, "a time such as 12:00:00"),
    (pa.types.is_binary, _binary, "text"),
    (pa.types.is_fixed_size_binary, _binary, "text of this many bytes"),
)
