"""Executing clusterings: rows, commit times and index stay right, whatever happens meanwhile."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.commit.call import Call
from hoodie.commit.steps import Step
from hoodie.config.clustering import CLUSTER_SORT_COLUMNS, CLUSTER_UPDATES
from hoodie.config.indexes import INDEX_TYPE_KEY
from hoodie.errors import CommitConflictError, InstantNotFoundError, InvalidConfigError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.format.instants.service_metadata import ClusteringStrategy, RequestedReplaceMetadata
from hoodie.metadata.table import MetadataTable
from hoodie.services.clustering.clustering import CLUSTERING, cluster
from hoodie.services.clustering.schedule import plan_of
from hoodie.services.planned.executor import execute
from hoodie.table import Table
from hoodie.timeline import Action, State, forget_all, read_instant
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from tests.support.deaths import die
from tests.support.fault_store import CrashPoint
from tests.support.merge_on_read import EngineThen, on_engine
from tests.support.refusals import refused
from tests.support.steps import begin, once_at
from tests.support.tables import TYPES, made_once, new_table, values_of

SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("x", pa.int64()), ("y", pa.float64()), ("ts", pa.int64())]
)
SORTED = {CLUSTER_SORT_COLUMNS.key: "x"}
ALLOW = {CLUSTER_UPDATES.key: "allow"}


def trips(first: int, last: int, ts: int = 1) -> pa.Table:
    numbers = range(first, last)
    random = np.random.default_rng(first)
    return pa.table(
        {
            "id": [f"k{number:03}" for number in numbers],
            "city": ["sf" if number % 2 else "nyc" for number in numbers],
            "x": random.integers(0, 100, len(numbers)),
            "y": random.random(len(numbers)),
            "ts": [ts] * len(numbers),
        },
        schema=SCHEMA,
    )


@made_once
def clustered(table_type: str = "copy_on_write", index: str = "record") -> Table:
    """A table of 60 rows in six small file groups, in two partitions; on merge-on-read with logs."""
    few = {"hoodie.metadata.record.index.min.filegroup.count": "1"}
    table = new_table(SCHEMA, type=table_type, index=index, partition_by="city", ordering="ts", properties=few)
    for first in (0, 20, 40):
        table.bulk_insert(trips(first, first + 20))
    table.upsert(trips(5, 25, ts=2))
    table.delete({"id": ["k007"], "city": ["sf"]})
    return table


def rows_of(table: Table) -> pa.Table:
    """All rows and meta columns but the file name, by key."""
    return table.to_arrow().sort_by("_hoodie_record_key").drop_columns(["_hoodie_file_name"])


def groups(table: Table) -> set[tuple[str, str]]:
    return {(found.partition_path, found.file_id) for found in list_slices(table.view())}


def planned(table: Table) -> str:
    """Schedule a clustering; return its instant."""
    instant = table.schedule_clustering()
    assert instant is not None
    return instant


def incremental(table: Table) -> list[str]:
    """The partition of each file slice that an incremental plan would take."""
    plan = plan_of(table.view(), {}, is_incremental=True).plan
    return [piece.partition_path for group in plan.input_groups for piece in group.slices]


def request(table: Table, **changes: Any) -> str:
    """Request a clustering with a plan that differs so from ours."""
    plan = replace(plan_of(table.view(), {}).plan, **changes)
    content = RequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=plan, extra_metadata={}).to_bytes()
    return begin(table, Action.CLUSTERING, content, only_requested=True)


@pytest.mark.parametrize(
    ("table_type", "index", "layout"),
    [
        ("copy_on_write", "record", "zorder"),
        ("copy_on_write", "simple", None),
        ("merge_on_read", "record", "hilbert"),
        ("merge_on_read", "partitioned_record", "linear"),
    ],
)
def test_rows_stay_what_they_are_and_writers_find_them(table_type: str, index: str, layout: str | None) -> None:
    table = clustered(table_type, index)
    before, old = rows_of(table), groups(table)
    since = table.timeline.completed().instants[-1].requested_time
    done = table.cluster(None if layout is None else ["x", "y"], layout=layout)
    assert done.instant is not None
    assert dict(done.counts) == {"groups": 2, "file_slices": 6, "files_created": 2, "records": 59}
    assert rows_of(table).equals(before)
    assert not groups(table) & old
    instant = table.timeline.completed().instants[-1]
    assert (instant.requested_time, instant.action) == (done.instant, Action.REPLACE_COMMIT)
    assert table.changes(since=since).num_rows == 0
    assert table.changes(since="20000101000000000").num_rows == 59
    # Time travel still reads the old file groups.
    assert table.to_arrow(as_of=since).num_rows == 59
    if index == "record":
        assert table.index.verify().ok
        assert set(table.record_locations(["k001"])["file_id"].to_pylist()) <= {file_id for _, file_id in groups(table)}
    written = table.upsert(trips(0, 30, ts=3))
    assert (written.updated, written.inserted) == (29, 1)
    assert table.to_arrow().num_rows == 60
    table.delete({"id": ["k009"], "city": ["sf"]})
    assert table.to_arrow().num_rows == 59


def test_sorted_files_have_narrow_ranges_and_the_planned_number_of_files() -> None:
    table = clustered()
    size_bytes = sum(found.size_bytes for found in list_slices(table.view()))
    target = {"hoodie.clustering.plan.strategy.target.file.max.bytes": str(size_bytes // 7)}
    done = table.cluster("x", partitions=["city=sf", "city=x"], properties=target)
    assert done.notes == (
        "the table has no partition city=x, which hoodie.clustering.plan.strategy.partition.selected selects",
    )
    assert done.counts["files_created"] >= 3
    rows = table.to_arrow(where="city = 'sf'")
    assert {path for path, _ in groups(table)} == {"city=nyc", "city=sf"}
    ranges = sorted(
        (min(values), max(values))
        for name in set(rows["_hoodie_file_name"].to_pylist())
        for values in [rows.filter(pa.compute.equal(rows["_hoodie_file_name"], name))["x"].to_pylist()]
    )
    assert all(low[1] <= high[0] for low, high in itertools.pairwise(ranges))
    # The partition that was not asked for is left to the next incremental plan.
    assert {*incremental(table)} == {"city=nyc"}


def test_a_pending_plan_keeps_writers_away_until_it_is_executed_or_rolled_back() -> None:
    table = clustered()
    table.schedule_clustering()
    (instant,) = table.pending_clusterings().instants
    before = rows_of(table)
    assert table.schedule_clustering() is None
    with pytest.raises(CommitConflictError, match="being clustered"):
        table.upsert(trips(0, 1, ts=9))
    # Inserts go to new file groups.
    planned = groups(table)
    assert table.insert(trips(60, 62)).files_created == 2
    assert rows_of(table).num_rows == before.num_rows + 2
    table.rollback(instant)
    assert table.pending_clusterings().instants == []
    table.upsert(trips(0, 1, ts=9))
    again = table.schedule_clustering(by="y", layout="hilbert")
    (listed,) = table.pending_clusterings()
    assert (listed.instant, listed.state, listed.by, listed.layout) == (again, "waiting", ("y",), "hilbert")
    assert listed.file_slices == len(planned) + 2
    assert "hilbert by y" in str(table.pending_clusterings())
    done = table.cluster()
    assert done.notes == (f"executed the pending plan {again} first",)
    assert table.cluster().instant is None
    with pytest.raises(InstantNotFoundError, match="no pending clustering"):
        table.cluster(instant=again)


@pytest.mark.parametrize("table_type", TYPES)
def test_updates_that_are_allowed_are_kept_and_their_file_groups_left_out(table_type: str) -> None:
    table = clustered(table_type)
    instant = planned(table)
    changed = table.upsert(trips(1, 2, ts=9), properties=ALLOW)
    assert changed.updated == 1
    before = rows_of(table)
    done = table.cluster(instant=instant)
    assert done.counts["file_slices"] == 5
    assert "1 file groups were left out" in done.notes[0]
    assert rows_of(table).equals(before)
    assert table.index.verify().ok


def test_a_plan_of_which_nothing_is_left_is_rolled_back() -> None:
    table = clustered()
    instant = planned(table)
    table.upsert(trips(0, 60, ts=9), properties=ALLOW)
    before = rows_of(table)
    done = table.cluster(instant=instant)
    assert done.instant is None
    assert f"the plan {instant} was rolled back" in done.notes[-1]
    assert not table.timeline.pending().instants
    assert rows_of(table).equals(before)


def test_an_update_that_completes_while_the_clustering_runs_stops_it() -> None:
    table = clustered()
    instant, store = planned(table), table.view().store
    engine = EngineThen(then=lambda: Table(store).upsert(trips(1, 2, ts=9), properties=ALLOW))
    with pytest.raises(CommitConflictError, match="changed the file groups"):
        execute(CLUSTERING, on_engine(store, engine), instant)
    assert table.index.verify().ok
    assert table.pending_clusterings()[0].state == "waiting"
    before = rows_of(table)
    assert table.cluster(instant=instant).counts["file_slices"] == 5
    assert rows_of(table).equals(before)
    assert table.index.verify().ok


def test_a_writer_that_began_before_the_plan_is_refused_at_its_commit() -> None:
    table = clustered()
    plan = once_at(Step.WRITTEN, lambda: planned(Table(table.view().store)))
    with plan, pytest.raises(CommitConflictError, match="being clustered"):
        table.upsert(trips(0, 1, ts=9))


def test_an_update_is_made_again_if_the_clustering_completes_before_it_is_judged() -> None:
    table = clustered()
    planned(table)
    with once_at(Step.BEGUN, lambda: Table(table.view().store).cluster()):
        done = table.upsert(trips(0, 1, ts=9))
    assert done.updated == 1
    assert done.notes[0].startswith("retried once: file groups")
    assert not table.pending_clusterings()
    assert values_of(table, "ts", where="id = 'k000'") == [(9,)]


def check_index_after(table: Table) -> None:
    """A new attempt leaves out the file group that an update changed; the index has no entry of an earlier attempt."""
    table.upsert(trips(1, 2, ts=9), properties=ALLOW)
    before = rows_of(table)
    assert table.cluster().instant is not None
    assert rows_of(table).equals(before)
    assert table.index.verify().ok
    assert table.upsert(trips(1, 6, ts=10)).inserted == 0


def test_an_attempt_whose_index_files_cannot_be_deleted_is_seen_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    table = clustered()
    planned(table)

    def fail(*_: object) -> None:
        raise OSError("no answer")

    monkeypatch.setattr(MetadataTable, "discard", fail)
    with once_at(Step.LOCATED, fail), pytest.raises(OSError, match="no answer"):
        table.cluster()
    monkeypatch.undo()
    assert table.pending_clusterings()[0].state == "interrupted"
    check_index_after(table)


def test_an_attempt_that_fails_at_once_takes_back_what_a_dead_one_left() -> None:
    """The first process died after it had written index files, the second failed before it looked for them."""
    table = clustered()
    instant, store = planned(table), table.view().store
    die(store, lambda other: other.cluster(), f"{instant}.log.1_0-0-0", point=CrashPoint.AFTER, is_last=True)
    assert table.pending_clusterings()[0].state == "interrupted"

    def fail() -> None:
        raise OSError("no memory")

    with once_at(Step.BEGUN, fail), pytest.raises(OSError, match="no memory"):
        table.cluster()
    assert table.pending_clusterings()[0].state == "waiting"
    check_index_after(table)


@pytest.mark.parametrize("step", [Step.WRITTEN, Step.LOCATED])
def test_a_process_that_was_taken_for_dead_leaves_the_index_files_of_the_next(step: Step) -> None:
    table = clustered()
    instant, store = planned(table), table.view().store
    before = rows_of(table)

    def overtake() -> None:
        forget_all()
        assert Table(store).cluster(instant=instant).instant == instant

    with once_at(step, overtake), pytest.raises(CommitConflictError, match="does not belong to this process"):
        table.cluster(instant=instant)
    assert rows_of(Table(store)).equals(before)
    assert Table(store).index.verify().ok
    assert Table(store).upsert(trips(1, 6, ts=10)).inserted == 0


def test_a_plan_of_an_old_jvm_gives_rows_the_commit_time_of_the_clustering() -> None:
    table = clustered()
    done = table.cluster(instant=request(table, preserve_hoodie_metadata=False))
    rows = table.to_arrow()
    assert set(rows["_hoodie_commit_time"].to_pylist()) == {done.instant}
    assert len(set(rows["_hoodie_commit_seqno"].to_pylist())) == 59


def test_compactions_and_clusterings_exclude_each_others_file_groups() -> None:
    table = clustered("merge_on_read")
    compaction = table.schedule_compaction()
    assert compaction is not None
    assert table.schedule_clustering("x") is not None
    (plan,) = table.pending_clusterings()
    (compacted,) = table.pending_compactions()
    assert plan.file_slices + compacted.file_slices == 6
    assert table.schedule_compaction() is None
    assert table.cluster().instant is None
    assert table.compact().instant == compaction
    assert table.to_arrow().num_rows == 59


def test_inline_clustering_runs_when_commits_have_come_and_not_before() -> None:
    inline = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "6"}
    table = clustered()
    done = table.upsert(trips(60, 61), properties=inline)
    (service,) = done.services
    assert (service.operation, service.counts["records"]) == ("clustering", 60)
    assert table.upsert(trips(61, 62), properties=inline).services == ()
    planning = {"hoodie.clustering.schedule.inline": "true", "hoodie.clustering.async.max.commits": "2", **SORTED}
    (service,) = table.upsert(trips(62, 63), properties=planning).services
    assert service.operation == "schedule clustering"
    assert table.pending_clusterings().instants == [service.instant]
    # A write that clusters executes the plan that waits.
    (service,) = table.insert(trips(63, 64), properties=inline).services
    assert "executed the pending plan" in service.notes[0]
    assert table.to_arrow().num_rows == 63
    assert table.index.verify().ok


def test_an_incremental_plan_examines_what_changed_and_what_was_left_out() -> None:
    table = clustered()
    one = {"hoodie.clustering.plan.strategy.max.num.groups": "1"}
    done = table.cluster(properties=one)
    assert "1 partitions have more small file slices" in done.notes[0]
    assert incremental(table) == ["city=sf"] * 3
    table.cluster()
    assert incremental(table) == []
    table.insert(trips(60, 80), properties={"hoodie.parquet.small.file.limit": "0"})
    assert {*incremental(table)} == {"city=nyc", "city=sf"}


def test_the_completed_instant_has_what_the_jvm_stores() -> None:
    table = clustered()
    view = table.view()
    instant = table.schedule_clustering(extra_metadata={"team": "riders"})
    assert instant is not None
    old = {path: sorted(file_id for at, file_id in groups(table) if at == path) for path in ("city=nyc", "city=sf")}
    table.cluster(instant=instant)
    now = table.view()
    found = now.timeline.get(instant)
    assert found is not None
    metadata = now.commit_metadata(found)
    assert metadata.operation_type == "CLUSTER"
    replaced = metadata.partition_to_replace_file_ids or {}
    assert {path: sorted(file_ids) for path, file_ids in replaced.items()} == old
    assert metadata.extra_metadata["schema"] == view.schema().avro
    content = read_instant(now.store, now.layout, found, State.REQUESTED)
    assert RequestedReplaceMetadata.parse(content, path="test").extra_metadata == {"team": "riders"}


def test_what_is_wrong_is_refused_without_a_trace() -> None:
    table = clustered()
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: table.cluster("z"), "cluster by 'z'"),
        (lambda: table.schedule_clustering("x", layout="spiral"), "hoodie.layout.optimize.strategy='spiral'"),
        (lambda: table.cluster(["x,y"]), "names without commas"),
        (lambda: table.cluster(partitions=[]), "expected partition paths, found none"),
        (lambda: table.schedule_clustering("x", partitions=[]), "expected partition paths, found none"),
        (lambda: table.cluster("x", instant="1"), "by with instant='1': a pending plan has its own columns"),
        (
            lambda: table.cluster(partitions=["city=sf"], layout="zorder", instant="1"),
            "layout, partitions with instant",
        ),
    ]
    for call, told in calls:
        with refused(table, told, error=InvalidConfigError):
            call()
    other = new_table(SCHEMA, index="simple").view().store
    update_table_config(other, {"hoodie.bootstrap.base.path": "memory://source"})
    with pytest.raises(UnsupportedError, match="does not cluster bootstrapped tables"):
        cluster(Call(state=TableState(other)))
    update_table_config(other, {"hoodie.bootstrap.base.path": "", INDEX_TYPE_KEY: "BUCKET"})
    with pytest.raises(UnsupportedError, match="has a bucket index"):
        Table(other).cluster()


def test_a_plan_for_another_kind_of_execution_is_refused_and_stays() -> None:
    table = clustered()
    name = "org.apache.hudi.client.clustering.run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
    request(table, strategy=ClusteringStrategy(strategy_class_name=name))
    with pytest.raises(UnsupportedError, match="SparkConsistentBucketClusteringExecutionStrategy"):
        table.cluster()
    (left,) = table.pending_clusterings()
    assert left.state == "waiting"
    table.rollback(left.instant)
    assert table.cluster().instant is not None


def test_the_runner_of_services_executes_plans_that_wait_and_new_ones() -> None:
    table = clustered()
    planned = table.schedule_clustering("x")
    runner = table.services(["cluster"], properties=SORTED)
    runner.run_once()
    assert [result.notes for result in runner.results] == [(f"executed the pending plan {planned} first",)]
    for number in range(4):
        table.insert(trips(60 + number, 61 + number))
    assert runner.run_once().results[0].counts["records"] == 63
    assert table.to_arrow().num_rows == 63
