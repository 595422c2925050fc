"""Clusterings of ours in the hands of the JVM, and the JVM's in ours: complete, planned only, and half-done."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.read.changes import plan_batch
from hoodie.read.local import read_table
from hoodie.storage import LocalStore
from hoodie.table import Table
from hoodie.timeline import Action, State, forget_all
from tests.interop.judges import HIVE, QUICK_OPTIONS, Jvm, create_trips, read_by_all
from tests.support.deaths import run_until
from tests.support.fault_store import CrashPoint
from tests.support.rows import assert_same_rows
from tests.support.tables import table_of

SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float64()), ("x", pa.int64()), ("city", pa.string())]
)
KEPT = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", *SCHEMA.names)


def trips(numbers: range, *, ts: int = 1) -> pa.Table:
    return table_of(SCHEMA, *((f"k{n:03}", ts, n * 7 % 40 / 4, n * 11 % 37, ("sf", "nyc")[n % 2]) for n in numbers))


class Shared:
    """A table of 48 rows in small file groups that we and the JVM write; on merge-on-read with logs."""

    def __init__(self, jvm: Jvm, path: Path, table_type: str = "copy_on_write", index: str = "record") -> None:
        self.jvm = jvm
        self.path = path
        self.table_type = table_type
        self.index = index
        self.table = create_trips(
            path, SCHEMA, type=table_type, index=index,
            properties={"hoodie.metadata.record.index.min.filegroup.count": "2"},
        )  # fmt: skip
        for first in range(0, 48, 16):
            self.table.bulk_insert(trips(range(first, first + 16)))
        self.table.upsert(trips(range(4, 12), ts=2))

    def jvm_write(self, rows: pa.Table, **options: str) -> None:
        named = {"hoodie." + name.replace("__", "."): value for name, value in options.items()}
        self.jvm.write_trips(rows, self.path, table_type=self.table_type.upper(), options={**HIVE, **named})

    def jvm_cluster(self, op: str, **more: str) -> None:
        """Run the JVM's procedure: `schedule`, `execute`, or `scheduleAndExecute`."""
        options = ",".join(f"{key}={value}" for key, value in QUICK_OPTIONS.items())
        named = "".join(f", {name} => '{value}'" for name, value in more.items())
        self.jvm.sql(f"CALL run_clustering(op => '{op}', path => '{self.path}', options => '{options}'{named})")

    def agreed(self) -> pa.Table:
        """The rows, after checking that all judges read the same, and that the record index has their files."""
        return read_by_all(self.jvm, self.table, has_index=self.index == "record").select(KEPT)

    def assert_only_clustered(self, before: pa.Table, clusterings: int = 1) -> None:
        """The rows and their meta columns are those of before, in new files, by one clustering."""
        assert_same_rows(self.agreed(), before, meta=True)
        done = [found for found in self.table.timeline.completed().instants if found.action is Action.REPLACE_COMMIT]
        assert len(done) == clusterings
        assert not [found for found in self.table.timeline.pending().instants if found.action is Action.CLUSTERING]
        view = self.table.view()
        assert view.commit_metadata(done[-1]).operation_type == "CLUSTER"
        # Both engines see the same changes across it, and time travel to before it.
        for since in (view.timeline.completed().instants[0].completion_time, done[0].requested_time):
            ours = read_table(plan_batch(view, since, None).scan)
            assert_same_rows(ours, self.jvm.read_incremental(self.path, since or ""), meta=True)

    def assert_both_go_on(self, before: pa.Table) -> None:
        """The JVM writes, then we, then the JVM: each finds the rows where the other left them."""
        self.jvm_write(trips(range(20, 30), ts=5))
        expected = {row["id"]: row for row in before.select(SCHEMA.names).to_pylist()}
        expected |= {row["id"]: row for row in trips(range(20, 30), ts=5).to_pylist()}
        assert_same_rows(self.agreed().select(SCHEMA.names), rows_of(expected), key="id")
        written = self.table.upsert(trips(range(40, 50), ts=6))
        assert (written.updated, written.inserted) == (8, 2)
        expected |= {row["id"]: row for row in trips(range(40, 50), ts=6).to_pylist()}
        self.jvm_write(trips(range(0, 4), ts=7))
        expected |= {row["id"]: row for row in trips(range(0, 4), ts=7).to_pylist()}
        assert_same_rows(self.agreed().select(SCHEMA.names), rows_of(expected), key="id")


