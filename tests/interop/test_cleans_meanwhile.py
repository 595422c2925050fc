"""Cleans of the JVM while we write or read, and ours while the JVM writes: nothing is lost or stored twice."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.errors import HistoryLostError, MissingFileError
from hoodie.read.local import read_table
from hoodie.read.plan import plan_scan
from hoodie.table import Table
from hoodie.timeline import Action
from tests.interop.judges import Jvm
from tests.interop.jvm_services import clean_by_jvm
from tests.interop.shared_trips import TYPES, check_both, jvm_write, new_table, newest_of, trips
from tests.interop.test_writers_at_once import OPTIMISTIC
from tests.support.cleaned_tables import NO_CLEAN
from tests.support.rows import assert_same_rows
from tests.support.steps import once_at

KEEP_ONE_COMMIT = {"hoodie.clean.commits.retained": "1"}
KEEP_ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
SECONDS_MAX = 120.0
START = {1: range(10), 2: range(10), 3: range(4)}


def used_table(path: Path, table_type: str) -> Table:
    """A table with the rows of START, and file slices that a clean deletes."""
    table = new_table(path, table_type, NO_CLEAN)
    for ts, numbers in START.items():
        table.upsert(trips(numbers, ts))
        if table_type == "merge_on_read" and ts > 1:
            assert table.schedule_compaction()
            table.compact()
    return table


def cleans(table: Table) -> int:
    """How many cleans completed."""
    return [found.action for found in table.timeline.completed()].count(Action.CLEAN)


@pytest.mark.parametrize(("table_type", "policy"), [(TYPES[0], KEEP_ONE_COMMIT), (TYPES[1], KEEP_ONE_VERSION)])
def test_the_jvm_cleans_while_our_write_runs(jvm: Jvm, tmp_path: Path, table_type: str, policy: dict[str, str]) -> None:
    """Meanwhile another write replaced the files that ours found, and stored a key that is new to both."""
    path = tmp_path / "trips"
    table = used_table(path, table_type)

    def meanwhile() -> None:
        used = hoodie.open(path, spark=False)
        used.upsert(trips(range(6, 14), 4))
        if table_type == "merge_on_read":
            assert used.schedule_compaction()
            used.compact()
        clean_by_jvm(jvm, path, table_type, {**OPTIMISTIC, **policy})
        assert cleans(used) == 1

    with once_at(Step.BEGUN, meanwhile):
        done = table.upsert(trips(range(8, 16), 5))
    assert any(note.startswith("retried") for note in done.notes)
    assert (done.inserted, done.updated) == (2, 6)
    known = {**START, 4: range(6, 14), 5: range(8, 16)}
    check_both(jvm, path, newest_of(known))
    jvm_write(jvm, path, table_type, trips(range(2), 6))
    check_both(jvm, path, newest_of({**known, 6: range(2)}))


def test_the_jvm_cleans_while_we_read(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    table = used_table(path, "copy_on_write")
    first = table.timeline.writes().instants[0].requested_time
    view = table.view()
    planned, before = plan_scan(view), plan_scan(view, as_of=first)
    clean_by_jvm(jvm, path, "copy_on_write", KEEP_ONE_COMMIT)
    assert cleans(table) == 1
    # What it deleted is none of the newest snapshot.
    assert_same_rows(read_table(planned).select(trips(range(1), 1).column_names), newest_of(START), key="id")
    with pytest.raises(MissingFileError):
        read_table(before)
    with pytest.raises(HistoryLostError):
        plan_scan(view, as_of=first)
    for ts in (4, 5):
        hoodie.open(path, spark=False).upsert(trips(range(10), ts))
    clean_by_jvm(jvm, path, "copy_on_write", KEEP_ONE_VERSION)
    with pytest.raises(HistoryLostError):
        plan_scan(view)
    with pytest.raises(MissingFileError):
        read_table(planned)
    check_both(jvm, path, newest_of({5: range(10)}))


@pytest.mark.parametrize("table_type", TYPES)
def test_we_clean_while_the_jvm_writes(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    """The rows of the JVM's write wait in a function, when its instant is requested and no key is looked up."""
    from pyspark.sql.functions import col, udf

    path, reached, go = tmp_path / "trips", tmp_path / "reached", tmp_path / "go"
    table = used_table(path, table_type)

    def waiting(city: str) -> str:
        reached.touch()
        last = time.monotonic() + SECONDS_MAX
        while not go.exists() and time.monotonic() < last:
            time.sleep(0.05)
        return city

    def write(rows: pa.Table) -> None:
        frame = jvm.frame(rows).withColumn("city", udf(waiting, "string")(col("city")))
        jvm_write(jvm, path, table_type, frame, options={**OPTIMISTIC, **NO_CLEAN})

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(write, trips(range(8, 16), 5))
        last = time.monotonic() + SECONDS_MAX
        while not reached.exists() and not running.done():
            assert time.monotonic() < last
            time.sleep(0.05)
        try:
            assert [found.action.writes_data for found in table.timeline.pending()] == [True]
            assert table.clean(properties=KEEP_ONE_COMMIT).counts["files_deleted"]
        finally:
            go.touch()
        running.result()
    known = {**START, 5: range(8, 16)}
    check_both(jvm, path, newest_of(known))
    table.upsert(trips(range(2), 6))
    check_both(jvm, path, newest_of({**known, 6: range(2)}))
