"""Log files whose instants, or those that filled their partition, the JVM archived: what their slices have and lack."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import MissingFileError
from hoodie.files.slices import BaseFile, FileSlice, latest_slices
from hoodie.format.instants.archive import ArchivedInstant
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import with_archived_fills, with_archived_logs
from hoodie.metadata.kinds.files import FilesKind
from hoodie.metadata.paths import METADATA_HISTORY, partition_folder
from hoodie.metadata.slices import check_recorded_logs, slices_of, unlogged_instants
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action, Instant, State, Timeline, TimelineArchive, archive_instants
from tests.support.fault_store import FaultStore
from tests.support.tables import made_once

BASE = "files-0000-0_0-0-0_{}.hfile"
LOG = ".files-0000-0_{}.log.1_0-0-0"
ACTIVE = Timeline.of(
    Instant(requested_time=time, action=action, state=State.COMPLETED, completion_time=f"{time}5")
    for time, action in (("20", Action.COMMIT), ("30", Action.DELTA_COMMIT))
)


def archived(requested_time: str, completion_time: str) -> ArchivedInstant:
    return ArchivedInstant(requested_time=requested_time, completion_time=completion_time, action="deltacommit")


@pytest.fixture
def compacted() -> MemoryStore:
    """Two delta commits before the compaction 20; the second of them completed only after that was planned."""
    found = MemoryStore()
    for name in (LOG.format("12"), LOG.format("15"), BASE.format("20"), LOG.format("30")):
        found.create(f"{partition_folder('files')}/{name}", b"rows")
    TimelineArchive(found, METADATA_HISTORY).append([archived("12", "13"), archived("15", "21")])
    return found


def test_a_log_that_completed_after_the_compaction_was_planned_belongs_to_the_new_slice(compacted: MemoryStore) -> None:
    (found,) = slices_of(compacted, FilesKind(), ACTIVE)
    assert found.base_instant_time == "20"
    assert [log.name.instant_time for log in found.log_files] == ["15", "30"]


def test_what_was_looked_up_once_is_known(compacted: MemoryStore) -> None:
    counting = FaultStore(compacted, count_reads=True)
    names = [info.name for info in compacted.list(partition_folder("files"))]
    with_archived_logs(counting, ACTIVE, names, FilesKind())
    assert len(counting.calls) == 3
    del counting.calls[:]
    assert with_archived_logs(counting, ACTIVE, names, FilesKind()).archived == {"12": "13", "15": "21"}
    assert counting.calls == []


def test_nothing_is_read_without_doubt(compacted: MemoryStore) -> None:
    counting = FaultStore(compacted, count_reads=True)
    # Older than the active timeline, but of another file group, or younger than its base file.
    names = [LOG.format("15").replace("0000-0", "0001-0"), BASE.format("11"), LOG.format("12"), LOG.format("30")]
    assert with_archived_logs(counting, ACTIVE, names, FilesKind()) is ACTIVE
    assert with_archived_logs(counting, Timeline(), names, FilesKind()) == Timeline()
    assert counting.calls == []


def test_an_instant_in_no_archive_counts_as_completed_at_once() -> None:
    names = {LOG.format("15"): 1, BASE.format("20"): 1}
    timeline = with_archived_logs(MemoryStore(), ACTIVE, names, FilesKind())
    (found,) = latest_slices({"": names}, timeline, {}, version=TableVersion.NINE)
    assert found.log_files == ()


_SCHEMA = pa.schema([("id", pa.string()), ("x", pa.int64())])
_BY_JVM = "00000000000000007"
"""The JVM numbers the instants that fill partitions. Archiving takes them first, because the number is small."""


def _rows(keys: Sequence[int], x: int) -> pa.Table:
    return pa.table({"id": [f"k{key}" for key in keys], "x": [x] * len(keys)}, schema=_SCHEMA)


@made_once
def built_again() -> MemoryStore:
    """A table whose record index was built again, as by the JVM."""
    store = MemoryStore()
    table = hoodie.create(store.uri(""), _SCHEMA, record_key="id", index="record", ordering="x", spark=False)
    for number in range(2):
        table.upsert(_rows(range(number * 20, number * 20 + 20), number))
    table.index.drop("record")
    table.index.build("record")
    built = max(_fills(store), key=lambda instant: len(instant.requested_time)).requested_time
    for info in store.list(".hoodie/metadata", recursive=True):
        if built in info.name:
            store.create(info.path.replace(built, _BY_JVM), store.read(info.path))
            store.delete(info.path)
    return store


@pytest.fixture
def store() -> MemoryStore:
    """A copy of that table; the instants that filled partitions are archived."""
    found = built_again()
    folder = MetadataFolder(found, Table(found).view().config)
    archive_instants(found, folder.layout, _fills(found))
    return found


def _fills(store: MemoryStore) -> list[Instant]:
    timeline = MetadataFolder(store, Table(store).view().config).timeline()
    return [found for found in timeline if found.requested_time.startswith("0000") or len(found.requested_time) == 20]


def test_a_partition_filled_by_an_archived_instant_lacks_no_older_log(store: MemoryStore) -> None:
    table = Table(store)
    assert table.index.verify().ok
    for number in range(9):
        table.upsert(_rows(range(number, number + 10), 100 + number))
    names = store.names(partition_folder("record_index"))
    assert any(name.endswith(".hfile") and _BY_JVM not in name for name in names), "no compaction ran"
    assert table.index.verify().ok


def test_a_later_log_that_is_missing_is_still_found(store: MemoryStore) -> None:
    before = set(store.names(partition_folder("record_index")))
    Table(store).upsert(_rows(range(200, 210), 100))
    later = min(set(store.names(partition_folder("record_index"))) - before)
    store.delete(f"{partition_folder('record_index')}/{later}")
    with pytest.raises(MissingFileError, match=later):
        Table(store).index.verify()


def test_the_archive_is_read_once(store: MemoryStore) -> None:
    counting = FaultStore(store, count_reads=True)
    counting.register()
    table = Table(counting)
    reads = []
    for _ in range(2):
        del counting.calls[:]
        table.index.verify()
        reads.append(sum(METADATA_HISTORY in call.path for call in counting.calls))
    assert reads[0] > 0
    assert reads[1] == 0


def test_without_the_archive_only_logs_in_the_slice_are_expected() -> None:
    base = BaseFile("p", "p/f-0_0-0-0_00000000000000007.hfile", "f-0", _BY_JVM, 1)
    found = FileSlice("p", "f-0", _BY_JVM, base_file=base, log_files=())
    delta = Instant(requested_time="20", action=Action.DELTA_COMMIT, state=State.COMPLETED, completion_time="21")
    slices = {"p": [found]}
    empty = MemoryStore()
    assert list(unlogged_instants(with_archived_fills(empty, Timeline.of([delta]), [found]), found)) == []
    # The commit is not read: it does not exist.
    check_recorded_logs(empty, slices, Timeline.of([delta]))
    filled = Instant(requested_time=_BY_JVM, action=Action.DELTA_COMMIT, state=State.COMPLETED, completion_time="15")
    assert list(unlogged_instants(Timeline.of([filled, delta]), found)) == ["20"]
