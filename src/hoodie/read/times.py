"""Times of a caller (`as_of`, `since`, `until`): the state of the table that they mean; warnings for surprising ones.

docs/operations/incremental-pipelines.md has the rule that applies. Commits count by completion time where the table's
version stores it, so that a state that was read once never changes. `requested:` before a time chooses the rule of JVM
Hudi, which compares requested times.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final

from hoodie.timeline import in_local_time, to_instant_time, wall_clock_time
from hoodie.view.table_view import TableView

When = str | datetime | date
"""A time of a read: an instant, an ISO date or datetime as text, or a datetime or date; without a zone it is local."""


class OrderTime(str):
    """A time by which commits are ordered: never taken for the requested time of an instant that has the same text."""

    __slots__ = ()


_EPOCH_DIGITS: Final = {10: 1, 13: 1000}
"""Digits of a time since 1970, and its units in a second."""
BY_REQUEST: Final = "requested:"
"""Prefix of an `as_of` text that is compared with requested times."""


def jvm_time(text: str) -> str | datetime:
    """Return a time in one of JVM Hudi's forms: seconds or milliseconds since 1970 become a datetime.

    Dates and times without a zone become instant times: they are in the table's zone, not in local time.

    >>> jvm_time("1700000000"), jvm_time(" 2023-11-14 ")
    (datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.timezone.utc), '20231114000000000')
    """
    text = text.strip()
    if text.isdecimal() and len(text) in _EPOCH_DIGITS:
        return datetime.fromtimestamp(int(text) / _EPOCH_DIGITS[len(text)], UTC)
    return wall_clock_time(text)


def jvm_bound(text: str, view: TableView) -> OrderTime:
    """Return a bound of JVM Hudi's incremental reads: a completion time, whatever instant has such a requested time.

    Raises: InvalidConfigError for a text that is no time.
    """
    return OrderTime(to_instant_time(jvm_time(text), view.layout.zone))


def as_of_jvm(text: str) -> str:
    """Return the `as_of` that selects what JVM Hudi's time travel to a time selects.

    >>> as_of_jvm("1700000000"), as_of_jvm("20231114221320000")
    ('requested:2023-11-14T22:13:20+00:00', 'requested:20231114221320000')
    """
    when = jvm_time(text)
    return BY_REQUEST + (when if isinstance(when, str) else when.isoformat())


def view_as_of(view: TableView, as_of: When) -> tuple[TableView, str | None]:
    """Return the table as of a time (inclusive), and a requested time that limits it further; None for no limit.

    An instant's requested time means the moment at which it completed. Commits that completed later are not in the view
    that is returned. Version 6 stores no completion times; there, and for a text that begins with `requested:`, the
    view is unchanged, and commits requested later do not count.

    Warns: `HoodieWarning` if `as_of` is a date and the table has commits of that day, which are left out; or if it is
    before the first commit of the table.

    Raises: InvalidConfigError for a text that is no time; CorruptFileError if the archived timeline is damaged.
    """
    is_by_request = isinstance(as_of, str) and as_of.strip().startswith(BY_REQUEST)
    when = as_of.strip().removeprefix(BY_REQUEST) if isinstance(as_of, str) else as_of
    commits = view.completed_writes()
    if is_by_request or not view.config.version.has_completion_time_in_name:
        instant_time = to_instant_time(when, view.layout.zone)
        requested = [instant.requested_time for instant in commits]
        if not warn_of_midnight(view, "as_of", when, requested) and requested and instant_time < min(requested):
            known = any(instant.requested_time <= instant_time for instant in view.archived_writes())
            _warn_of_beginning(view, when, min(requested), known)
        return view, instant_time
    order_time = completion_of(view, when)
    completed = [view.order_time(instant) for instant in commits]
    if not warn_of_midnight(view, "as_of", when, completed) and completed and order_time < min(completed):
        _warn_of_beginning(view, when, commits[0].requested_time, bool(view.archived_writes(until=order_time)))
    return view.as_completed_by(order_time), None


def completion_of(view: TableView, when: When) -> str:
    """Convert a caller's time to an order time: an instant's requested time gives the `order_time` of the instant.

    The archive is looked up for the requested time of an instant that is not on the active timeline.
    """
    if isinstance(when, OrderTime):
        return str(when)
    text = to_instant_time(when, view.layout.zone)
    instant = view.timeline.get(text)
    if instant is not None and instant.is_completed:
        return view.order_time(instant)
    newest = view.timeline.latest()
    if isinstance(when, str) and instant is None and newest is not None and text < newest.requested_time:
        for archived in view.archive().find([text]):
            if archived.action.writes_data:
                return view.order_time(archived)
    return text


def _warn_of_beginning(view: TableView, when: When, first: str, has_older: bool) -> None:
    if not has_older:
        view.state.warn(
            f"as_of={str(when)!r}{_said(view, when)} is before {first}, the first commit of {view.store.uri('')}, so "
            "that no rows are found"
        )


def warn_of_midnight(view: TableView, name: str, when: When, instant_times: list[str]) -> bool:
    """Warn if `when` is a date, which means its first millisecond, and some of the instants are of that day.

    Returns whether it warned. `name` is the argument's name.
    """
    day = _date_of(when)
    if day is None or day == date.max:
        return False
    zone, next_day = view.layout.zone, day + timedelta(days=1)
    begin, end = to_instant_time(day, zone), to_instant_time(next_day, zone)
    left_out = sum(begin < found < end for found in instant_times)
    if left_out:
        commits = "1 commit of that day is" if left_out == 1 else f"{left_out} commits of that day are"
        view.state.warn(
            f"{name}={str(when)!r} means the first millisecond of the day in local time ({_zone(day)}): {commits} not "
            f"included; pass a time, or {name}={next_day.isoformat()!r} for the whole day"
        )
    return left_out > 0


def _said(view: TableView, when: When) -> str:
    """Return what a message adds to a time without a zone: the zone that it has, and the instant time that it means."""
    if isinstance(when, str):
        text = when.strip()
        if wall_clock_time(text) == text:
            return ""
        when = datetime.fromisoformat(text)
    if isinstance(when, datetime) and when.tzinfo is not None:
        return ""
    return f" in local time ({_zone(when)}; {to_instant_time(when, view.layout.zone)} on the timeline)"


def _zone(when: date) -> str:
    """Return this process's zone at a time: its distance from UTC."""
    return f"UTC{in_local_time(when).isoformat()[-6:]}"


def _date_of(when: When) -> date | None:
    """Return the date if a caller's time is a date without a time of day."""
    if isinstance(when, str):
        try:
            return date.fromisoformat(when.strip())
        except ValueError:
            return None
    return None if isinstance(when, datetime) else when
