"""The metadata table: listings, delta commits, compaction, rollback; against listings of the folders."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hoodie.errors import CommitConflictError, CorruptFileError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.format.hfile import HFileReader
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.instants.service_metadata import CompactionOperation, CompactionPlan, RollbackMetadata, RollbackPlan
from hoodie.format.metadata_table.metadata_record import commit_schema, decode_record, metadata_schema
from hoodie.format.table import table_keys as keys
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.table import MetadataTable
from hoodie.timeline import Action, Instant, State
from tests.support.fake_commits import FakeTable
from tests.support.fault_store import FaultStore
from tests.support.metadata_limits import DELTA_COMMITS_MAX
from tests.unit.metadata.conftest import InMemory


def compactions(table: FakeTable) -> list[Instant]:
    return [found for found in table.metadata_timeline if found.is_completed and found.action is Action.COMMIT]


def check_listing(table: FakeTable) -> None:
    assert table.metadata_table().listing(table.timeline) == table.storage_listing()


@pytest.mark.parametrize("name", ["v6_cow", "v6_mor", "v8_cow", "v8_mor", "v9_cow", "v9_mor"])
def test_metadata_tables_of_the_jvm_and_ours_list_what_is_in_the_folders(in_memory: InMemory, name: str) -> None:
    table = in_memory(name)
    listing = table.metadata_table().listing(table.timeline)
    assert listing == table.storage_listing()
    assert list(listing) == ["city=nyc", "city=sf"]
    if not name.startswith("v6"):
        assert table.rebuild_metadata_table().listing(table.timeline) == listing


def test_a_table_without_files_partition_has_no_metadata_table(table: FakeTable) -> None:
    table.drop_metadata_table()
    assert MetadataTable.open(table.store, table.config) is None


def test_some_partitions_only(table: FakeTable) -> None:
    expected = table.storage_listing()
    found = table.metadata_table().listing(table.timeline, ["city=sf", "city=nowhere"])
    assert found == {"city=sf": expected["city=sf"], "city=nowhere": {}}


def test_a_delta_commit_looks_like_the_jvms(table: FakeTable) -> None:
    instant_time = table.commit(table.metadata_table(), "city=sf")
    instant = table.metadata_timeline.get(instant_time, Action.DELTA_COMMIT)
    assert instant is not None
    assert instant.is_completed
    assert table.metadata_content(instant, State.REQUESTED) == b""
    assert CommitMetadata.parse(table.metadata_content(instant, State.INFLIGHT)).operation_type == "UPSERT_PREPPED"
    metadata = CommitMetadata.parse(table.metadata_content(instant))
    assert (metadata.operation_type, metadata.compacted, metadata.schema) == ("UPSERT_PREPPED", False, commit_schema())
    (stat,) = metadata.write_stats()
    name = f".files-0000-0_{instant_time}.log.1_0-0-0"
    assert (stat.path, stat.log_files, stat.num_writes) == (f"files/{name}", (name,), 2)
    assert stat.file_size_bytes == len(table.store.read(f".hoodie/metadata/files/{name}"))
    data_instant = table.timeline.get(instant_time)
    assert data_instant is not None
    assert instant.requested_time < (instant.completion_time or "") < (data_instant.completion_time or "")


def test_removed_files_and_dropped_partitions(table: FakeTable) -> None:
    ours = table.metadata_table()
    listing = ours.listing(table.timeline)
    victim = sorted(listing["city=sf"])[0]
    changes = MetadataChanges(files_deleted={"city=sf": [victim]}, partitions_dropped=("city=nyc",))
    table.change(ours, changes)
    expected = {name: size for name, size in listing["city=sf"].items() if name != victim}
    assert ours.listing(table.timeline) == {"city=sf": expected}
    assert table.metadata_table().listing(table.timeline, ["city=nyc"]) == {"city=nyc": {}}


def test_a_dropped_partition_may_come_back(table: FakeTable) -> None:
    ours = table.metadata_table()
    gone = MetadataChanges(partitions_dropped=("city=nyc",))
    table.change(ours, gone)
    back = MetadataChanges(files_added={"city=nyc": {"new.parquet": 7}}, partitions_dropped=("city=nyc",))
    table.change(ours, MetadataChanges())
    table.change(ours, back)
    assert ours.listing(table.timeline)["city=nyc"] == {"new.parquet": 7}


def test_a_log_file_that_grew_has_its_greater_size(table: FakeTable) -> None:
    ours = table.metadata_table()
    for size in (10, 30, 20):
        table.change(ours, MetadataChanges(files_added={"city=sf": {"f": size}}))
    assert ours.listing(table.timeline, ["city=sf"])["city=sf"]["f"] == 30


def test_ten_delta_commits_are_compacted_as_by_the_jvm(table: FakeTable) -> None:
    ours = table.metadata_table()
    # The bootstrap is the first of the ten.
    first, *_ = [table.commit(ours) for _ in range(DELTA_COMMITS_MAX - 1)]
    assert compactions(table) == []
    table.commit(ours, "city=sf")
    (done,) = compactions(table)
    requested = replace(done, action=Action.COMPACTION, state=State.REQUESTED, completion_time=None)
    plan = CompactionPlan.parse(table.metadata_content(requested))
    (operation,) = plan.operations
    assert (operation.partition_path, operation.file_id, plan.version) == ("files", "files-0000-0", 2)
    assert operation.data_file_path == "files-0000-0_0-0-0_00000000000000000.hfile"
    assert operation.base_instant_time == "00000000000000000"
    assert len(operation.delta_file_paths) == DELTA_COMMITS_MAX
    metadata = CommitMetadata.parse(table.metadata_content(done))
    assert (metadata.operation_type, metadata.compacted, metadata.schema) == ("COMPACT", True, commit_schema())
    (stat,) = metadata.write_stats()
    assert (stat.prev_commit, stat.num_writes) == ("00000000000000000", 3)
    name = f"files-0000-0_0-0-0_{done.requested_time}.hfile"
    assert stat.path == f"files/{name}"
    _, values = HFileReader(table.store.read(f".hoodie/metadata/files/{name}"), path=name).entries()
    for value in values.to_pylist():
        assert decode_record(value, schema_json=metadata_schema(), path=name)["_hoodie_file_name"] == name
    assert ours.listing(table.timeline) == table.storage_listing()
    check_listing(table)
    with pytest.raises(UnsupportedError, match=r"t\.index\.rebuild\(\)"):
        ours.rollback(first, rollback_instant=table.clock.next_time(table.timeline), table=table.locked)
    for _ in range(DELTA_COMMITS_MAX):
        table.commit(ours)
    assert len(compactions(table)) == 2
    assert ours.listing(table.timeline) == table.storage_listing()
    check_listing(table)


def test_nothing_is_compacted_beside_a_pending_data_instant(table: FakeTable) -> None:
    ours = table.metadata_table()
    dead = table.begin()
    table.tell_metadata_table(ours, dead, table.add_file(dead, "city=sf"))
    for _ in range(DELTA_COMMITS_MAX + 2):
        table.commit(ours)
    assert compactions(table) == []
    ours.rollback(dead, rollback_instant=table.clock.next_time(table.timeline), table=table.locked)
    table.roll_back_data(dead)
    table.commit(ours)
    assert len(compactions(table)) == 1
    check_listing(table)


def test_a_compaction_without_a_plan_is_forgotten(table: FakeTable) -> None:
    table.metadata_folder.request("20270101000000000", Action.COMPACTION)
    table.commit(table.metadata_table())
    assert table.metadata_timeline.get("20270101000000000") is None
    check_listing(table)


def test_a_pending_compaction_is_finished_without_dropped_partitions(table: FakeTable) -> None:
    ours = table.metadata_table()
    written = [table.commit(ours) for _ in range(3)]
    logs = [".files-0000-0_00000000000000000.log.1_0-0-0"]
    logs += [f".files-0000-0_{instant_time}.log.1_0-0-0" for instant_time in written]
    files = CompactionOperation(
        base_instant_time="00000000000000000",
        delta_file_paths=tuple(logs),
        data_file_path="files-0000-0_0-0-0_00000000000000000.hfile",
        file_id="files-0000-0",
        partition_path="files",
    )
    dropped = CompactionOperation(
        base_instant_time="1", file_id="col-stats-0000-0", delta_file_paths=("x",), partition_path="column_stats"
    )
    plan = CompactionPlan(operations=(dropped, files))
    planned_time = table.clock.next_time(table.timeline)
    folder = table.metadata_folder
    folder.request(planned_time, Action.COMPACTION, plan.to_bytes())
    folder.begin(planned_time, Action.COMPACTION)
    half_written = f".hoodie/metadata/files/files-0000-0_9-9-9_{planned_time}.hfile"
    table.store.create(half_written, b"half a file")
    table.commit(ours)
    (done,) = compactions(table)
    assert done.requested_time == planned_time
    assert table.store.head(half_written) is None
    assert ours.listing(table.timeline) == table.storage_listing()


def test_rollback_takes_the_delta_commit_away(table: FakeTable) -> None:
    ours = table.metadata_table()
    before = ours.listing(table.timeline)
    target = table.begin()
    table.tell_metadata_table(ours, target, table.add_file(target, "city=sf"))
    rollback_time = table.clock.next_time(table.timeline)
    for _ in range(2):
        ours.rollback(target, rollback_instant=rollback_time, table=table.locked)
    table.roll_back_data(target)
    timeline = table.metadata_timeline
    assert timeline.get(target) is None
    assert ours.listing(table.timeline) == before
    rollback = timeline.get(rollback_time, Action.ROLLBACK)
    assert rollback is not None
    plan = RollbackPlan.parse(table.metadata_content(rollback, State.REQUESTED))
    assert plan.instant_to_rollback is not None
    assert plan.instant_to_rollback.commit_time == target
    metadata = RollbackMetadata.parse(table.metadata_content(rollback))
    assert (metadata.commits_rollback, metadata.total_files_deleted) == ((target,), 1)
    assert not any(target in info.name for info in table.store.list(".hoodie/metadata", recursive=True))


def test_rollback_of_what_never_arrived_does_nothing(table: FakeTable) -> None:
    before = table.metadata_timeline
    table.metadata_table().rollback("20270101000000000", rollback_instant="20270101000000001", table=table.locked)
    assert table.metadata_timeline == before


def test_partitions_of_the_jvm_that_would_go_stale_stop_a_commit(in_memory: InMemory) -> None:
    table = in_memory("v9_mor")
    named = ",".join((*table.config.metadata_partitions, "expr_index_a"))
    update_table_config(table.store, {"hoodie.table.metadata.partitions": named})
    before = table.metadata_timeline
    with pytest.raises(UnsupportedError, match="cannot maintain: expr_index_a"):
        table.commit(table.metadata_table())
    assert table.metadata_timeline == before


def test_a_metadata_table_removed_meanwhile_stops_a_commit(table: FakeTable) -> None:
    ours = table.metadata_table()
    update_table_config(table.store, {keys.METADATA_PARTITIONS: None})
    with pytest.raises(CommitConflictError, match="removed"):
        table.change(ours, MetadataChanges())


def test_a_second_attempt_at_an_instant_replaces_the_first(table: FakeTable) -> None:
    ours = table.metadata_table()
    instant_time = table.begin()
    stat = table.add_file(instant_time, "city=sf")
    ghost = MetadataChanges(files_added={"city=sf": {"ghost.parquet": 1}})
    ours.commit(instant_time, ghost, table.locked)
    table.tell_metadata_table(ours, instant_time, stat)
    table.complete(instant_time, stat)
    assert ours.listing(table.timeline) == table.storage_listing()


def test_listings_read_only_what_is_new(table: FakeTable) -> None:
    counting = FaultStore(table.store, count_reads=True)
    ours = table.over(counting).metadata_table()

    def reads() -> list[str]:
        del counting.calls[:]
        ours.listing(table.timeline)
        return [call.path.rpartition("/")[2] for call in counting.calls if call.operation == "read"]

    assert len(reads()) == 2
    assert reads() == []
    written = table.commit(table.metadata_table())
    assert reads() == [f".files-0000-0_{written}.log.1_0-0-0"]


def test_a_metadata_table_without_its_files_partition_is_corrupt(table: FakeTable) -> None:
    table.store.delete_folder(".hoodie/metadata/files")
    with pytest.raises(CorruptFileError, match=r"t\.index\.rebuild\(\)"):
        table.metadata_table().listing(table.timeline)


def test_a_damaged_base_file_is_named(table: FakeTable) -> None:
    path = ".hoodie/metadata/files/files-0000-0_0-0-0_00000000000000000.hfile"
    table.store.replace(path, table.store.read(path)[:-3000])
    with pytest.raises(CorruptFileError, match="files-0000-0"):
        table.metadata_table().listing(table.timeline)
