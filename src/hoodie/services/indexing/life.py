"""The life of an index build on the timeline: begun under the lock, read beside writers, switched on, or undone.

1. An indexing instant is created on the timeline. Dead builds are completed or rolled back first.
2. Without the lock: the data is read, and then what other writers changed meanwhile, in rounds.
3. Under the table's lock, while no write of another engine is pending: the last round, and the completion.

The files of a build are uncommitted until its completion names them in the table's properties. The HBase index is built
without an instant, and has the same rounds (`services.indexing.hbase`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from hoodie.commit.begin import AbandonedFiles
from hoodie.commit.call import Call
from hoodie.commit.pending import Completion, PendingInstant
from hoodie.commit.rollback import roll_back_dead_writes
from hoodie.commit.steps import Step, reached
from hoodie.errors import CommitConflictError, HoodieError, UnsupportedError
from hoodie.index.record.building.plan import IndexBuild, build_of, pending_indexing
from hoodie.metadata.kinds.registry import KINDS
from hoodie.metadata.table import MetadataTable
from hoodie.progress import PhaseTimes
from hoodie.timeline import Action, Instant, State, delete_heartbeat, delete_instant_files, is_live
from hoodie.timeline.heartbeat import heartbeat_path
from hoodie.timeline.owner import Owner
from hoodie.view.slices import data_table
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_ROUNDS_MAX = 5
"""Maximum number of rounds without the lock; they make the last round, which holds the lock, short."""


class Building(Protocol):
    """What a build makes, from its begin to its completion."""

    @property
    def build(self) -> IndexBuild:
        """The build on the timeline."""
        ...

    def read(self) -> None:
        """Read the data for the first time, without the lock."""
        ...

    def catch_up(self, view: TableView) -> object:
        """Read what writers have changed since the last call; return whether there was anything."""
        ...

    def prepare(self) -> None:
        """Do before the lock is acquired what makes the completion short."""
        ...

    def completion(self, now: TableView) -> Completion:
        """Return what completes the instant, under the lock, after the last round. Raises: RecordKeyError."""
        ...

    def can_go_on(self, error: HoodieError) -> bool:
        """Return whether a second call can take the build up, or may succeed, after this error."""
        ...


@contextmanager
def locked_to_build(state: TableState) -> Iterator[TableView]:
    """Hold the table's lock; the block gets the table, from which the files that dead writers left were removed."""
    with state.table_lock() as lock:
        abandoned = AbandonedFiles.find(state.store)
        view = TableView.load(state, lock)
        abandoned.remove(view)
        yield view


def start_build(view: TableView, build: IndexBuild) -> PendingInstant:
    """Create a build on the timeline, owned by this process. Call it under the table's lock."""
    plan = build.plan_to_bytes(view)
    return PendingInstant.start(view, Action.INDEXING, plan, Owner.new().to_bytes(), is_token=True)


def run_build(call: Call, pending: PendingInstant, building: Building, times: PhaseTimes) -> None:
    """Run a build to its end; undo it after an error with which a second call would fail too.

    Raises: CommitConflictError if a write of another engine did not end in time; errors of `building`.
    """
    try:
        _read_and_switch(call, pending, building, times)
    except HoodieError as error:
        if not building.can_go_on(error):
            with suppress(Exception), TableView.locked(call.state) as view:
                # Refused if another process has taken the build over: the files then are that process's.
                pending.ensure_mine(view)
                if not is_switched_on(view, building.build):
                    cancel(view, building.build)
        raise
    finally:
        pending.end()


def _read_and_switch(call: Call, pending: PendingInstant, building: Building, times: PhaseTimes) -> None:
    reached(Step.BEGUN)
    with times.phase("build"):
        building.read()
    reached(Step.WRITTEN)
    with times.phase("catch up"):
        catch_up_in_rounds(call.state, building.catch_up)
        building.prepare()

    def complete(view: TableView) -> None:
        building.catch_up(view)
        pending.complete(view, building.completion(view))
        call.state.metadata_table = None

    _complete_alone(call, pending, times, complete, building.catch_up)


def catch_up_in_rounds(state: TableState, catch_up: Callable[[TableView], object]) -> None:
    """Call `catch_up` with the newest view until nothing has changed, a few times at most."""
    for _ in range(_ROUNDS_MAX):
        if not catch_up(TableView.load(state)):
            break


