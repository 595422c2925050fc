"""Build or rebuild the record index of a table while other writers write to it.

A rebuild changes the number of buckets. A build has three steps:

1. An indexing instant is created on the timeline; an earlier build is resumed, completed or rolled back first. The
   build starts from the table as it was at its requested time.
2. Without the lock: the keys of that state are staged by index file group, and the base file of each index file group
   is written. Then the changes of other writers are written to log files, in rounds: each round compares the file
   slices before and after.
3. Under the table's lock: the last round, the check of the counts, and the switch (`services.indexing.switch`).

The files of a build are uncommitted until the switch. If the process of a build dies, the next call resumes the build.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from hoodie.commit.call import Call
from hoodie.commit.metadata_table import ensure_metadata_table
from hoodie.commit.pending import PendingInstant
from hoodie.errors import CommitConflictError, HoodieError, LockTimeoutError, UnsupportedError
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import stage_folder
from hoodie.files.table_properties import update_table_config
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.format.table.table_config import BaseFileFormat
from hoodie.index.record.building.files import IndexFiles, bucket_count, rows_of_slices
from hoodie.index.record.building.plan import IndexBuild, build_of, pending_indexing
from hoodie.index.record.state import record_index
from hoodie.metadata.kinds.record_index import RecordIndexKind, is_partitioned_record_index
from hoodie.metadata.table import MetadataTable
from hoodie.progress import PhaseTimes
from hoodie.results import ServiceResult
from hoodie.services.indexing.life import (
    end_dead,
    is_switched_on,
    locked_to_build,
    pending_build_error,
    run_build,
    start_build,
)
from hoodie.services.indexing.switch import SwitchOn, differing, is_partitioned_by_type, on_properties
from hoodie.timeline import Action, is_live
from hoodie.timeline.owner import Owner
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView

_Begun = tuple[PendingInstant, IndexBuild, dict[FileSlice, int]]
"""A build that is pending on the timeline, owned by this process, and the row counts of the file slices."""


def _begin(call: Call, buckets: int | None) -> tuple[_Begun | None, tuple[str, ...]]:
    """Create a build, or resume a build whose process died; None if there is nothing to build. Returns also notes."""
    notes: tuple[str, ...] = ()
    view = call.load()
    check_buildable(view)
    rows = rows_of_slices(call.engine_for, view.store.spec, list_slices(view), view.slice_read())
    wanted = bucket_count(sum(rows.values()), view.config.raw, asked=buckets)
    with locked_to_build(call.state) as view:
        check_buildable(view)
        for instant in pending_indexing(view):
            build = build_of(view, instant)
            if build is None or not build.is_of_records or is_live(view.store, build.requested_time):
                raise pending_build_error(view, instant)
            if not is_switched_on(view, build) and _goes_on(view, build, buckets):
                note = f"resumed the build at {build.requested_time}"
                # The new token: if the process that began the build still runs, it cannot complete or cancel it.
                pending = PendingInstant.claim(view, instant, Owner.new().to_bytes())
                return (pending, build, rows), (note,)
            notes = (end_dead(view, build),)
        view = ensure_metadata_table(view.refreshed())
        found = _stands(view, buckets)
        if found is not None:
            return None, (*notes, found)
        if RECORD_INDEX not in view.config.metadata_partitions:
            view.held_lock.ensure_held()
            MetadataTable(view.store, view.config).clear_partition(RecordIndexKind())
        pending = start_build(view, IndexBuild.of_records(wanted))
        return (pending, IndexBuild.of_records(wanted, pending.instant_time), rows), notes


def check_buildable(view: TableView) -> None:
    """Refuse tables whose record index this release cannot build. Raises: UnsupportedError."""
    config, where = view.config, view.store.uri("")
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
    if is_there or is_partitioned_by_type(config):
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


def build_record_index(call: Call, *, buckets: int | None = None) -> ServiceResult:
    """Build the record index, or rebuild it if it has another number of buckets than `buckets`.

    `buckets`: the number of index file groups; None derives it from the table's row count, with a million keys each.
    An existing index is kept if `buckets` is None or is its number. The options that make JVM writers maintain the
    index are stored in the table's properties.

    Raises:
        RecordKeyError: several rows share a key, and the index stores one location for a key; the message names some
            keys. The index is not switched on.
        UnsupportedError: tables without meta fields.
        CommitConflictError: another build runs; a JVM write did not end in time; the cleaner deleted files that the
            build compares.
    """
    times = PhaseTimes()
    with times.phase("plan"):
        begun, notes = _begin(call, buckets)
    if begun is None:
        return ServiceResult(operation="build record index", seconds=times.seconds(), notes=notes)
    pending, build, rows = begun
    with ExitStack() as held:
        held.callback(pending.end)
        files = IndexFiles(call.state, call.engine_for, build, rows)
        folder = held.enter_context(stage_folder(call.state.store))
        run_build(call, pending, _RecordBuilding(files, folder), times)
    counts = {"entries": files.entries, "buckets": build.buckets, "files_read": files.files_read}
    return ServiceResult(
        operation="build record index",
        instant=build.requested_time,
        counts=counts,
        bytes_written=sum(stat.total_write_bytes for stat in files.stats),
        seconds=times.seconds(),
        notes=(*notes, *files.notes),
    )


@dataclass(frozen=True, slots=True)
class _RecordBuilding:
    """The files of the index, staged in `folder`; see `Building`."""

    files: IndexFiles
    folder: str

    @property
    def build(self) -> IndexBuild:
        return self.files.build

    def read(self) -> None:
        """Write the base files, from the table as it was when the build began."""
        self.files.write_base(self.folder)

    def catch_up(self, view: TableView) -> bool:
        """Write log files with the changes of other writers."""
        return self.files.catch_up(view, self.folder)

    def prepare(self) -> None:
        """Do nothing: the files are written in each round."""

    def completion(self, now: TableView) -> SwitchOn:
        """Compare entries with rows, then switch the index on."""
        self.files.check_counts()
        return SwitchOn(self.files.build, self.files.stats)

    def can_go_on(self, error: HoodieError) -> bool:
        """Return whether a second call can resume the build: after a conflict or a lock timeout."""
        return isinstance(error, CommitConflictError | LockTimeoutError) and not self.files.is_outdated
