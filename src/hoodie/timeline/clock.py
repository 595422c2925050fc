"""Gives out instant times that only grow.

On-disk format: docs/format/table.md §2.2.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from hoodie.format.table.table_config import TimelineZone
from hoodie.timeline.timeline import Timeline
from hoodie.timeline.zone import instant_time_of_ms, next_instant_time


class InstantClock:
    """Reads the wall clock, and never says the same instant time twice or goes back. Thread-safe.

    Times are also greater than all of the timeline it is shown. Shown a timeline that was loaded under the table's
    lock, they grow across writers, even if another machine's clock is ahead or summer time ends.
    """

    def __init__(self, zone: TimelineZone = TimelineZone.LOCAL, *, now_ms: Callable[[], int] | None = None) -> None:
        """Take the zone from `hoodie.table.timeline.timezone`; `now_ms` tells milliseconds since the epoch."""
        self._zone = zone
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._last = ""
        self._lock = threading.Lock()

    def next_time(self, timeline: Timeline | None = None) -> str:
        """A time greater than every requested and completion time of `timeline` and every time given out before.

        Takes O(instants): pass the whole active timeline, not a filtered one.

        Raises:
            InvalidConfigError: the timeline holds a time that is later than now and no date.
        """
        known = "" if timeline is None else _latest_time(timeline)
        with self._lock:
            floor = max(known, self._last)
            now = instant_time_of_ms(self._now_ms(), self._zone)
            self._last = now if now > floor else next_instant_time(floor)
            return self._last


def _latest_time(timeline: Timeline) -> str:
    return max(
        (max(instant.requested_time, instant.completion_time or "") for instant in timeline.instants), default=""
    )
