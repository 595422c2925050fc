"""The clock that creates instant times, each greater than the previous one.

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
    """A clock whose instant times are strictly increasing. Thread-safe.

    Each time is also greater than all times of the timeline that is passed to `next_time`. If that timeline was loaded
    under the table's lock, times increase across writers too, even if another machine's clock is ahead or summer time
    ends.
    """

    def __init__(self, zone: TimelineZone = TimelineZone.LOCAL, *, now_ms: Callable[[], int] | None = None) -> None:
        """Create a clock; `zone` is `hoodie.table.timeline.timezone`, `now_ms` returns milliseconds since the epoch."""
        self._zone = zone
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._last = ""
        self._lock = threading.Lock()

    def next_time(self, timeline: Timeline | None = None) -> str:
        """Return a time greater than all requested and completion times of `timeline` and all times returned before.

        Takes O(instants). Pass the whole active timeline, not a filtered timeline.

        Raises:
            InvalidConfigError: the timeline contains a time that is greater than now and is not a valid date.
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
