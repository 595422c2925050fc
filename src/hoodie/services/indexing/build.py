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

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from hoodie.commit.begin import AbandonedFiles
from hoodie.commit.call import Call
from hoodie.commit.metadata_table import ensure_metadata_table
from hoodie.commit.pending import PendingInstant
from hoodie.commit.rollback import roll_back_dead_writes
from hoodie.commit.steps import Step, reached
from hoodie.engine import EngineFor
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
from hoodie.services.indexing.switch import (
    SwitchOn,
    cancel,
    differing,
    end_dead,
    is_switched_on,
    is_told_partitioned,
    on_properties,
    pending_build_error,
)
from hoodie.services.results import ServiceResult
from hoodie.timeline import Action, State, TableLock, is_live
from hoodie.timeline.heartbeat import heartbeat_path
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
            if build is None or not build.is_of_records:
                raise pending_build_error(view, instant)
            if is_live(state.store, build.requested_time):
                raise CommitConflictError(
                    f"the record index of {state.store.uri('')} is being built at {build.requested_time} already; wait "
                    "until that build completes"
                )
            if not is_switched_on(view, build) and _goes_on(view, build, buckets):
                note = f"resumed the build at {build.requested_time}"
                # The new token: if the process that began the build still runs, it cannot complete or cancel it.
                pending = PendingInstant.claim(view, instant, Owner.new().to_bytes())
                return BuildStart(build=build, pending=pending, rows=rows, notes=(note,))
            notes = (end_dead(view, build),)
        view = ensure_metadata_table(TableView.load(state, lock))
        found = _stands(view, buckets)
        if found is not None:
            return BuildStart(notes=(*notes, found))
        pending = _start(view, wanted)
        return BuildStart(
            build=IndexBuild.of_records(wanted, pending.instant_time), pending=pending, rows=rows, notes=notes
        )


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
    plan = IndexBuild.of_records(buckets).plan_to_bytes(view)
    return PendingInstant.start(view, Action.INDEXING, plan, Owner.new().to_bytes(), is_token=True)


_ROUNDS_MAX = 5
"""Maximum number of rounds without the lock; they make the last round, which holds the lock, short."""


def build_record_index(call: Call, *, buckets: int | None = None) -> ServiceResult:
    """Build the record index, or rebuild it if it has another number of buckets than `buckets`.

    `buckets`: the number of index file groups; None derives it from the table's row count, with a million keys each.
    An existing index is kept if `buckets` is None or is its number. The options that make JVM writers maintain the
    index are stored in the table's properties.

    Raises:
        RecordKeyError: several rows share a key, and the index stores one location for a key; the message names some
            keys. The index is not switched on.
        UnsupportedError: table version 6, tables without meta fields.
        CommitConflictError: another build runs; a JVM write did not end in time; the cleaner deleted files that the
            build compares.
    """
    times = PhaseTimes()
    with times.phase("plan"):
        begun = begin_build(call.state, call.engine_for, buckets)
    if begun.build is None or begun.pending is None:
        return ServiceResult(operation="build record index", seconds=times.seconds(), notes=begun.notes)
    try:
        files = IndexFiles(call.state, call.engine_for, begun.build, begun.rows)
        with stage_folder(call.state.store) as folder:
            _run_or_cancel(call, begun.pending, files, folder, times)
    finally:
        begun.pending.end()
    counts = {"entries": files.entries, "buckets": begun.build.buckets, "files_read": files.files_read}
    return ServiceResult(
        operation="build record index",
        instant=begun.build.requested_time,
        counts=counts,
        bytes_written=sum(stat.total_write_bytes for stat in files.stats),
        seconds=times.seconds(),
        notes=(*begun.notes, *files.notes),
    )


def _run_or_cancel(call: Call, pending: PendingInstant, files: IndexFiles, folder: str, times: PhaseTimes) -> None:
    """Run the build; cancel it after an error with which a second call would fail too."""
    try:
        _run(call, pending, files, folder, times)
    except HoodieError as error:
        # After a conflict or a lock timeout a second call can resume the build.
        if not isinstance(error, CommitConflictError | LockTimeoutError) or files.is_outdated:
            with suppress(Exception), call.state.table_lock() as lock:
                _cancel(TableView.load(call.state, lock), pending, files.build)
        raise


def _run(call: Call, pending: PendingInstant, files: IndexFiles, folder: str, times: PhaseTimes) -> None:
    reached(Step.BEGUN)
    with times.phase("build"):
        files.write_base(folder)
    reached(Step.WRITTEN)
    with times.phase("catch up"):
        for _ in range(_ROUNDS_MAX):
            if not files.catch_up(TableView.load(call.state), folder):
                break

    def complete(view: TableView) -> None:
        files.catch_up(view, folder)
        files.check_counts()
        pending.complete(view, SwitchOn(files.build, files.stats))

    complete_alone(call, pending, times, complete, lambda view: files.catch_up(view, folder))


def complete_alone(
    call: Call,
    pending: PendingInstant,
    times: PhaseTimes,
    complete: Callable[[TableView], None],
    catch_up: Callable[[TableView], object],
) -> None:
    """Call `complete` under the table's lock while no write of another engine is pending.

    Such a write would not update what is built. While this waits for its end, `catch_up` reads the changes of other
    writers without the lock.

    Raises: CommitConflictError if the write does not end in time, or if another process took the build over.
    """
    deadline = time.monotonic() + call.wait.seconds
    while True:
        with times.phase("switch"), call.state.table_lock() as lock:
            view = settled(call.state, lock)
            pending.ensure_mine(view)
            waits_for = foreign_write(view)
            if waits_for is None:
                complete(view)
                return
        if time.monotonic() >= deadline:
            raise CommitConflictError(
                f"{waits_for} of another engine did not end within {call.wait.seconds:.0f} s; the index would lack its "
                "keys and files, because that write does not update what is built: run the build again after the "
                "write ends"
            )
        call.wait.sleep(call.wait.retry_seconds)
        with times.phase("catch up"):
            catch_up(TableView.load(call.state))


_SERVICES = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING})
"""Planned table services: a plan may wait for its executor for as long as it likes."""


def foreign_write(view: TableView) -> str | None:
    """Return a pending write of another engine, which would commit without updating the new index; None if none.

    Writes of this library update it: if the index was switched since a write began, the write makes its entries again
    when it commits.
    """
    for instant in view.timeline.writes().pending():
        is_planned = instant.action in _SERVICES and instant.state is State.REQUESTED
        try:
            owner = Owner.read(view.store, heartbeat_path(instant.requested_time))
        except FileNotFoundError:
            owner = None
        if owner is None and not is_planned:
            return str(instant)
    return None


def settled(state: TableState, lock: TableLock) -> TableView:
    """Roll back dead writes, and return the view after that."""
    view = TableView.load(state, lock)
    return view.refreshed() if roll_back_dead_writes(view) else view


def _cancel(view: TableView, pending: PendingInstant, build: IndexBuild) -> None:
    """Roll the build back, unless another process has taken it over: the files then are that process's."""
    pending.ensure_mine(view)
    if not is_switched_on(view, build):
        cancel(view, build)