def _complete_alone(
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
        with times.phase("switch"), locked_without_dead_writes(call.state) as view:
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


def foreign_write(view: TableView) -> str | None:
    """Return a pending write of another engine, which would commit without updating the new index; None if none.

    Writes of this library update it: if the index was switched since a write began, the write makes its entries again
    when it commits.
    """
    for instant in view.timeline.writes().pending():
        # A plan may wait for its executor for as long as it likes.
        is_planned = instant.action.is_planned and instant.state is State.REQUESTED
        try:
            owner = Owner.read(view.store, heartbeat_path(instant.requested_time))
        except FileNotFoundError:
            owner = None
        if owner is None and not is_planned:
            return str(instant)
    return None


@contextmanager
def locked_without_dead_writes(
    state: TableState, properties: Mapping[str, str] | None = None, *, finishes_update: bool = False
) -> Iterator[TableView]:
    """Hold the table's lock as `TableView.locked`; the block gets the table after dead writes were rolled back."""
    with TableView.locked(state, properties, finishes_update=finishes_update) as view:
        yield view.refreshed() if roll_back_dead_writes(view) else view


def pending_build_error(view: TableView, found: Instant) -> HoodieError:
    """Return the error of a call that a pending index build refuses: CommitConflictError, UnsupportedError of a JVM's.

    Raises: CorruptFileError if the plan of the build does not parse.
    """
    where = f"{view.store.uri('')} has a pending {found}"
    name = _built_by_us(view, found)
    if name is None:
        return UnsupportedError(f"{where} of the JVM: wait until it completes{how_to_end(view, found)}")
    return CommitConflictError(f"{where}: {name} is being built; wait until it completes{how_to_end(view, found)}")


def how_to_end(view: TableView, found: Instant) -> str:
    """Return the part of a message on how to complete a pending index build that died.

    Raises: CorruptFileError if its plan does not parse.
    """
    name = _built_by_us(view, found)
    end = "the engine that started it" if name is None else f't.index.build("{name}")'
    return f"; if the build died, complete it with {end}"


def _built_by_us(view: TableView, found: Instant) -> str | None:
    build = build_of(view, found)
    return None if build is None else "record" if build.is_of_records else build.names[0]


@dataclass(frozen=True, slots=True)
class _SwitchedOn:
    """Complete a build whose process died after it had named its partitions; see `Completion`."""

    build: IndexBuild

    def check(self, now: TableView) -> None:
        """Check nothing: no change of another writer conflicts."""

    def update_metadata_table(self, now: TableView) -> None:
        """Do nothing: the metadata table has the partitions already."""

    def content(self, now: TableView) -> bytes:
        """The last instant whose keys or files are covered."""
        return self.build.metadata_to_bytes(now)


def is_switched_on(view: TableView, build: IndexBuild) -> bool:
    """Return whether the partitions of a build are those of the table; only its instant may be pending."""
    if build.names[0] not in view.config.metadata_partitions:
        return False
    return MetadataTable(view.store, view.config).has_build(build.build_time)


def finish_dead(view: TableView, build: IndexBuild) -> None:
    """Complete the instant of a build whose process died after the switch. Call it under the table's lock."""
    instant = view.timeline.get(build.requested_time, Action.INDEXING)
    if instant is not None and not instant.is_completed:
        PendingInstant.resume(view, instant).complete(view, _SwitchedOn(build))
    delete_heartbeat(view.store, build.requested_time)


def cancel(view: TableView, build: IndexBuild) -> None:
    """Roll back a build that is not switched on: delete its files and its instants. Call it under the table's lock."""
    metadata_table = MetadataTable(view.store, view.config)
    for kind in KINDS.maintained(build.names).values():
        metadata_table.undo_build(kind, build.build_time, data_table(view))
    states = (State.INFLIGHT, State.REQUESTED)
    delete_instant_files(view.store, view.layout, build.requested_time, Action.INDEXING, *states)
    delete_heartbeat(view.store, build.requested_time)


def end_dead(view: TableView, build: IndexBuild) -> str:
    """Complete or undo a build whose process died; return a note. Call it under the table's lock."""
    if is_switched_on(view, build):
        finish_dead(view, build)
        return f"completed the build at {build.requested_time}, whose process had died"
    cancel(view, build)
    return f"rolled back the build at {build.requested_time}, whose process had died"


def end_dead_builds(view: TableView, *, of_records: bool | None = None) -> tuple[str, ...]:
    """Complete or roll back builds whose process died, as `dead_builds` returns them; return notes.

    Call it under the table's lock. Raises: as `dead_builds`.
    """
    return tuple(end_dead(view, build) for build in dead_builds(view, of_records=of_records))


def dead_builds(view: TableView, *, of_records: bool | None = None) -> list[IndexBuild]:
    """Return the builds whose process died, of the record index or of other partitions.

    `of_records`: only builds of the record index, or only others; None: both.

    Raises: CommitConflictError if another build is pending, or runs; UnsupportedError if it is the JVM's.
    """
    found = []
    for instant in pending_indexing(view):
        build = build_of(view, instant)
        is_other = build is not None and of_records not in (None, build.is_of_records)
        if build is None or is_other or is_live(view.store, instant.requested_time):
            raise pending_build_error(view, instant)
        found.append(build)
    return found
