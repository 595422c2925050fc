"""Log files of completed instants that are damaged raise an error; leftovers of failed attempts do not."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest

from hoodie.errors import CorruptFileError, MissingFileError
from hoodie.files.logs import log_scan
from hoodie.files.logs.log_scan import CommitRecords, ScanRule, scan_blocks
from hoodie.files.slices import LogFile
from hoodie.format.filenames import LogFileName
from hoodie.format.instants.archive import ArchivedInstant
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteStat
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock
from hoodie.format.table.versions import TableVersion
from hoodie.storage import MemoryStore
from hoodie.timeline import Action, TimelineArchive, create_completed, create_inflight, create_requested, layout_for
from tests.support.counting_source import CountingStore
from tests.support.fault_store import FaultStore

LAYOUT = layout_for(TableVersion.NINE, "timeline")
TIME = "20261122090000000"
RULE = ScanRule(commits=CommitRecords(LAYOUT))


def block(content: bytes = b"rows") -> bytes:
    headers = {HeaderKey.INSTANT_TIME: TIME, HeaderKey.SCHEMA: "{}"}
    return LogBlock(block_type=BlockType.AVRO_DATA, headers=headers, content=content).to_bytes()


WHOLE = block() + block(b"more rows")
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "half": lambda data: data[: len(data) // 2],
    "first block": lambda data: data[: len(block())],
    "nothing": lambda _: b"",
    "last byte": lambda data: data[:-1],
    "appended byte": lambda data: data + b"x",
    "appended block": lambda data: data + block(),
    "flipped length": lambda data: data[:13] + bytes([data[13] ^ 1]) + data[14:],
    "flipped magic": lambda data: data[: len(block())] + b"!" + data[len(block()) + 1 :],
    "flipped end": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "noise": lambda data: b"\x5a" * len(data),
}


def stored(data: bytes, *, listed_bytes: int = len(WHOLE)) -> tuple[MemoryStore, LogFile]:
    store = MemoryStore()
    log = LogFile("p", LogFileName("f", TIME, 1, "0-0-0"), listed_bytes)
    store.create(log.path, data)
    return store, log


def commit(store: MemoryStore, *stats: WriteStat) -> bytes:
    content = CommitMetadata(partition_to_write_stats={"p": stats}).to_bytes(TableVersion.NINE)
    create_requested(store, LAYOUT, TIME, Action.DELTA_COMMIT)
    create_inflight(store, LAYOUT, TIME, Action.DELTA_COMMIT)
    create_completed(store, LAYOUT, TIME, Action.DELTA_COMMIT, content, completion_time="20261122090001000")
    return content


@pytest.fixture(params=[10_000, 1], ids=["read whole", "read in windows"])
def whole_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files up to this size are read whole."""
    monkeypatch.setattr(log_scan, "WHOLE_BYTES_MAX", request.param)


def stat_of(log: LogFile, rows: int) -> WriteStat:
    return replace(WriteStat.of_log(log.path, "p", len(WHOLE), prev_commit="null"), num_writes=rows)


def scanned(store: MemoryStore, log: LogFile, rule: ScanRule = RULE) -> list[bytes]:
    return [bytes(found.read(store).content) for found in scan_blocks(store, [log], rule)]


@pytest.mark.usefixtures("whole_bytes")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_of_a_completed_instant(damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_scan, "WINDOW_BYTES", 16)
    store, log = stored(DAMAGES[damage](WHOLE))
    commit(store, stat_of(log, 2))
    with pytest.raises(CorruptFileError, match="restore the file from a copy") as caught:
        scanned(store, log)
    assert TIME in str(caught.value)
    assert caught.value.path == store.uri(log.path)


@pytest.mark.usefixtures("whole_bytes")
def test_a_whole_file() -> None:
    store, log = stored(WHOLE)
    assert scanned(store, log) == [b"rows", b"more rows"]
    # Without the length in the listing, as in a compaction plan.
    assert scanned(store, replace(log, size_bytes=0)) == [b"rows", b"more rows"]


@pytest.mark.parametrize(
    ("damage", "rows"), [("half", [b"rows"]), ("nothing", []), ("appended byte", [b"rows", b"more rows"])]
)
def test_a_file_that_is_listed_as_it_is_must_be_whole_too(damage: str, rows: list[bytes]) -> None:
    data = DAMAGES[damage](WHOLE)
    store, log = stored(data, listed_bytes=len(data))
    commit(store, stat_of(log, 2))
    with pytest.raises(CorruptFileError):
        scanned(store, log)
    # Unless a failed attempt left it.
    other, log = stored(data, listed_bytes=len(data))
    commit(other)
    assert scanned(other, log) == rows


def test_a_leftover_that_the_commit_lists_without_rows() -> None:
    store, log = stored(WHOLE[:-3])
    commit(store, stat_of(log, 0))
    assert scanned(store, log) == [b"rows"]


def test_the_commit_may_be_archived() -> None:
    for rows in (2, 0):
        store, log = stored(WHOLE[:-3])
        content = CommitMetadata(partition_to_write_stats={"p": (stat_of(log, rows),)}).to_bytes(TableVersion.NINE)
        archived = ArchivedInstant(requested_time=TIME, completion_time="2", action="deltacommit", metadata=content)
        TimelineArchive.of(store, LAYOUT).append([archived])
        if rows:
            with pytest.raises(CorruptFileError):
                scanned(store, log)
        else:
            assert scanned(store, log) == [b"rows"]


def test_the_commit_of_a_leftover_is_read_once() -> None:
    store, log = stored(WHOLE[:-3])
    commit(store, stat_of(log, 0))
    counting = FaultStore(store, count_reads=True)
    requests = []
    for _ in range(2):
        del counting.calls[:]
        scan_blocks(counting, [log], RULE)
        requests.append([call.path for call in counting.calls if ".hoodie" in call.path])
    assert len(requests[0]) == 2
    assert requests[1] == []


def test_a_commit_that_is_not_found_proves_nothing() -> None:
    store, log = stored(WHOLE[:-3])
    with pytest.raises(CorruptFileError):
        scanned(store, log)
    with pytest.raises(CorruptFileError):
        scanned(store, log, ScanRule())
    # Nor is that kept: the commit may appear.
    commit(store)
    assert scanned(store, log) == [b"rows"]


@pytest.mark.parametrize("listed_bytes", [0, len(WHOLE), 10 << 20])
def test_a_missing_file(listed_bytes: int) -> None:
    store, log = stored(WHOLE, listed_bytes=listed_bytes)
    store.delete(log.path)
    with pytest.raises(MissingFileError, match=f"the instant {TIME}") as caught:
        scanned(store, log)
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (type(copied), str(copied)) == (MissingFileError, str(caught.value))


def test_the_length_of_a_file_costs_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    store = CountingStore()
    log = stored(WHOLE)[1]
    store.create(log.path, WHOLE)
    assert len(scan_blocks(store, [log], RULE)) == 2
    assert store.requests == [(0, len(WHOLE) + 1)]
    store.requests.clear()
    monkeypatch.setattr(log_scan, "WHOLE_BYTES_MAX", 1)
    assert len(scan_blocks(store, [log], RULE)) == 2
    assert store.requests == [(0, len(WHOLE) + 1)]
