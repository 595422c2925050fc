"""Scheduling and carrying out compactions: rows stay what they are, whatever happens meanwhile."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Mapping, Sequence

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
from hoodie.metadata.services.context import ServiceLimits
from hoodie.results import ServiceResult
from hoodie.services.compaction.compaction import COMPACTION, compact_inline
from hoodie.services.planned.claim import ClaimedPlan, claim_plan
from hoodie.services.planned.coordination import TableCoordinator
from hoodie.services.planned.executor import execute
from hoodie.services.planned.pending import roll_back_plan
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action, State, forget_all, read_instant
from hoodie.timeline.owner import Owner
from hoodie.view.listing import list_files, list_from_storage
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from tests.support.deaths import run_until
from tests.support.merge_on_read import EngineThen, commit_times, merged_rows, on_engine
from tests.support.tables import Rows, copy_of, made_once, trips, trips_store

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc"), "d": (1, "la")}
CHANGE: Rows = {"a": (2, "sf"), "c": (2, "nyc"), "e": (1, "nyc")}
AFTER: Rows = {"a": (2, "sf"), "c": (2, "nyc"), "d": (1, "la"), "e": (1, "nyc")}


B = {"id": ["b"], "city": ["sf"]}


@made_once
def logged_table(index: str = "record", properties: Mapping[str, str] | None = None) -> MemoryStore:
    """A table with logs in two of its three file groups; its rows are `AFTER`."""
    store = trips_store(START, CHANGE, table_type="merge_on_read", index=index, properties=properties)
    Table(store).delete(B)
    return store


@made_once
def planned_table() -> MemoryStore:
    """The same with a plan of a compaction."""
    store = logged_table()
    assert Table(store).schedule_compaction()
    return store


def planned() -> tuple[MemoryStore, str]:
    """It, and the instant of the plan."""
    store = planned_table()
    return store, Table(store).pending_compactions().instants[0]


def claim(store: MemoryStore) -> ClaimedPlan[CompactionPlan]:
    """Claim the plan, as a process that executes it."""
    claimed = claim_plan(COMPACTION, Table(store).view(), TableCoordinator())
    assert claimed is not None
    return claimed


def metadata_of(store: MemoryStore, instant_time: str) -> CommitMetadata:
    view = Table(store).view()
    instant = view.timeline.get(instant_time)
    assert instant is not None
    return view.commit_metadata(instant)


def check(store: MemoryStore, rows: Rows = AFTER) -> None:
    """These are the rows; the metadata table knows every committed file, and nothing else lies in the table."""
    assert merged_rows(store) == rows
    view = Table(store).view()
    assert list_files(view) == list_from_storage(store, view.config, view.timeline, view.archive())
    assert [info.path for info in store.list(".hoodie/.temp", recursive=True)] == []
    assert store.list(".hoodie/.heartbeat") == []


@pytest.mark.parametrize("stored", [None, "BLOOM"])
@pytest.mark.parametrize("index", ["record", "simple", "global_simple"])
def test_a_compaction_changes_no_row(index: str, stored: str | None) -> None:
    """Whatever index the properties name."""
    store = logged_table(index)
    if stored:
        update_table_config(store, {INDEX_TYPE_KEY: stored})
    assert merged_rows(store) == AFTER
    before = commit_times(store)
    instant = Table(store).schedule_compaction()
    assert merged_rows(store) == AFTER
    result = Table(store).compact()
    assert result.instant == instant
    assert commit_times(store) == before
    assert all(not found.log_files for found in list_slices(Table(store).view()))
    check(store)
    if (index, stored) == ("record", None):
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
    first = {f"k{number}": (1, "sf") for number in range(9)}
    changes = [{"k1": (ts, "sf"), "k2": (ts, "sf")} for ts in (2, 3)]
    made = trips_store(first, *changes, table_type="merge_on_read", index="simple", table_version=version)
    table = Table(made)
    table.delete({"id": ["k3"], "city": ["sf"]})
    table.schedule_compaction()
    found = table.compact().counts
    assert (found["records"], found["updated"], found["deleted"]) == (8, 2, 1)


def test_nothing_to_compact() -> None:
    store = trips_store(table_type="merge_on_read")
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
    check(store, expected)


def test_writers_go_on_while_it_is_pending_and_while_it_runs() -> None:
    """What is logged meanwhile is kept, in the slice that the compaction makes; a late event does not win by it."""
    store, _ = planned()
    table = Table(store)
    rows: Rows = {**AFTER, "a": (3, "sf"), "f": (1, "sf")}
    table.upsert(trips({"a": (3, "sf"), "f": (1, "sf"), "c": (0, "nyc")}))
    table.delete({"id": ["e"], "city": ["nyc"]})
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
    check(store, rows)
    assert table.index.verify().ok


def compact_then(store: MemoryStore, then: Callable[[], object]) -> ServiceResult:
    """Compact, and do something before the commit."""
    return execute(COMPACTION, on_engine(store, EngineThen(then=then)))


def test_a_plan_that_waits_for_long_is_no_trouble_for_the_metadata_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its instant is older than most others there by then, and than compactions, cleans and archived instants."""
    small = ServiceLimits(delta_commits_to_compact=3, commits_retained=4, commits_kept_min=5, commits_kept_max=8)
    monkeypatch.setattr(ServiceLimits, "of", lambda _: small)
    store = logged_table("record", {"hoodie.metadata.compact.max.delta.commits": "3"})
    table, rows = Table(store), dict(AFTER)
    first = table.schedule_compaction()
    for number in range(12):
        change = {"a": (10 + number, "sf"), f"n{number}": (1, "nyc")}
        rows |= change
        table.upsert(trips(change))
    files = [info.name for info in store.list(".hoodie/metadata/.hoodie/timeline", recursive=True)]
    assert [name for name in files if name.endswith(".clean")]
    assert [name for name in files if name.endswith(".parquet")], "nothing was archived"
    assert Table(store).compact().instant == first
    for store_again in (store, copy_of(store)):
        check(store_again, rows)
    for number in range(6):
        rows |= {"c": (10 + number, "nyc")}
        table.upsert(trips({"c": (10 + number, "nyc")}))
        if number % 3 == 2:
            table.schedule_compaction()
            table.compact()
    check(store, rows)
    assert table.index.verify().ok


