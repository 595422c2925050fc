"""The comparison of log files with the delta commits, after the JVM archived the instant that filled a partition."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import MissingFileError
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import with_archived_fills
from hoodie.metadata.paths import METADATA_HISTORY, METADATA_HOODIE_FOLDER, partition_folder
from hoodie.metadata.slices import check_recorded_logs, unlogged_instants
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action, Instant, State, Timeline, archive_instants
from tests.support.fault_store import FaultStore

_SCHEMA = pa.schema([("id", pa.string()), ("x", pa.int64())])
_BY_JVM = "00000000000000007"
"""The JVM numbers the instants that fill partitions. Archiving takes them first, because the number is small."""


def _rows(keys: Sequence[int], x: int) -> pa.Table:
    return pa.table({"id": [f"k{key}" for key in keys], "x": [x] * len(keys)}, schema=_SCHEMA)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> MemoryStore:
    """A table whose record index was built again, as by the JVM."""
    store = MemoryStore(request.node.name)
    table = hoodie.create(store.spec.uri, _SCHEMA, record_key="id", index="record", ordering="x", spark=False)
    for number in range(4):
        table.upsert(_rows(range(number * 20, number * 20 + 20), number))
    table.index.drop("record")
    table.index.build("record")
    built = max(_fills(store), key=lambda instant: len(instant.requested_time)).requested_time
    for info in store.list(".hoodie/metadata", recursive=True):
        if built in info.name:
            store.create(info.path.replace(built, _BY_JVM), store.read(info.path))
            store.delete(info.path)
    return store


def _fills(store: MemoryStore) -> list[Instant]:
    timeline = MetadataFolder(store, Table(store).view().config).timeline()
    return [found for found in timeline if found.requested_time.startswith("0000") or len(found.requested_time) == 20]


def _archive(store: MemoryStore, instants: Sequence[Instant]) -> None:
    folder = MetadataFolder(store, Table(store).view().config)
    archive_instants(store, folder.layout, instants, folder=METADATA_HOODIE_FOLDER)


def test_a_partition_filled_by_an_archived_instant_lacks_no_older_log(store: MemoryStore) -> None:
    _archive(store, _fills(store))
    table = Table(store)
    assert table.index.verify().ok
    for number in range(9):
        table.upsert(_rows(range(number, number + 10), 100 + number))
    names = store.names(partition_folder("record_index"))
    assert any(name.endswith(".hfile") and _BY_JVM not in name for name in names), "no compaction ran"
    assert table.index.verify().ok


def test_a_later_log_that_is_missing_is_still_found(store: MemoryStore) -> None:
    _archive(store, _fills(store))
    before = set(store.names(partition_folder("record_index")))
    Table(store).upsert(_rows(range(200, 210), 100))
    later = min(set(store.names(partition_folder("record_index"))) - before)
    store.delete(f"{partition_folder('record_index')}/{later}")
    with pytest.raises(MissingFileError, match=later):
        Table(store).index.verify()


def test_the_archive_is_read_once(store: MemoryStore) -> None:
    _archive(store, _fills(store))
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
