"""Scheduling and carrying out compactions: rows stay what they are, whatever happens meanwhile."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pytest

from hoodie.commit.call import Call
from hoodie.config.indexes import INDEX_TYPE_KEY
from hoodie.engine import TaskContext
from hoodie.engine.api import Result, Task
from hoodie.errors import (
    CommitConflictError,
    CorruptFileError,
    InstantNotFoundError,
    InvalidConfigError,
    UnsupportedError,
)
from hoodie.files.table_properties import update_table_config
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.instants.service_metadata import CompactionPlan
from hoodie.services.compaction.compaction import COMPACTION, compact_inline
from hoodie.services.planned.claim import claim_plan
from hoodie.services.planned.coordination import TableCoordinator
from hoodie.services.planned.executor import execute
from hoodie.services.planned.pending import roll_back_plan
from hoodie.services.results import ServiceResult
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action, State, forget_all, read_instant
from hoodie.timeline.owner import Owner
from hoodie.view.slices import list_files, list_from_storage, list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from hoodie.write.create import CreateOptions, create_table
from tests.crash.tables import copy_of, run_until
from tests.support.merge_on_read import SCHEMA, EngineThen, Rows, commit_times, merged_rows, new_table, trips

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc"), "d": (1, "la")}
CHANGE: Rows = {"a": (2, "sf"), "c": (2, "nyc"), "e": (1, "nyc")}
AFTER: Rows = {"a": (2, "sf"), "c": (2, "nyc"), "d": (1, "la"), "e": (1, "nyc")}


def logged_table(index: str = "record", properties: Mapping[str, str] | None = None) -> MemoryStore:
    """A table with logs in two of its three file groups; its rows are `AFTER`."""
    store = new_table(index=index, properties=properties)
    Table(store).upsert(trips(START))
    Table(store).upsert(trips(CHANGE))
    Table(store).delete(pa.table({"id": ["b"], "city": ["sf"]}))
    return store


@pytest.mark.parametrize("index", ["record", "simple"])
def test_a_table_whose_stored_index_this_release_lacks_is_compacted(index: str) -> None:
    store = logged_table(index)
    update_table_config(store, {INDEX_TYPE_KEY: "BLOOM"})
    instant = Table(store).schedule_compaction()
    assert instant is not None
    assert Table(store).compact().instant == instant
    assert merged_rows(store) == AFTER
    check_listing(store)


def metadata_of(store: MemoryStore, instant_time: str) -> CommitMetadata:
    view = Table(store).view()
    instant = view.timeline.get(instant_time)
    assert instant is not None
    return view.commit_metadata(instant)


def check_listing(store: MemoryStore) -> None:
    """The metadata table knows every committed file, and nothing else lies in the table."""
    view = Table(store).view()
    assert list_files(view) == list_from_storage(store, view.config, view.timeline, view.archive())
    assert [info.path for info in store.list(".hoodie/.temp", recursive=True)] == []
    assert store.list(".hoodie/.heartbeat") == []


@pytest.mark.parametrize("index", ["record", "simple", "global_simple"])
def test_a_compaction_changes_no_row(index: str) -> None:
    store = logged_table(index)
    assert merged_rows(store) == AFTER
    before = commit_times(store)
    instant = Table(store).schedule_compaction()
    assert merged_rows(store) == AFTER
    result = Table(store).compact()
    assert result.instant == instant
    assert merged_rows(store) == AFTER
    assert commit_times(store) == before
    assert all(not found.log_files for found in list_slices(Table(store).view()))
    check_listing(store)
    if index == "record":
        assert Table(store).index.verify().ok


def test_what_the_instant_says() -> None:
    store = logged_table()
    instant = Table(store).schedule_compaction("unbounded", {"team": "riders"})
    assert instant is not None
    view = Table(store).view()
    (pending,) = view.timeline.pending()
    assert (pending.action, pending.state, pending.requested_time) == (Action.COMPACTION, State.REQUESTED, instant)
    plan = CompactionPlan.parse(read_instant(store, view.layout, pending))
    assert plan.extra_metadata == {"team": "riders"}
    assert plan.version == 2
    slices = {found.file_id: found for found in list_slices(view) if found.log_files}
    assert {operation.file_id for operation in plan.operations} == set(slices)
    Table(store).compact(instant)
    done = Table(store).view().timeline.get(instant)
    assert done is not None
    assert (done.action, done.is_completed) == (Action.COMMIT, True)
    metadata = metadata_of(store, instant)
    assert (metadata.compacted, metadata.operation_type) == (True, "COMPACT")
    assert metadata.extra_metadata == {"team": "riders", "schema": view.schema().avro}
    for stat in metadata.write_stats():
        base = slices[stat.file_id].base_file
        assert base is not None
        assert (stat.prev_commit, stat.prev_base_file) == (base.instant_time, base.name)
        assert stat.total_log_files_compacted == len(slices[stat.file_id].log_files)
        assert stat.file_size_bytes == store.head(stat.path or "").size_bytes  # type: ignore[union-attr]
    by_partition = {stat.partition_path: stat for stat in metadata.write_stats()}
    sf, nyc = by_partition["city=sf"], by_partition["city=nyc"]
    assert (sf.num_writes, sf.num_update_writes, sf.num_deletes, sf.num_inserts) == (1, 1, 1, 0)
    assert (nyc.num_writes, nyc.num_update_writes, nyc.num_deletes, nyc.num_inserts) == (2, 1, 0, 1)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_rows_of_log_files_are_counted_in_each_version(version: int) -> None:
    """In version 6 the names of log files have the instant of the base file."""
    store = MemoryStore()
    options = CreateOptions(
        record_key="id", partition_by="city", ordering="ts", type="merge_on_read", index="simple", table_version=version
    )
    create_table(store, SCHEMA, options)
    table = Table(store)
    table.upsert(trips({f"k{number}": (1, "sf") for number in range(9)}))
    for ts in (2, 3):
        table.upsert(trips({"k1": (ts, "sf"), "k2": (ts, "sf")}))
    table.delete(pa.table({"id": ["k3"], "city": ["sf"]}))
    table.schedule_compaction()
    found = table.compact().counts
    assert (found["records"], found["updated"], found["deleted"]) == (8, 2, 1)


def test_nothing_to_compact() -> None:
    store = new_table()
    assert Table(store).schedule_compaction() is None
    Table(store).upsert(trips(START))
    assert Table(store).schedule_compaction() is None
    assert Table(store).compact().instant is None
    assert len(Table(store).pending_compactions()) == 0


def test_file_groups_of_a_pending_plan_are_in_no_other() -> None:
    store = logged_table()
    first = Table(store).schedule_compaction()
    assert Table(store).schedule_compaction() is None
    Table(store).upsert(trips({"a": (3, "sf"), "d": (3, "la")}))
    second = Table(store).schedule_compaction()
    plans = Table(store).pending_compactions()
    assert plans.instants == [first, second]
    assert [plan.file_slices for plan in plans] == [2, 1]
    expected = {**AFTER, "a": (3, "sf"), "d": (3, "la")}
    # The later plan first: file groups are disjoint, so the order is nobody's matter.
    Table(store).compact(second)
    assert merged_rows(store) == expected
    Table(store).compact(first)
    assert merged_rows(store) == expected
    check_listing(store)


def test_writers_go_on_while_it_is_pending_and_while_it_runs() -> None:
    """What is logged meanwhile is kept: in the slice that the compaction makes."""
    store = logged_table()
    table = Table(store)
    table.schedule_compaction()
    rows: Rows = {**AFTER, "a": (3, "sf"), "f": (1, "sf")}
    table.upsert(trips({"a": (3, "sf"), "f": (1, "sf")}))
    table.delete(pa.table({"id": ["e"], "city": ["nyc"]}))
    del rows["e"]
    assert merged_rows(store) == rows
    meanwhile: Rows = {"a": (9, "sf"), "g": (1, "nyc")}
    result = compact_then(store, lambda: Table(store).upsert(trips(meanwhile)))
    assert result.instant is not None
    rows |= meanwhile
    assert merged_rows(store) == rows
    assert [len(found.log_files) for found in list_slices(table.view()) if found.log_files] == [2, 2]
    table.schedule_compaction()
    table.compact()
    assert merged_rows(store) == rows
    check_listing(store)
    assert table.index.verify().ok


def compact_then(store: MemoryStore, then: Callable[[], object]) -> ServiceResult:
    """Compact, and do something before the commit."""
    engine = EngineThen(then=then)
    return execute(
        COMPACTION, Call(state=TableState(store), engine=engine, properties={"hoodie.python.local.bytes.max": "0"})
    )


def test_a_plan_that_waits_for_long_is_no_trouble_for_the_metadata_table() -> None:
    """Its instant is older than forty others there by then, and than compactions, cleans and archived instants."""
    properties = {
        "hoodie.metadata.record.index.min.filegroup.count": "1",
        "hoodie.metadata.compact.max.delta.commits": "3",
    }
    store = logged_table("record", properties)
    table = Table(store)
    first = table.schedule_compaction()
    rows = dict(AFTER)
    for number in range(40):
        rows |= {"a": (10 + number, "sf"), f"n{number}": (1, "nyc")}
        table.upsert(trips({"a": (10 + number, "sf"), f"n{number}": (1, "nyc")}))
    assert any(info.name.endswith(".clean") for info in store.list(".hoodie/metadata/.hoodie/timeline"))
    assert Table(store).compact().instant == first
    for store_again in (store, copy_of(store)):
        assert merged_rows(store_again) == rows
        check_listing(store_again)
    for number in range(15):
        rows |= {"c": (10 + number, "nyc")}
        table.upsert(trips({"c": (10 + number, "nyc")}))
        if number % 5 == 4:
            table.schedule_compaction()
            table.compact()
    assert merged_rows(store) == rows
    check_listing(store)
    assert table.index.verify().ok


def test_late_events_do_not_win_because_of_a_compaction() -> None:
    store = logged_table()
    table = Table(store)
    table.schedule_compaction()
    table.upsert(trips({"a": (1, "sf"), "c": (0, "nyc")}))
    assert merged_rows(store) == AFTER
    table.compact()
    assert merged_rows(store) == AFTER


def test_a_slice_whose_rows_are_all_deleted_gets_an_empty_base_file() -> None:
    store = new_table()
    table = Table(store)
    table.upsert(trips({"a": (1, "sf")}))
    table.delete(["a"])
    assert merged_rows(store) == {}
    table.schedule_compaction()
    result = table.compact()
    assert result.counts["records"] == 0
    assert merged_rows(store) == {}
    (found,) = list_slices(table.view())
    assert found.base_file is not None
    assert (found.base_instant_time, found.log_files) == (result.instant, ())
    table.upsert(trips({"a": (2, "sf")}))
    assert merged_rows(store) == {"a": (2, "sf")}


def test_file_groups_that_were_replaced_meanwhile_are_left_out() -> None:
    store = logged_table()
    table = Table(store)
    table.schedule_compaction()
    table.delete_partitions(["city=sf"])
    for info in store.list("city=sf"):
        if info.name.endswith(".parquet") or ".log." in info.name:
            store.delete(info.path)
    result = table.compact()
    assert result.counts["file_slices"] == 1
    assert "1 file slices were skipped" in str(result)
    assert merged_rows(store) == {key: row for key, row in AFTER.items() if row[1] != "sf"}


def test_only_what_is_pending_is_carried_out() -> None:
    store = logged_table()
    instant = Table(store).schedule_compaction()
    with pytest.raises(InstantNotFoundError, match="no pending compaction 123"):
        Table(store).compact("123")
    Table(store).compact(instant)
    with pytest.raises(InstantNotFoundError, match="completed or rolled back"):
        Table(store).compact(instant)


def test_tables_that_have_no_compactions() -> None:
    store = MemoryStore()
    create_table(store, SCHEMA, CreateOptions(record_key="id", partition_by="city", ordering="ts"))
    Table(store).upsert(trips(START))
    for call in (Table(store).schedule_compaction, Table(store).compact):
        with pytest.raises(UnsupportedError, match="copy-on-write"):
            call()
    with pytest.raises(InvalidConfigError, match="unknown compaction strategy"):
        Table(logged_table()).schedule_compaction("best")


# --- claims --------------------------------------------------------------------------------------------------------


def test_a_compaction_that_runs_elsewhere_is_left_alone() -> None:
    store = logged_table()
    instant = Table(store).schedule_compaction()
    claimed = claim_plan(COMPACTION, TableView.load(TableState(store)), TableCoordinator())
    assert claimed is not None
    (plan,) = Table(store).pending_compactions()
    assert (plan.state, plan.instant) == ("running", instant)
    assert plan.runner.startswith("process ")
    assert Table(store).compact().instant is None
    with pytest.raises(CommitConflictError, match="being executed by another"):
        Table(store).compact(instant)
    with pytest.raises(CommitConflictError, match="being executed by process"):
        roll_back_plan(COMPACTION, TableState(store), plan.instant)
    claimed.give_back()
    (plan,) = Table(store).pending_compactions()
    assert plan.state == "waiting"
    assert Table(store).compact().instant == instant
    assert merged_rows(store) == AFTER
    check_listing(store)


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"pid": 1e999}',
        Owner.new().to_bytes()[:-1] + b', "coordinator": ' + b"[" * 900 + b"]" * 900 + b"}",
    ],
)
def test_a_claim_that_is_no_claim_stops_nobody(content: bytes) -> None:
    store = logged_table()
    instant = Table(store).schedule_compaction()
    store.create(f".hoodie/timeline/{instant}.compaction.inflight", content)
    store.replace(f".hoodie/.heartbeat/{instant}", content)
    store.set_modified_ms(f".hoodie/.heartbeat/{instant}", 1_000_000)
    assert len(Table(store).pending_compactions()) == 1
    assert Table(store).compact(instant).instant == instant
    assert merged_rows(store) == AFTER


def test_one_whose_process_died_is_done_again() -> None:
    store = logged_table()
    instant = Table(store).schedule_compaction()
    claimed = claim_plan(COMPACTION, TableView.load(TableState(store)), TableCoordinator())
    forget_all()
    (plan,) = Table(store).pending_compactions()
    assert plan.state == "interrupted"
    result = Table(store).compact()
    assert result.instant == instant
    assert "executed again a plan that process" in str(result)
    assert merged_rows(store) == AFTER
    check_listing(store)
    assert claimed is not None


@pytest.mark.parametrize("is_done", [False, True])
def test_one_that_was_taken_for_dead_and_comes_back_does_no_harm(is_done: bool) -> None:
    """Between its tasks and its commit another compactor takes the plan, and is done with it or still at it."""
    store = logged_table()
    Table(store).schedule_compaction()

    def usurp() -> None:
        forget_all()
        if is_done:
            assert Table(store).compact().instant
        else:
            assert claim_plan(COMPACTION, TableView.load(TableState(store)), TableCoordinator())

    with pytest.raises(CommitConflictError, match="does not belong to this process"):
        compact_then(store, usurp)
    assert merged_rows(store) == AFTER
    forget_all()
    Table(store).compact()
    assert merged_rows(store) == AFTER
    check_listing(store)


def test_a_jvm_that_shows_no_sign_of_life_is_waited_for_unless_the_plan_is_asked_for() -> None:
    store = logged_table()
    instant = Table(store).schedule_compaction()
    # What a JVM leaves: an empty inflight file, no heartbeat, and files that it did not announce.
    (operation, *_) = _plan(store).operations
    store.create(f".hoodie/timeline/{instant}.compaction.inflight", b"")
    stray = f"{operation.partition_path}/{operation.file_id}_0-7-7_{instant}.parquet"
    store.create(stray, b"half a file")
    (plan,) = Table(store).pending_compactions()
    assert (plan.state, plan.runner) == ("running", "a JVM")
    assert Table(store).compact().instant is None
    assert Table(store).compact(instant).instant == instant
    assert store.head(stray) is None
    assert merged_rows(store) == AFTER
    check_listing(store)


def _plan(store: MemoryStore) -> CompactionPlan:
    view = Table(store).view()
    (pending,) = view.timeline.pending()
    return CompactionPlan.parse(read_instant(store, view.layout, pending, State.REQUESTED))


def test_tasks_can_be_sent_to_workers() -> None:
    """An engine of processes gets a function and file slices, which say all that there is to know."""
    store = logged_table()
    Table(store).schedule_compaction()
    engine = Pickling()
    execute(COMPACTION, Call(state=TableState(store), engine=engine, properties={"hoodie.python.local.bytes.max": "0"}))
    assert merged_rows(store) == AFTER


class Pickling:
    """An engine whose tasks go through bytes, as those of Spark do."""

    name = "pickling"
    parallelism = 1

    def run(
        self, function: Callable[[Task, TaskContext], Result], tasks: Sequence[Task], sizes: Sequence[int] | None = None
    ) -> list[Result]:
        """Run what came back."""
        sent: list[tuple[Callable[[Task, TaskContext], Result], Task]]
        sent = [pickle.loads(pickle.dumps((function, task))) for task in tasks]
        return [work(task, TaskContext(number, 7, number)) for number, (work, task) in enumerate(sent)]

    def process(self, *_: object, **__: object) -> list[Result]:
        """Compactions do not stream."""
        raise NotImplementedError


def test_an_error_in_a_task_gives_the_plan_back() -> None:
    store = logged_table()
    Table(store).schedule_compaction()
    (operation, *_) = _plan(store).operations
    log = f"{operation.partition_path}/{operation.delta_file_paths[0]}"
    content = store.read(log)
    store.delete(log)
    with pytest.raises(CorruptFileError, match="names a file that does not exist"):
        Table(store).compact()
    (plan,) = Table(store).pending_compactions()
    assert plan.state == "waiting"
    store.create(log, content)
    assert Table(store).compact().instant == plan.instant
    assert merged_rows(store) == AFTER
    check_listing(store)


# --- taking back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("remove_plan", [False, True])
def test_a_pending_compaction_is_rolled_back(remove_plan: bool) -> None:
    store = logged_table()
    instant = Table(store).schedule_compaction()
    assert instant is not None
    # It died after it had told the metadata table.
    calls = run_until(copy_of(store), lambda table: table.compact(), None).calls
    completed = next(number for number, call in enumerate(calls, 1) if call.path.endswith(".commit"))
    run_until(store, lambda table: table.compact(), completed)
    assert any(info.name.startswith(instant) for info in store.list(".hoodie/metadata/.hoodie/timeline"))
    done = roll_back_plan(COMPACTION, TableState(store), instant, remove_plan=remove_plan)
    assert done.files_deleted == 2
    assert not any(info.name.startswith(instant) for info in store.list(".hoodie/metadata/.hoodie/timeline"))
    assert merged_rows(store) == AFTER
    check_listing(store)
    assert Table(store).pending_compactions().instants == ([] if remove_plan else [instant])
    if remove_plan:
        instant = Table(store).schedule_compaction()
    assert Table(store).compact().instant == instant
    assert merged_rows(store) == AFTER
    with pytest.raises(InstantNotFoundError):
        roll_back_plan(COMPACTION, TableState(store), instant or "")


# --- inline --------------------------------------------------------------------------------------------------------

INLINE = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "3"}


def test_inline_compacts_when_it_is_due() -> None:
    store = logged_table()
    state = TableState(store)
    assert compact_inline(Call(state=state)) is None
    assert (
        compact_inline(Call(state=state, properties={**INLINE, "hoodie.compact.inline.max.delta.commits": "4"})) is None
    )
    result = compact_inline(Call(state=state, properties=INLINE))
    assert result is not None
    assert result.counts["file_slices"] == 2
    assert merged_rows(store) == AFTER
    assert compact_inline(Call(state=state, properties=INLINE)) is None


def test_inline_may_only_schedule() -> None:
    store = logged_table()
    properties = {**INLINE, "hoodie.compact.inline": "false", "hoodie.compact.schedule.inline": "true"}
    result = compact_inline(Call(state=TableState(store), properties=properties))
    assert result is not None
    assert Table(store).pending_compactions().instants == [result.instant]
    assert compact_inline(Call(state=TableState(store), properties=properties)) is None


def test_inline_takes_up_what_was_left() -> None:
    store = logged_table()
    instant = Table(store).schedule_compaction()
    properties = {**INLINE, "hoodie.compact.inline.max.delta.commits": "100"}
    result = compact_inline(Call(state=TableState(store), properties=properties))
    assert result is not None
    assert result.instant == instant
    assert merged_rows(store) == AFTER


def test_a_compaction_that_fails_does_not_fail_the_write() -> None:
    store = logged_table()
    (log, *_) = (info for info in store.list("city=sf") if ".log." in info.name)
    store.replace(log.path, b"#HUDI#" + bytes(60))
    # A torn block is left out by readers; a base file that is none is an error.
    (base,) = (info for info in store.list("city=sf") if info.name.endswith(".parquet"))
    store.replace(base.path, b"no parquet")
    result = compact_inline(Call(state=TableState(store), properties=INLINE))
    assert result is not None
    assert "the compaction after this write failed" in str(result)
    assert len(Table(store).pending_compactions()) == 1


# --- the result ----------------------------------------------------------------------------------------------------


def test_pending_compactions_print() -> None:
    store = logged_table()
    assert str(Table(store).pending_compactions()) == "no compaction is pending"
    instant = Table(store).schedule_compaction()
    found = Table(store).pending_compactions()
    assert f"{instant} compaction  waiting: 2 file slices, 3 log files" in str(found)
    assert instant is not None
    assert instant in found._repr_html_()
    (row,) = json.loads(json.dumps(found.to_dicts()))
    assert (row["instant"], row["state"], row["file_slices"], row["log_files"]) == (instant, "waiting", 2, 3)
    assert found[0].age_seconds < time.time()
