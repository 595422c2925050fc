"""Dates and timestamps written as text, in the forms Spark reads; times without a zone are UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pyarrow.compute as pc

from hoodie.errors import SchemaMismatchError

_TIMESTAMP = re.compile(
    r"\s*(?P<year>\d{4})(-(?P<month>\d{1,2})(-(?P<day>\d{1,2})"
    r"([ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(:(?P<second>\d{1,2})(\.(?P<fraction>\d{0,9}))?)?"
    r"\s*(?P<zone>Z|UTC|[+-]\d{1,2}(:?\d{2})?)?)?)?)?\s*"
)


def parse_timestamp(text: str, *, zoned: bool) -> datetime:
    """Read `yyyy[-M[-d[ H:m[:s[.ffffff]]][zone]]]`; with `zoned` as a time in UTC, else as the local time as written.

    Raises: SchemaMismatchError for any other text, region names of time zones included.
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise SchemaMismatchError(
            f"{text!r} is not a timestamp; write it like '2024-01-31 12:00:00', in UTC or with an offset"
        )
    part = match.groupdict()
    try:
        moment = datetime(
            int(part["year"]),
            int(part["month"] or 1),
            int(part["day"] or 1),
            int(part["hour"] or 0),
            int(part["minute"] or 0),
            int(part["second"] or 0),
            int((part["fraction"] or "").ljust(6, "0")[:6]),
        )
    except ValueError as error:
        raise SchemaMismatchError(f"{text!r} is not a timestamp: {error}") from error
    return (moment - _offset(part["zone"])).replace(tzinfo=UTC) if zoned else moment


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


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone in ("Z", "UTC"):
        return timedelta()
    hours, minutes = int(re.split(r":", zone[1:])[0][:2]), int(zone[-2:]) if len(zone) > 3 else 0
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if zone[0] == "-" else offset
