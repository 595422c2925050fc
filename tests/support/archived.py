"""Tables that archive after every few commits, and what must hold of their two timelines."""

from __future__ import annotations

from hoodie.storage import Store
from hoodie.table import Table

OFTEN = {
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.clean.commits.retained": "1",
    "hoodie.metadata.compact.max.delta.commits": "2",
    "hoodie.timeline.compaction.batch.size": "3",
}
"""Options of a table that archives at every other commit, and merges files of the archive soon."""


def archived_times(store: Store) -> list[str]:
    """Requested times of the archived instants, sorted; an instant that is archived twice is there twice."""
    found = Table(store).view().archive().completed()
    return sorted(instant.requested_time for instant in found if instant.action.writes_data)


def active_times(store: Store) -> list[str]:
    """Requested times of the completed writes on the active timeline."""
    return [instant.requested_time for instant in Table(store).view().timeline.writes().completed()]
