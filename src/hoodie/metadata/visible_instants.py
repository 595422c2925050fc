"""Which instants of the metadata table readers see (docs/format/metadata.md §3.5)."""

from __future__ import annotations

from hoodie.timeline import Timeline


def visible_instants(metadata_timeline: Timeline, data_timeline: Timeline) -> Timeline:
    """Return the instants of the metadata table that readers see: completed, and not pending on the data timeline.

    The delta commit of a data instant completes before that instant does. Until then readers must not see its rows.
    `data_timeline` is the whole active timeline of the data table. An instant that it does not have was archived, or
    belongs to the metadata table alone (a compaction): it is visible.
    """

    def is_visible(requested_time: str) -> bool:
        data_instant = data_timeline.get(requested_time)
        return data_instant is None or data_instant.is_completed

    return metadata_timeline.filter(lambda instant: instant.is_completed and is_visible(instant.requested_time))
