"""A timeline that is loaded again parses only the files that are new."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from hoodie.format.table.table_config import TimelineZone
from hoodie.storage import FileInfo, MemoryStore
from hoodie.timeline import Instant, LayoutV1, LayoutV2, TimelineReader, load_timeline
from tests.support.fault_store import FaultStore

FOLDER = ".hoodie/timeline"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingV2(LayoutV2):
    """Counts the names that it parses."""

    parsed: list[str] = field(default_factory=list, compare=False)

    def parse_name(self, name: str) -> Instant | None:
        """As the layout, counted."""
        self.parsed.append(name)
        return super(CountingV2, self).parse_name(name)


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
