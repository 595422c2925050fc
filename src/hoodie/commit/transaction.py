"""One write's life on the timeline: requested, inflight, completed; or gone without a trace.

The only code that completes a write instant. The order of the steps is docs/format/table.md §9.1.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hoodie.commit.commit_content import commit_metadata, commit_to_metadata_table, open_metadata_table
from hoodie.commit.conflicts import check_conflicts
from hoodie.commit.exclusive_services import check_no_exclusive_service
from hoodie.commit.leftovers import Leftovers
from hoodie.commit.metadata_partitions import ensure_metadata_partitions
from hoodie.commit.rollback import RolledBack, roll_back_dead_writes
from hoodie.errors import CommitConflictError, HoodieError, UnsupportedError
from hoodie.files.markers import delete_markers, read_markers
from hoodie.format.instants.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteOperation, WriteStat
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.index.record import WrittenEntries
from hoodie.index.record.conflicts import IndexedWrite
from hoodie.index.record.late_entries import index_was_exchanged, index_was_switched, index_was_taken_away, late_entries
from hoodie.index.record.state import has_partitioned_index, partitioned_index, record_index
from hoodie.metadata.record_index.buckets import RecordIndexState
from hoodie.metadata.services.context import EngineFor, local_engine
from hoodie.timeline import (
    Action,
    Instant,
    State,
    create_completed,
    create_inflight,
    create_requested,
    delete_instant_files,
)
from hoodie.timeline.heartbeat import Heartbeat
from hoodie.timeline.lock import TableLock
from hoodie.view.table_view import TableState, TableView


@dataclass(slots=True)
class Transaction:
    """A write between its requested and its completed file.

    `view` is the table as it was when the write began: index look-ups and file placement work on it.
    """

    view: TableView
    instant: Instant
    operation: WriteOperation
    heartbeat: Heartbeat
    rolled_back: tuple[RolledBack, ...]
    baseline: TableView
    """The state that the write was worked out on: `view`, or an earlier one if rows were read before it began."""
    is_settled: bool = False
    has_index_files: bool = False
    engine_for: EngineFor = local_engine
    """Which engine does the metadata table's services, when one is due: for work on so many bytes."""
    _record_index: list[RecordIndexState | None] = field(default_factory=list)
    _partitioned_index: list[Mapping[str, RecordIndexState] | None] = field(default_factory=list)

    @property
    def record_index(self) -> RecordIndexState | None:
        """The buckets of the record index as the write found them; None if the table has none."""
        if not self._record_index:
            self._record_index.append(record_index(self.view))
        return self._record_index[0]

    @property
    def partitioned_index(self) -> Mapping[str, RecordIndexState] | None:
        """The buckets of each data partition as the write found them, where the record index is a partitioned one."""
        if not self._partitioned_index:
            self._partitioned_index.append(partitioned_index(self.view))
        return self._partitioned_index[0]

    def announce_index_files(self) -> None:
        """Say that log files of the record index will be written: they go with the write if it is abandoned."""
        self.has_index_files = True

    @property
    def instant_time(self) -> str:
        """Requested time of this write."""
        return self.instant.requested_time

    def commit(
        self,
        stats: Iterable[WriteStat],
        *,
        schema: str,
        extra_metadata: Mapping[str, str],
        replaced: Mapping[str, Sequence[str]] | None = None,
        is_global: bool = False,
        index: WrittenEntries | None = None,
    ) -> Instant:
        """Make the files of `stats` part of the table, in one atomic step.

        `replaced`: file ids by partition path that this write takes out of the table (replace commits only).
        `is_global`: keys are unique across partitions. `index`: what was written to the record index for it.

        Raises: CommitConflictError if another write that completed meanwhile touched the same file groups; then, as
        after every other error here, nothing is committed.
        """
        metadata = commit_metadata(stats, self.operation, {**extra_metadata, SCHEMA_KEY: schema}, replaced)
        _delete_unreported(self.view, self.instant_time, metadata)
        completed: Instant | None = None
        try:
            with TableLock(self.view.store):
                completed = self._complete(metadata, is_global, () if index is None else index.stats)
        except Exception:
            # The write happened: a lock file that could not be deleted is the next writer's matter.
            if completed is None:
                raise
        self.view.state.commits[self.instant_time] = metadata
        with contextlib.suppress(Exception):
            self.heartbeat.stop()
            delete_markers(self.view.store, self.instant_time)
        return completed

    def _complete(self, metadata: CommitMetadata, is_global: bool, index_stats: Sequence[WriteStat]) -> Instant:
        """The steps under the lock: check, tell the metadata table, complete."""
        now = TableView.load(self.view.state)
        self.heartbeat.ensure_fresh()
        _check_still_pending(now, self.instant)
        check_no_exclusive_service(now)
        if index_was_exchanged(self.view, now):
            index_stats = self._made_again(now, metadata)
        indexed = None
        if RECORD_INDEX in now.config.metadata_partitions:
            indexed = IndexedWrite(
                now=now,
                instant_time=self.instant_time,
                stats=index_stats,
                was_switched=index_was_switched(self.view, now),
            )
        check_conflicts(self.baseline, now, metadata, is_global=is_global, indexed=indexed)
        content = metadata.to_bytes(now.config.version)
        self.is_settled = True
        commit_to_metadata_table(now, self.instant_time, metadata, index_stats, self.engine_for)
        return create_completed(
            now.store,
            now.layout,
            self.instant_time,
            self.instant.action,
            content,
            completion_time=now.clock.next_time(now.timeline),
        )

    def _made_again(self, now: TableView, metadata: CommitMetadata) -> Sequence[WriteStat]:
        """The entries of this write for the index as it is now; what was written for the one before goes."""
        if self.has_index_files:
            open_metadata_table(now).discard(self.instant_time)
        if has_partitioned_index(now):
            raise CommitConflictError(
                f"{now.store.uri('')} got a record index with buckets for each data partition while this write ran; "
                "nothing was committed, try again"
            )
        state = record_index(now)
        if state is None:
            return ()
        self.announce_index_files()
        return late_entries(now, self.instant_time, metadata, state)

    def undo(self) -> None:
        """Abandon the write unless the metadata table knows of it, and end its heartbeat. Never fails.

        The error that led here is the one to tell; what cannot be undone now is left to the next writer's rollback.
        """
        if not self.is_settled:
            with contextlib.suppress(Exception):
                self.abandon()
        with contextlib.suppress(Exception):
            self.heartbeat.stop()

    def abandon(self) -> None:
        """Take back a write that was never completed: its files, its markers, its place on the timeline."""
        store, layout = self.view.store, self.view.layout
        for marker in read_markers(store, self.instant_time) or []:
            store.delete(marker.path)
        if self.has_index_files:
            open_metadata_table(self.view).discard(self.instant_time)
        states = (State.INFLIGHT, State.REQUESTED)
        delete_instant_files(store, layout, self.instant_time, self.instant.action, *states)
        delete_markers(store, self.instant_time)


