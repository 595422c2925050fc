"""Build the record index of a table that has rows, or build it anew with another number of buckets, beside writers.

1. An indexing instant says on the timeline that the build runs. It has the state of the table when it was requested.
2. Without the lock: the keys of that state are staged by bucket, and each bucket's base file is written. Then what
   other writers changed since is written to log files, round by round: file groups before and after are compared.
3. Under the table's lock: the last such round, the check of the counts, the switch (`services.indexing.switch`).

Nobody believes a file of it before. A build that died goes on where it was when it is called again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from hoodie.commit.pending import PendingInstant
from hoodie.commit.rollback import roll_back_dead_writes
from hoodie.commit.steps import Step, reached
from hoodie.errors import CommitConflictError, HoodieError, LockTimeoutError
from hoodie.files.staging.staged import stage_folder
from hoodie.index.record.building.files import IndexFiles
from hoodie.index.record.building.plan import IndexBuild
from hoodie.metadata.services.context import EngineFor, local_engine
from hoodie.progress import PhaseTimes
from hoodie.services.indexing.begin import begin_build
from hoodie.services.indexing.switch import SwitchOn, cancel, is_switched_on
from hoodie.services.result import ServiceResult
from hoodie.timeline import Action, State, TableLock
from hoodie.timeline.heartbeat import heartbeat_path
from hoodie.timeline.owner import Owner
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_ROUNDS_MAX = 5
"""Rounds without the lock that catch up with writers; the last one, under it, is to be short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCall:
    """One call of an operation on the record index: on which table, by which engines.

    `wait_seconds`: how long a build waits for a JVM write that began before it to end.
    """

    state: TableState
    engine_for: EngineFor = local_engine
    wait_seconds: float = 600.0
    retry_seconds: float = 1.0
    sleep: Callable[[float], None] = time.sleep


def build_record_index(call: IndexCall, *, buckets: int | None = None) -> ServiceResult:
    """Build the record index, or build it anew if it has another number of buckets than asked for.

    `buckets`: None takes the number from the rows of the table, at a million keys each. An
    index that is there already stays, unless a number is asked for that is not its own. The table's properties tell
    JVM writers to keep it.

    Raises:
        RecordKeyError: rows that share a key, of which an index would know one; names some. Nothing is switched on.
        UnsupportedError: table version 6, tables without meta fields.
        CommitConflictError: another build runs; a JVM write did not end in time; files it compares were cleaned away.
    """
    times = PhaseTimes()
    with times.phase("plan"):
        begun = begin_build(call.state, call.engine_for, buckets)
    if begun.build is None or begun.pending is None:
        return ServiceResult(operation="build record index", seconds=times.seconds(), notes=begun.notes)
    files = IndexFiles(call.state, call.engine_for, begun.build, begun.rows)
    with stage_folder(call.state.store) as folder:
        try:
            _run(call, begun.pending, files, folder, times)
        except HoodieError as error:
            # What a second call can wait for stays as it is; the rest would fail again.
            if not isinstance(error, CommitConflictError | LockTimeoutError) or files.is_outdated:
                with suppress(Exception), TableLock(call.state.store):
                    _cancel(call.state, begun.build)
            raise
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


def _run(call: IndexCall, pending: PendingInstant, files: IndexFiles, folder: str, times: PhaseTimes) -> None:
    reached(Step.BEGUN)
    with times.phase("build"):
        files.write_base(folder)
    reached(Step.WRITTEN)
    with times.phase("catch up"):
        for _ in range(_ROUNDS_MAX):
            if not files.catch_up(TableView.load(call.state), folder):
                break
    deadline = time.monotonic() + call.wait_seconds
    while True:
        with times.phase("switch"), TableLock(call.state.store):
            view = _settled(call.state)
            waits_for = foreign_write(view)
            if waits_for is None:
                files.catch_up(view, folder)
                files.check_counts()
                pending.complete(view, SwitchOn(files.build, files.stats))
                return
        if time.monotonic() >= deadline:
            raise CommitConflictError(
                f"{waits_for} of another engine began before the index was there and did not end in "
                f"{call.wait_seconds:.0f} s; its keys would be missing: run the build again when it ended, it goes on"
            )
        call.sleep(call.retry_seconds)
        with times.phase("catch up"):
            files.catch_up(TableView.load(call.state), folder)


def foreign_write(view: TableView) -> str | None:
    """A write at work, if there is one, that would commit without telling the index: not one of ours.

    Ours tell it: a write whose index changed since it began makes its entries once more when it commits.
    """
    for instant in view.timeline.writes().pending():
        is_planned = instant.action in (Action.COMPACTION, Action.CLUSTERING) and instant.state is State.REQUESTED
        try:
            owner = Owner.parse(view.store.read(heartbeat_path(instant.requested_time)))
        except FileNotFoundError:
            owner = None
        if owner is None and not is_planned:
            return str(instant)
    return None


def _settled(state: TableState) -> TableView:
    """The table without what dead writers left."""
    view = TableView.load(state)
    return TableView.load(state) if roll_back_dead_writes(view) else view


def _cancel(state: TableState, build: IndexBuild) -> None:
    view = TableView.load(state)
    if not is_switched_on(view, build):
        cancel(view, build)
