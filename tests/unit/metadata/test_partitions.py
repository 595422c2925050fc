"""Building a metadata table, dropping partitions, and listing without one."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from hoodie.errors import CorruptFileError
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.log.log_block import BlockType, HeaderKey, parse_log_blocks
from hoodie.format.table.properties import PartitionMetadata
from hoodie.format.table.table_config import TableConfig
from hoodie.format.table.table_creation import NewTable, new_table_config
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.instants import fills_a_partition
from hoodie.metadata.partitions import initial_time
from hoodie.metadata.paths import INDEX_DEFINITIONS
from hoodie.metadata.table import MetadataTable
from hoodie.storage import MemoryStore
from hoodie.timeline import Action, Instant, InstantClock, State, Timeline
from hoodie.view.listing import list_from_storage
from tests.support.fake_commits import FakeTable, no_archive
from tests.unit.metadata.conftest import InMemory

METADATA = ".hoodie/metadata"
INITIAL = "00000000000000000"
NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture(params=[(), ("city",)], ids=["non-partitioned", "partitioned"])
def fresh(request: pytest.FixtureRequest) -> FakeTable:
    """A table that was just created, with its metadata table."""
    table = FakeTable(MemoryStore(), InstantClock())
    config = new_table_config(NewTable(name="fresh", partition_fields=request.param))
    locked = DataTable(
        store=table.store,
        config=config,
        timeline=Timeline(),
        clock=table.clock,
        create_last=table.store.create,
        ensure_held=lambda: None,
        columns=lambda: pa.schema([]),
        has_archived_instants=lambda: False,
        list_files=dict,
        slices=lambda _: [],
    )
    MetadataTable.create(locked)
    ready = config.with_changes(**{"hoodie.table.metadata.partitions": "files"})
    table.store.create(".hoodie/hoodie.properties", ready.to_bytes(NOW))
    return table


def test_a_fresh_table_has_the_files_that_the_jvm_makes(fresh: FakeTable) -> None:
    timeline = fresh.metadata_timeline
    completion = timeline.completion_time_of(INITIAL)
    names = [info.path.removeprefix(f"{METADATA}/") for info in fresh.store.list(METADATA, recursive=True)]
    assert names == [
        ".hoodie/hoodie.properties",
        f".hoodie/timeline/{INITIAL}.deltacommit.inflight",
        f".hoodie/timeline/{INITIAL}.deltacommit.requested",
        f".hoodie/timeline/{INITIAL}_{completion}.deltacommit",
        f"files/.files-0000-0_{INITIAL}.log.1_0-0-0",
        "files/.hoodie_partition_metadata",
        f"files/files-0000-0_0-0-0_{INITIAL}.hfile",
    ]
    (instant,) = timeline
    metadata = CommitMetadata.parse(fresh.metadata_content(instant))
    assert metadata.operation_type == "BULK_INSERT_PREPPED"
    assert [stat.num_inserts for stat in metadata.write_stats()] == [1]


def test_the_file_group_exists_by_an_empty_delete_block_of_80_bytes(fresh: FakeTable) -> None:
    data = fresh.store.read(f"{METADATA}/files/.files-0000-0_{INITIAL}.log.1_0-0-0")
    (block,) = parse_log_blocks(data, path="log")
    assert len(data) == 80
    assert (block.block_type, dict(block.headers)) == (BlockType.DELETE, {HeaderKey.INSTANT_TIME: INITIAL})
    stored = fresh.store.read(f"{METADATA}/files/.hoodie_partition_metadata")
    assert PartitionMetadata.parse(stored) == PartitionMetadata(commit_time=INITIAL, partition_depth=1)


def test_the_properties_are_those_of_the_jvm(in_memory: InMemory) -> None:
    for name in ("v8_mor", "v9_cow"):
        table = in_memory(name)
        path = f"{METADATA}/.hoodie/hoodie.properties"
        theirs = TableConfig.parse(table.store.read(path)).raw
        table.rebuild_metadata_table()
        assert dict(TableConfig.parse(table.store.read(path)).raw) == dict(theirs)


def test_a_fresh_table_lists_nothing_and_takes_commits(fresh: FakeTable) -> None:
    ours = fresh.metadata_table()
    assert ours.listing(fresh.timeline) == {}
    partition = "city=sf" if fresh.config.partition_fields else ""
    changes = MetadataChanges(files_added={partition: {"a.parquet": 5}})
    fresh.change(ours, changes)
    assert ours.listing(fresh.timeline) == {partition: {"a.parquet": 5}}
    assert ours.listing(fresh.timeline, [partition]) == {partition: {"a.parquet": 5}}


def test_files_of_pending_writes_stay_out(table: FakeTable) -> None:
    before = table.storage_listing()
    instant_time = table.begin()
    stat = table.add_file(instant_time, "city=sf")
    assert table.storage_listing() == before
    ours = table.rebuild_metadata_table()
    assert ours.listing(table.timeline) == before
    table.tell_metadata_table(ours, instant_time, stat)
    assert ours.listing(table.timeline) == before
    table.complete(instant_time, stat)
    assert ours.listing(table.timeline) == table.storage_listing() != before


def test_what_lay_in_its_folder_is_deleted(table: FakeTable) -> None:
    table.store.create(f"{METADATA}/files/leftover", b"x")
    table.rebuild_metadata_table()
    assert table.store.head(f"{METADATA}/files/leftover") is None


def test_initial_instants_count_up() -> None:
    taken = [
        Instant(requested_time=f"{number:017d}", action=Action.DELTA_COMMIT, state=State.REQUESTED) for number in (0, 1)
    ]
    clock = InstantClock()
    assert initial_time(Timeline(), clock=clock, data_timeline=Timeline()) == INITIAL
    assert initial_time(Timeline.of(taken), clock=clock, data_timeline=Timeline()) == "00000000000000002"


def test_no_initial_instant_comes_before_archived_ones(table: FakeTable) -> None:
    """The active timeline would begin at zero again, and archived instants count as never completed."""
    done = Instant(
        requested_time="20200101000000000",
        action=Action.DELTA_COMMIT,
        state=State.COMPLETED,
        completion_time="20200101000000001",
    )
    found = initial_time(Timeline.of([done]), clock=table.clock, data_timeline=table.timeline)
    assert found > max(instant.completion_time or "" for instant in table.timeline)
    assert fills_a_partition(found)


def test_dropping_index_partitions_keeps_the_files_partition(in_memory: InMemory) -> None:
    table = in_memory("v9_mor")
    before = table.storage_listing()
    table.metadata_table().drop_partitions(["record_index", "column_stats", "absent"])
    folders = [folder.rpartition("/")[2] for folder in table.store.folders(METADATA)]
    assert folders == [".hoodie", "bloom_filters", "files", "partition_stats"]
    assert json.loads(table.store.read(INDEX_DEFINITIONS)) == {"indexDefinitions": {}}
    assert table.metadata_table().listing(table.timeline) == before


def test_dropping_the_files_partition_drops_everything(in_memory: InMemory) -> None:
    table = in_memory("v9_mor")
    table.metadata_table().drop_partitions(["files"])
    assert table.store.list(METADATA, recursive=True) == []


def test_index_definitions_that_do_not_parse_are_named(table: FakeTable) -> None:
    table.store.replace(INDEX_DEFINITIONS, b"{")
    with pytest.raises(CorruptFileError, match=r"index\.json"):
        table.metadata_table().drop_partitions(["record_index"])
    table.store.delete(INDEX_DEFINITIONS)
    table.metadata_table().drop_partitions(["record_index"])


def completed(*times: str) -> Timeline:
    return Timeline.of(
        Instant(requested_time=time, action=Action.COMMIT, state=State.COMPLETED, completion_time=time + "9")
        for time in times
    )


def test_listing_the_folders_of_a_table() -> None:
    store = MemoryStore()
    base, log = "f-0_0-1-0_{}.parquet", ".f-0_{}.log.1_0-1-0"
    for path in (
        ".hoodie/.hoodie_partition_metadata",
        "a/b=1/.hoodie_partition_metadata",
        "a/b=1/" + base.format("100"),
        "a/b=1/" + base.format("200"),
        "a/b=1/" + base.format("050"),
        "a/b=1/" + log.format("100"),
        "a/b=1/" + log.format("200"),
        "a/b=1/notes.txt",
        "a/b=1/sub/.hoodie_partition_metadata",
        "a/b=2/" + base.format("100"),
        "c/.hoodie_partition_metadata.parquet",
    ):
        store.create(path, b"12345")
    config = new_table_config(NewTable(name="t", partition_fields=("a", "b")))
    expected = {base.format("100"): 5, base.format("050"): 5, log.format("100"): 5}
    assert list_from_storage(store, config, completed("100"), no_archive(store)) == {"a/b=1": expected, "c": {}}


def test_listing_a_table_without_partitions() -> None:
    store = MemoryStore()
    store.create(".hoodie_partition_metadata", b"")
    store.create("f-0_0-1-0_100.parquet", b"1")
    config = new_table_config(NewTable(name="t"))
    assert list_from_storage(store, config, completed("100"), no_archive(store)) == {"": {"f-0_0-1-0_100.parquet": 1}}
    assert list_from_storage(MemoryStore(), config, Timeline(), no_archive(store)) == {}
