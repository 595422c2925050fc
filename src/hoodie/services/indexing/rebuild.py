"""Build the metadata table of a table anew: the partition `files`, and the record index if the table requires one.

The metadata table is derived from the data table, so nothing can be lost. `rebuild` is the call that error messages
about a damaged metadata table name. Writes use the other functions, if the metadata table or the index is missing.
"""

from __future__ import annotations

from typing import Final

from hoodie.commit.begin import AbandonedFiles
from hoodie.commit.call import Call
from hoodie.commit.metadata_table import drop_lost_partitions, drop_metadata_table, ensure_metadata_table
from hoodie.commit.rollback import roll_back_dead_writes
from hoodie.commit.writable import check_no_exclusive_service
from hoodie.config import indexes
from hoodie.errors import CommitConflictError, HoodieError, LockTimeoutError
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.index import PARTITIONED_RECORD, lost_record_index, stored_index
from hoodie.index.record.building.plan import IndexBuild, build_of, pending_build, pending_indexing
from hoodie.metadata.kinds.record_index import is_partitioned_record_index
from hoodie.metadata.kinds.registry import KINDS
from hoodie.progress import PhaseTimes
from hoodie.results import ServiceResult
from hoodie.services.indexing.file_builds import build_partition
from hoodie.services.indexing.life import end_dead, end_dead_builds, foreign_write, is_switched_on
from hoodie.services.indexing.record_builds import build_record_index
from hoodie.timeline import Action, Instant, is_live
from hoodie.view.slices import data_table, list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

BUILD_OR_DROP: Final = 'build it with t.index.build("record"), or give it up with t.index.drop("record")'
"""What to do about a record index that could not be built."""


def rebuild(call: Call) -> ServiceResult:
    """Delete the metadata table and build it anew: the listing of files, and the record index and statistics it had.

    The listing is built under the table's lock, the index beside running writers. If the process dies, readers list the
    storage, and the next write or the next call does the rest.

    Raises: UnsupportedError for table version 6, or while the JVM builds an index; CommitConflictError while an index
    build runs; as `build_record_index`.
    """
    times = PhaseTimes()
    before = call.load()
    had = {kind: kind.settings(data_table(before)) for kind in KINDS.built if kind.is_in(before.config)}
    with times.phase("rebuild"):
        notes = rebuild_listing(call.state)
    view = before.refreshed()
    counts = {"partitions": len(view.config.metadata_partitions)}
    bytes_written = 0
    for kind in KINDS.built:
        if kind.is_written_in(view.config.version) and (kind in had or kind.is_lost(data_table(view))):
            with times.phase(kind.subject):
                again = build_partition(call, kind.name, columns=had.get(kind))
            counts["partitions"] = len(view.refreshed().config.metadata_partitions)
            notes, bytes_written = (*notes, *again.notes), bytes_written + again.bytes_written
    # Last: it is refused if several rows share a key.
    if lost_record_index(view) is not None:
        with times.phase("index"):
            built = build_record_index(call)
        counts |= {"partitions": counts["partitions"] + 1, **built.counts}
        notes, bytes_written = (*notes, *built.notes), bytes_written + built.bytes_written
    return ServiceResult(
        operation="rebuild metadata table",
        counts=counts,
        bytes_written=bytes_written,
        seconds=times.seconds(),
        notes=notes,
    )


def rebuild_listing(state: TableState) -> tuple[str, ...]:
    """Delete the metadata table, and create it with the partition `files` only; return notes. Takes the table's lock.

    Dead writes are rolled back, after the metadata table was removed from the properties: their rollback needs no
    metadata table that is damaged.

    Raises: as `rebuild`.
    """
    with state.table_lock() as lock:
        abandoned = AbandonedFiles.find(state.store)
        view = TableView.load(state, lock)
        notes = (*end_dead_builds(view), *_given_up(view))
        # Before dead writes are rolled back: their rollback would read the damaged metadata table.
        rolled_back = roll_back_dead_writes(drop_metadata_table(view))
        view = view.refreshed()
        abandoned.remove(view)
        ensure_metadata_table(view)
    return (*notes, *(done.note for done in rolled_back))


