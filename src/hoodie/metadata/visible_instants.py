"""Selects the instants of the metadata table that readers see (docs/format/metadata.md §3.5)."""

from __future__ import annotations

from hoodie.timeline import Timeline


def visible_instants(metadata_timeline: Timeline, data_timeline: Timeline) -> Timeline:
    """Return the instants of the metadata table that readers see: completed, and not pending on the data timeline.

    The delta commit of a data instant completes before the data instant. Until the data instant completes, readers must
    not see its rows. `data_timeline` is the whole active timeline of the data table. An instant that is not on it was
    archived, or exists only in the metadata table (a compaction): it is visible.
    """

    def is_visible(requested_time: str) -> bool:
        data_instant = data_timeline.get(requested_time)
        return data_instant is None or data_instant.is_completed

    return metadata_timeline.filter(lambda instant: instant.is_completed and is_visible(instant.requested_time))
