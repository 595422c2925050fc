"""Views of the past of tables with savepoints, and behind cleans after commits were rolled back."""

from __future__ import annotations

import pytest

from hoodie.errors import HistoryLostError, UnsupportedError
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.crash.tables import Rows, new_table, rows_of, trips

NO_SERVICES = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def table_of(
    commits: int, *, saved: tuple[int, ...] = (), table_type: str = "copy_on_write"
) -> tuple[Table, list[str]]:
    """A table whose commit `i` sets the row `a` and adds a row; those in `saved` have savepoints."""
    store = MemoryStore()
    new_table(store, table_type=table_type, properties=NO_SERVICES)
    table, instants = Table(store), [""]
    for i in range(1, commits + 1):
        instants.append(table.upsert(trips({"a": (i, "sf"), f"k{i}": (i, "la")})).instant or "")
        if i in saved:
            table.savepoint()
    return table, instants


def rows_after(commit: int) -> Rows:
    """The rows of `table_of` after a commit."""
    return {"a": (commit, "sf"), **{f"k{i}": (i, "la") for i in range(1, commit + 1)}}


def rows_as_of(table: Table, instant: str) -> Rows:
    found = table.to_arrow(["id", "ts", "city"], as_of=instant).to_pylist()
    return {row["id"]: (row["ts"], row["city"]) for row in found}


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("saved", [(1, 2), (1, 2, 3)])
def test_savepoints_of_the_first_commits(saved: tuple[int, ...], table_type: str) -> None:
    table, instants = table_of(3, saved=saved, table_type=table_type)
    for i in range(1, 4):
        assert rows_as_of(Table(table.view().store), instants[i]) == rows_after(i)
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
    table.clean(properties={"hoodie.clean.commits.retained": "1"})
    table.rollback(instants[3], chain=True)
    assert rows_of(table.view().store) == rows_after(2)
    assert rows_as_of(table, instants[2]) == rows_after(2)
    with pytest.raises(HistoryLostError):
        table.to_arrow(as_of=instants[1])
    table.upsert(trips({"z": (1, "sf")}))
    assert rows_as_of(table, instants[2]) == rows_after(2)


def test_a_chain_that_would_end_before_archived_instants_is_refused() -> None:
    beyond = {"hoodie.archive.beyond.savepoint": "true", "hoodie.clean.commits.retained": "1"}
    table, instants = table_of(13, saved=(2, 4))
    table.clean(properties=beyond)
    table.archive(properties={**beyond, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
    store = table.view().store
    for info in store.list(".hoodie/timeline"):  # as the JVM deletes a savepoint: `t.delete_savepoint` archives first
        if info.name.startswith(instants[4]) and "savepoint" in info.name:
            store.delete(info.path)
    table = Table(store)
    assert table.timeline.get(instants[3]) is None
    with pytest.raises(UnsupportedError, match="are archived"):
        table.rollback(instants[4], chain=True)
    assert rows_of(table.view().store) == rows_after(13)
