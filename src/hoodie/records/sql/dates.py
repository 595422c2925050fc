"""Dates and timestamps written as text, in the forms Spark reads; times without a zone are UTC."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError

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
DATE_PATTERN = rf"^(?:{_DAY}|{_OTHER_YEAR})$"
"""Texts that `date_text` completed and that are dates; those with years of other than four digits Arrow refuses."""
TIMESTAMP_PATTERN = rf"^{_DAY}(?:[ T]{_TIME})?$|^{_OTHER_YEAR}$|^{_DAY}[ T]\s*\d{{1,2}}:"
"""Texts that are timestamps, and those that may be one for Spark and that Arrow refuses (zones, hours of one digit)."""


def parse_date(text: str) -> int:
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


def parse_timestamp(text: str, *, zoned: bool) -> int:
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


def date_text(text: pc.Expression) -> pc.Expression:
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