def test_a_slice_whose_rows_are_all_deleted_gets_an_empty_base_file() -> None:
    store = trips_store({"a": (1, "sf")}, table_type="merge_on_read")
    table = Table(store)
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
    store, _ = planned()
    table = Table(store)
    table.delete_partitions(["city=sf"])
    for info in store.list("city=sf"):
        if info.name.endswith(".parquet") or ".log." in info.name:
            store.delete(info.path)
    result = table.compact()
    assert result.counts["file_slices"] == 1
    assert "1 file slices were skipped" in str(result)
    assert merged_rows(store) == {key: row for key, row in AFTER.items() if row[1] != "sf"}


def test_only_what_is_pending_is_carried_out() -> None:
    store, instant = planned()
    with pytest.raises(InstantNotFoundError, match="no pending compaction 123"):
        Table(store).compact("123")
    Table(store).compact(instant)
    with pytest.raises(InstantNotFoundError, match="completed or rolled back"):
        Table(store).compact(instant)


def test_tables_that_have_no_compactions() -> None:
    table = Table(trips_store(START))
    for call in (table.schedule_compaction, table.compact):
        with pytest.raises(UnsupportedError, match="copy-on-write"):
            call()
    with pytest.raises(InvalidConfigError, match="unknown compaction strategy"):
        Table(logged_table()).schedule_compaction("best")


# --- claims --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"pid": 1e999}',
        Owner.new().to_bytes()[:-1] + b', "coordinator": ' + b"[" * 900 + b"]" * 900 + b"}",
    ],
)
def test_a_claim_that_is_no_claim_stops_nobody(content: bytes) -> None:
    store, instant = planned()
    store.create(f".hoodie/timeline/{instant}.compaction.inflight", content)
    store.replace(f".hoodie/.heartbeat/{instant}", content)
    store.set_modified_ms(f".hoodie/.heartbeat/{instant}", 1_000_000)
    assert len(Table(store).pending_compactions()) == 1
    assert Table(store).compact(instant).instant == instant
    assert merged_rows(store) == AFTER


