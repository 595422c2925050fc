"""Drop the record index of a table: remove it from the table's properties, and delete its files."""

from __future__ import annotations

from hoodie.commit.begin import AbandonedFiles
from hoodie.errors import CommitConflictError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.index.record.building.plan import pending_build, pending_indexing
from hoodie.index.record.file_groups import list_index_files
from hoodie.metadata.kinds.record_index import is_partitioned_record_index
from hoodie.metadata.table import MetadataTable
from hoodie.progress import PhaseTimes
from hoodie.services.indexing.pending import beside_pending
from hoodie.services.indexing.switch import cancel, finish_dead, is_switched_on, off_properties
from hoodie.services.results import ServiceResult
from hoodie.timeline import is_live
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


def drop_record_index(state: TableState) -> ServiceResult:
    """Drop the record index, and roll back a build whose process died. Safe to repeat after a crash.

    The index is removed from the table's properties first, then its files are deleted. Afterwards writers, including
    JVM writers, find records by the index `global_simple`, unless another index type was stored. So keys stay unique in
    the whole table.

    Raises:
        UnsupportedError: table version 6, or the JVM is building an index.
        CommitConflictError: a build is running.
    """
    times = PhaseTimes()
    with state.table_lock() as lock, times.phase("drop"):
        abandoned = AbandonedFiles.find(state.store)
        view = TableView.load(state, lock)
        if not view.config.version.has_known_metadata_table:
            raise UnsupportedError(
                f"{state.store.uri('')} has table version 6: this release does not write its metadata table; drop the "
                "index with JVM Hudi"
            )
        abandoned.remove(state.store, view.timeline)
        notes = end_builds(view)
        view = TableView.load(state)
        had_index = RECORD_INDEX in view.config.metadata_partitions
        files = len(list_index_files(state.store))
        if had_index or RECORD_INDEX in view.config.metadata_partitions_inflight:
            is_partitioned = is_partitioned_record_index(state.store)
            update_table_config(state.store, off_properties(view.config, is_partitioned=is_partitioned))
        lock.ensure_held()
        MetadataTable(state.store, view.config).drop_partitions({RECORD_INDEX})
    counts = {"files_deleted": files} if had_index or files else {}
    return ServiceResult(operation="drop record index", counts=counts, seconds=times.seconds(), notes=notes)


def end_builds(view: TableView) -> tuple[str, ...]:
    """Complete or roll back an index build whose process died; return notes. Call it under the table's lock.

    Raises:
        UnsupportedError: the JVM is building an index.
        CommitConflictError: a build is running, or statistics are being built.
    """
    build = pending_build(view)
    if build is None:
        pending = pending_indexing(view)
        if pending:
            raise beside_pending(view, pending[0])
        return ()
    if is_live(view.store, build.requested_time):
        raise CommitConflictError(
            f"the record index of {view.store.uri('')} is being built at {build.requested_time}; stop that build first"
        )
    if is_switched_on(view, build):
        finish_dead(view, build)
        return ()
    cancel(view, build)
    return (f"rolled back the build at {build.requested_time}, whose process had died",)
