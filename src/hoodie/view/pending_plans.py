"""File groups in the plans of pending table services; other writes and plans must check for them.

docs/format/table.md §9.2, §9.3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from hoodie.errors import InstantNotFoundError
from hoodie.format.filenames import name_of
from hoodie.format.instants.service_metadata import ClusteringPlan, CompactionPlan, RequestedReplaceMetadata
from hoodie.timeline import Action, Instant, State, read_instant
from hoodie.view.table_view import TableView

FileGroup = tuple[str, str]
"""Partition path and file id."""


def groups_being_clustered(view: TableView) -> Mapping[FileGroup, Instant]:
    """Return the file groups that a pending clustering will replace, each with its clustering.

    An update of such a file group would be lost.

    Raises: CorruptFileError if a plan does not parse.
    """
    groups: dict[FileGroup, Instant] = {}
    for instant in view.timeline.pending().instants:
        if instant.action is not Action.CLUSTERING:
            continue
        plan = stored_clustering(view, instant)
        for group in plan.input_groups if plan else ():
            groups |= {(piece.partition_path, piece.file_id): instant for piece in group.slices}
    return groups


def groups_being_compacted(view: TableView) -> frozenset[FileGroup]:
    """Return the file groups in pending compactions and log compactions: no other plan may contain them.

    Raises: CorruptFileError if a plan does not parse.
    """
    return frozenset(compactions_by_group(view))


def compactions_by_group(view: TableView) -> dict[FileGroup, str]:
    """Return the file groups in pending compactions and log compactions, each with the instant of its plan.

    Raises: CorruptFileError if a plan does not parse.
    """
    groups: dict[FileGroup, str] = {}
    for instant in view.timeline.pending().instants:
        if instant.action in (Action.COMPACTION, Action.LOG_COMPACTION):
            plan = stored_plan(view, instant)
            for found in plan.operations if plan else ():
                groups[found.partition_path, found.file_id] = instant.requested_time
    return groups


def input_files(view: TableView, instant: Instant) -> dict[str, set[str]]:
    """Return the names of the files that a pending or completed table service with a plan reads, by partition path.

    Raises: CorruptFileError if the plan does not parse.
    """
    files = defaultdict[str, set[str]](set)
    if instant.action.completed_as is Action.REPLACE_COMMIT:
        clustering = stored_clustering(view, instant)
        for group in clustering.input_groups if clustering else ():
            for piece in group.slices:
                files[piece.partition_path] |= _names(piece.data_file_path, piece.delta_file_paths)
    else:
        plan = stored_plan(view, instant)
        for found in plan.operations if plan else ():
            files[found.partition_path] |= _names(found.data_file_path, found.delta_file_paths)
    return files


def _names(base_file: str | None, log_files: Sequence[str] | None) -> set[str]:
    return {name_of(path) for path in (base_file, *(log_files or ())) if path}


def stored_plan(view: TableView, instant: Instant) -> CompactionPlan | None:
    """Return the plan of a pending or completed compaction or log compaction.

    None if its scheduler stopped before it stored the plan, or if the instant was deleted meanwhile.

    Raises: CorruptFileError if it does not parse.
    """
    try:
        content = read_instant(view.store, view.layout, instant, State.REQUESTED)
    except InstantNotFoundError:
        return None
    return CompactionPlan.parse(content, path=str(instant)) if content else None


def stored_clustering(view: TableView, instant: Instant) -> ClusteringPlan | None:
    """Return the plan of a pending or completed clustering. None and errors as `stored_plan`."""
    try:
        content = read_instant(view.store, view.layout, instant, State.REQUESTED)
    except InstantNotFoundError:
        return None
    return RequestedReplaceMetadata.parse(content, path=str(instant)).clustering_plan if content else None
