"""Cleans that only say that they happened, for tests of what reads believe of them."""

from __future__ import annotations

from hoodie.format.instants.service_metadata import CleanMetadata
from hoodie.table import Table
from hoodie.timeline import Action, create_completed, create_inflight, create_requested


def claim_clean(table: Table, earliest: str, last: str) -> None:
    """Complete a clean that deletes nothing and says: it retains `earliest`, and `last` was the newest commit."""
    view = table.view()
    done = CleanMetadata(
        start_clean_time=last,
        time_taken_in_millis=1,
        total_files_deleted=1,
        earliest_commit_to_retain=earliest,
        last_completed_commit_timestamp=last,
    )
    instant_time = view.clock.next_time(view.timeline)
    create_requested(view.store, view.layout, instant_time, Action.CLEAN, b"plan")
    create_inflight(view.store, view.layout, instant_time, Action.CLEAN, b"plan")
    end = view.clock.next_time(view.timeline)
    create_completed(view.store, view.layout, instant_time, Action.CLEAN, done.to_bytes(), completion_time=end)
