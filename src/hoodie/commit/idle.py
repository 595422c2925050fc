"""How long a pending instant without a heartbeat has been idle: a JVM writer may show no other sign of life."""

from __future__ import annotations

import time
from typing import Final

from hoodie.files.markers import marker_folder
from hoodie.timeline import Instant, State
from hoodie.view.table_view import TableView

JVM_IDLE_MINUTES: Final = 30
"""Minutes without a new file after which an inflight instant of the JVM without a heartbeat counts as interrupted."""
JVM_IDLE_MS: Final = JVM_IDLE_MINUTES * 60_000


def idle_ms(view: TableView, instant: Instant, *states: State, with_markers: bool = True) -> int:
    """Return the milliseconds since the instant wrote its newest file of these states, or its last marker.

    One request for each name of a file, and a listing of the markers. Without any file, the time since 1970.
    """
    folder = view.layout.instant_folder()
    names = [name for state in states for name in view.layout.names(instant, state)]
    infos = [info for name in names if (info := view.store.head(f"{folder}/{name}")) is not None]
    if with_markers:
        infos += view.store.list(marker_folder(instant.requested_time), recursive=True)
    return time.time_ns() // 1_000_000 - max((info.modified_ms for info in infos), default=0)