@pytest.mark.parametrize("is_done", [False, True])
def test_one_that_was_taken_for_dead_and_comes_back_does_no_harm(is_done: bool) -> None:
    """Between its tasks and its commit another compactor takes the plan, and is done with it or still at it."""
    store, _ = planned()

    def usurp() -> None:
        forget_all()
        if is_done:
            assert Table(store).compact().instant
        else:
            assert claim(store)

    with pytest.raises(CommitConflictError, match="does not belong to this process"):
        compact_then(store, usurp)
    assert merged_rows(store) == AFTER
    forget_all()
    Table(store).compact()
    check(store)


def test_a_jvm_that_shows_no_sign_of_life_is_waited_for_unless_the_plan_is_asked_for() -> None:
    store, instant = planned()
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
    check(store)


def _plan(store: MemoryStore) -> CompactionPlan:
    view = Table(store).view()
    (pending,) = view.timeline.pending()
    return CompactionPlan.parse(read_instant(store, view.layout, pending, State.REQUESTED))


def test_tasks_can_be_sent_to_workers() -> None:
    """An engine of processes gets a function and file slices, which say all that there is to know."""
    store, _ = planned()
    engine = Pickling()
    execute(COMPACTION, on_engine(store, engine))
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
    store, _ = planned()
    (operation, *_) = _plan(store).operations
    log = f"{operation.partition_path}/{operation.delta_file_paths[0]}"
    content = store.read(log)
    store.delete(log)
    with pytest.raises(CorruptFileError, match="names a file that does not exist") as refused:
        Table(store).compact()
    (plan,) = Table(store).pending_compactions()
    assert plan.state == "waiting"
    assert "t.repair(accept_loss=" in str(refused.value), "how to get rid of it"
    store.create(log, content)
    assert Table(store).compact().instant == plan.instant
    check(store)


# --- taking back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("remove_plan", [False, True])
def test_a_pending_compaction_is_rolled_back(remove_plan: bool) -> None:
    store, instant = planned()
    # It died after it had told the metadata table.
    calls = run_until(copy_of(store), lambda table: table.compact(), None).calls
    completed = next(number for number, call in enumerate(calls, 1) if call.path.endswith(".commit"))
    run_until(store, lambda table: table.compact(), completed)
    assert any(info.name.startswith(instant) for info in store.list(".hoodie/metadata/.hoodie/timeline"))
    done = roll_back_plan(COMPACTION, TableState(store), instant, remove_plan=remove_plan)
    assert done.files_deleted == 2
    assert not any(info.name.startswith(instant) for info in store.list(".hoodie/metadata/.hoodie/timeline"))
    check(store)
    assert Table(store).pending_compactions().instants == ([] if remove_plan else [instant])
    if remove_plan:
        instant = Table(store).schedule_compaction() or ""
    assert Table(store).compact().instant == instant
    assert merged_rows(store) == AFTER
    with pytest.raises(InstantNotFoundError):
        roll_back_plan(COMPACTION, TableState(store), instant)


# --- inline --------------------------------------------------------------------------------------------------------

INLINE = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "3"}


def test_a_table_property_as_it_is_stored_is_no_contradiction() -> None:
    table = Table(logged_table())
    same = {"hoodie.table.type": "MERGE_ON_READ"}
    instant = table.schedule_compaction(properties=same)
    assert table.compact(properties=same).instant == instant


def inline(store: MemoryStore, properties: Mapping[str, str] | None = None, **more: str) -> ServiceResult | None:
    return compact_inline(Call(state=TableState(store), properties={**(properties or {}), **more}))


def test_inline_compacts_when_it_is_due() -> None:
    store = logged_table()
    assert inline(store) is None
    assert inline(store, INLINE, **{"hoodie.compact.inline.max.delta.commits": "4"}) is None
    result = inline(store, INLINE)
    assert result is not None
    assert result.counts["file_slices"] == 2
    assert merged_rows(store) == AFTER
    assert inline(store, INLINE) is None


def test_inline_takes_up_what_was_left() -> None:
    store, instant = planned()
    result = inline(store, INLINE, **{"hoodie.compact.inline.max.delta.commits": "100"})
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
    result = inline(store, INLINE)
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
