"""Views of the past of tables with savepoints, also behind cleans and after rollbacks: all their rows, or an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from hoodie.errors import HistoryLostError, HoodieWarning, UnsupportedError
from hoodie.format.instants.service_metadata import SavepointMetadata
from hoodie.format.table.table_config import TableType
from hoodie.services.recovery import savepoint
from hoodie.table import Table
from tests.support.overtaken import held_before_commit
from tests.support.savepoints import drop_savepoint, saved_by_request
from tests.support.tables import TYPES, Rows, made_once, model_of, rows_of, trips, trips_store

NO_SERVICES = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.compact.max.delta.commits": "4",
}
ONE = {"hoodie.clean.commits.retained": "1"}
FEW = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
EACH_TYPE = pytest.mark.parametrize("table_type", TYPES)


@made_once
def made(commits: int, saved: tuple[int, ...], table_type: str) -> Table:
    store = trips_store(table_type=table_type, properties=NO_SERVICES)
    table = Table(store)
    for number in range(1, commits + 1):
        table.upsert(trips({"a": (number, "sf"), f"k{number}": (number, "la")}))
        if number in saved:
            table.savepoint()
    return table


def table_of(
    commits: int, *, saved: tuple[int, ...] = (), table_type: str = "copy_on_write"
) -> tuple[Table, list[str]]:
    """The table, and its instants; the first commit is number 1."""
    table = made(commits, saved, table_type)
    return table, ["", *(found.requested_time for found in table.timeline.writes())]


def rows_after(commit: int) -> Rows:
    """The rows of the table after a commit."""
    return {"a": (commit, "sf"), **{f"k{number}": (number, "la") for number in range(1, commit + 1)}}


def rows_as_of(table: Table, when: str) -> Rows:
    """What a new reader finds."""
    return model_of(Table(table.view().store).to_arrow(["id", "ts", "city"], as_of=when))


@EACH_TYPE
@pytest.mark.parametrize("saved", [(1, 2), (1, 2, 3)])
def test_savepoints_of_the_first_commits(saved: tuple[int, ...], table_type: str) -> None:
    table, instants = table_of(3, saved=saved, table_type=table_type)
    for i in range(1, 4):
        assert rows_as_of(table, instants[i]) == rows_after(i)
    changed = table.changes(since=instants[1], until=instants[2]).select(["id", "ts"]).to_pylist()
    assert sorted((row["id"], row["ts"]) for row in changed) == [("a", 2), ("k2", 2)]
    past = table.view().as_completed_by(table.timeline.writes().instants[0].completion_time or "")
    assert past.whole_timeline().instants == table.timeline.instants


def test_the_past_behind_a_clean_stays_closed_after_a_restore() -> None:
    table, instants = table_of(6)
    table.clean(properties={"hoodie.clean.commits.retained": "2"})
    table.restore(instants[5])
    assert rows_as_of(table, instants[5]) == rows_after(5)
    for i in range(1, 5):
        with pytest.raises(HistoryLostError):
            table.to_arrow(as_of=instants[i])
    with pytest.raises(HistoryLostError):
        table.changes(since=instants[1], until=instants[3])


def test_a_rollback_to_a_savepoint_behind_a_clean_opens_its_commit() -> None:
    table, instants = table_of(5, saved=(2,))
    table.clean(properties=ONE)
    table.rollback(instants[3], chain=True)
    assert rows_of(table.view().store) == rows_after(2)
    assert rows_as_of(table, instants[2]) == rows_after(2)
    with pytest.raises(HistoryLostError):
        table.to_arrow(as_of=instants[1])
    table.upsert(trips({"z": (1, "sf")}))
    assert rows_as_of(table, instants[2]) == rows_after(2)


def test_a_chain_that_would_end_before_archived_instants_is_refused() -> None:
    beyond = {**ONE, "hoodie.archive.beyond.savepoint": "true"}
    table, instants = table_of(9, saved=(2, 4))
    table.clean(properties=beyond)
    table.archive(properties={**beyond, **FEW})
    table = drop_savepoint(table, instants[4])
    assert table.timeline.get(instants[3]) is None
    with pytest.raises(UnsupportedError, match="are archived"):
        table.rollback(instants[4], chain=True)
    assert rows_of(table.view().store) == rows_after(9)


def compact(table: Table) -> None:
    """Supersede the log files of a merge-on-read table."""
    for version in (98, 99) if table.view().config.table_type is TableType.MERGE_ON_READ else ():
        table.schedule_compaction()
        table.compact()
        table.upsert(trips({"a": (version, "sf"), "k1": (version, "la")}))


def clean(table: Table) -> None:
    """Delete the files of all but the newest commit."""
    compact(table)
    assert table.clean(properties=ONE).counts["files_deleted"] > 0


@EACH_TYPE
def test_a_saved_commit_is_read_behind_a_clean(table_type: str) -> None:
    """Cleans tell it; without its savepoint it is refused again."""
    table, instants = table_of(6, saved=(3,), table_type=table_type)
    compact(table)
    planned = table.clean(dry_run=True, properties=ONE)
    done, again = table.clean(properties=ONE), table.clean(properties=ONE)
    assert done.counts["files_deleted"] > 0
    for told in (planned, done, again):
        assert (told.readable_savepoints, (told.oldest_readable or "") > instants[3]) == ((instants[3],), True)
    for when in (instants[3], f"requested:{instants[3]}"):
        assert rows_as_of(table, when) == rows_after(3)
    assert table.count(as_of=instants[3]) == len(rows_after(3))
    found = table.to_arrow(["id", "ts"], where="id = 'k2'", as_of=instants[3]).to_pylist()
    assert found == [{"id": "k2", "ts": 2}]
    assert table.read_keys(["a"])["ts"].to_pylist() != [3]
    places = table.record_locations(["k1", "k5"], as_of=instants[3])["partition_path"].to_pylist()
    assert [place is None for place in places] == [False, True]
    changed = table.changes(since=instants[1], until=instants[3]).select(["id", "ts"]).to_pylist()
    assert sorted((row["id"], row["ts"]) for row in changed) == [("a", 3), ("k2", 2), ("k3", 3)]
    for i in (1, 2, 4):
        with pytest.raises(HistoryLostError, match=rf"with a savepoint .*: {instants[3]}\)"):
            rows_as_of(table, instants[i])
    table.delete_savepoint(instants[3])
    with pytest.raises(HistoryLostError):
        rows_as_of(table, instants[3])


@pytest.mark.parametrize("names_later", [False, True])
def test_a_savepoint_of_version_6_needs_no_log_file_of_a_later_slice(
    names_later: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names none; the savepoints of earlier releases did, and are readable too."""
    store = trips_store(table_type="merge_on_read", index="simple", table_version=6, properties=NO_SERVICES)
    table = Table(store)
    saved = str(table.upsert(trips({"a": (1, "sf")})).instant)
    table.bulk_insert(trips({"b": (1, "sf")}))
    table.upsert(trips({"b": (2, "sf")}))
    (log,) = [name for name in store.names("city=sf") if ".log." in name]
    if names_later:
        monkeypatch.setattr(savepoint, "plan_savepoint", partial(_naming_too, savepoint.plan_savepoint, log))
    table.savepoint(saved)
    assert (log in table.savepoints()[0].files["city=sf"]) == names_later
    for ts in (3, 4, 5):
        table.upsert(trips({"a": (ts, "sf"), "b": (ts, "sf")}))
        table.schedule_compaction(strategy="unbounded")
        table.compact()
    assert rows_as_of(table, saved) == {"a": (1, "sf")}
    assert table.clean(properties=ONE).counts["files_deleted"] > 0
    assert rows_as_of(table, saved) == {"a": (1, "sf")}
    assert table.changes(until=saved).column("id").to_pylist() == ["a"]
    assert Table(store).verify(full=True).ok
    table.restore(saved)
    assert rows_of(store) == {"a": (1, "sf")}


