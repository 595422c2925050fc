"""An instant from its begin to its completed file: what is on the timeline at each step, and who may complete it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from hoodie.commit.data_commit import DataCommit
from hoodie.commit.pending import PendingInstant, executor_content, executor_text, request
from hoodie.errors import CommitConflictError
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.instants.service_metadata import CompactionPlan
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.data_table import DataTable
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action, State, create_inflight, delete_instant_files, is_live
from hoodie.view.table_view import TableView
from tests.crash.tables import check_tidy, new_table, rows_of, trips

ROWS = {"a": (1, "sf"), "b": (1, "nyc")}


@pytest.fixture
def store() -> MemoryStore:
    """A table with two rows."""
    made = MemoryStore()
    new_table(made)
    Table(made).upsert(trips(ROWS))
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

    return DataCommit(instant_time=pending.instant_time, metadata=CommitMetadata(), collect=collect)


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
    assert states(store, pending.instant_time) == [State.REQUESTED, State.INFLIGHT, State.COMPLETED]
    assert not is_live(store, pending.instant_time)
    assert rows_of(store) == ROWS
    check_tidy(store)


def test_an_undone_instant_leaves_no_trace(store: MemoryStore) -> None:
    before = sorted(info.path for info in store.list(".hoodie", recursive=True))
    pending = begun(store)
    pending.undo()
    pending.undo()
    assert sorted(info.path for info in store.list(".hoodie", recursive=True)) == before


def test_two_requests_have_two_times(store: MemoryStore) -> None:
    state = Table(store).view().state
    with state.table_lock() as lock:
        first = request(TableView.load(state, lock), Action.COMMIT)
        second = request(TableView.load(state, lock), Action.COMMIT)
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
class Fails:
    """Steps of which one raises an error."""

    at: str
    seen: list[str] = field(default_factory=list)

    def check(self, now: TableView) -> None:
        """Refuse, if asked to."""
        self._reach("check")

    def update_metadata_table(self, now: TableView) -> None:
        """Fail, if asked to."""
        self._reach("update_metadata_table")

    def content(self, now: TableView) -> bytes:
        """Fail, if asked to."""
        self._reach("content")
        return CommitMetadata().to_bytes(TableVersion.NINE)

    def _reach(self, step: str) -> None:
        self.seen.append(step)
        if step == self.at:
            raise CommitConflictError(f"refused at {step}")


@pytest.mark.parametrize("at", ["check", "content"])
def test_what_is_refused_before_the_metadata_table_is_undone(store: MemoryStore, at: str) -> None:
    pending, steps = begun(store), Fails(at)
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
        pending.finish(Fails("update_metadata_table"))
    pending.undo()
    assert states(store, pending.instant_time) == [State.REQUESTED, State.INFLIGHT]
    done = Table(store).upsert(trips({"c": (1, "la")}))
    assert any(pending.instant_time in note for note in done.notes)
    assert states(store, pending.instant_time) == []
    assert rows_of(store) == {**ROWS, "c": (1, "la")}
    check_tidy(store)


def test_an_attempt_at_a_plan_is_undone_and_the_plan_stays() -> None:
    store = MemoryStore()
    new_table(store, table_type="merge_on_read")
    Table(store).upsert(trips(ROWS))
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


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING])
@pytest.mark.parametrize("version", [TableVersion.EIGHT, TableVersion.NINE])
def test_the_inflight_file_of_a_service_names_its_executor(action: Action, version: TableVersion) -> None:
    assert executor_text(executor_content(action, b'{"pid": 7}', version)) == b'{"pid": 7}'
    assert executor_text(b'{"pid": 7}') == b'{"pid": 7}', "as earlier releases stored it"
    assert executor_text(CommitMetadata().to_bytes(version)) == b"", "a JVM names none"
