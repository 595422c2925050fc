"""Take up pending cleans: those whose process died, or failed before all files were deleted.

The inflight file of a clean names the process that executes it, and its heartbeat tells whether that process runs. The
JVM writes an empty inflight file and no heartbeat; whether it executes the clean is derived from the age of the files.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from hoodie.commit.metadata_partitions import ensure_metadata_partitions
from hoodie.commit.pending import PendingInstant, inflight_content
from hoodie.errors import InstantNotFoundError
from hoodie.format.instants.service_metadata import CleanerPlan
from hoodie.timeline import Action, Instant, State, delete_instant_files, is_live, read_instant
from hoodie.timeline.owner import Owner
from hoodie.view.table_view import TableView

_FOREIGN_IDLE_MS = {State.REQUESTED: 60_000, State.INFLIGHT: 30 * 60_000}
"""Milliseconds after which a clean without an owner counts as interrupted, unless the caller asked for a clean."""


def pending_cleans(view: TableView) -> list[Instant]:
    """Return the pending cleans, oldest first."""
    return [found for found in view.timeline.pending() if found.action is Action.CLEAN]


def is_running(view: TableView, clean: Instant, *, is_asked_for: bool) -> bool:
    """Return whether a process executes the pending clean.

    `is_asked_for`: a person asked for a clean. Then a clean of the JVM counts as running only with a live heartbeat;
    two processes that execute one clean delete the same files.
    """
    if is_live(view.store, clean.requested_time):
        return True
    if is_asked_for:
        return False
    content = inflight_content(view, clean) if clean.state is State.INFLIGHT else None
    if content is not None and Owner.parse(content) is not None:
        return False
    return _idle_ms(view, clean) < _FOREIGN_IDLE_MS[clean.state]


def take_up(
    view: TableView, clean: Instant, properties: Mapping[str, str]
) -> tuple[PendingInstant, CleanerPlan] | None:
    """Claim a pending clean that no process executes, under the table's lock; return it with its plan.

    None if it has no plan: the process that requested it died first. Then its files are deleted from the timeline.

    Raises: CorruptFileError if the plan does not parse.
    """
    try:
        content = read_instant(view.store, view.layout, clean, State.REQUESTED)
    except InstantNotFoundError:
        content = b""
    if not content:
        states = (State.INFLIGHT, State.REQUESTED)
        delete_instant_files(view.store, view.layout, clean.requested_time, clean.action, *states)
        return None
    plan = CleanerPlan.parse(content, path=view.path_of(clean))
    return claim(ensure_metadata_partitions(view), clean, properties), plan


def claim(view: TableView, clean: Instant, properties: Mapping[str, str]) -> PendingInstant:
    """Make this process the owner of a requested clean, under the table's lock."""
    return PendingInstant.claim(view, clean, Owner.new().to_bytes(), properties)


def _idle_ms(view: TableView, clean: Instant) -> int:
    """Return the milliseconds since the newest file of the clean was written."""
    folder = view.layout.instant_folder()
    names = [name for state in (State.REQUESTED, State.INFLIGHT) for name in view.layout.names(clean, state)]
    infos = (view.store.head(f"{folder}/{name}") for name in names)
    return time.time_ns() // 1_000_000 - max((info.modified_ms for info in infos if info is not None), default=0)
