"""A rollback or restore to files that somebody deleted is refused, and nothing changes: it would delete the newer rows.

Every test deletes a file by hand: of tables whose metadata table lists it still, and of tables where the listing was
built anew, so that the file is known from the commits alone.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import hoodie
from hoodie.format.filenames import LogFileName, instant_of_data_file, name_of
from hoodie.format.instants.planned_replacement import ACCEPTED_LOSS
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.support.deaths import die
from tests.support.fault_store import FaultStore
from tests.support.replaced_groups import ALONE, ENDS, ONE, three_commits
from tests.support.tables import TYPES, contents, made_once, rows_of, trips, trips_store

VERSIONS = (6, 8, 9)
EACH_TYPE = pytest.mark.parametrize("table_type", TYPES)
EACH_LISTING = pytest.mark.parametrize("built_anew", [False, True], ids=["listed", "listing built anew"])


written = made_once(three_commits)


def lose(store: MemoryStore, instant: str, *, logs: bool = False, built_anew: bool = False) -> str:
    """Delete a base file (or log file) of `city=sf` that an instant wrote; return its path."""
    files = [info.path for info in store.list("city=sf") if instant_of_data_file(info.path) == instant]
    (path,) = [path for path in files if logs == (LogFileName.parse(name_of(path)) is not None)]
    store.delete(path)
    if built_anew:
        Table(store).index.rebuild()
    return path


def check_refused(store: MemoryStore, path: str, *calls: Callable[[Table], object]) -> None:
    """Every call is refused with the path of the file and what to do, and leaves the table as it is."""
    files, rows = contents(store), rows_of(store)
    for call in calls:
        with pytest.raises(hoodie.UnsupportedError, match=path) as refused:
            call(Table(store))
        assert "Nothing was changed; bring them back from a copy" in str(refused.value)
    assert contents(store) == files
    assert rows_of(store) == rows


@EACH_TYPE
@EACH_LISTING
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("saved", [False, True], ids=["", "savepoint"])
def test_a_restore(table_type: str, version: int, saved: bool, built_anew: bool) -> None:
    store = written(table_type, version)
    first = Table(store).timeline.writes().instants[0].requested_time
    if saved:
        Table(store).savepoint(first)
    path = lose(store, first, built_anew=built_anew)
    check_refused(
        store,
        path,
        lambda table: table.restore(first, dry_run=True),
        lambda table: table.restore(first),
        lambda table: table.rollback(table.timeline.writes().instants[1].requested_time, chain=True),
        lambda table: table.rollback(table.timeline.writes().instants[1].requested_time, chain=True, dry_run=True),
    )


@EACH_TYPE
@EACH_LISTING
@pytest.mark.parametrize("version", VERSIONS)
def test_a_rollback_of_the_newest(table_type: str, version: int, built_anew: bool) -> None:
    """The compaction of a merge-on-read table, and the update of a copy-on-write table."""
    store = written(table_type, version)
    commits = Table(store).timeline.writes().instants
    before = commits[0 if table_type == "merge_on_read" else -2].requested_time
    path = lose(store, before, built_anew=built_anew)
    newest = commits[-1].requested_time
    check_refused(store, path, lambda table: table.rollback(newest, dry_run=True), lambda table: table.rollback(newest))


def test_the_message_counts_the_rows_of_the_newest_files() -> None:
    store = written("copy_on_write", 9)
    first = Table(store).timeline.writes().instants[0].requested_time
    Table(store).upsert(trips({"a": (4, "sf"), "c": (1, "sf")}))
    lose(store, first)
    with pytest.raises(hoodie.UnsupportedError, match=r"rolled back wrote 2 rows, would be deleted.*accept_loss"):
        Table(store).restore(first)


@EACH_LISTING
@pytest.mark.parametrize("version", [8, 9])
def test_a_log_file_that_a_compaction_merged(version: int, built_anew: bool) -> None:
    store = written("merge_on_read", version)
    commits = Table(store).timeline.writes().instants
    path = lose(store, commits[1].requested_time, logs=True, built_anew=built_anew)
    check_refused(store, path, lambda table: table.rollback(commits[-1].requested_time))


def test_a_log_file_of_version_6_that_is_listed() -> None:
    store = written("merge_on_read", 6)
    newest = Table(store).timeline.writes().instants[-1].requested_time
    path = next(info.path for info in store.list("city=sf") if LogFileName.parse(info.name))
    store.delete(path)
    check_refused(store, path, lambda table: table.rollback(newest))


@EACH_TYPE
@EACH_LISTING
@pytest.mark.parametrize("end", ENDS)
def test_file_groups_that_were_replaced(end: str, table_type: str, built_anew: bool) -> None:
    store = trips_store({**ONE, "c": (1, "sf")}, table_type=table_type, properties=ALONE)
    first = Table(store).timeline.writes().instants[0].requested_time
    ENDS[end](Table(store))
    path = lose(store, first, built_anew=built_anew)
    newest = Table(store).timeline.writes().instants[-1].requested_time
    check_refused(store, path, lambda table: table.rollback(newest), lambda table: table.restore(first))


@EACH_TYPE
def test_files_of_other_file_groups_do_not_count(table_type: str) -> None:
    """The commit that is rolled back did not change their file group: it is as lost before as after."""
    store = written(table_type, 9)
    table, first = Table(store), Table(store).timeline.writes().instants[0].requested_time
    table.upsert(trips({"b": (2, "la")}))
    lose(store, first)
    table.rollback(table.timeline.writes().instants[-1].requested_time)
    assert table.to_arrow(["ts"], where="id = 'b'").column("ts").to_pylist() == [1]


@EACH_TYPE
def test_a_restore_that_was_begun_goes_on(table_type: str) -> None:
    """It has deleted newer files already; only its end lets others write again."""
    store = written(table_type, 9)
    first = Table(store).timeline.writes().instants[0].requested_time
    die(store, lambda table: table.restore(first), ".rollback.inflight")
    lose(store, first)
    assert Table(store).restore(first).counts["files_deleted"] > 0
    assert [found.requested_time for found in Table(store).timeline.writes()] == [first]


@EACH_TYPE
def test_a_loss_that_was_accepted_can_be_taken_back(table_type: str) -> None:
    """The file groups of the lost files have no newer rows."""
    store = trips_store(ONE, table_type=table_type)
    path = lose(store, Table(store).timeline.writes().instants[0].requested_time)
    done = Table(store).repair(accept_loss=[path], dry_run=False)
    newest = Table(store).timeline.writes().instants[-1]
    assert ACCEPTED_LOSS in Table(store).view().commit_metadata(newest).extra_metadata
    Table(store).rollback(str(done.instant or newest.requested_time))
    assert [found.key for found in Table(store).verify().findings] == [path]


def test_one_request_for_each_changed_partition() -> None:
    """A head if one file of the partition is needed, else a listing; none for a partition that was not changed."""
    store = written("copy_on_write", 9)
    Table(store).upsert(trips({"a": (4, "sf"), "c": (1, "sf"), "x": (1, "nyc")}))
    newest = Table(store).timeline.writes().instants[-1].requested_time
    assert asked(store, newest) == ["head"]
    Table(store).insert(trips({"d": (1, "oslo")}), properties={"hoodie.parquet.small.file.limit": "0"})
    Table(store).insert(trips({"e": (1, "oslo")}), properties={"hoodie.parquet.small.file.limit": "0"})
    Table(store).upsert(trips({"d": (2, "oslo"), "e": (2, "oslo")}))
    assert asked(store, Table(store).timeline.writes().instants[-1].requested_time) == ["list"]


def asked(store: MemoryStore, instant: str) -> list[str]:
    """The requests about data files that a rollback takes before it changes anything."""
    counting = FaultStore(store, count_reads=True)
    Table(counting).rollback(instant, dry_run=True)
    return [call.operation for call in counting.calls if call.path.startswith("city=")]


def test_a_pending_instant_costs_no_such_request() -> None:
    store = written("merge_on_read", 9)
    Table(store).upsert(trips({"a": (4, "sf")}))
    plan = Table(store).schedule_compaction(strategy="unbounded")
    lose(store, Table(store).timeline.writes().instants[0].requested_time)
    assert asked(store, str(plan)) == []
    assert Table(store).rollback(str(plan)).instant == plan


def test_each_savepoint_that_is_in_the_way_is_named_with_its_call() -> None:
    store = written("copy_on_write", 9)
    first, second, third = (found.requested_time for found in Table(store).timeline.writes())
    for kept in (second, third):
        Table(store).savepoint(kept)
    calls = rf"delete them first, with t\.delete_savepoint\('{third}'\) and t\.delete_savepoint\('{second}'\)"
    with pytest.raises(hoodie.UnsupportedError, match=rf"savepoints keep {second}, {third}, .*{calls}"):
        Table(store).rollback(second, chain=True)
    with pytest.raises(hoodie.UnsupportedError, match=calls):
        Table(store).restore(first)