def _naming_too(plan: Callable[..., SavepointMetadata], log: str, *args: Any, **more: Any) -> SavepointMetadata:
    """A plan that names one more file."""
    found = plan(*args, **more)
    part = found.partition_metadata["city=sf"]
    part = replace(part, savepoint_data_file=(*part.savepoint_data_file, log))
    return replace(found, partition_metadata={"city=sf": part})


@EACH_TYPE
def test_a_saved_commit_is_read_where_later_ones_are_archived(table_type: str) -> None:
    table, instants = table_of(8, saved=(2,), table_type=table_type)
    clean(table)
    beyond = {"hoodie.archive.beyond.savepoint": "true", "hoodie.compact.inline": "true"}
    table.archive(properties={**ONE, **FEW, **beyond, "hoodie.compact.inline.max.delta.commits": "1"})
    assert table.timeline.get(instants[3]) is None
    assert rows_as_of(table, instants[2]) == rows_after(2)
    third = next(found for found in table.view().archive().completed() if found.requested_time == instants[3])
    for when in (instants[3], third.completion_time or "", f"requested:{instants[3]}"):
        with pytest.raises(HistoryLostError):
            rows_as_of(table, when)


@EACH_TYPE
def test_a_file_of_the_savepoint_that_is_gone_is_noticed(table_type: str) -> None:
    table, instants = table_of(6, saved=(3,), table_type=table_type)
    clean(table)
    store = table.view().store
    (saved,) = table.savepoints()
    path, name = next((path, name) for path, names in saved.files.items() for name in names)
    store.delete(f"{path}/{name}")
    store.delete_folder(".hoodie/metadata")
    with pytest.warns(HoodieWarning), pytest.raises(HistoryLostError, match="not as the savepoint names it"):
        rows_as_of(table, instants[3])


@EACH_TYPE
@pytest.mark.parametrize("of_late", [False, True])
@pytest.mark.parametrize("by_request", [False, True])
def test_the_snapshot_of_overlapping_writers_is_whole_or_refused(
    table_type: str, of_late: bool, by_request: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A savepoint of ours names what had completed, one of the JVM what had been requested."""
    table, instants = table_of(2, table_type=table_type)
    store = table.view().store
    finish = held_before_commit(lambda: Table(store).upsert(trips({"a": (3, "sf")})))
    early = table.upsert(trips({"k1": (4, "la")})).instant or ""
    finish()
    late = next(found.requested_time for found in table.timeline.writes() if instants[2] < found.requested_time < early)
    commit = late if of_late else early
    expected = {when: rows_as_of(table, when) for when in (commit, f"requested:{commit}")}
    if by_request:
        monkeypatch.setattr(savepoint, "plan_savepoint", saved_by_request)
    table.savepoint(commit)
    for version in (5, 6, 7):
        table.upsert(trips({"a": (version, "sf"), "k1": (version, "la")}))
    clean(table)
    read = 0
    for when, there in expected.items():
        try:
            found = rows_as_of(table, when)
        except HistoryLostError:
            continue
        assert found == there
        read += 1
    assert read >= 1