def rows_of(rows: dict[str, dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows.values()), schema=SCHEMA)


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize(
    ("table_type", "index", "by", "layout"),
    [
        ("copy_on_write", "record", ["x", "fare"], "zorder"),
        ("copy_on_write", "simple", None, None),
        ("merge_on_read", "record", ["x", "fare"], "hilbert"),
        ("merge_on_read", "simple", ["fare"], "linear"),
    ],
)
def test_our_clustering_is_read_and_continued_by_the_jvm(
    jvm: Jvm, tmp_path: Path, table_type: str, index: str, by: list[str] | None, layout: str | None
) -> None:
    shared = Shared(jvm, tmp_path / "trips", table_type, index)
    instant = shared.table.timeline.completed().instants[-1].requested_time
    before = shared.agreed()
    assert shared.table.cluster(by, layout=layout).counts["records"] == 48
    shared.assert_only_clustered(before)
    assert_same_rows(shared.jvm.read(shared.path, options={"as.of.instant": instant}).select(KEPT), before, meta=True)
    shared.assert_both_go_on(before)


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_each_executes_the_plan_of_the_other(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    shared = Shared(jvm, tmp_path / "trips", table_type)
    before = shared.agreed()
    ours = shared.table.schedule_clustering(["x", "fare"], layout="zorder")
    assert ours is not None
    with pytest.raises(Exception, match="HoodieClusteringUpdateException"):
        shared.jvm_write(trips(range(0, 2), ts=9))
    shared.jvm_cluster("execute")
    shared.assert_only_clustered(before)
    assert shared.table.timeline.get(ours) is not None

    # The JVM plans partitions that changed since the last plan.
    shared.table.upsert(trips(range(30, 34), ts=3))
    before = shared.agreed()
    shared.jvm_cluster("schedule", order="fare,x")
    (theirs,) = shared.table.pending_clusterings()
    assert (theirs.by, theirs.state) == (("fare", "x"), "waiting")
    with pytest.raises(hoodie.HoodieError, match="being clustered"):
        shared.table.upsert(trips(range(0, 2), ts=9))
    assert shared.table.cluster(instant=theirs.instant).counts["records"] == 48
    shared.assert_only_clustered(before, clusterings=2)
    shared.assert_both_go_on(before)


DEATHS = {
    "half a data file": ("close_output", ".parquet", CrashPoint.BEFORE),
    "after the index entries": ("move", ".deltacommit", CrashPoint.BEFORE),
    "after the metadata table's commit": ("move", ".deltacommit", CrashPoint.AFTER),
}


def die(path: Path, instant: str, where: str, scratch: Path) -> None:
    """Let our clustering die on the table; where, is counted on a copy of it."""
    operation, ending, point = DEATHS[where]

    def run(table: Table) -> object:
        return table.cluster(instant=instant)

    shutil.copytree(path, scratch)
    calls = run_until(LocalStore(str(scratch)), run, None).calls
    places = [n for n, call in enumerate(calls, 1) if call.operation == operation and call.path.endswith(ending)]
    assert run_until(LocalStore(str(path)), run, places[0], point).crashed
    forget_all()


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("where", DEATHS)
def test_the_jvm_takes_up_our_half_done_clustering(jvm: Jvm, tmp_path: Path, where: str) -> None:
    """On one copy the JVM executes the plan again, on another it rolls the plan back."""
    shared = Shared(jvm, tmp_path / "trips", "merge_on_read" if where.startswith("after the i") else "copy_on_write")
    before = shared.agreed()
    instant = shared.table.schedule_clustering("x")
    assert instant is not None
    die(shared.path, instant, where, tmp_path / "copy")
    assert_same_rows(shared.agreed(), before, meta=True)
    shared.jvm_cluster("execute")
    shared.assert_only_clustered(before)
    shared.assert_both_go_on(before)


def test_we_take_up_a_half_done_clustering_of_the_jvm(jvm: Jvm, tmp_path: Path) -> None:
    """Everything is there, but the completed file was never made: we execute the plan again, or roll it back."""
    for remove in (False, True):
        shared = Shared(jvm, tmp_path / str(remove))
        before = shared.agreed()
        shared.jvm_cluster("scheduleAndExecute", order="x")
        view = shared.table.view()
        done = view.timeline.completed().instants[-1]
        assert done.action is Action.REPLACE_COMMIT
        left = [shared.path / (stat.path or "") for stat in view.commit_metadata(done).write_stats()]
        for file in (shared.path / ".hoodie/timeline").glob(f"*{done.requested_time}_*.replacecommit*"):
            file.unlink()
        shared.table = hoodie.open(shared.path)
        assert shared.table.timeline.pending().instants[0].state is State.INFLIGHT
        assert_same_rows(shared.table.to_arrow().select(KEPT), before, meta=True)
        if remove:
            shared.table.rollback(done.requested_time)
            assert_same_rows(shared.agreed(), before, meta=True)
        else:
            assert shared.table.cluster(instant=done.requested_time).counts["records"] == 48
            shared.assert_only_clustered(before)
        assert not [file for file in left if file.exists()]
        shared.assert_both_go_on(before)


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("where", DEATHS)
def test_the_jvm_rolls_back_our_half_done_clustering(jvm: Jvm, tmp_path: Path, where: str) -> None:
    shared = Shared(jvm, tmp_path / "trips", "merge_on_read", "simple")
    before = shared.agreed()
    instant = shared.table.schedule_clustering("x")
    assert instant is not None
    die(shared.path, instant, where, tmp_path / "copy")
    jvm.rollback(shared.path, instant, table_name="trips", table_version=9)
    shared.table = hoodie.open(shared.path)
    assert shared.table.pending_clusterings().instants == []
    assert_same_rows(shared.agreed(), before, meta=True)
    shared.assert_both_go_on(before)
    assert shared.table.cluster("x").instant is not None
    shared.agreed()


def test_updates_that_the_jvm_allows_are_left_out_by_our_clustering(jvm: Jvm, tmp_path: Path) -> None:
    shared = Shared(jvm, tmp_path / "trips")
    instant = shared.table.schedule_clustering("x")
    assert instant is not None
    allow = "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
    shared.jvm_write(trips(range(0, 2), ts=6), clustering__updates__strategy=allow)
    before = shared.agreed()
    done = shared.table.cluster(instant=instant)
    assert "2 file groups were left out" in done.notes[0]
    assert_same_rows(shared.agreed(), before, meta=True)
    shared.assert_both_go_on(before)
