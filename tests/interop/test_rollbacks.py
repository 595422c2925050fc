"""Rollbacks of completed commits, each engine those of the other, and rollbacks that died, finished by the other.

The tables have a record index and column statistics; both must be right afterwards.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.services.recovery.rollback import DROPPED_NOTE
from hoodie.storage import LocalStore
from hoodie.table import Table
from hoodie.timeline import Action, Instant, forget_all
from tests.interop.judges import QUICK_OPTIONS, Jvm
from tests.interop.shared_trips import STATISTICS, TYPES, check_both, jvm_write, new_table, newest_of, trips
from tests.support.deaths import run_until
from tests.support.fault_store import CrashPoint
from tests.support.samples import sample_of

START = {1: range(10), 2: range(6, 14)}


def used_table(jvm: Jvm, path: Path, table_type: str, statistics: Mapping[str, str] = STATISTICS) -> Table:
    """A table that both wrote: its rows are those of START."""
    table = new_table(path, table_type, statistics)
    table.upsert(trips(START[1], 1))
    jvm_write(jvm, path, table_type, trips(START[2], 2), options=statistics)
    return table


def newest_write(path: Path) -> Instant:
    found = hoodie.open(path, spark=False).view().completed_writes()
    return max(found, key=lambda instant: instant.completion_time or "")


def check(jvm: Jvm, path: Path, expected: pa.Table, *, has_statistics: bool = True) -> None:
    """As `check_both`, and the statistics are those of the files."""
    check_both(jvm, path, expected)
    if has_statistics:
        report = hoodie.open(path, spark=False).index.verify("column_stats")
        assert report.ok, report


@pytest.fixture
def roll_back_by_jvm(jvm: Jvm, tmp_path: Path) -> Iterator[Callable[[Path, str], None]]:
    """Call `rollback_to_instant` of the JVM, which takes one commit back."""

    def call(path: Path, instant_time: str) -> None:
        with jvm.named(path) as name:
            jvm.sql(f"CALL rollback_to_instant(table => '{name}', instant_time => '{instant_time}')")

    with jvm.configured({**QUICK_OPTIONS, **STATISTICS}):
        yield call


OURS: Mapping[str, Callable[[Table], object]] = {
    "upsert": lambda table: table.upsert(trips(range(4, 20), 3)),
    "insert_overwrite": lambda table: table.insert_overwrite(trips(range(0, 30, 2), 3)),
}


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("table_type", TYPES)
def test_the_jvm_takes_back_our_commits(
    jvm: Jvm, tmp_path: Path, table_type: str, roll_back_by_jvm: Callable[[Path, str], None]
) -> None:
    path = tmp_path / f"ours_{table_type}"
    table = used_table(jvm, path, table_type)
    first = newest_write(path)
    for act in OURS.values():
        act(table)
        newest = newest_write(path)
        roll_back_by_jvm(path, newest.requested_time)
        assert table.timeline.get(newest.requested_time) is None
        assert newest_write(path) == first
    check(jvm, path, newest_of(START))
    table.upsert(trips(range(3), 4))
    # The JVM leaves the refused rollback on the timeline; our next write must not execute it.
    with pytest.raises(Exception, match="please rollback greater commits first"):
        roll_back_by_jvm(path, first.requested_time)
    assert [found.action for found in table.timeline.pending()] == [Action.ROLLBACK]
    table.upsert(trips(range(2), 5))
    assert list(table.timeline.pending()) == []
    assert table.timeline.get(first.requested_time) == first
    known = {**START, 4: range(3), 5: range(2)}
    check(jvm, path, newest_of(known))
    jvm_write(jvm, path, table_type, trips(range(1), 6), options=STATISTICS)
    check(jvm, path, newest_of({**known, 6: range(1)}))


THEIRS = {"upsert": range(4, 20), "delete": range(4, 9), "insert_overwrite": range(0, 30, 2)}


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize(("table_type", "has_statistics"), [("copy_on_write", False), ("merge_on_read", True)])
def test_we_take_back_commits_of_the_jvm(jvm: Jvm, tmp_path: Path, table_type: str, has_statistics: bool) -> None:
    """With statistics of partitions each insert_overwrite of JVM Hudi 1.2.0 fails, in its own tables too."""
    path, statistics = tmp_path / "trips", STATISTICS if has_statistics else {}
    table = used_table(jvm, path, table_type, statistics)
    first = newest_write(path)
    for operation, numbers in THEIRS.items():
        if has_statistics and operation == "insert_overwrite":
            continue
        jvm_write(jvm, path, table_type, trips(numbers, 3), operation=operation, options=statistics)
        with pytest.raises(hoodie.UnsupportedError, match="is not the newest"):
            table.rollback(first.requested_time)
        table.rollback(newest_write(path).requested_time)
        assert newest_write(path) == first
    check(jvm, path, newest_of(START), has_statistics=has_statistics)
    jvm_write(jvm, path, table_type, trips(range(3), 4), options=statistics)
    table.upsert(trips(range(2), 5))
    check(jvm, path, newest_of({**START, 4: range(3), 5: range(2)}), has_statistics=has_statistics)


def test_the_jvm_reads_a_metadata_table_that_a_rollback_built_anew(jvm: Jvm, tmp_path: Path) -> None:
    """The metadata table had compacted rows of the commits that go."""
    path = tmp_path / "trips"
    table = used_table(jvm, path, "merge_on_read", {**STATISTICS, "hoodie.metadata.compact.max.delta.commits": "1"})
    bad = table.upsert(trips(range(4, 20), 3)).instant
    assert bad is not None
    table.upsert(trips(range(2), 4))
    assert DROPPED_NOTE in table.rollback(bad, chain=True).notes
    check(jvm, path, newest_of(START))
    jvm_write(jvm, path, "merge_on_read", trips(range(12, 16), 5), options=STATISTICS)
    check(jvm, path, newest_of({**START, 5: range(12, 16)}))


TARGETS = ["completed", "pending"]
# Where a rollback dies: the operation, a pattern of the end of the path of the call, and whether the call happens.
DEATHS: Mapping[str, tuple[str, str, CrashPoint]] = {
    "requested": ("move", r"\.rollback\.requested", CrashPoint.AFTER),
    "inflight": ("create", r"\.rollback\.inflight", CrashPoint.AFTER),
    "first file deleted": ("delete", r"\.parquet|\.log\.[^/]*", CrashPoint.AFTER),
    "metadata table rolled back": ("delete", r"\.inflight", CrashPoint.BEFORE),
    "instant deleted": ("delete", r"commit\.requested", CrashPoint.AFTER),
}


def die(path: Path, act: Callable[[Table], object], operation: str, ending: str, point: CrashPoint) -> None:
    """Let an action die at its first call of this operation on a data file or instant whose path has this ending."""
    copied = path.with_name("copy")
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(path, copied)
    calls = run_until(LocalStore(str(copied)), act, None).calls
    number = next(
        n
        for n, call in enumerate(calls, 1)
        if call.operation == operation and re.search(f"({ending})$", call.path) and "/metadata/" not in call.path
    )
    assert run_until(LocalStore(str(path)), act, number, point).crashed
    forget_all()


def dead_write(table: Table) -> object:
    return table.upsert(trips(range(4, 20), 3))


OUR_DEATHS = [(table_type, target, where) for table_type in TYPES for target in TARGETS for where in DEATHS]


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize(("table_type", "target", "where"), sample_of(OUR_DEATHS, 4, "rollbacks that the JVM finishes"))
def test_the_jvm_finishes_our_dead_rollback(jvm: Jvm, tmp_path: Path, table_type: str, target: str, where: str) -> None:
    path = tmp_path / "trips"
    table = used_table(jvm, path, table_type)
    if target == "completed":
        dead_write(table)
    else:
        die(path, dead_write, "move", "commit", CrashPoint.BEFORE)
    instant = table.timeline.writes().instants[-1]
    die(path, lambda table: table.rollback(instant.requested_time), *DEATHS[where])
    assert Action.ROLLBACK in [found.action for found in table.timeline.pending()]
    jvm_write(jvm, path, table_type, trips(range(12, 16), 4), options=STATISTICS)
    timeline = table.timeline
    assert timeline.get(instant.requested_time) is None
    assert list(timeline.pending()) == []
    assert [found.action for found in timeline].count(Action.ROLLBACK) == 1
    table.upsert(trips(range(15, 18), 5))
    check(jvm, path, newest_of({**START, 4: range(12, 16), 5: range(15, 18)}))


STATES = ["requested", "inflight", "files deleted"]
THEIR_DEATHS = [(table_type, state) for table_type in TYPES for state in STATES]


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize(("table_type", "state"), sample_of(THEIR_DEATHS, 3, "rollbacks of the JVM that we finish"))
def test_we_finish_a_dead_rollback_of_the_jvm(
    jvm: Jvm, tmp_path: Path, table_type: str, state: str, roll_back_by_jvm: Callable[[Path, str], None]
) -> None:
    """The rollback is the JVM's; its instant files are put into the table as it was before, or without its files."""
    path, before = tmp_path / f"theirs_{table_type}_{state[:3]}", tmp_path / "before"
    table = used_table(jvm, path, table_type)
    dead_write(table)
    target = newest_write(path)
    shutil.copytree(path, before)
    roll_back_by_jvm(path, target.requested_time)
    (rollback,) = (found for found in table.timeline if found.action is Action.ROLLBACK)
    put_rollback(path, before, rollback, state)
    shutil.rmtree(path)
    before.rename(path)
    forget_all()
    if state == "files deleted":
        for file in path.glob(f"*/*{target.requested_time}*"):
            file.unlink()
    hoodie.open(path, spark=False).upsert(trips(range(12, 16), 4))
    timeline = hoodie.open(path, spark=False).timeline
    assert timeline.get(target.requested_time) is None
    assert list(timeline.pending()) == []
    found = timeline.get(rollback.requested_time, Action.ROLLBACK)
    assert found is not None
    assert found.is_completed
    jvm_write(jvm, path, table_type, trips(range(15, 18), 5), options=STATISTICS)
    check(jvm, path, newest_of({**START, 4: range(12, 16), 5: range(15, 18)}))


