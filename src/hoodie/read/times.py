"""Times of a caller (`as_of`, `until`) as instant times; a warning for those that read less than they seem to."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from hoodie.timeline import to_instant_time
from hoodie.view.table_view import TableView

When = str | datetime | date


def instant_as_of(view: TableView, as_of: When) -> str:
    """Return the requested time (inclusive) that `as_of` of a read means.

    Warns: `HoodieWarning` if `as_of` is a date and the table has commits of that day, which are left out; or if it is
    before the first commit of the table. The second case costs one listing of the archived timeline.

    Raises: InvalidConfigError for a text that is no time.
    """
    instant_time = to_instant_time(as_of, view.layout.zone)
    requested = [instant.requested_time for instant in view.completed_writes()]
    if not warn_of_midnight(view, "as_of", as_of, requested) and requested and instant_time < min(requested):
        archived = "; older instants are archived" if view.has_archived_instants() else ", so that no rows are found"
        view.state.warn(
            f"as_of={str(as_of)!r} is before {min(requested)}, the first commit on the timeline of "
            f"{view.store.uri('')}{archived}"
        )
    return instant_time


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
            f"{name}={str(when)!r} means the first millisecond of the day ({zone.value}): {commits} not included; "
            f"pass a time, or {name}={next_day.isoformat()!r} for the whole day"
        )
    return left_out > 0


def _date_of(when: When) -> date | None:
    """Return the date if a caller's time is a date without a time of day."""
    if isinstance(when, str):
        try:
            return date.fromisoformat(when.strip())
        except ValueError:
            return None
    return None if isinstance(when, datetime) else when
