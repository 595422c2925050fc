"""An instant from its begin to its completed file: what is on the timeline at each step, and who may complete it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from hoodie.commit.data_commit import DataCommit
from hoodie.commit.pending import (
    Completion,
    PendingInstant,
    complete_again,
    executor_content,
    executor_text,
    inflight_content,
    request,
)
from hoodie.errors import CommitConflictError, StorageError
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.instants.service_metadata import CompactionPlan
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.data_table import DataTable
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action, Heartbeat, State, create_inflight, delete_heartbeat, delete_instant_files, is_live
from hoodie.view.table_view import TableView
from tests.support.deaths import check_tidy
from tests.support.losing_store import LOCK, LosingStore
from tests.support.tables import rows_of, trips, trips_store

ROWS = {"a": (1, "sf"), "b": (1, "nyc")}
ALL_STATES = [State.REQUESTED, State.INFLIGHT, State.COMPLETED]


@pytest.fixture
def store() -> LosingStore:
    """A table with two rows."""
    made = LosingStore()
    made._content.files.update(trips_store(ROWS)._content.files)
    return made


def begun(store: MemoryStore, **given: Any) -> PendingInstant:
    """A commit that this process has begun."""
    state = Table(store).view().state
    with state.table_lock() as lock:
        return PendingInstant.start(TableView.load(state, lock), Action.COMMIT, **given)


def nothing(pending: PendingInstant) -> DataCommit:
    """The steps of a commit without files."""

    def collect(_table: DataTable) -> Mapping[str, Any]:
        return {}

    return DataCommit(
        instant_time=pending.instant_time,
        metadata=CommitMetadata(),
        collect=collect,
        check_conflicts=lambda now: None,
    )


def states(store: MemoryStore, instant_time: str) -> list[State]:
    """The states of the instant of which files exist."""
    names = [info.name for info in store.list(".hoodie/timeline") if info.name.startswith(instant_time)]
    found = [State.REQUESTED] if any(name.endswith(".requested") for name in names) else []
    found += [State.INFLIGHT] if any(name.endswith(".inflight") for name in names) else []
    return [*found, State.COMPLETED] if any("_" in name for name in names) else found


def test_a_begun_instant_is_inflight_and_lives(store: MemoryStore) -> None:
    pending = begun(store)
    assert states(store, pending.instant_time) == [State.REQUESTED, State.INFLIGHT]
    assert is_live(store, pending.instant_time)
    assert [found.requested_time for found in Table(store).timeline.pending()] == [pending.instant_time]
    pending.undo()


def test_a_finished_instant_is_completed_and_its_heartbeat_ends(store: MemoryStore) -> None:
    pending = begun(store)
    completed = pending.finish(nothing(pending))
    assert (completed.is_completed, completed.requested_time) == (True, pending.instant_time)
    assert states(store, pending.instant_time) == ALL_STATES
    assert not is_live(store, pending.instant_time)
    assert rows_of(store) == ROWS
    check_tidy(store)


def test_an_undone_instant_leaves_no_trace(store: MemoryStore) -> None:
    before = sorted(store._content.files)
    pending = begun(store)
    pending.undo()
    pending.undo()
    assert sorted(store._content.files) == before


def test_two_requests_have_two_times(store: MemoryStore) -> None:
    state = Table(store).view().state
    with state.table_lock() as lock:
        first, second = (request(TableView.load(state, lock), Action.COMMIT) for _ in range(2))
    assert first.requested_time < second.requested_time


def test_an_instant_that_another_rolled_back_cannot_complete(store: MemoryStore) -> None:
    pending = begun(store)
    view = Table(store).view()
    delete_instant_files(store, view.layout, pending.instant_time, Action.COMMIT, State.INFLIGHT, State.REQUESTED)
    with pytest.raises(CommitConflictError, match="does not belong to this process any more"):
        pending.finish(nothing(pending))
    pending.undo()
    assert states(store, pending.instant_time) == []
    check_tidy(store)


def test_an_instant_that_another_claimed_is_its_own(store: MemoryStore) -> None:
    pending = begun(store, content=b"mine", is_token=True)
    view = Table(store).view()
    delete_instant_files(store, view.layout, pending.instant_time, Action.COMMIT, State.INFLIGHT)
    create_inflight(store, view.layout, pending.instant_time, Action.COMMIT, b"theirs")
    with pytest.raises(CommitConflictError, match="does not belong to this process any more"):
        pending.finish(nothing(pending))
    assert State.COMPLETED not in states(store, pending.instant_time)
    pending.end()


@dataclass
class Acts(Completion):
    """The steps of a commit without files, which call `act` at the beginning of one of them."""

    steps: DataCommit
    at: str
    act: Callable[[], object]
    seen: list[str] = field(default_factory=list)

    def check(self, now: TableView) -> None:
        """Maybe act."""
        self._reach("check")
        self.steps.check(now)

    def update_metadata_table(self, now: TableView) -> None:
        """Maybe act."""
        self._reach("update_metadata_table")
        self.steps.update_metadata_table(now)

    def content(self, now: TableView) -> bytes:
        """Maybe act."""
        self._reach("content")
        return self.steps.content(now)

    def _reach(self, step: str) -> None:
        self.seen.append(step)
        if step == self.at:
            self.act()


def fails(pending: PendingInstant, at: str) -> Acts:
    """Steps of which one raises an error."""

    def refuse() -> None:
        raise CommitConflictError(f"refused at {at}")

    return Acts(nothing(pending), at, refuse)


@pytest.mark.parametrize("at", ["check", "content"])
def test_what_is_refused_before_the_metadata_table_is_undone(store: MemoryStore, at: str) -> None:
    pending = begun(store)
    steps = fails(pending, at)
    with pytest.raises(CommitConflictError, match=f"refused at {at}"):
        pending.finish(steps)
    assert steps.seen[-1] == at
    assert "update_metadata_table" not in steps.seen
    pending.undo()
    assert states(store, pending.instant_time) == []
    check_tidy(store)


def test_what_fails_in_the_metadata_table_is_left_to_a_rollback(store: MemoryStore) -> None:
    """The metadata table may have the instant: the next writer's rollback removes it there too."""
    pending = begun(store)
    with pytest.raises(CommitConflictError, match="refused at update_metadata_table"):
        pending.finish(fails(pending, "update_metadata_table"))
    pending.undo()
    assert states(store, pending.instant_time) == [State.REQUESTED, State.INFLIGHT]
    done = Table(store).upsert(trips({"c": (1, "la")}))
    assert any(pending.instant_time in note for note in done.notes)
    assert states(store, pending.instant_time) == []
    assert rows_of(store) == {**ROWS, "c": (1, "la")}
    check_tidy(store)


