"""Procedures that mend what dead processes left: partition files and plans of cleans; `t.repair()` mends more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hoodie.commit.pending import delete_pending_files
from hoodie.errors import CorruptFileError
from hoodie.files.partition_folder import ensure_partition_metadata
from hoodie.format.filenames import PARTITION_METADATA_NAME
from hoodie.format.instants.service_metadata import CleanerPlan
from hoodie.statements.procedures.procedure import Call, Procedure, Row, columns, optional, required
from hoodie.timeline import Action, Instant, State, read_instant
from hoodie.view.listing import list_files
from hoodie.view.table_view import TableView


def _add_partition_meta(call: Call) -> Iterable[Row]:
    """Return which partitions have the file that marks a partition; unless it is a dry run, write those that miss."""
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


def _drop_corrupted_cleans(call: Call) -> Iterable[Row]:
    """Delete pending cleans whose plan is empty or damaged: they deleted no file."""
    state = call.table.view().state
    with TableView.locked(state) as view:
        for clean in view.timeline.pending():
            if clean.action is Action.CLEAN and not _is_planned(view, clean):
                delete_pending_files(view, clean.requested_time, clean.action)
    return [{"result": True}]


def _is_planned(view: TableView, clean: Instant) -> bool:
    content = read_instant(view.store, view.layout, clean, State.REQUESTED)
    try:
        return bool(content) and CleanerPlan.parse(content, path=str(clean)) is not None
    except CorruptFileError:
        return False


REPAIRS: Final = (
    Procedure(
        name="repair_add_partition_meta",
        about="Write the file that marks a partition where it misses; by default only list these partitions.",
        parameters=(required("table"), optional("dry_run", True)),
        columns=columns("partition_path string, metadata_is_present string, action string"),
        run=_add_partition_meta,
    ),
    Procedure(
        name="repair_corrupted_clean_files",
        about="Delete pending cleans whose plan is empty or damaged.",
        parameters=(required("table"),),
        columns=columns("result boolean"),
        run=_drop_corrupted_cleans,
    ),
)