def put_rollback(done: Path, path: Path, rollback: Instant, state: str) -> None:
    endings = ("requested",) if state == "requested" else ("requested", "inflight")
    for ending in endings:
        name = f"{rollback.requested_time}.rollback.{ending}"
        shutil.copy(done / ".hoodie/timeline" / name, path / ".hoodie/timeline" / name)


def test_statistics_that_the_jvm_fills_while_it_rolls_back_hide_no_row_from_us(jvm: Jvm, tmp_path: Path) -> None:
    """The JVM fills `partition_stats` from the files after the commit that it takes back; its own reads lose rows."""
    rows = pa.table({"id": ["a", "b", "c"], "ts": pa.array([1, 1, 1], pa.int64()), "city": ["x", "x", "x"]})
    table = hoodie.create(
        tmp_path / "t", rows.schema, record_key="id", partition_by="city", ordering="ts", index="simple", spark=False
    )
    table.upsert(rows)
    table.delete(rows.slice(0, 1))
    newest = newest_write(Path(table.path)).requested_time
    with jvm.named(table.path) as name:
        jvm.sql(f"CALL rollback_to_instant(table => '{name}', instant_time => '{newest}')")
    table = hoodie.open(table.path, spark=False)
    assert "partition_stats" in table.view().config.metadata_partitions
    assert jvm.spark.read.format("hudi").load(table.path).where("id = 'a'").count() == 0, "as the JVM reads"
    with pytest.warns(hoodie.HoodieWarning, match="lack rows that it brought back"):
        assert table.to_arrow(["id"], where="id = 'a'")["id"].to_pylist() == ["a"]
    assert "statistics-differ" in table.verify(full=True).problems
    with pytest.warns(hoodie.HoodieWarning, match="partition_stats were dropped"):
        table.upsert(rows.slice(1, 1))
    assert table.view().config.metadata_partitions == ("column_stats", "files")
    table.index.build("column_stats")
    assert table.verify(full=True).ok
    assert jvm.spark.read.format("hudi").load(table.path).where("id = 'a'").count() == 1
