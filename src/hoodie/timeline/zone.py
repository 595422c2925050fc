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

    Old 14-digit times stand for the last millisecond of their second. Of longer ones (the metadata table appends
    an operation code on version 6) the first 17 digits count.

    Raises:
        InvalidConfigError: `text` is no date; the reserved times `0000…` are none either.
    """
    wall_clock = _parse_wall_clock(text)
    return wall_clock.replace(tzinfo=UTC) if zone is TimelineZone.UTC else wall_clock.astimezone()


def ms_of_instant_time(text: str, zone: TimelineZone) -> int:
    """Turn an instant time into milliseconds since the epoch. Raises: as `parse_instant_time`."""
    return round(parse_instant_time(text, zone).timestamp() * 1000)


def to_instant_time(when: str | date | datetime, zone: TimelineZone) -> str:
    """Turn what a user says for a time (`as_of`, `since`, `until`) into an instant time.

    Takes an instant time (14 or more digits, returned as it is), a datetime, a date, or either as ISO text. A date
    means its first millisecond. Datetimes without a zone are in the table's zone; parts of milliseconds are cut off.

    Raises:
        InvalidConfigError: the text is neither.
    """
    if isinstance(when, str):
        text = when.strip()
        if text.isascii() and text.isdigit() and len(text) >= _SECONDS_LENGTH:
            return text
        when = _parse_iso(text)
    if not isinstance(when, datetime):
        when = datetime(when.year, when.month, when.day)
    if when.tzinfo is not None:
        when = when.astimezone(UTC) if zone is TimelineZone.UTC else when.astimezone()
    return _format_wall_clock(when)


def instant_time_of_ms(epoch_ms: int, zone: TimelineZone) -> str:
    """Turn milliseconds since the epoch into an instant time."""
    seconds, milliseconds = divmod(epoch_ms, 1000)
    when = datetime.fromtimestamp(seconds, UTC if zone is TimelineZone.UTC else None)
    return _format_wall_clock(when + timedelta(milliseconds=milliseconds))


def next_instant_time(text: str) -> str:
    """The first 17-digit instant time greater than `text`.

    Raises:
        InvalidConfigError: `text` is no date.
    """
    return _format_wall_clock(_parse_wall_clock(text) + timedelta(milliseconds=1))


def _parse_wall_clock(text: str) -> datetime:
    digits = f"{text}999" if len(text) == _SECONDS_LENGTH else text[:INSTANT_LENGTH]
    try:
        if len(digits) != INSTANT_LENGTH or not (text.isascii() and text.isdigit()):
            raise ValueError("not 17 digits")
        # Not strptime: it takes one digit for a month where two make none, and reads another time.
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
    # Not strftime: it does not pad years below 1000 on every platform.
    return (
        f"{when.year:04}{when.month:02}{when.day:02}{when.hour:02}{when.minute:02}{when.second:02}"
        f"{when.microsecond // 1000:03}"
    )
