"""Detect conflicts before a write writes its files, by the markers of other running writes.

A write that gives up early has wasted no work on files. Two writes that look before either has written a marker find
nothing; the check at the commit finds them. Facts of the JVM: docs/format/table.md §10.4.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from hoodie.commit.conflicts import conflict
from hoodie.files.markers import TEMP_FOLDER, read_markers
from hoodie.format.filenames import name_of, parse_data_file
from hoodie.timeline import Action
from hoodie.timeline.heartbeat import is_live
from hoodie.view.busy_groups import FileGroup
from hoodie.view.table_view import TableView

_SERVICES = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING})


def refuse_marked(view: TableView, instant_time: str, groups: AbstractSet[FileGroup]) -> None:
    """Refuse a write to file groups for which another running write has markers.

    `view` is the table when the write `instant_time` began. Costs a listing of the folders of markers and one of each
    other write's, one read for each marker file of a JVM timeline server, and a look at the heartbeat of each write
    that has markers of the same file groups. Table services are left out, as in the JVM: their plans name the file
    groups.

    Raises: CommitConflictError.
    """
    for folder in view.store.folders(TEMP_FOLDER):
        other = name_of(folder)
        found = view.timeline.get(other)
        is_service = found is not None and found.action in _SERVICES
        # Folders of other names have the staged rows of writes.
        if not other.isdigit() or other == instant_time or is_service:
            continue
        marked = {_group_of(marker.path) for marker in read_markers(view.store, other) or []}
        shared = sorted(groups & marked)
        if shared and is_live(view.store, other):
            names = [f"{path}/{file_id}" if path else file_id for path, file_id in shared[:3]]
            raise conflict(f"the write {other} is running and has markers of the same file groups: {names}")


def _group_of(path: str) -> FileGroup:
    """Return the file group of a data file; a file with another name is in none."""
    parsed = parse_data_file(path)
    return path.rpartition("/")[0], "" if parsed is None else parsed.file_id
