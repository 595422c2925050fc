from __future__ import annotations

from dataclasses import replace

import pytest

from hoodie.errors import CommitConflictError
from hoodie.format.instants.service_metadata import ClusteringPlan, RequestedReplaceMetadata
from hoodie.storage import MemoryStore, Store
from hoodie.timeline import (
    Action,
    Layout,
    State,
    create_completed,
    create_inflight,
    create_requested,
    delete_instant_files,
    layout_for,
    load_timeline,
    read_instant,
)
from tests.support.fault_store import CrashError, CrashPoint, FaultStore

V1, V2 = layout_for(6), layout_for(9)
T, C = "20261121123441258", "20261121123443000"
STARTED = [Action.COMMIT, Action.COMPACTION, Action.CLUSTERING, Action.DELTA_COMMIT, Action.CLEAN]


def files(store: Store) -> list[str]:
    return [info.name for info in store.list("", recursive=True)]


def write(store: Store, layout: Layout, action: Action) -> None:
    create_requested(store, layout, T, action, b"plan")
    create_inflight(store, layout, T, action)
    create_completed(store, layout, T, action, b"done", completion_time=C)


@pytest.mark.parametrize("layout", [V1, V2])
@pytest.mark.parametrize("action", STARTED)
def test_each_step_is_what_the_timeline_shows(layout: Layout, action: Action) -> None:
    store, plan = MemoryStore(), b"plan"
    if action is Action.CLUSTERING:
        # In layout 1 only the plan tells a pending clustering from a replace commit.
        plan = RequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=ClusteringPlan()).to_bytes()
    requested = create_requested(store, layout, T, action, plan)
    assert list(load_timeline(store, layout)) == [requested]
    inflight = create_inflight(store, layout, T, action)
    assert list(load_timeline(store, layout)) == [inflight]
    completed = create_completed(store, layout, T, action, b"done", completion_time=C)
    assert list(load_timeline(store, layout)) == [completed]
    assert (requested.state, inflight.state, completed.state) == tuple(State)
    assert completed.action is action.completed_as
    contents = [read_instant(store, layout, completed, state) for state in State]
    assert contents == [plan, b"", b"done"]
    if layout is V2:
        assert completed.completion_time == C


def test_a_replace_commit_with_a_damaged_plan_stays_one() -> None:
    store = MemoryStore()
    create_requested(store, V1, T, Action.REPLACE_COMMIT, b"no plan")
    assert [found.action for found in load_timeline(store, V1)] == [Action.REPLACE_COMMIT]


def test_file_names_of_a_commit() -> None:
    for layout, completed in ((V1, f"{T}.commit"), (V2, f"{T}_{C}.commit")):
        store = MemoryStore()
        write(store, layout, Action.COMMIT)
        assert files(store) == sorted([f"{T}.commit.requested", f"{T}.inflight", completed])


def test_a_savepoint_begins_in_flight() -> None:
    store = MemoryStore()
    create_inflight(store, V2, T, Action.SAVEPOINT)
    create_completed(store, V2, T, Action.SAVEPOINT, b"x", completion_time=C)
    assert files(store) == [f"{T}.savepoint.inflight", f"{T}_{C}.savepoint"]


def test_the_metadata_table_has_its_own_folder() -> None:
    store = MemoryStore()
    folder = ".hoodie/metadata/.hoodie"
    layout = replace(V2, folder=folder)
    instant = create_requested(store, layout, T, Action.DELTA_COMMIT)
    assert store.head(f"{folder}/timeline/{T}.deltacommit.requested") is not None
    assert list(load_timeline(store, layout)) == [instant]
    assert len(load_timeline(store, V2)) == 0


@pytest.mark.parametrize("layout", [V1, V2])
def test_a_second_writer_is_refused(layout: Layout) -> None:
    store = MemoryStore()
    write(store, layout, Action.COMMIT)
    with pytest.raises(CommitConflictError, match=T):
        create_requested(store, layout, T, Action.COMMIT)
    with pytest.raises(CommitConflictError, match=T):
        create_inflight(store, layout, T, Action.COMMIT)
    with pytest.raises(CommitConflictError, match=T):
        create_completed(store, layout, T, Action.COMMIT, b"other", completion_time=C)


def test_what_readers_would_refuse_is_not_written() -> None:
    store = MemoryStore()
    with pytest.raises(ValueError, match="not later"):
        create_completed(store, V2, T, Action.COMMIT, b"x", completion_time=T)
    with pytest.raises(ValueError, match="commit metadata"):
        create_completed(store, V2, T, Action.COMPACTION, b"", completion_time=C)
    assert files(store) == []


@pytest.mark.parametrize("layout", [V1, V2])
@pytest.mark.parametrize("action", STARTED)
def test_delete_takes_the_started_or_the_completed_action(layout: Layout, action: Action) -> None:
    for named in (action, action.completed_as):
        store = MemoryStore()
        write(store, layout, action)
        create_requested(store, layout, T + "1", action)
        delete_instant_files(store, layout, T, named, *State)
        delete_instant_files(store, layout, T, named, *State)
        assert [i.requested_time for i in load_timeline(store, layout)] == [T + "1"]


def test_deleting_a_commit_keeps_its_savepoint() -> None:
    store = MemoryStore()
    write(store, V2, Action.COMMIT)
    create_completed(store, V2, T, Action.SAVEPOINT, b"x", completion_time=C)
    delete_instant_files(store, V2, T, Action.COMMIT, *State)
    assert files(store) == [f"{T}_{C}.savepoint"]


def test_deleting_some_states() -> None:
    store = MemoryStore()
    write(store, V2, Action.COMPACTION)
    delete_instant_files(store, V2, T, Action.COMPACTION, State.INFLIGHT, State.COMPLETED)
    assert files(store) == [f"{T}.compaction.requested"]


def test_a_delete_that_dies_leaves_a_lower_state() -> None:
    seen = []
    for fail_at in (1, 2, 3):
        store = MemoryStore()
        write(store, V2, Action.CLEAN)
        dying = FaultStore(store, fail_at, crash_point=CrashPoint.AFTER)
        with pytest.raises(CrashError):
            delete_instant_files(dying, V2, T, Action.CLEAN, State.REQUESTED, State.COMPLETED, State.INFLIGHT)
        seen.append([instant.state for instant in load_timeline(store, V2)])
    assert seen == [[State.INFLIGHT], [State.REQUESTED], []]
