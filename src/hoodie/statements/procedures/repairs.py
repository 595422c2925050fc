"""Procedures that mend what dead processes left: partition files and plans of cleans; `t.repair()` mends more."""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.errors import CorruptFileError
from hoodie.files.partition_folder import ensure_partition_metadata
from hoodie.format.filenames import PARTITION_METADATA_NAME
from hoodie.format.instants.service_metadata import CleanerPlan
from hoodie.statements.procedures.procedure import Call, Row, optional, procedure, required
from hoodie.timeline import Action, Instant, State, delete_instant_files, read_instant
from hoodie.view.listing import list_files
from hoodie.view.table_view import TableView


@procedure(
    parameters=(required("table"), optional("dry_run", True)),
    columns="partition_path string, metadata_is_present string, action string",
)
def repair_add_partition_meta(call: Call) -> Iterable[Row]:
    """Write the file that marks a partition where it misses; by default only list these partitions."""
    view = call.table.view()
    newest = view.timeline.writes().completed().latest()
    for path in sorted(list_files(view)):
        names = view.store.names(path)
        is_there = any(name.partition(".parquet")[0] == PARTITION_METADATA_NAME for name in names)
        repairs = not is_there and not call["dry_run"] and newest is not None
        if repairs and newest is not None:
            ensure_partition_metadata(view.store, path, newest.requested_time)
        yield {
            "partition_path": path,
            "metadata_is_present": "Yes" if is_there else "No",
            "action": "Repaired" if repairs else "None",
        }


@procedure(parameters=(required("table"),), columns="result boolean")
def repair_corrupted_clean_files(call: Call) -> Iterable[Row]:
    """Delete pending cleans whose plan is empty or damaged."""
    state = call.table.view().state
    with TableView.locked(state) as view:
        for clean in view.timeline.pending():
            # Without a plan a clean has deleted no file.
            if clean.action is Action.CLEAN and not _is_planned(view, clean):
                pending = (State.INFLIGHT, State.REQUESTED)
                delete_instant_files(view.store, view.layout, clean.requested_time, clean.action, *pending)
    return [{"result": True}]


def _is_planned(view: TableView, clean: Instant) -> bool:
    content = read_instant(view.store, view.layout, clean, State.REQUESTED)
    try:
        return bool(content) and CleanerPlan.parse(content, path=str(clean)) is not None
    except CorruptFileError:
        return False