@contextlib.contextmanager
def transaction(
    state: TableState,
    action: Action,
    operation: WriteOperation,
    requested: bytes = b"",
    *,
    baseline: TableView | None = None,
) -> Iterator[Transaction]:
    """Begin a write: dead writers are rolled back, the instant is requested and in flight, its heartbeat beats.

    `baseline`: the state in which the caller read what it now writes; conflicts count from there.

    If the body fails before anything reached the metadata table, the write is undone and leaves no trace. If it fails
    later, it is left pending: the next writer rolls it back.
    """
    write = _begin(state, action, operation, requested)
    write.baseline = baseline or write.view
    try:
        yield write
    except BaseException as error:
        write.undo()
        _tell_of_exchange(write, error)
        raise
    finally:
        with contextlib.suppress(Exception):
            write.heartbeat.stop()


def _tell_of_exchange(write: Transaction, error: BaseException) -> None:
    """Say so if a write failed because the record index was exchanged under it, whose files were gone.

    Raises: CommitConflictError instead of the error.
    """
    is_told = isinstance(error, HoodieError) and not isinstance(error, UnsupportedError)
    if write.is_settled or is_told or not isinstance(error, Exception):
        return
    was_taken_away = False
    with contextlib.suppress(Exception):
        was_taken_away = index_was_taken_away(write.view, TableView.load(write.view.state))
    if was_taken_away:
        raise CommitConflictError(
            f"the record index of {write.view.store.uri('')} was built anew or dropped while this write ran; nothing "
            f"was committed, try again ({error})"
        ) from error


def _begin(state: TableState, action: Action, operation: WriteOperation, requested: bytes) -> Transaction:
    write: Transaction | None = None
    try:
        with TableLock(state.store):
            view, rolled_back = _settle(state)
            requested_time = view.clock.next_time(view.timeline)
            instant = create_requested(view.store, view.layout, requested_time, action, requested)
            write = Transaction(view, instant, operation, Heartbeat(view.store, requested_time), rolled_back, view)
            write.heartbeat.start()
        content = CommitMetadata(operation_type=operation.value).to_bytes(view.config.version)
        write.instant = create_inflight(view.store, view.layout, requested_time, action, content)
    except BaseException:
        if write is not None:
            write.undo()
        raise
    return write


def _settle(state: TableState) -> tuple[TableView, tuple[RolledBack, ...]]:
    """Bring the table in order for a write: nothing of dead writers is left, the metadata table can be written."""
    leftovers = Leftovers.find(state.store)
    view = TableView.load(state)
    check_no_exclusive_service(view)
    rolled_back = tuple(roll_back_dead_writes(view))
    view = TableView.load(state) if rolled_back else view
    leftovers.remove(state.store, view.timeline)
    return ensure_metadata_partitions(view), rolled_back


def _delete_unreported(view: TableView, instant_time: str, metadata: CommitMetadata) -> None:
    """Delete files of attempts that did not make it: announced by a marker, named by no result."""
    reported = {stat.path for stat in metadata.write_stats()}
    for marker in read_markers(view.store, instant_time) or []:
        if marker.path not in reported:
            view.store.delete(marker.path)


def _check_still_pending(now: TableView, instant: Instant) -> None:
    found = now.timeline.get(instant.requested_time)
    if found is None or found.is_completed:
        raise CommitConflictError(
            f"{instant} is no longer pending on the timeline of {now.store.uri('')}: another writer took this "
            "one for dead and rolled it back; nothing was committed, try again"
        )
