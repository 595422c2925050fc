"""Detect conflicts before a write writes its files, by the markers of other running writes.

A write that gives up early has wasted no work on files. Two writes that look before either has written a marker find
nothing; the check at the commit finds them. Facts of the JVM: docs/format/table.md §10.4.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from hoodie.commit.conflicts import conflict
from hoodie.files.markers import TEMP_FOLDER, read_markers
from hoodie.format.filenames import MARKER_TYPE_NAME, parse_data_file, parse_marker
from hoodie.timeline import Action
from hoodie.timeline.heartbeat import is_live
from hoodie.view.busy_groups import FileGroup
from hoodie.view.table_view import TableView

_SERVICES = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING})


def refuse_marked(view: TableView, instant_time: str, groups: AbstractSet[FileGroup]) -> None:
    """Refuse a write to file groups for which another running write has markers.

    `view` is the table when the write `instant_time` began. Costs one listing of all markers, one read for each marker
    file of a JVM timeline server, and a look at the heartbeat of each write that has markers of the same file groups.
    Table services are left out, as in the JVM: their plans name the file groups.

    Raises: CommitConflictError.
    """
    for other, marked in _groups_by_instant(view).items():
        found = view.timeline.get(other)
        is_service = found is not None and found.action in _SERVICES
        shared = sorted(groups & marked) if other != instant_time and not is_service else []
        if shared and is_live(view.store, other):
            names = [f"{path}/{file_id}" if path else file_id for path, file_id in shared[:3]]
            raise conflict(f"the write {other} is running and has markers of the same file groups: {names}")


def _groups_by_instant(view: TableView) -> dict[str, set[FileGroup]]:
    """Return the file groups that markers name, by the instant of the markers."""
    paths: dict[str, list[str]] = {}
    served: set[str] = set()
    for info in view.store.list(TEMP_FOLDER, recursive=True):
        instant_time, _, name = info.path.removeprefix(f"{TEMP_FOLDER}/").partition("/")
        if not instant_time.isdigit():
            continue
        if name == MARKER_TYPE_NAME:
            served.add(instant_time)
        parsed = parse_marker(name)
        if parsed is not None:
            paths.setdefault(instant_time, []).append(parsed[0])
    for instant_time in served:
        paths[instant_time] = [marker.path for marker in read_markers(view.store, instant_time) or []]
    return {instant_time: {_group_of(path) for path in found} for instant_time, found in paths.items()}


def _group_of(path: str) -> FileGroup:
    """Return the file group of a data file; a file with another name is in none."""
    parsed = parse_data_file(path)
    return path.rpartition("/")[0], "" if parsed is None else parsed.file_id
