"""Timelines: what readers believe of them, and that one which is loaded again parses only the files that are new."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, InstantNotFoundError
from hoodie.format.table.table_config import TimelineZone
from hoodie.storage import FileInfo, LocalStore, MemoryStore, Store
from hoodie.timeline import (
    Action,
    Instant,
    LayoutV1,
    LayoutV2,
    State,
    Timeline,
    TimelineReader,
    layout_for,
    load_timeline,
    read_instant,
)
from tests.support.fault_store import FaultStore

METADATA = ".hoodie/metadata/.hoodie"
V1, V2 = layout_for(6), layout_for(9)


def names(*files: str, folder: str = ".hoodie/timeline") -> Store:
    store = MemoryStore()
    for file in files:
        store.create(f"{folder}/{file}", b"")
    return store


def done(time: str, action: Action = Action.COMMIT) -> Instant:
    return Instant(requested_time=time, action=action, state=State.COMPLETED, completion_time=time + "9")


def pending(time: str, action: Action = Action.COMMIT, state: State = State.INFLIGHT) -> Instant:
    return Instant(requested_time=time, action=action, state=state)


@pytest.mark.parametrize(
    ("version", "kind", "instants", "metadata_instants"),
    [(6, "cow", 4, 8), (6, "mor", 7, 12), (8, "cow", 4, 9), (8, "mor", 7, 13), (9, "cow", 4, 9), (9, "mor", 7, 13)],
)
def test_tables_of_the_reference(
    golden_tables: Path, version: int, kind: str, instants: int, metadata_instants: int
) -> None:
    store = LocalStore(golden_tables / f"v{version}_{kind}")
    for folder, expected in ((".hoodie", instants), (METADATA, metadata_instants)):
        layout = layout_for(version, folder=folder)
        timeline = load_timeline(store, layout)
        assert len(timeline) == len(timeline.completed()) == len(timeline.writes()) == expected
        assert timeline.start == timeline.instants[0].requested_time
        for instant in timeline:
            assert instant.completion_time is not None
            assert instant.completion_time > instant.requested_time
            assert len(read_instant(store, layout, instant)) > 0
            for state in (State.REQUESTED, State.INFLIGHT):
                read_instant(store, layout, instant, state)  # all are still there


def test_a_compaction_of_the_reference(golden_tables: Path) -> None:
    store = LocalStore(golden_tables / "v9_mor")
    timeline = load_timeline(store, V2)
    [compaction] = timeline.filter(lambda instant: instant.action is Action.COMMIT)
    assert read_instant(store, V2, compaction, State.REQUESTED).startswith(b"Obj\x01")
    assert timeline.get(compaction.requested_time, Action.COMPACTION) is compaction


def test_loading_is_one_listing() -> None:
    store = FaultStore(names("1.commit.requested", "1.inflight", "1_2.commit", "3.commit.requested"), count_reads=True)
    load_timeline(store, V2)
    assert [call.operation for call in store.calls] == ["names"]


def test_the_highest_state_counts() -> None:
    store = names(
        "1.commit.requested", "1.inflight", "1_2.commit",
        "3.compaction.requested", "3.compaction.inflight", "3_4.commit",
        "5.clustering.requested", "5_6.replacecommit",
        "7.logcompaction.requested", "7.logcompaction.inflight",
        "8.clean.requested",
    )  # fmt: skip
    timeline = load_timeline(store, V2)
    assert [str(instant) for instant in timeline] == [
        "1.commit (completed)",
        "3.commit (completed)",
        "5.replacecommit (completed)",
        "7.logcompaction (inflight)",
        "8.clean (requested)",
    ]
    assert [i.requested_time for i in timeline.pending()] == ["7", "8"]
    assert [i.requested_time for i in timeline.writes()] == ["1", "3", "5", "7"]
    assert timeline.completion_time_of("3") == "4"
    assert timeline.completion_time_of("7") is None
    assert timeline.completion_time_of("9") is None


def test_a_named_completion_time_beats_a_legacy_file() -> None:
    assert load_timeline(names("1.commit", "1_2.commit"), V2).completion_time_of("1") == "2"


def test_layout_1_takes_the_change_time_for_completion() -> None:
    store = MemoryStore(now_ms=lambda: 0)
    store.create(".hoodie/1.commit", b"x")
    timeline = load_timeline(store, layout_for(6, zone=TimelineZone.UTC))
    assert timeline.completion_time_of("1") == "19700101000000000"


def test_an_absent_timeline_is_empty() -> None:
    timeline = load_timeline(MemoryStore(), V2)
    assert (len(timeline), timeline.latest(), timeline.start, timeline.get("1")) == (0, None, None, None)
    assert not timeline.contains_or_before_start("1")


def test_latest_is_by_requested_time() -> None:
    assert Timeline.of([done("3"), pending("5"), done("4")]).latest() == pending("5")


def test_a_savepoint_hides_no_commit() -> None:
    timeline = Timeline.of([done("1", Action.SAVEPOINT), done("1"), done("2")])
    assert timeline.get("1") == done("1")
    assert timeline.get("1", Action.SAVEPOINT) == done("1", Action.SAVEPOINT)
    assert Timeline.of([done("1", Action.SAVEPOINT)]).get("1") == done("1", Action.SAVEPOINT)


def test_readers_believe_completed_and_archived_instants() -> None:
    timeline = Timeline.of([pending("3"), done("4"), done("6", Action.ROLLBACK), pending("7")])
    believed = [time for time in "123456789" if timeline.contains_or_before_start(time)]
    assert believed == ["1", "2", "4", "6"]
    # The start is the whole timeline's: pending 3 is not archived because completed ones begin at 4.
    assert not timeline.completed().contains_or_before_start("3")
    assert timeline.completed().contains_or_before_start("2")


def test_the_start_is_behind_savepointed_commits() -> None:
    # 3 and 4 were archived although the savepoint keeps 1: readers still believe them.
    timeline = Timeline.of([done("1"), done("1", Action.SAVEPOINT), done("5"), pending("6")])
    assert timeline.start == "5"
    assert [time for time in "0123456" if timeline.contains_or_before_start(time)] == ["0", "1", "2", "3", "4", "5"]


def test_an_old_clean_does_not_move_the_start_back() -> None:
    timeline = Timeline.of([done("1", Action.CLEAN), done("5")])
    assert timeline.contains_or_before_start("3")


@given(st.permutations([done("1"), pending("1"), pending("1", Action.COMPACTION), done("2"), pending("3")]))
def test_order_does_not_matter(instants: list[Instant]) -> None:
    assert Timeline.of(instants).instants == (done("1"), done("2"), pending("3"))


@given(st.lists(st.integers(0, 30), unique=True), st.integers(-1, 31))
def test_get_finds_what_a_scan_finds(numbers: list[int], wanted: int) -> None:
    timeline = Timeline.of(done(f"{n:03}") for n in numbers)
    expected = next((i for i in timeline if i.requested_time == f"{wanted:03}"), None)
    assert timeline.get(f"{wanted:03}") == expected
    assert all(a.requested_time < b.requested_time for a, b in itertools.pairwise(timeline))


def test_reading_a_missing_state() -> None:
    store = names("1_2.commit")
    instant = done("1")
    with pytest.raises(InstantNotFoundError, match=r"1\.commit\.requested or .*1\.compaction\.requested"):
        read_instant(store, V2, instant, State.REQUESTED)


def test_reading_a_legacy_completed_file() -> None:
    store = MemoryStore()
    store.create(".hoodie/timeline/1.commit", b"{}")
    [instant] = load_timeline(store, V2)
    assert read_instant(store, V2, instant) == b"{}"


@pytest.mark.parametrize("action", ["commit", "deltacommit", "replacecommit"])
def test_an_empty_completed_write_is_corrupt(action: str) -> None:
    store = names(f"1_2.{action}")
    [instant] = load_timeline(store, V2)
    with pytest.raises(CorruptFileError, match=r"0 bytes.*Delete this file") as caught:
        read_instant(store, V2, instant)
    assert caught.value.path == store.uri(f".hoodie/timeline/1_2.{action}")


def test_other_empty_files_are_empty() -> None:
    store = names("1_2.clean", "3.commit.requested", "3.inflight")
    clean, commit = load_timeline(store, V2)
    assert read_instant(store, V2, clean) == b""
    assert read_instant(store, V2, commit) == read_instant(store, V2, commit, State.REQUESTED) == b""


FOLDER = ".hoodie/timeline"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingV2(LayoutV2):
    """Counts the names that it parses."""

    parsed: list[str] = field(default_factory=list, compare=False)

    @property
    def name_parser(self) -> Callable[[str], Instant | None]:
        """As the layout, counted."""
        parse = super(CountingV2, self).name_parser

        def counted(name: str) -> Instant | None:
            self.parsed.append(name)
            return parse(name)

        return counted


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingV1(LayoutV1):
    """Counts the files that it parses."""

    parsed: list[str] = field(default_factory=list, compare=False)

    def parse(self, info: FileInfo) -> Instant | None:
        """As the layout, counted."""
        self.parsed.append(info.name)
        return super(CountingV1, self).parse(info)


def times(reader: TimelineReader) -> list[tuple[str, str | None]]:
    """Requested and completion times."""
    return [(instant.requested_time, instant.completion_time) for instant in reader.load()]


def test_known_names_are_not_parsed_again() -> None:
    store, layout = MemoryStore(), CountingV2()
    reader = TimelineReader(store, layout)
    assert times(reader) == []
    for name in ("1.commit.requested", "1.commit.inflight", "1_2.commit", "README"):
        store.create(f"{FOLDER}/{name}", b"x")
    assert times(reader) == [("1", "2")]
    assert sorted(layout.parsed) == ["1.commit.inflight", "1.commit.requested", "1_2.commit", "README"]
    layout.parsed.clear()
    assert reader.load() is reader.load()
    store.create(f"{FOLDER}/3.commit.requested", b"")
    assert times(reader) == [("1", "2"), ("3", None)]
    assert layout.parsed == ["3.commit.requested"]


def test_instants_that_go_are_gone() -> None:
    store = MemoryStore()
    reader = TimelineReader(store, LayoutV2())
    store.create(f"{FOLDER}/1_2.commit", b"x")
    store.create(f"{FOLDER}/3.commit.requested", b"")
    assert times(reader) == [("1", "2"), ("3", None)]
    store.delete(f"{FOLDER}/3.commit.requested")
    assert times(reader) == [("1", "2")]
    assert reader.load() == load_timeline(store, LayoutV2())


def test_a_completion_time_that_no_name_tells_is_asked_for_once() -> None:
    store = FaultStore(MemoryStore(now_ms=lambda: 0), count_reads=True)
    store.create(f"{FOLDER}/1.commit", b"x")
    reader = TimelineReader(store, LayoutV2(zone=TimelineZone.UTC))
    store.calls.clear()
    assert times(reader) == times(reader) == [("1", "19700101000000000")]
    assert [call.operation for call in store.calls] == ["names", "head", "names"]


def test_files_of_version_6_are_known_by_their_change_time() -> None:
    now_ms = 0
    store, layout = MemoryStore(now_ms=lambda: now_ms), CountingV1(zone=TimelineZone.UTC)
    reader = TimelineReader(store, layout)
    store.create(".hoodie/1.commit", b"x")
    assert times(reader) == times(reader) == [("1", "19700101000000000")]
    assert layout.parsed == ["1.commit"]
    now_ms = 1000
    store.replace(".hoodie/1.commit", b"y")
    assert times(reader) == [("1", "19700101000001000")]


def test_threads_share_a_reader() -> None:
    store = MemoryStore()
    reader = TimelineReader(store, LayoutV2())

    def commit_and_load(number: int) -> bool:
        store.create(f"{FOLDER}/{number}_{number + 1}.commit", b"x")
        loaded = reader.load()
        found = loaded.get(str(number))
        return found is not None and found.completion_time == str(number + 1) and loaded.start is not None

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(commit_and_load, range(10000, 10200)))
    assert len(reader.load()) == 200
