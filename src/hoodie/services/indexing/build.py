"""Build or rebuild the record index of a table while other writers write to it.

A rebuild changes the number of buckets. A build has three steps:

1. An indexing instant is created on the timeline. The build starts from the table as it was at its requested time.
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

from hoodie.commit.call import Call
from hoodie.commit.pending import PendingInstant
from hoodie.commit.rollback import roll_back_dead_writes
from hoodie.commit.steps import Step, reached
from hoodie.errors import CommitConflictError, HoodieError, LockTimeoutError
from hoodie.files.staging.staged import stage_folder
from hoodie.index.record.building.files import IndexFiles
from hoodie.index.record.building.plan import IndexBuild
from hoodie.progress import PhaseTimes
from hoodie.services.indexing.begin import begin_build
from hoodie.services.indexing.switch import SwitchOn, cancel, is_switched_on
from hoodie.services.results import ServiceResult
from hoodie.timeline import Action, State, TableLock
from hoodie.timeline.heartbeat import heartbeat_path
from hoodie.timeline.owner import Owner
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

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
