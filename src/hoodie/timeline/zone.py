"""Instant times: wall-clock text `yyyyMMddHHmmssSSS` in the table's zone.

On-disk format: docs/format/table.md §2.2.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

from hoodie.errors import InvalidConfigError
from hoodie.format.table.table_config import TimelineZone

INSTANT_LENGTH = 17
_SECONDS_LENGTH = 14
_PARTS = tuple(slice(start, end) for start, end in pairwise((0, 4, 6, 8, 10, 12, 14, 17)))


def parse_instant_time(text: str, zone: TimelineZone) -> datetime:
    """Parse an instant time into an aware datetime of millisecond precision.

    An old 14-digit time means the last millisecond of its second. Of a longer time the first 17 digits are used (on
    version 6 the metadata table appends an operation code).

    Raises: InvalidConfigError if `text` is not a date, such as the reserved times `0000…`.
    """
    wall_clock = _parse_wall_clock(text)
    return wall_clock.replace(tzinfo=UTC) if zone is TimelineZone.UTC else wall_clock.astimezone()


def ms_of_instant_time(text: str, zone: TimelineZone) -> int:
    """Convert an instant time to milliseconds since the epoch. Raises: as `parse_instant_time`."""
    return round(parse_instant_time(text, zone).timestamp() * 1000)


def to_instant_time(when: str | date | datetime, zone: TimelineZone) -> str:
    """Convert a time from a user (`as_of`, `since`, `until`) to an instant time.

    Accepts an instant time (14 or more digits, returned unchanged), a datetime, a date, or a datetime or date as ISO
    text. A date means its first millisecond. A datetime or date without a zone is local time of this process, as in
    Python. Parts of milliseconds are cut off.

    Raises: InvalidConfigError if the text is in none of these forms.
    """
    if isinstance(when, str):
        text = when.strip()
        if text.isascii() and text.isdigit() and len(text) >= _SECONDS_LENGTH:
            return text
        when = _parse_iso(text)
    moment = in_local_time(when)
    try:
        return _format_wall_clock(moment.astimezone(UTC if zone is TimelineZone.UTC else None))
    except (OverflowError, ValueError):  # within a day of year 1 or of the end of year 9999
        return _format_wall_clock(moment)


def in_local_time(when: date | datetime) -> datetime:
    """Return the time with a zone; without one it is local time of this process. A date is its first moment."""
    moment = when if isinstance(when, datetime) else datetime(when.year, when.month, when.day)
    if moment.tzinfo is not None:
        return moment
    # A timestamp of pandas is a datetime, and its `astimezone` needs a zone.
    time = (moment.hour, moment.minute, moment.second, moment.microsecond)
    moment = datetime(moment.year, moment.month, moment.day, *time, fold=moment.fold)
    try:
        return moment.astimezone()
    except (OverflowError, ValueError):
        return moment.replace(tzinfo=UTC)


def wall_clock_time(text: str) -> str:
    """Return ISO text of a time without a zone as an instant time of the same digits; other text as it is.

    JVM Hudi reads its options in this way: the time is in the table's zone, whichever this is.

    >>> wall_clock_time("2023-11-14 22:13:20"), wall_clock_time("2023-11-14T22:13:20Z"), wall_clock_time("earliest")
    ('20231114221320000', '2023-11-14T22:13:20Z', 'earliest')
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    is_instant = text.isdigit() and len(text) >= _SECONDS_LENGTH
    return text if is_instant or moment.tzinfo is not None else _format_wall_clock(moment)


def instant_time_of_ms(epoch_ms: int, zone: TimelineZone) -> str:
    """Convert milliseconds since the epoch to an instant time."""
    seconds, milliseconds = divmod(epoch_ms, 1000)
    when = datetime.fromtimestamp(seconds, UTC if zone is TimelineZone.UTC else None)
    return _format_wall_clock(when + timedelta(milliseconds=milliseconds))


def next_instant_time(text: str) -> str:
    """Return the smallest 17-digit instant time greater than `text`.

    Raises: InvalidConfigError if `text` is not a date.
    """
    return _format_wall_clock(_parse_wall_clock(text) + timedelta(milliseconds=1))


def _parse_wall_clock(text: str) -> datetime:
    digits = f"{text}999" if len(text) == _SECONDS_LENGTH else text[:INSTANT_LENGTH]
    try:
        if len(digits) != INSTANT_LENGTH or not (text.isascii() and text.isdigit()):
            raise ValueError("not 17 digits")
        # Not strptime: if two digits are not a valid month, it reads one digit as the month, and so another time.
        year, month, day, hour, minute, second, millisecond = (int(digits[part]) for part in _PARTS)
        return datetime(year, month, day, hour, minute, second, millisecond * 1000)
    except ValueError as error:
        raise InvalidConfigError(f"{text!r} is not an instant time: expected yyyyMMddHHmmssSSS ({error})") from None


def _parse_iso(text: str) -> datetime | date:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidConfigError(
            f"{text!r} is not a time: expected an instant time (yyyyMMddHHmmssSSS), an ISO date such as 2026-11-21 "
            "or an ISO datetime such as 2026-11-21T12:34:41"
        ) from None


def _format_wall_clock(when: datetime) -> str:
    # Not strftime: on some platforms it does not pad years below 1000 with zeros.
    return (
        f"{when.year:04}{when.month:02}{when.day:02}{when.hour:02}{when.minute:02}{when.second:02}"
        f"{when.microsecond // 1000:03}"
    )