def give_up_lost(state: TableState) -> tuple[str, ...]:
    """Drop the metadata partitions that hold no file group; return notes about them. Takes the table's lock."""
    with TableView.locked(state) as view:
        return drop_lost_partitions(view)[1]


def _given_up(view: TableView) -> tuple[str, ...]:
    """Return notes about the metadata partitions that the table has and that are not built again."""
    named = {*view.config.metadata_partitions}
    other = named - KINDS.maintained(named).keys()
    is_partitioned = RECORD_INDEX in named and (
        stored_index(view.config) is PARTITIONED_RECORD or is_partitioned_record_index(view.store)
    )
    if is_partitioned:
        other.add(RECORD_INDEX)
    return tuple(
        f"the metadata partition {name} was removed, and is not built by this release; the next JVM write that enables "
        "it builds it"
        for name in sorted(other)
    )


def finish_dead_build(state: TableState) -> tuple[str, ...]:
    """Complete an index build whose process died after it had switched the index on; return notes about it.

    A dead build of statistics or bloom filters is completed too, or rolled back if it had not switched them on. Takes
    the table's lock if a build of this library is pending and its process does not run any more.
    """
    found = TableView.load(state)
    if not any(_can_be_ended(found, instant) for instant in pending_indexing(found)):
        return ()
    with TableView.locked(state) as view:
        dead = [_can_be_ended(view, instant) for instant in pending_indexing(view)]
        return tuple(end_dead(view, build) for build in dead if build is not None)


def _can_be_ended(view: TableView, instant: Instant) -> IndexBuild | None:
    """Return a build of this library whose process died; None for a build of records that a call can resume."""
    build = build_of(view, instant)
    if build is None or is_live(view.store, build.requested_time):
        return None
    return build if not build.is_of_records or is_switched_on(view, build) else None


def build_lost_index(call: Call, *, bytes_max: int) -> tuple[str, ...]:
    """Build the record index that is missing; return notes, none if the table lacks none.

    A pending rollback whose process died is completed first: the files that it deletes would be indexed.

    An index that cannot be built now is no error: writes then find records by reading the data files, and a note names
    the cause: the data has more than `bytes_max` bytes, a JVM write is running, or a key has several rows. The last
    cause stays: this handle of the table does not try again.
    """
    view = TableView.load(call.state)
    if lost_record_index(view) is None:
        return ()
    notes: tuple[str, ...] = ()
    reason = call.state.unbuildable
    if reason is None:
        try:
            notes = _finish_rollbacks(view)
            reason = _reason_to_wait(view.refreshed() if notes else view, bytes_max)
        except (LockTimeoutError, OSError) as error:
            reason = str(error)
    if reason is None:
        try:
            built = build_record_index(call)
        except (CommitConflictError, LockTimeoutError, OSError) as error:
            reason = str(error)
        except HoodieError as error:
            reason = call.state.unbuildable = str(error)
        else:
            entries = built.counts.get("entries", 0)
            return (*notes, f"the record index was missing and was built again, with {entries:,} entries")
    return (
        *notes,
        f"the record index is missing and was not built again, so keys are looked up in the data files: {reason}; "
        f"{BUILD_OR_DROP}",
    )


def _finish_rollbacks(found: TableView) -> tuple[str, ...]:
    """Complete the rollbacks whose process died, and roll back dead writes; return notes. No lock if there are none."""
    if not any(instant.action is Action.ROLLBACK for instant in found.timeline.pending()):
        return ()
    with TableView.locked(found.state) as view:
        check_no_exclusive_service(view)
        return tuple(done.note for done in roll_back_dead_writes(view))


def _reason_to_wait(view: TableView, bytes_max: int) -> str | None:
    size_bytes = sum(found.size_bytes for found in list_slices(view))
    if size_bytes > bytes_max:
        return (
            f"the data has {size_bytes:,} bytes, more than {indexes.INDEX_REBUILD_BYTES_MAX.key}={bytes_max:,}, and "
            "writers can run while t.index.build runs"
        )
    build = pending_build(view)
    if build is not None and is_live(view.store, build.requested_time):
        return f"it is being built at {build.requested_time}"
    foreign = foreign_write(view)
    return None if foreign is None else f"{foreign} of another engine is pending"
