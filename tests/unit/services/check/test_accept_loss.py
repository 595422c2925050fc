"""A file that is lost without a copy is given up on purpose, with its rows."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.errors import CommitConflictError, CorruptFileError, HoodieError, InvalidConfigError
from hoodie.format.instants.planned_replacement import ACCEPTED_LOSS
from hoodie.table import Table
from tests.support.index_check import check_index
from tests.support.refusals import refused
from tests.support.tables import new_table, values_of

ROWS = pa.table({"id": ["a", "b", "c"], "city": ["nyc", "nyc", "sf"], "x": [1, 2, 3]})
A, B, C = (tuple(row.values()) for row in ROWS.to_pylist())


def made(table_type: str = "copy_on_write", index: str = "record", **options: Any) -> Table:
    """A table with `ROWS`, of which `c` alone is in another partition."""
    return new_table(ROWS.schema, ROWS, type=table_type, index=index, partition_by="city", **options)


def logged() -> Table:
    """One with a log file in the partition of `a`."""
    table = made("merge_on_read", "simple")
    table.upsert(ROWS.slice(0, 1))
    return table


def check(table: Table) -> None:
    """Nothing is wrong with the table, and nothing is to be done."""
    report = table.verify(full=True)
    assert (report.problems, report.warnings) == ({}, {}), str(report)


def lose(table: Table, partition_path: str = "city=nyc") -> str:
    """Delete the current base file of a partition; return its path."""
    (path,) = (
        f"{row['partition_path']}/{row['file']}"
        for row in table.inspect.files().to_pylist()
        if row["partition_path"] == partition_path and row["is_current"] and row["kind"] == "base"
    )
    table.view().store.delete(path)
    return path


@pytest.mark.parametrize(
    ("table_type", "index", "version"),
    [
        ("copy_on_write", "record", 9),
        ("copy_on_write", "partitioned_record", 9),
        ("copy_on_write", "simple", 6),
        ("copy_on_write", "bloom", 9),
        ("merge_on_read", "record", 6),
        ("merge_on_read", "partitioned_record", 9),
        ("merge_on_read", "simple", 9),
        ("merge_on_read", "bloom", 6),
    ],
)
def test_a_lost_base_file_is_given_up_in_one_commit(table_type: str, index: str, version: int) -> None:
    """Each index on each type: there are no log files yet, so that the version has no other effect on the types."""
    table = made(table_type, index, table_version=version)
    path = lose(table)
    assert table.verify().problems == {"file-missing": 1}
    before = table.timeline.instants
    told = table.repair(accept_loss=path)
    assert str(told).splitlines()[0] == "accept loss: would lose 1 file and 2 rows"
    assert told.notes[:-1] == (f"{path} had 2 rows",)
    assert f"--accept-loss {path} --execute` (t.repair(" in told.notes[-1]
    assert table.timeline.instants == before
    done = table.repair(dry_run=False, accept_loss=[path])
    assert {**done.counts} == {**told.counts} == {"files_lost": 1, "rows_lost": 2}
    newest = table.timeline.completed().instants[-1]
    assert (len(table.timeline.instants), newest.requested_time) == (len(before) + 1, done.instant)
    extra = table.view().commit_metadata(newest).extra_metadata or {}
    assert json.loads(str(extra[ACCEPTED_LOSS])) == [path]
    check(table)
    assert values_of(table) == [C]
    # The keys are new to the table: nothing leads to the lost file.
    again = table.upsert(ROWS)
    assert (again.inserted, again.updated) == (2, 1)
    assert values_of(table) == [A, B, C]
    if index == "record":
        check_index(table.view())


def test_the_table_is_sound_after_a_clean_and_with_statistics() -> None:
    statistics = ("hoodie.metadata.index.column.stats.enable", "hoodie.metadata.index.partition.stats.enable")
    table = made(properties=dict.fromkeys(statistics, "true"))
    path = lose(table)
    table.repair(dry_run=False, accept_loss=path)
    assert table.verify(full=True).problems == {}
    assert values_of(table, where="x > 0") == [C]
    for number in range(3):
        table.upsert(ROWS.slice(2).set_column(2, "x", pa.array([number])))
    cleaned = table.clean(properties={"hoodie.clean.commits.retained": "1"})
    assert cleaned.counts["files_deleted"] > 0
    assert table.verify(full=True).problems == {}


def test_a_read_as_of_an_earlier_instant_fails_and_a_rollback_of_the_commit_brings_the_finding_back() -> None:
    """Older rows are not read instead of the lost ones."""
    table = made()
    table.upsert(ROWS)
    before = table.timeline.completed().instants[-1].requested_time
    done = table.repair(dry_run=False, accept_loss=lose(table))
    with pytest.raises((HoodieError, FileNotFoundError)):
        table.to_arrow(as_of=before)
    table.rollback(str(done.instant))
    assert table.verify().problems == {"file-missing": 1}


def test_whole_paths_and_logs_of_the_slice() -> None:
    table = logged()
    path = lose(table)
    told = table.repair(accept_loss=table.view().store.uri(path))
    assert told.notes[:-1] == (f"{path} had 2 rows; the changes in 1 log file of the file slice are given up too",)
    table.repair(dry_run=False, accept_loss=table.view().store.uri(path))
    assert table.verify(full=True).problems == {}
    assert values_of(table) == [C]


@pytest.mark.parametrize(
    ("index", "version"),
    [("partitioned_record", 9), *((index, version) for index in ("record", "simple", "bucket") for version in (9, 6))],
)
def test_a_lost_log_file_is_given_up_and_the_other_rows_stay(index: str, version: int) -> None:
    options = {"hoodie.bucket.index.num.buckets": "1"} if index == "bucket" else {}
    table = made("merge_on_read", index, table_version=version, properties=options)
    table.upsert([{"id": "a", "city": "nyc", "x": 10}])
    table.upsert([{"id": "b", "city": "nyc", "x": 20}])
    table.delete([{"id": "a", "city": "nyc"}])
    (stat,) = table.view().commit_metadata(table.timeline.completed().instants[-1]).write_stats()
    path = str(stat.path)
    before = table.inspect.slices().filter(pc.field("partition_path") == "city=nyc")["file_id"].to_pylist()
    table.view().store.delete(path)
    assert table.verify().problems == {"file-missing": 1}
    told = table.repair(accept_loss=path)
    assert told.counts == {"files_lost": 1, "changes_lost": 1}
    assert told.notes[:-1] == (f"{path} had 1 change of rows",)
    count = len(table.timeline.instants)
    table.repair(dry_run=False, accept_loss=path)
    assert len(table.timeline.instants) == count + 1
    # The delete was in the lost file; the updates before it were not.
    assert values_of(table) == [("a", "nyc", 10), ("b", "nyc", 20), C]
    after = table.inspect.slices().filter(pc.field("partition_path") == "city=nyc")["file_id"].to_pylist()
    assert ([name[:8] for name in after], after == before) == ([name[:8] for name in before], False)
    check(table)
    if "record" in index:
        check_index(table.view())
    again = table.upsert([{"id": "a", "city": "nyc", "x": 11}])
    assert (again.inserted, again.updated) == (0, 1)
    assert values_of(table)[0] == ("a", "nyc", 11)


def lose_deletes(table: Table, partition_path: str = "city=nyc") -> str:
    """Delete the first log file of a partition; return its path."""
    logs = [row for row in table.inspect.files().sort_by("instant").to_pylist() if row["kind"] == "log"]
    path = next(f"{partition_path}/{row['file']}" for row in logs if row["partition_path"] == partition_path)
    table.view().store.delete(path)
    return path


@pytest.mark.parametrize("index", ["record", "partitioned_record", "global_simple", "simple"])
@pytest.mark.parametrize("city", ["nyc", "la"])
def test_a_deleted_record_that_another_file_group_has_does_not_come_back(index: str, city: str) -> None:
    table = made("merge_on_read", index)
    is_global = index in ("record", "global_simple")
    table.delete([{"id": "a", "city": "nyc"}])
    table.bulk_insert([{"id": "a", "city": city, "x": 4}])
    path = lose_deletes(table)
    table.repair(dry_run=False, accept_loss=path)
    old = [] if is_global or city == "nyc" else [A]
    assert values_of(table) == sorted([*old, ("a", city, 4), B, C])
    check(table)


@pytest.mark.parametrize("index", ["record", "global_simple"])
def test_a_record_whose_file_groups_both_lost_their_logs_comes_back_once(index: str) -> None:
    table = made("merge_on_read", index)
    table.delete([{"id": "a", "city": "nyc"}])
    table.bulk_insert([{"id": "a", "city": "la", "x": 4}])
    table.delete([{"id": "a", "city": "la"}])
    paths = [lose_deletes(table), lose_deletes(table, "city=la")]
    table.repair(dry_run=False, accept_loss=paths)
    assert values_of(table, "id") == [("a",), ("b",), ("c",)]
    check(table)


def test_a_log_file_whose_base_file_is_lost_too_is_not_enough() -> None:
    table = logged()
    log = next(f"city=nyc/{row['file']}" for row in table.inspect.files().to_pylist() if row["kind"] == "log")
    base = lose(table)
    table.view().store.delete(log)
    count = len(table.timeline.instants)
    with pytest.raises(CorruptFileError):
        table.repair(dry_run=False, accept_loss=log)
    assert len(table.timeline.instants) == count
    told = table.repair(dry_run=False, accept_loss=base)
    assert told.counts == {"files_lost": 2, "rows_lost": 2, "changes_lost": 1}
    assert values_of(table) == [C]
    assert table.verify(full=True).problems == {}


def test_what_is_not_lost_is_not_given_up() -> None:
    table = logged()
    rows = {row["kind"]: f"{row['partition_path']}/{row['file']}" for row in table.inspect.files().to_pylist()}
    for given, message in (
        (rows["base"], "but it exists and every row of it can be read"),
        ("city=nyc/other.parquet", "expected a file that the newest rows need"),
        ([], "at least one path"),
    ):
        with refused(table, message, error=InvalidConfigError):
            table.repair(accept_loss=given)


def damage(table: Table, path: str, how: str) -> None:
    store = table.view().store
    if how == "lost":
        store.delete(path)
        return
    content = store.read(path)
    if how == "cut":
        store.replace(path, content[:-20])
        return
    for place in range(200, len(content), 97):  # not every byte has a checksum: those of a bloom filter have none
        store.replace(path, content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        if not table.verify(full=True).ok:
            return


@pytest.mark.matrix(keep=12)
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("index", ["record", "simple", "bucket"])
@pytest.mark.parametrize(("place", "left"), [(0, []), (1, [30, 20]), (-1, [10, 20])])
@pytest.mark.parametrize("how", ["lost", "changed", "cut"])
def test_a_pending_compaction_of_the_file_group_is_executed_without_the_file(
    version: int, index: str, place: int, left: list[int], how: str
) -> None:
    """In version 6 later log files have the instant of the plan in their names, so the plan cannot be taken back."""
    options = {"hoodie.bucket.index.num.buckets": "1"} if index == "bucket" else {}
    table = made("merge_on_read", index, table_version=version, properties=options)
    table.upsert([{"id": "a", "city": "nyc", "x": 10}])
    table.upsert([{"id": "b", "city": "nyc", "x": 20}])
    plan = table.schedule_compaction()
    table.upsert([{"id": "a", "city": "nyc", "x": 30}])
    view = table.view()
    stats = (stat for instant in view.completed_writes() for stat in view.commit_metadata(instant).write_stats())
    path = [str(stat.path) for stat in stats if stat.partition_path == "city=nyc"][place]
    damage(table, path, how)
    assert not table.verify(full=True).ok
    told = table.repair(accept_loss=path)
    assert told.notes[-2] == f"would execute the pending compaction {plan} without these file groups"
    done = table.repair(dry_run=False, accept_loss=path)
    assert done.counts == told.counts
    assert done.notes[-1] == f"the pending compaction {plan} was executed without these file groups"
    check(table)
    assert not table.pending_compactions()
    assert values_of(table, "x") == sorted([*((x,) for x in left), (3,)])
    table.upsert(ROWS)
    assert values_of(table) == [A, B, C]
    check(table)


def test_a_pending_clustering_of_the_file_group_is_a_conflict() -> None:
    table = made("copy_on_write", "simple")
    table.bulk_insert([{"id": "d", "city": "sf", "x": 1}])
    plan = table.schedule_clustering(partitions=["city=sf"])
    path = next(path for path in map(str, table.view().store.names("city=sf")) if path.endswith(".parquet"))
    path = f"city=sf/{path}"
    table.view().store.delete(path)
    count = len(table.timeline.instants)
    with pytest.raises(CommitConflictError, match="clustering"):
        table.repair(dry_run=False, accept_loss=path)
    assert len(table.timeline.instants) == count
    table.rollback(str(plan))
    table.repair(dry_run=False, accept_loss=path)
    check(table)


@pytest.mark.parametrize("version", [6, 9])
def test_a_damaged_older_version_is_given_up_without_rows(version: int) -> None:
    table = made("copy_on_write", "simple", table_version=version)
    path = next(
        f"city=nyc/{row['file']}" for row in table.inspect.files().to_pylist() if "nyc" in row["partition_path"]
    )
    table.upsert(ROWS)
    damage(table, path, "cut")
    assert table.verify().problems == {"file-length": 1}
    done = table.repair(dry_run=False, accept_loss=path)
    assert done.notes == (f"{path} is an older version: the newest rows do not need it",)
    check(table)
    assert values_of(table) == [A, B, C]
