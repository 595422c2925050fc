"""Log compaction: fewer blocks, the same rows, whatever comes before and after."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hoodie.commit.steps import Step
from hoodie.config import concurrency
from hoodie.engine import TaskContext
from hoodie.errors import InvalidConfigError
from hoodie.files.compaction_operation import operation_of
from hoodie.files.logs.log_scan import ScanRule, scan_blocks
from hoodie.files.merged_slice import SliceRead, read_file_slice
from hoodie.files.slices import LogFile
from hoodie.format.avro.schema import arrow_to_avro
from hoodie.format.filenames import LogFileName
from hoodie.format.instants.service_metadata import CompactionPlan
from hoodie.format.log.data_block import DataFormat, log_schema
from hoodie.format.log.log_block import HeaderKey
from hoodie.format.table.merge_config import MergeMode
from hoodie.records.merging.merge import RecordMerger
from hoodie.services.compaction import log_compaction
from hoodie.services.compaction.log_compaction import CompactLogs
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action, State, read_instant
from hoodie.view.pending_plans import stored_plan
from hoodie.view.slices import list_slices
from tests.support.logged_slices import PARTITION, SliceBuilder
from tests.support.merge_on_read import commit_times, merged_rows
from tests.support.seeds import seeded
from tests.support.steps import SleepingWrite, begin, once_at
from tests.support.tables import Rows, new_table, trips, trips_store, values_of

AFTER: Rows = {"a": (4, "sf"), "c": (1, "nyc")}


def logged_table(index: str = "simple") -> MemoryStore:
    """A table with four log files in a file group; its rows are `AFTER`."""
    store = trips_store(
        {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}, {"a": (4, "sf"), "b": (2, "sf")},
        trips({"a": (3, "sf"), "b": (3, "sf")}, deleted=("b",)), {"a": (2, "sf")}, {"a": (4, "sf")},
        table_type="merge_on_read", index=index,
    )  # fmt: skip
    assert merged_rows(store) == AFTER
    return store


def test_what_it_writes() -> None:
    store = logged_table()
    instants = [found.requested_time for found in Table(store).timeline][1:]
    assert Table(store).schedule_log_compaction(100) is None, "no slice gains by it"
    instant = Table(store).schedule_log_compaction(3)
    assert instant is not None
    view = Table(store).view()
    (pending,) = view.timeline.pending()
    assert pending.action is Action.LOG_COMPACTION
    plan = CompactionPlan.parse(read_instant(store, view.layout, pending, State.REQUESTED))
    assert plan.preserve_hoodie_metadata
    (operation,) = plan.operations
    assert len(operation.delta_file_paths) == 4
    Table(store).compact()
    done = Table(store).timeline.get(instant)
    assert done is not None
    assert done.action is Action.DELTA_COMMIT
    metadata = Table(store).view().commit_metadata(done)
    assert (metadata.operation_type, metadata.compacted) == ("LOG_COMPACT", True)
    (stat,) = metadata.write_stats()
    assert stat.prev_commit == operation.base_instant_time
    assert (stat.total_log_files_compacted, stat.log_version) == (4, 1)
    (found,) = (found for found in list_slices(Table(store).view()) if found.log_files)
    assert len(found.log_files) == 5
    blocks = scan_blocks(store, found.log_files, ScanRule())
    assert {block.instant_time for block in blocks} == {instant}
    times = {block.place.headers[HeaderKey.COMPACTED_BLOCK_TIMES] for block in blocks}
    assert times == {",".join(instants)}


def test_writes_compactions_and_further_log_compactions_go_on_from_it() -> None:
    store = logged_table()
    table = Table(store)
    table.schedule_log_compaction(3)
    rows: Rows = {**AFTER, "a": (5, "sf")}
    table.upsert(trips({"a": (5, "sf"), "b": (2, "sf")}))
    before = merged_rows(store)
    assert before["a"] == rows["a"]
    table.compact()
    assert merged_rows(store) == before
    table.upsert(trips({"a": (6, "sf")}))
    before = merged_rows(store)
    table.schedule_log_compaction(2)
    assert table.schedule_compaction() is None, "its file group is busy"
    table.compact()
    assert merged_rows(store) == before
    times = commit_times(store)
    table.schedule_compaction()
    assert table.compact().operation == "compaction"
    assert merged_rows(store) == before
    assert commit_times(store) == times
    assert table.schedule_log_compaction(1) is None


@seeded(7)
def test_random_logs(seed: int) -> None:
    random = np.random.default_rng(seed)
    store = trips_store({key: (5, "sf") for key in "abcdefgh"}, table_type="merge_on_read", index="simple")
    table = Table(store)
    for _ in range(8):
        keys = [str(key) for key in random.permutation(list("abcdefgh"))[: random.integers(1, 6)]]
        if random.random() < 0.3:
            table.delete({"id": keys, "city": ["sf"] * len(keys)})
        else:
            deleted = tuple(key for key in keys if random.random() < 0.3)
            table.upsert(trips({key: (int(random.integers(0, 10)), "sf") for key in keys}, deleted=deleted))
        before = merged_rows(store), commit_times(store)
        if random.random() < 0.5 and table.schedule_log_compaction(2):
            table.compact()
            assert (merged_rows(store), commit_times(store)) == before


def test_deletes_that_only_the_operation_column_tells_stay_deletes() -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    logged = pa.schema([("_hoodie_operation", pa.string()), *schema])
    built = SliceBuilder(MemoryStore(), schema)
    built.base([{"id": key, "ts": 10} for key in "abc"])
    built.log([{"_hoodie_operation": "D", "id": "a", "ts": 20}], schema=logged)
    built.log([{"_hoodie_operation": "D", "id": "b", "ts": 5}], schema=logged)
    names = tuple(built.full_schema.names)
    merger = RecordMerger(MergeMode.EVENT_TIME_ORDERING, ("ts",))
    read = SliceRead(schema=built.full_schema, columns=names, merger=merger)
    avro = log_schema(arrow_to_avro(schema, table_name="t"), table_name="t")
    compact = CompactLogs(
        store=built.store.spec,
        read=read,
        avro_schema=avro,
        data_format=DataFormat.PARQUET,
        instant_time="500",
        number=1,
    )
    stat = compact(built.file_slice, TaskContext(0, 0, 0))
    assert stat is not None
    assert stat.log_files is not None
    name = LogFileName.parse(stat.log_files[0])
    assert name is not None
    built.logs.append(LogFile(PARTITION, name, stat.file_size_bytes))
    merged = pa.concat_tables(read_file_slice(built.store, built.file_slice, read))
    assert merged["id"].to_pylist() == ["b", "c"]


@pytest.mark.parametrize("is_foreign", [False, True], ids=["planned here", "planned by an engine that does not look"])
@pytest.mark.parametrize("index", ["record", "bucket"])
def test_a_write_that_completes_after_a_later_one_is_not_lost(index: str, is_foreign: bool) -> None:
    """Its log file comes before the later one, in whose place the new block would be, with a row older than its own."""
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    beside = {concurrency.CONCURRENCY_MODE.key: concurrency.NON_BLOCKING}
    options = {"hoodie.bucket.index.num.buckets": "1"} if index == "bucket" else {}
    table = new_table(schema, type="mor", index=index, merge_mode="commit_time", properties=options)
    for value in (0, 1):
        table.upsert({"id": ["k", "j"], "v": [value, value]})
    other = Table(table.view().store)

    def plan() -> str | None:
        if not is_foreign:
            return other.schedule_log_compaction(2)
        operations = tuple(operation_of(found.partition_path, found) for found in list_slices(other.view()))
        return begin(
            other, Action.LOG_COMPACTION, CompactionPlan(operations=operations).to_bytes(), only_requested=True
        )

    def act() -> None:
        other.upsert({"id": ["j"], "v": [2]}, properties=beside)
        assert (plan() is not None) == is_foreign
        assert other.schedule_log_compaction(2) is None

    with once_at(Step.WRITTEN, act):
        assert table.upsert({"id": ["k"], "v": [100]}, properties=beside).updated == 1
    expected = [("j", 2), ("k", 100)]
    assert sorted(values_of(table, "id", "v")) == expected
    if is_foreign:
        assert table.compact().counts["file_slices"] == 0
        assert sorted(values_of(table, "id", "v")) == expected
    assert table.schedule_log_compaction(2) is not None
    assert table.compact().counts["file_slices"] == 1
    assert sorted(values_of(table, "id", "v")) == expected


def test_a_pending_write_leaves_the_logs_before_it_to_fold() -> None:
    """A write that may be of another partition does not stop the log compactions of the table."""
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    beside = {concurrency.CONCURRENCY_MODE.key: concurrency.NON_BLOCKING}
    table = new_table(schema, type="mor", merge_mode="commit_time")
    for value in range(4):
        table.upsert({"id": ["k", "j"], "v": [value, value]})
    store = table.view().store
    late = SleepingWrite(store, lambda one: one.upsert({"id": ["k"], "v": [100]}, properties=beside), Step.WRITTEN)
    table.upsert({"id": ["j"], "v": [9]}, properties=beside)
    instant = table.schedule_log_compaction(2)
    assert instant is not None
    (planned,) = (found for found in table.timeline.pending() if found.requested_time == instant)
    plan = stored_plan(table.view(), planned)
    assert plan is not None
    assert [len(found.delta_file_paths) for found in plan.operations] == [3]
    assert table.compact(instant).counts["file_slices"] == 1
    assert sorted(values_of(table, "id", "v")) == [("j", 9), ("k", 3)]
    late.wake()
    assert late.error is None
    assert sorted(values_of(table, "id", "v")) == [("j", 9), ("k", 100)]


def test_a_write_that_completes_between_the_listing_and_the_plan_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    beside = {concurrency.CONCURRENCY_MODE.key: concurrency.NON_BLOCKING}
    table = new_table(schema, type="mor", merge_mode="commit_time")
    store = table.view().store
    for value in (0, 1, 2):
        table.upsert({"id": ["k", "j"], "v": [value, value]})
    late = SleepingWrite(store, lambda one: one.upsert({"id": ["k"], "v": [100]}, properties=beside), Step.WRITTEN)
    table.upsert({"id": ["j"], "v": [9]}, properties=beside)

    def gains(*_: object) -> bool:
        late.wake()
        return True

    monkeypatch.setattr(log_compaction, "_gains", gains)
    assert table.schedule_log_compaction(1) is not None
    assert late.error is None
    assert table.compact().counts["file_slices"] == 1
    assert sorted(values_of(table, "id", "v")) == [("j", 9), ("k", 100)]


def test_it_needs_blocks() -> None:
    with pytest.raises(InvalidConfigError, match="blocks_min is 0: expected at least 1"):
        Table(logged_table()).schedule_log_compaction(blocks_min=0)
