from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import UnsupportedError
from hoodie.format.table.table_config import TimelineZone
from hoodie.storage import FileInfo
from hoodie.timeline import Action, Instant, Layout, LayoutV1, LayoutV2, State, layout_for

T = "20261121123441258"
C = "20261121123443000"
V1 = layout_for(6, zone=TimelineZone.UTC)
V2 = layout_for(9, zone=TimelineZone.UTC)
C_MS = 1_795_264_483_000

times = st.builds(
    lambda number, digits: f"{number:0{digits}}"[:digits], st.integers(0, 10**20 - 1), st.sampled_from((14, 17, 20))
)


def parsed(layout: Layout, name: str, modified_ms: int = C_MS) -> Instant | None:
    return layout.parse(FileInfo(f".hoodie/timeline/{name}", 1, modified_ms))


def instant(action: str, state: State, completion_time: str | None = None) -> Instant:
    return Instant(requested_time=T, action=Action(action), state=state, completion_time=completion_time)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{T}.commit.requested", instant("commit", State.REQUESTED)),
        (f"{T}.inflight", instant("commit", State.INFLIGHT)),
        (f"{T}.deltacommit.inflight", instant("deltacommit", State.INFLIGHT)),
        (f"{T}.compaction.requested", instant("compaction", State.REQUESTED)),
        (f"{T}.replacecommit.inflight", instant("replacecommit", State.INFLIGHT)),
        (f"{T}.savepoint.inflight", instant("savepoint", State.INFLIGHT)),
        (f"{T}.indexing.requested", instant("indexing", State.REQUESTED)),
    ],
)
@pytest.mark.parametrize("layout", [V1, V2])
def test_pending_names_are_the_same_in_both_layouts(layout: Layout, name: str, expected: Instant) -> None:
    assert parsed(layout, name) == expected
    assert layout.names(expected, expected.state) == (name,)


def test_completed_names_of_layout_1() -> None:
    assert parsed(V1, f"{T}.commit") == instant("commit", State.COMPLETED, C)
    assert parsed(V1, f"{T}_{C}.commit") is None


def test_completed_names_of_layout_2() -> None:
    assert parsed(V2, f"{T}_{C}.rollback") == instant("rollback", State.COMPLETED, C)
    # An upgrade left this one as it was: its completion time is its change time.
    legacy = parsed(V2, f"{T}.rollback")
    assert legacy == instant("rollback", State.COMPLETED, C)
    assert legacy is not None
    assert V2.names(legacy, State.COMPLETED) == (f"{T}_{C}.rollback", f"{T}.rollback")


@pytest.mark.parametrize("digits", ["20261121123441", "20261121123523175001", "00000000000000010"])
def test_times_of_other_lengths_are_kept_whole(digits: str) -> None:
    found = parsed(V1, f"{digits}.deltacommit")
    assert found is not None
    assert found.requested_time == digits


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.properties",
        "hoodie.properties.backup",
        "lock",
        f"{T}.schemacommit",
        f"{T}.commit.requested.tmp",
        f"{T}_{C}.commit.6f1c9e3a-1f7e-4c0e-8a69-0a3f2f4c8d11",
        f"{T}_{C}.commit.inflight",
        f"{T}.compaction",
        f"{T}_.commit",
        f"{T}",
        ".commit",
        f".tmp-{T}.commit",
        f"{T}.COMMIT",
        "٢٠٢٦.commit",
        "00000001_00000002_0.parquet",
        f"{T}.commit\n",
    ],
)
@pytest.mark.parametrize("layout", [V1, V2])
def test_other_files_are_no_instants(layout: Layout, name: str) -> None:
    assert parsed(layout, name) is None


@given(times, times, st.sampled_from(Action), st.sampled_from(State), st.sampled_from([V1, V2]))
def test_names_round_trip(time: str, completion: str, action: Action, state: State, layout: Layout) -> None:
    stored = action.completed_as if state is State.COMPLETED else layout.stored_action(action)
    completion_time = None if state is not State.COMPLETED else completion if layout is V2 else C
    original = Instant(requested_time=time, action=stored, state=state, completion_time=completion_time)
    assert parsed(layout, layout.names(original, state)[0]) == original


def test_clustering_is_pending_as_replacecommit_in_layout_1() -> None:
    assert V1.requested_name(T, Action.CLUSTERING) == f"{T}.replacecommit.requested"
    assert V1.inflight_name(T, Action.CLUSTERING) == f"{T}.replacecommit.inflight"
    assert V2.requested_name(T, Action.CLUSTERING) == f"{T}.clustering.requested"


def test_pending_files_of_a_completed_instant_may_have_two_names() -> None:
    completed = instant("commit", State.COMPLETED, C)
    assert V2.names(completed, State.REQUESTED) == (f"{T}.commit.requested", f"{T}.compaction.requested")
    assert V2.names(completed, State.INFLIGHT) == (f"{T}.inflight", f"{T}.compaction.inflight")
    assert V1.names(instant("replacecommit", State.COMPLETED, C), State.REQUESTED) == (f"{T}.replacecommit.requested",)


def test_folders() -> None:
    assert V1.instant_folder() == ".hoodie"
    assert layout_for(6, folder=".hoodie/metadata/.hoodie").instant_folder() == ".hoodie/metadata/.hoodie"
    assert V2.instant_folder() == ".hoodie/timeline"
    moved = layout_for(8, "other", folder=".hoodie/metadata/.hoodie")
    assert moved.instant_folder() == ".hoodie/metadata/.hoodie/other"


def test_layout_of_a_table_version() -> None:
    assert isinstance(layout_for(6), LayoutV1)
    assert isinstance(layout_for(8), LayoutV2)
    assert isinstance(layout_for(9), LayoutV2)
    for version in (5, 7, 10):
        with pytest.raises(UnsupportedError, match=f"table version .* found {version}"):
            layout_for(version)