def test_an_attempt_at_a_plan_is_undone_and_the_plan_stays() -> None:
    store = trips_store(ROWS, table_type="merge_on_read")
    state = Table(store).view().state
    with state.table_lock() as lock:
        planned = request(TableView.load(state, lock), Action.COMPACTION, CompactionPlan().to_bytes())
        pending = PendingInstant.claim(TableView.load(state, lock), planned, b"{}")
    assert states(store, planned.requested_time) == [State.REQUESTED, State.INFLIGHT]
    pending.undo()
    assert states(store, planned.requested_time) == [State.REQUESTED]
    assert not is_live(store, planned.requested_time)


def test_an_instant_completes_under_the_lock_only(store: MemoryStore) -> None:
    pending = begun(store)
    with pytest.raises(RuntimeError, match="under the lock"):
        pending.complete(Table(store).view(), nothing(pending))
    assert State.COMPLETED not in states(store, pending.instant_time)
    pending.undo()


STEPS = ["check", "content", "update_metadata_table"]


@pytest.mark.parametrize("at", ["begin", *STEPS])
def test_an_instant_whose_heartbeat_is_old_cannot_complete(store: MemoryStore, at: str) -> None:
    pending = begun(store)
    pending.end()
    clock = [1_000_000]
    beats = Heartbeat(store, pending.instant_time, now_ms=lambda: clock[0])
    beats.start()
    old = PendingInstant(view=pending.view, instant=pending.instant, heartbeat=beats)
    steps = Acts(nothing(old), at, lambda: clock.append(clock.pop() + 120_001))
    if at == "begin":
        steps.act()
    with pytest.raises(CommitConflictError, match="was not refreshed for 120001 ms"):
        old.finish(steps)
    # What the metadata table may have is left to a rollback.
    is_left = at == "update_metadata_table"
    assert ("update_metadata_table" in steps.seen) == is_left
    assert states(store, old.instant_time) == [State.REQUESTED, State.INFLIGHT]
    old.undo()
    assert states(store, old.instant_time) == ([State.REQUESTED, State.INFLIGHT] if is_left else [])
    assert not is_live(store, old.instant_time)
    assert Table(store).upsert(trips({"c": (1, "la")})).inserted == 1
    assert states(store, old.instant_time) == []
    check_tidy(store)


