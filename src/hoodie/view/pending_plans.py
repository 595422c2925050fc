"""Plans of pending table services and rollbacks; other writes and plans must check for what they name.

docs/format/table.md §9.2, §9.3. The functions that read a plan raise CorruptFileError if it does not parse.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from hoodie.errors import CorruptFileError, InstantNotFoundError
from hoodie.files.markers import read_markers
from hoodie.files.named_paths import named_data_file
from hoodie.format.filenames import LogFileName, name_of
from hoodie.format.instants.service_metadata import (
    ClusteringPlan,
    CompactionPlan,
    RequestedReplaceMetadata,
    RollbackPlan,
)
from hoodie.timeline import Action, Instant, State, read_instant
from hoodie.view.listing import list_files
from hoodie.view.table_view import TableView

FileGroup = tuple[str, str]
"""Partition path and file id."""

_ACTIONS = frozenset(Action)


def groups_being_clustered(view: TableView) -> Mapping[FileGroup, Instant]:
    """Return the file groups that a pending clustering will replace, each with its clustering.

    An update of such a file group would be lost.
    """
    groups: dict[FileGroup, Instant] = {}
    for instant in view.timeline.pending().instants:
        if instant.action is not Action.CLUSTERING:
            continue
        plan = stored_clustering(view, instant)
        for group in plan.input_groups if plan else ():
            groups |= {(piece.partition_path, piece.file_id): instant for piece in group.slices}
    return groups


def compactions_by_group(view: TableView) -> dict[FileGroup, str]:
    """Return the file groups in pending compactions and log compactions, each with the instant of its plan."""
    groups: dict[FileGroup, str] = {}
    for instant in view.timeline.pending().instants:
        if instant.action in (Action.COMPACTION, Action.LOG_COMPACTION):
            plan = stored_plan(view, instant)
            for found in plan.operations if plan else ():
                groups[found.partition_path, found.file_id] = instant.requested_time
    return groups


def planned_groups(view: TableView) -> AbstractSet[FileGroup]:
    """Return the file groups in pending plans of table services; no further plan may contain them."""
    return compactions_by_group(view).keys() | groups_being_clustered(view).keys()


def input_files(view: TableView, instant: Instant) -> dict[str, set[str]]:
    """Return the names of the files that a pending or completed table service with a plan reads, by partition path."""
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
    """
    content = view.pending_content(instant)
    return CompactionPlan.parse(content, path=str(instant)) if content else None


def stored_clustering(view: TableView, instant: Instant) -> ClusteringPlan | None:
    """Return the plan of a pending or completed clustering. None as `stored_plan`."""
    content = view.pending_content(instant)
    return RequestedReplaceMetadata.parse(content, path=str(instant)).clustering_plan if content else None


def stored_rollback_plan(view: TableView, rollback: Instant) -> RollbackPlan | None:
    """Return the plan of a pending rollback; None if its requested file is empty, because its process died.

    Raises: InstantNotFoundError.
    """
    content = read_instant(view.store, view.layout, rollback, State.REQUESTED)
    return RollbackPlan.parse(content, path=str(rollback)) if content else None


def pending_rollbacks(view: TableView, requested_time: str) -> Iterator[tuple[Instant, RollbackPlan]]:
    """Yield the pending rollbacks of an instant, each with its plan. A rollback without a whole plan is left out.

    A rollback that this yields may have deleted files of the instant. Reads the plan of each pending rollback.
    """
    for found in view.timeline.pending():
        if found.action is Action.ROLLBACK:
            with contextlib.suppress(CorruptFileError, InstantNotFoundError):
                plan = stored_rollback_plan(view, found)
                if plan is None or plan.instant_to_rollback is None:
                    continue
                target = plan.instant_to_rollback
                if target.commit_time == requested_time and target.action in _ACTIONS:
                    yield found, plan


def marked_logs(view: TableView, requested_time: str) -> set[str]:
    """Return the log files that the markers of an instant name. Raises: CorruptFileError."""
    marked = {marker.path for marker in read_markers(view.store, requested_time) or []}
    return {path for path in marked if LogFileName.parse(name_of(path)) is not None}


def rolled_back_logs(view: TableView, requested_time: str) -> set[str]:
    """Return the marked log files of a write of version 6 that stay although it was rolled back, or is being so.

    A rollback adds a block that hides theirs, and lists them.
    """
    if not view.config.version.log_name_has_base_instant:
        return set()
    logs = marked_logs(view, requested_time)
    named: set[str] = set()
    for rollback, plan in pending_rollbacks(view, requested_time):
        for request in plan.rollback_requests:
            for path in request.log_blocks_to_be_deleted or ():
                with contextlib.suppress(CorruptFileError):
                    named.add(named_data_file(view.store, path, by=str(rollback)))
    try:
        listing = list_files(view, {path.rpartition("/")[0] for path in logs}) if logs else {}
    except CorruptFileError:
        return logs
    return {path for path in logs if path in named or name_of(path) in listing[path.rpartition("/")[0]]}
