"""A file that is lost without a copy is given up on purpose, with its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.errors import CommitConflictError, CorruptFileError, HoodieError, InvalidConfigError
from hoodie.services.check.accept_loss import ACCEPTED_LOSS
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.support.index_check import check_index

ROWS = pa.table({"id": ["a", "b", "c"], "city": ["nyc", "nyc", "sf"], "x": [1, 2, 3]})
LEFT = [{"id": "c", "city": "sf", "x": 3}]


def made(
    table_type: str = "copy_on_write",
    index: str = "record",
    *,
    version: int = 9,
    properties: Mapping[str, str] | None = None,
) -> Table:
    table = hoodie.create(
        MemoryStore().uri(""),
        ROWS.schema,
        record_key="id",
        partition_by="city",
        type=table_type,
        index=index,
        properties=properties or {},
        table_version=version,
        spark=False,
    )
    table.upsert(ROWS)
    return table


def rows_of(table: Table, where: str | None = None) -> list[dict[str, object]]:
    found = table.to_arrow(columns=ROWS.column_names, where=where).to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


def lose(table: Table, partition_path: str = "city=nyc") -> str:
    """Delete the current base file of a partition; return its path."""
    (path,) = (
        f"{row['partition_path']}/{row['file']}"
        for row in table.inspect.files().to_pylist()
        if row["partition_path"] == partition_path and row["is_current"] and row["kind"] == "base"
    )
    table.view().store.delete(path)
    return path


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize(
    ("index", "version"),
    [
        ("record", 9),
        ("partitioned_record", 9),
        ("simple", 9),
        ("bloom", 9),
        ("simple", 6),
        ("bloom", 6),
        ("record", 6),
    ],
)
def test_a_lost_base_file_is_given_up_in_one_commit(table_type: str, index: str, version: int) -> None:
    table = made(table_type, index, version=version)
    path = lose(table)
    assert table.verify().problems == {"file-missing": 1}
    before = table.timeline.instants
    told = table.repair(accept_loss=path)
    assert str(told).splitlines()[0] == "accept loss: would lose 1 file and 2 rows"
    assert told.notes == (f"{path} had 2 rows",)
    assert table.timeline.instants == before
    done = table.repair(dry_run=False, accept_loss=[path])
    assert {**done.counts} == {**told.counts} == {"files_lost": 1, "rows_lost": 2}
    newest = table.timeline.completed().instants[-1]
    assert (len(table.timeline.instants), newest.requested_time) == (len(before) + 1, done.instant)
    extra = table.view().commit_metadata(newest).extra_metadata or {}
    assert json.loads(str(extra[ACCEPTED_LOSS])) == [path]
    report = table.verify(full=True)
    assert (report.problems, report.warnings) == ({}, {}), str(report)
    assert rows_of(table) == LEFT
    # The keys are new to the table: nothing leads to the lost file.
    again = table.upsert(ROWS)
    assert (again.inserted, again.updated) == (2, 1)
    assert rows_of(table) == ROWS.to_pylist()
    assert table.verify(full=True).ok
    if index == "record":
        check_index(table.view())


def test_the_table_is_sound_after_a_clean_and_with_statistics() -> None:
    statistics = ("hoodie.metadata.index.column.stats.enable", "hoodie.metadata.index.partition.stats.enable")
    table = made(properties=dict.fromkeys(statistics, "true"))
    path = lose(table)
    table.repair(dry_run=False, accept_loss=path)
    assert table.verify(full=True).problems == {}
    assert rows_of(table, "x > 0") == LEFT
    for number in range(3):
        table.upsert(ROWS.slice(2).set_column(2, "x", pa.array([number])))
    cleaned = table.clean(properties={"hoodie.clean.commits.retained": "1"})
    assert cleaned.counts["files_deleted"] > 0
    assert table.verify(full=True).problems == {}


def test_a_read_as_of_an_earlier_instant_fails_instead_of_reading_older_rows() -> None:
    table = made()
    table.upsert(ROWS)
    before = table.timeline.completed().instants[-1].requested_time
    table.repair(dry_run=False, accept_loss=lose(table))
    with pytest.raises((HoodieError, FileNotFoundError)):
        table.to_arrow(as_of=before)


def test_a_rollback_of_the_commit_brings_the_finding_back() -> None:
    table = made()
    done = table.repair(dry_run=False, accept_loss=lose(table))
    table.rollback(str(done.instant))
    assert table.verify().problems == {"file-missing": 1}


def test_whole_paths_and_logs_of_the_slice() -> None:
    table = made("merge_on_read", "simple")
    table.upsert(ROWS.slice(0, 1))
    path = lose(table)
    told = table.repair(accept_loss=table.view().store.uri(path))
    assert told.notes == (f"{path} had 2 rows; the changes in 1 log file of the file slice are given up too",)
    table.repair(dry_run=False, accept_loss=table.view().store.uri(path))
    assert table.verify(full=True).problems == {}
    assert rows_of(table) == LEFT


@pytest.mark.parametrize(
    ("index", "version"),
    [
        ("record", 9),
        ("partitioned_record", 9),
        ("simple", 9),
        ("bucket", 9),
        ("simple", 6),
        ("bucket", 6),
        ("record", 6),
    ],
)
def test_a_lost_log_file_is_given_up_and_the_other_rows_stay(index: str, version: int) -> None:
    options = {"hoodie.bucket.index.num.buckets": "1"} if index == "bucket" else {}
    table = made("merge_on_read", index, version=version, properties=options)
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
    assert told.notes == (f"{path} had 1 change of rows",)
    count = len(table.timeline.instants)
    table.repair(dry_run=False, accept_loss=path)
    assert len(table.timeline.instants) == count + 1
    # The delete was in the lost file; the updates before it were not.
    assert rows_of(table) == [{"id": "a", "city": "nyc", "x": 10}, {"id": "b", "city": "nyc", "x": 20}, *LEFT]
    after = table.inspect.slices().filter(pc.field("partition_path") == "city=nyc")["file_id"].to_pylist()
    assert ([name[:8] for name in after], after == before) == ([name[:8] for name in before], False)
    report = table.verify(full=True)
    assert (report.problems, report.warnings) == ({}, {}), str(report)
    if "record" in index:
        check_index(table.view())
    again = table.upsert([{"id": "a", "city": "nyc", "x": 11}])
    assert (again.inserted, again.updated) == (0, 1)
    assert rows_of(table)[0] == {"id": "a", "city": "nyc", "x": 11}
    assert table.verify(full=True).ok


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
    old = [] if is_global or city == "nyc" else [{"id": "a", "city": "nyc", "x": 1}]
    found = sorted(rows_of(table), key=lambda row: str((row["id"], row["x"])))
    assert found == [*old, {"id": "a", "city": city, "x": 4}, {"id": "b", "city": "nyc", "x": 2}, *LEFT]
    report = table.verify(full=True)
    assert (report.problems, report.warnings) == ({}, {}), str(report)


@pytest.mark.parametrize("index", ["record", "global_simple"])
def test_a_record_whose_file_groups_both_lost_their_logs_comes_back_once(index: str) -> None:
    table = made("merge_on_read", index)
    table.delete([{"id": "a", "city": "nyc"}])
    table.bulk_insert([{"id": "a", "city": "la", "x": 4}])
    table.delete([{"id": "a", "city": "la"}])
    paths = [lose_deletes(table), lose_deletes(table, "city=la")]
    table.repair(dry_run=False, accept_loss=paths)
    assert [row["id"] for row in rows_of(table)] == ["a", "b", "c"]
    report = table.verify(full=True)
    assert (report.problems, report.warnings) == ({}, {}), str(report)


def test_a_log_file_whose_base_file_is_lost_too_is_not_enough() -> None:
    table = made("merge_on_read", "simple")
    table.upsert(ROWS.slice(0, 1))
    log = next(f"city=nyc/{row['file']}" for row in table.inspect.files().to_pylist() if row["kind"] == "log")
    base = lose(table)
    table.view().store.delete(log)
    count = len(table.timeline.instants)
    with pytest.raises(CorruptFileError):
        table.repair(dry_run=False, accept_loss=log)
    assert len(table.timeline.instants) == count
    told = table.repair(dry_run=False, accept_loss=base)
    assert told.counts == {"files_lost": 2, "rows_lost": 2, "changes_lost": 1}
    assert rows_of(table) == LEFT
    assert table.verify(full=True).problems == {}


def test_what_is_not_lost_is_not_given_up() -> None:
    table = made("merge_on_read", "simple")
    table.upsert(ROWS.slice(0, 1))
    rows = {row["kind"]: f"{row['partition_path']}/{row['file']}" for row in table.inspect.files().to_pylist()}
    with pytest.raises(InvalidConfigError, match="but it exists"):
        table.repair(accept_loss=rows["base"])
    with pytest.raises(InvalidConfigError, match="expected a file that the newest rows need"):
        table.repair(accept_loss="city=nyc/other.parquet")
    with pytest.raises(InvalidConfigError, match="at least one path"):
        table.repair(accept_loss=[])
    assert len(table.timeline.completed().instants) == 2


def test_a_pending_compaction_of_the_file_group_is_a_conflict() -> None:
    table = made("merge_on_read", "simple")
    table.upsert(ROWS.slice(0, 1))
    table.schedule_compaction()
    path = lose(table)
    with pytest.raises(CommitConflictError, match="is in a pending compaction"):
        table.repair(dry_run=False, accept_loss=path)
    table.rollback(table.pending_compactions().instants[0])
    table.repair(dry_run=False, accept_loss=path)
    assert rows_of(table) == LEFT