def is_in_metadata_table(store: MemoryStore, instant_time: str) -> bool:
    """Whether the metadata table has a delta commit of the instant."""
    folder = ".hoodie/metadata/.hoodie/timeline"
    return any(info.name.startswith(instant_time) for info in store.list(folder))


def roll_back(store: MemoryStore, instant_time: str) -> None:
    """Another process finds the heartbeat and the lock dead, and rolls the instant back.

    The lock is put back, as if its owner had looked at it just before.
    """
    lock = store.read(LOCK)
    delete_heartbeat(store, instant_time)
    store.delete(LOCK)
    notes = Table(store).upsert(trips({"c": (1, "la")})).notes
    assert any(instant_time in note for note in notes)
    store.create(LOCK, lock)


@pytest.mark.parametrize("may_be_archived", [False, True])
def test_what_was_recorded_after_a_rollback_is_cleared(store: MemoryStore, may_be_archived: bool) -> None:
    """No later rollback would delete it: the timeline has no trace of the instant.

    If the timeline begins after the missing instant, it may be an archived one, whose files are rows of the table.
    """
    pending = begun(store)
    late = Acts(nothing(pending), "update_metadata_table", lambda: roll_back(store, pending.instant_time))
    with pytest.raises(CommitConflictError, match="does not belong to this process any more"):
        pending.finish(late)
    assert states(store, pending.instant_time) == []
    assert is_in_metadata_table(store, pending.instant_time)
    if may_be_archived:
        for info in store.list(".hoodie/timeline"):
            if info.name.split("_")[0] < pending.instant_time:
                store.delete(info.path)
    before = sorted(store._content.files)
    pending.undo()
    assert is_in_metadata_table(store, pending.instant_time) == may_be_archived
    if may_be_archived:
        assert sorted(store._content.files) == before
    else:
        assert rows_of(store) == {**ROWS, "c": (1, "la")}
        check_tidy(store)


def begin_another(store: MemoryStore, action: Action) -> None:
    """Another process begins an instant."""
    state = Table(store).view().state
    with state.table_lock() as lock:
        request(TableView.load(state, lock), action)


def test_an_instant_is_completed_although_the_lock_was_deleted(store: LosingStore) -> None:
    """Nobody changed the table: a write that another process has only begun changes nothing yet."""
    pending = begun(store)

    def act() -> None:
        store.delete(LOCK)
        begin_another(store, Action.COMMIT)

    store.at_last = act
    assert pending.finish(nothing(pending)).is_completed
    assert states(store, pending.instant_time) == ALL_STATES
    assert not is_live(store, pending.instant_time)


