"""Begin a build of the record index: check the table, and resume, complete or roll back an earlier build."""

from __future__ import annotations

from dataclasses import dataclass, field

from hoodie.commit.begin import AbandonedFiles
from hoodie.commit.metadata_partitions import ensure_metadata_table
from hoodie.commit.pending import PendingInstant
from hoodie.engine import EngineFor
from hoodie.errors import CommitConflictError, UnsupportedError
from hoodie.files.slices import FileSlice
from hoodie.files.table_properties import update_table_config
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.format.table.table_config import BaseFileFormat
from hoodie.index.record.building.files import bucket_count, rows_of_slices
from hoodie.index.record.building.plan import IndexBuild, build_of, pending_indexing, plan_to_bytes
from hoodie.index.record.state import record_index
from hoodie.metadata.kinds.record_index import RecordIndexKind, is_partitioned_record_index
from hoodie.metadata.table import MetadataTable
from hoodie.services.indexing.pending import beside_pending
from hoodie.services.indexing.switch import (
    cancel,
    differing,
    finish_dead,
    is_switched_on,
    is_told_partitioned,
    on_properties,
)
from hoodie.timeline import Action, is_live
from hoodie.timeline.owner import Owner
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildStart:
    """A new or resumed build that is pending on the timeline, owned by this process.

    `build` and `pending` are None if there is nothing to build. `rows` are the row counts of the file slices.
    """

    build: IndexBuild | None = None
    pending: PendingInstant | None = None
    rows: dict[FileSlice, int] = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()


def begin_build(state: TableState, engine_for: EngineFor, buckets: int | None) -> BuildStart:
    """Create a build on the timeline, or resume a build whose process died. Raises: as `build_record_index`."""
    view = TableView.load(state)
    check_buildable(view)
    rows = rows_of_slices(engine_for, state.store.spec, list_slices(view), view.slice_read())
    wanted = bucket_count(sum(rows.values()), view.config.raw, asked=buckets)
    with state.table_lock() as lock:
        abandoned = AbandonedFiles.find(state.store)
        view = TableView.load(state, lock)
        check_buildable(view)
        abandoned.remove(state.store, view.timeline)
        notes: tuple[str, ...] = ()
        for instant in pending_indexing(view):
            build = build_of(view, instant)
            if build is None:
                raise beside_pending(view, instant)
            if is_live(state.store, build.requested_time):
                raise CommitConflictError(
                    f"the record index of {state.store.uri('')} is being built at {build.requested_time} already; wait "
                    "until that build completes"
                )
            if is_switched_on(view, build):
                finish_dead(view, build)
                notes = (f"completed the build at {build.requested_time}, whose process had died",)
            elif _goes_on(view, build, buckets):
                note = f"resumed the build at {build.requested_time}"
                # The new token: if the process that began the build still runs, it cannot complete or cancel it.
                pending = PendingInstant.claim(view, instant, Owner.new().to_bytes())
                return BuildStart(build=build, pending=pending, rows=rows, notes=(note,))
            else:
                cancel(view, build)
                notes = (f"rolled back the build at {build.requested_time}, whose process had died",)
        view = ensure_metadata_table(TableView.load(state, lock))
        found = _stands(view, buckets)
        if found is not None:
            return BuildStart(notes=(*notes, found))
        pending = _start(view, wanted)
        return BuildStart(build=IndexBuild(pending.instant_time, wanted), pending=pending, rows=rows, notes=notes)


def check_buildable(view: TableView) -> None:
    """Refuse tables whose record index this release cannot build.

    Raises: UnsupportedError.
    """
    config, where = view.config, view.store.uri("")
    if not config.version.has_known_metadata_table:
        raise UnsupportedError(
            f"{where} has table version {config.version.value}: this release writes metadata tables of versions 8 and "
            "9 only, and never upgrades a table; build the index with JVM Hudi, or upgrade the table with Hudi 1.1 or "
            "later"
        )
    if not config.populates_meta_fields:
        raise UnsupportedError(
            f"{where} stores no record keys (hoodie.populate.meta.fields=false): a record index requires them"
        )
    if config.bootstrap_base_path is not None or config.base_file_format is not BaseFileFormat.PARQUET:
        raise UnsupportedError(
            f"{where}: this release builds the record index of tables with Parquet base files, not of bootstrapped "
            "tables"
        )
    is_there = RECORD_INDEX in config.metadata_partitions and is_partitioned_record_index(view.store)
    if is_there or is_told_partitioned(config):
        raise UnsupportedError(
            f"{where} has a partitioned record index, which this release does not build; drop it with "
            't.index.drop("record") to build the record index of the whole table'
        )
    if any(instant.action is Action.RESTORE for instant in view.timeline.pending()):
        raise UnsupportedError(f"{where} has a pending restore: build the index after the restore completes")


def _goes_on(view: TableView, build: IndexBuild, buckets: int | None) -> bool:
    """Return whether a build of a dead process can be resumed.

    The number of buckets must be the wanted one. The table's state when the build was requested must still be known:
    no rollback or restore came later, and all files of that state exist.
    """
    if buckets not in (None, build.buckets):
        return False
    undone = (Action.ROLLBACK, Action.RESTORE)
    if any(found.action in undone and found.requested_time > build.requested_time for found in view.timeline):
        return False
    try:
        slices = list_slices(view.as_completed_by(build.requested_time))
    except UnsupportedError:
        return False
    return all(view.store.head(path) is not None for found in slices for path in found.paths)


def _stands(view: TableView, buckets: int | None) -> str | None:
    """Return a note if the index exists with the wanted number of buckets; None if it must be built.

    The index's properties are stored in the table's properties if they are missing there.
    """
    if RECORD_INDEX not in view.config.metadata_partitions:
        return None
    state = record_index(view)
    if state is None:
        return None
    found = len(state.file_groups)
    if buckets not in (None, found):
        return None
    stored = on_properties(view.config)
    if differing(view.config, stored):
        update_table_config(view.store, stored)
        return f"the record index existed already, with {found} buckets; the table's properties now contain its options"
    return f"the record index exists already, with {found} buckets"


def _start(view: TableView, buckets: int) -> PendingInstant:
    """Create a new build on the timeline."""
    if RECORD_INDEX not in view.config.metadata_partitions:
        view.held_lock.ensure_held()
        MetadataTable(view.store, view.config).clear_partition(RecordIndexKind())
    last = view.timeline.writes().completed().latest()
    plan = plan_to_bytes(buckets, None if last is None else last.requested_time)
    return PendingInstant.start(view, Action.INDEXING, plan, Owner.new().to_bytes(), is_token=True)
