"""Which blocks of a slice's log files count, and in which order they are merged."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hoodie.errors import CorruptFileError
from hoodie.files.logs import log_scan
from hoodie.files.logs.log_scan import ScanRule, merge_order, scan_blocks, stored_blocks
from hoodie.files.slices import LogFile
from hoodie.format.filenames import LogFileName
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock
from hoodie.storage import MemoryStore
from hoodie.timeline import Action, Instant, State, Timeline
from tests.support.counting_source import CountingStore
from tests.support.rollback_block import rollback_block


def block(instant_time: str, *, content: bytes = b"rows", replaces: str = "", filler: str = "") -> bytes:
    headers = {HeaderKey.INSTANT_TIME: instant_time, HeaderKey.SCHEMA: "{}" + filler}
    if replaces:
        headers[HeaderKey.COMPACTED_BLOCK_TIMES] = replaces
    return LogBlock(block_type=BlockType.AVRO_DATA, headers=headers, content=content).to_bytes()


def rollback(target: str) -> bytes:
    return rollback_block(instant_time="900", target_instant_time=target).to_bytes()


def written(store: MemoryStore, *files: bytes, suffix: str = "") -> list[LogFile]:
    logs = []
    for version, data in enumerate(files, start=1):
        log = LogFile("p", LogFileName("f", "100", version, "0-0-0", suffix), len(data))
        store.create(log.path, data)
        logs.append(log)
    return logs


def scanned(*files: bytes, rule: ScanRule | None = None) -> list[str]:
    store = MemoryStore()
    found = scan_blocks(store, written(store, *files), rule or ScanRule())
    return [f"{each.instant_time}:{bytes(each.read(store).content).decode()}" for each in found]


def timeline(completed: list[str], pending: list[str]) -> Timeline:
    done = [
        Instant(requested_time=time, action=Action.DELTA_COMMIT, state=State.COMPLETED, completion_time=time)
        for time in completed
    ]
    open_ = [Instant(requested_time=time, action=Action.DELTA_COMMIT, state=State.INFLIGHT) for time in pending]
    return Timeline.of([*done, *open_])


def test_blocks_are_grouped_by_instant_in_the_order_of_their_first() -> None:
    files = (block("200", content=b"a") + block("100", content=b"b"), block("200", content=b"c"))
    assert scanned(*files) == ["200:a", "200:c", "100:b"]


def test_a_rollback_takes_back_the_blocks_before_it_only() -> None:
    files = (block("100"), block("200", content=b"lost"), rollback("200"), block("200", content=b"again"))
    assert scanned(*files) == ["100:rows", "200:again"]


def test_a_rolled_back_instant_ranks_by_its_first_block_that_is_left() -> None:
    files = (block("200"), block("300", content=b"a"), rollback("200"), block("200", content=b"b"))
    assert scanned(*files) == ["300:a", "200:b"]


def test_torn_blocks_of_version_6_and_change_records_are_left_out() -> None:
    whole = block("100")
    rule = ScanRule(timeline=timeline(["100", "200", "300", "400"], []))
    torn = (whole + block("200")[:40], block("300")[:-3] + block("400"), b"")
    assert scanned(*torn, rule=rule) == ["100:rows", "400:rows"]
    store = MemoryStore()
    assert scan_blocks(store, written(store, whole, suffix=".cdc"), ScanRule()) == []
    changes = LogBlock(block_type=BlockType.CDC_DATA, headers={HeaderKey.INSTANT_TIME: "100"}).to_bytes()
    assert scanned(changes) == []


def test_blocks_of_later_instants_do_not_count() -> None:
    files = (block("100"), block("200"), block("300"))
    assert scanned(*files, rule=ScanRule(latest_instant="200")) == ["100:rows", "200:rows"]


def test_writers_are_checked_block_by_block_on_version_6() -> None:
    files = tuple(map(block, ("050", "100", "200", "300")))
    rule = ScanRule(timeline=timeline(["100", "300"], ["200"]))
    assert scanned(*files, rule=rule) == ["050:rows", "100:rows", "300:rows"]


@dataclass
class Named:
    instant_time: str
    replaces: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (["1", "2", "3", "4=1,2"], ["4", "3"]),
        (["1", "2", "4=1,2", "3"], ["4", "3"]),
        (["1", "2", "3", "4=1,2", "5=4,3"], ["5"]),
        (["1", "2", "4=1,2", "3", "5=4", "6"], ["5", "3", "6"]),
        (["3", "4=1,2"], ["3"]),
        (["2", "3", "4=1,2"], ["4", "3"]),
        (["1", "4=1", "4"], ["4", "4"]),
        (["1", "2", "1"], ["1", "1", "2"]),
    ],
)
def test_log_compacted_blocks_stand_where_their_newest_original_stood(blocks: list[str], expected: list[str]) -> None:
    named = []
    for text in blocks:
        instant_time, _, replaced = text.partition("=")
        named.append(Named(instant_time, frozenset(filter(None, replaced.split(",")))))
    assert [each.instant_time for each in merge_order(named)] == expected


def test_an_instant_before_the_compaction_sees_the_originals() -> None:
    files = (block("100"), block("200"), block("300", replaces="100,200", content=b"both"))
    assert scanned(*files) == ["300:both"]
    assert scanned(*files, rule=ScanRule(latest_instant="250")) == ["100:rows", "200:rows"]


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_scan, "WHOLE_BYTES_MAX", 1000)
    monkeypatch.setattr(log_scan, "WINDOW_BYTES", 256)


@pytest.mark.usefixtures("small_windows")
def test_large_files_are_read_block_by_block() -> None:
    content = b"x" * 1_000_000
    long_head = block("300", content=b"short", filler=" " * 100_000)
    torn = block("400", content=content)[:-100]
    data = block("100", content=content) + torn + block("200", content=b"y" + content) + long_head
    store = CountingStore()
    rule = ScanRule(timeline=timeline(["100", "200", "300", "400"], []))
    found = stored_blocks(store, written(store, data), rule)
    # The torn block has to be searched for the next magic, by 4 MiB at a time.
    assert store.bytes_read < 5_000_000
    assert [(each.instant_time, each.place.content_bytes) for each in found] == [
        ("100", 1_000_000),
        ("200", 1_000_001),
        ("300", 5),
    ]
    store.requests.clear()
    assert [bytes(each.read(store).content[:1]) for each in found] == [b"x", b"y", b"s"]
    assert store.bytes_read == 2_000_006


@pytest.mark.usefixtures("small_windows")
def test_few_bytes_are_read_of_whole_blocks() -> None:
    store = CountingStore()
    data = b"".join(block(str(number), content=b"x" * 1_000_000) for number in range(100, 110))
    assert len(stored_blocks(store, written(store, data), ScanRule())) == 10
    assert store.bytes_read < 1_000_000


def test_a_file_that_shrank_is_corrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_scan, "KEPT_BYTES_MAX", 0)
    store = MemoryStore()
    (log,) = written(store, block("100", content=b"x" * 100))
    (found,) = stored_blocks(store, [log], ScanRule())
    store.replace(log.path, block("100")[:60])
    with pytest.raises(CorruptFileError, match="expected a block of 100 bytes"):
        found.read(store)