CHANGES: dict[str, Callable[[MemoryStore], object]] = {
    "a commit": lambda store: Table(store).upsert(trips({"c": (1, "la")})),
    "a pending rollback": lambda store: begin_another(store, Action.ROLLBACK),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_without_the_lock_makes_the_outcome_unknown(store: LosingStore, change: str) -> None:
    pending = begun(store)
    known = {found.requested_time for found in Table(store).timeline.instants}

    def act() -> None:
        store.delete(LOCK)
        CHANGES[change](store)

    store.at_last = act
    with pytest.raises(CommitConflictError, match=r"deleted the table's lock.*outcome is not known") as caught:
        pending.finish(nothing(pending))
    (other,) = (found for found in Table(store).timeline.instants if found.requested_time not in known)
    assert other.requested_time in str(caught.value)
    pending.undo()
    assert states(store, pending.instant_time) == ALL_STATES
    assert not is_live(store, pending.instant_time)


def test_an_instant_that_is_gone_after_its_last_step_is_an_error(store: LosingStore) -> None:
    pending = begun(store)

    def act() -> None:
        store.delete(LOCK)
        for info in store.list(".hoodie/timeline"):
            if info.name.startswith(pending.instant_time):
                store.delete(info.path)

    store.at_last = act
    with pytest.raises(CommitConflictError, match=r"the instant is gone.*outcome is not known"):
        pending.finish(nothing(pending))
    pending.undo()
    assert not is_in_metadata_table(store, pending.instant_time)
    assert rows_of(store) == ROWS
    check_tidy(store)


def test_a_recorded_service_that_fails_leaves_the_heartbeat_of_the_next_owner(store: LosingStore) -> None:
    """It may have lost the lock: another process claimed the plan, and a late delete would hide that it runs."""
    pending = begun(store, content=b"mine", is_token=True)
    theirs = Heartbeat(store, pending.instant_time)

    def fail() -> None:
        theirs.start()
        raise StorageError("the completed file cannot be created")

    with pytest.raises(StorageError):
        pending.finish(Acts(nothing(pending), "update_metadata_table", fail))
    pending.undo()
    pending.end()
    assert is_live(store, pending.instant_time)
    theirs.stop()


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_a_resumed_instant_has_an_inflight_file_and_no_heartbeat(store: MemoryStore, state: State) -> None:
    table_state = Table(store).view().state
    with table_state.table_lock() as lock:
        instant = request(TableView.load(table_state, lock), Action.COMMIT)
        if state is State.INFLIGHT:
            view = TableView.load(table_state, lock)
            instant = create_inflight(store, view.layout, instant.requested_time, Action.COMMIT, b"of the dead")
        pending = PendingInstant.resume(TableView.load(table_state, lock), instant)
        assert states(store, pending.instant_time) == [State.REQUESTED, State.INFLIGHT]
        assert inflight_content(pending.view, pending.instant) == (b"of the dead" if state is State.INFLIGHT else b"")
        assert not is_live(store, pending.instant_time)
        pending.complete(TableView.load(table_state, lock), nothing(pending))
    assert states(store, pending.instant_time) == ALL_STATES
    assert rows_of(store) == ROWS
    check_tidy(store)


def test_a_lost_completed_file_is_completed_again(store: MemoryStore) -> None:
    (completed,) = Table(store).timeline.instants
    assert completed.completion_time is not None
    (path,) = (info.path for info in store.list(".hoodie/timeline") if "_" in info.name)
    content = store.read(path)
    store.delete(path)
    state = Table(store).view().state
    with state.table_lock() as lock:
        view = TableView.load(state, lock)
        (lost,) = view.timeline.pending().instants
        complete_again(view, lost, content, completed.completion_time)
    assert store.read(path) == content
    assert Table(store).timeline.instants == (completed,)
    assert rows_of(store) == ROWS
    with pytest.raises(RuntimeError, match="under the lock"):
        complete_again(Table(store).view(), lost, content, completed.completion_time)


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING])
@pytest.mark.parametrize("version", [TableVersion.EIGHT, TableVersion.NINE])
def test_the_inflight_file_of_a_service_names_its_executor(action: Action, version: TableVersion) -> None:
    assert executor_text(executor_content(action, b'{"pid": 7}', version)) == b'{"pid": 7}'
    assert executor_text(b'{"pid": 7}') == b'{"pid": 7}', "as earlier releases stored it"
    assert executor_text(CommitMetadata().to_bytes(version)) == b"", "a JVM names none"
