"""Time travel behind a clean to commits that have a savepoint: all their rows, or an error."""

from __future__ import annotations

import pytest

from hoodie.errors import HistoryLostError, HoodieWarning
from hoodie.format.table.table_config import TableType
from hoodie.services.recovery import savepoint
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.crash.tables import Rows, new_table, trips
from tests.support.overtaken import held_before_commit
from tests.support.savepoints import saved_by_request

NO_SERVICES = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
}
ONE = {"hoodie.clean.commits.retained": "1"}
TYPES = pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])


def table_of(table_type: str, *, saved: int, commits: int = 6) -> tuple[Table, list[str], list[Rows]]:
    """A table with a savepoint, its commits, and the rows after each of them."""
    store = MemoryStore()
    new_table(store, table_type=table_type, properties=NO_SERVICES)
    table, rows = Table(store), dict[str, tuple[int, str]]()
    instants, states = [""], [rows]
    for i in range(1, commits + 1):
        changed = {"a": (i, "sf"), f"k{i}": (i, "la")}
        instants.append(table.upsert(trips(changed)).instant or "")
        rows = {**rows, **changed}
        states.append(rows)
        if i == saved:
            table.savepoint()
    return table, instants, states


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


def as_of(table: Table, when: str) -> Rows:
    found = Table(table.view().store).to_arrow(["id", "ts", "city"], as_of=when).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: (row["ts"], row["city"]) for row in found}


@TYPES
def test_a_saved_commit_is_read_behind_a_clean(table_type: str) -> None:
    table, instants, rows = table_of(table_type, saved=3)
    clean(table)
    for when in (instants[3], f"requested:{instants[3]}"):
        assert as_of(table, when) == rows[3]
    assert table.count(as_of=instants[3]) == len(rows[3])
    found = table.to_arrow(["id", "ts"], where="id = 'k2'", as_of=instants[3]).to_pylist()
    assert found == [{"id": "k2", "ts": 2}]
    assert table.read_keys(["a"])["ts"].to_pylist() != [3]
    places = table.record_locations(["k1", "k5"], as_of=instants[3])["partition_path"].to_pylist()
    assert [place is None for place in places] == [False, True]
    changed = table.changes(since=instants[1], until=instants[3]).select(["id", "ts"]).to_pylist()
    assert sorted((row["id"], row["ts"]) for row in changed) == [("a", 3), ("k2", 2), ("k3", 3)]
    for i in (1, 2, 4):
        with pytest.raises(HistoryLostError, match=rf"with a savepoint .*: {instants[3]}\)"):
            as_of(table, instants[i])


@TYPES
def test_cleans_tell_the_savepoints_that_stay_readable(table_type: str) -> None:
    table, instants, _ = table_of(table_type, saved=2)
    compact(table)
    planned = table.clean(dry_run=True, properties=ONE)
    clean(table)
    again = table.clean(properties=ONE)
    for told in (planned, again):
        assert (told.readable_savepoints, (told.oldest_readable or "") > instants[2]) == ((instants[2],), True)


def test_without_its_savepoint_a_commit_is_refused_again() -> None:
    table, instants, rows = table_of("copy_on_write", saved=3)
    clean(table)
    assert as_of(table, instants[3]) == rows[3]
    table.delete_savepoint(instants[3])
    with pytest.raises(HistoryLostError):
        as_of(table, instants[3])


@TYPES
def test_a_saved_commit_is_read_where_later_ones_are_archived(table_type: str) -> None:
    table, instants, rows = table_of(table_type, saved=2, commits=14)
    clean(table)
    beyond = {**ONE, "hoodie.archive.beyond.savepoint": "true", "hoodie.compact.inline": "true"}
    few = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.compact.inline.max.delta.commits": "1",
    }
    table.archive(properties={**beyond, **few})
    assert table.timeline.get(instants[3]) is None
    assert as_of(table, instants[2]) == rows[2]
    third = next(found for found in table.view().archive().completed() if found.requested_time == instants[3])
    for when in (instants[3], third.completion_time or "", f"requested:{instants[3]}"):
        with pytest.raises(HistoryLostError):
            as_of(table, when)


@TYPES
def test_a_file_of_the_savepoint_that_is_gone_is_noticed(table_type: str) -> None:
    table, instants, _ = table_of(table_type, saved=3)
    clean(table)
    store = table.view().store
    (saved,) = table.savepoints()
    path, name = next((path, name) for path, names in saved.files.items() for name in names)
    store.delete(f"{path}/{name}")
    store.delete_folder(".hoodie/metadata")
    with pytest.warns(HoodieWarning), pytest.raises(HistoryLostError, match="not the one that the savepoint names"):
        as_of(table, instants[3])


@TYPES
@pytest.mark.parametrize("of_late", [False, True])
@pytest.mark.parametrize("by_request", [False, True])
def test_the_snapshot_of_overlapping_writers_is_whole_or_refused(
    table_type: str, of_late: bool, by_request: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A savepoint of ours names what had completed, one of the JVM what had been requested."""
    table, instants, _ = table_of(table_type, saved=0, commits=2)
    store = table.view().store
    finish = held_before_commit(lambda: Table(store).upsert(trips({"a": (3, "sf")})))
    early = table.upsert(trips({"k1": (4, "la")})).instant or ""
    finish()
    late = next(found.requested_time for found in table.timeline.writes() if instants[2] < found.requested_time < early)
    commit = late if of_late else early
    expected = {when: as_of(table, when) for when in (commit, f"requested:{commit}")}
    if by_request:
        monkeypatch.setattr(savepoint, "plan_savepoint", saved_by_request)
    table.savepoint(commit)
    for version in (5, 6, 7):
        table.upsert(trips({"a": (version, "sf"), "k1": (version, "la")}))
    clean(table)
    read = 0
    for when, there in expected.items():
        try:
            found = as_of(table, when)
        except HistoryLostError:
            continue
        assert found == there
        read += 1
    assert read >= 1
