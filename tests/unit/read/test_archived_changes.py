"""Incremental reads and time travel across archived instants: the rows, the work, and what is told if they are gone."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.errors import HistoryLostError, HoodieWarning, InvalidConfigError
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action
from tests.support.archived import OFTEN, active_times, archived_times
from tests.support.cleans import claim_clean
from tests.support.deaths import run_until
from tests.support.fault_store import FaultStore
from tests.support.overtaken import held_before_commit
from tests.support.tables import TYPES, Rows, copy_of, made_once, model_of, rows_of, trips, trips_store

NO_CLEAN = {"hoodie.clean.automatic": "false"}


def changed_by(number: int) -> Rows:
    """The rows that a commit of `Lived` writes."""
    return {f"k{number % 5}": (number, "sf"), f"n{number}": (number, "nyc")}


@made_once
def lived_store(table_type: str, commits: int) -> MemoryStore:
    store = trips_store(table_type=table_type, properties=OFTEN)
    for number in range(commits):
        Table(store).upsert(trips(changed_by(number)), properties=NO_CLEAN)
    return store


class Lived:
    """A table that archived most of its commits, with nothing cleaned; its instants, and its rows as of each."""

    def __init__(self, table_type: str = "copy_on_write", commits: int = 16) -> None:
        self.store = lived_store(table_type, commits)
        self.instants = [*archived_times(self.store), *active_times(self.store)]
        self.past: list[Rows] = []
        for number in range(commits):
            self.past.append({**(self.past[-1] if number else {}), **changed_by(number)})

    def changed_in(self, first: int, last: int) -> Rows:
        """Rows that commits `first` to `last` changed, as of the last."""
        return {key: row for key, row in self.past[last].items() if row[0] >= first}


@pytest.fixture(scope="module", params=TYPES)
def lived(request: pytest.FixtureRequest) -> Lived:
    found = Lived(request.param)
    assert len(archived_times(found.store)) >= 10
    return found


def test_changes_since_any_instant(lived: Lived) -> None:
    for first, last in ((0, 15), (3, 15), (9, 12), (14, 15), (2, 5)):
        since, until = lived.instants[first], lived.instants[last]
        assert model_of(Table(lived.store).changes(since, until)) == lived.changed_in(first + 1, last), (first, last)
    assert model_of(Table(lived.store).changes(lived.instants[4])) == lived.changed_in(5, 15)


def test_the_table_as_of_any_instant(lived: Lived) -> None:
    for number in (0, 2, 7, 13, 15):
        for as_of in (lived.instants[number], f"requested:{lived.instants[number]}"):
            assert model_of(Table(lived.store).to_arrow(as_of=as_of)) == lived.past[number], (number, as_of)
    found = Table(lived.store).to_arrow(as_of=lived.instants[3], where="id = 'n2'")
    assert model_of(found) == {"n2": (2, "nyc")}
    (located,) = Table(lived.store).record_locations(["n9"], as_of=lived.instants[3])["file_id"].to_pylist()
    assert located is None


def test_a_consumer_keeps_its_place_while_instants_are_archived() -> None:
    lived = Lived(commits=1)
    table, mine = Table(lived.store), Rows()
    place: str | None = None
    for number in range(1, 11):
        if number % 3 == 1:
            found = Table(lived.store).changes_since(place)
            assert found.is_snapshot == (place is None)
            mine |= model_of(found.rows)
            place = found.until
            assert mine == rows_of(lived.store)
            assert Table(lived.store).changes_since(place).rows.num_rows == 0
            assert Table(lived.store).changes_since(place).until == place
        table.upsert(trips({f"k{number % 4}": (number, "sf")}))
    assert lived.instants[0] in archived_times(lived.store)
    found = Table(lived.store).changes_since(lived.instants[0])
    assert (found.commits, found.is_snapshot) == (10, False)


def test_the_place_in_a_table_without_commits() -> None:
    store = trips_store()
    found = Table(store).changes_since()
    assert found.rows.num_rows == 0
    Table(store).upsert(trips({"a": (1, "sf")}))
    assert model_of(Table(store).changes_since(found.until).rows) == {"a": (1, "sf")}


def test_only_archive_files_with_wanted_instants_are_read(lived: Lived) -> None:
    store = FaultStore(lived.store, count_reads=True)
    table = Table(store)
    table.changes(lived.instants[-2])
    read = [call.path for call in store.calls if "/history/" in call.path and "metadata" not in call.path]
    files = [path for path in read if path.endswith(".parquet")]
    listed = lived.store.names(".hoodie/timeline/history")
    assert len(files) == len({*files}) <= len([name for name in listed if name.endswith(".parquet")])
    del store.calls[:]
    table.changes(lived.instants[-2])
    again = [call.path for call in store.calls if call.path.startswith(".hoodie/timeline/history/")]
    assert not [path for path in again if path.endswith(".parquet")], "files that never change are not read again"
    assert len(again) <= 2


def write_until_archived(store: MemoryStore, action: Action) -> int:
    """Write the key `k` until the timeline has no instant of this action any more; its last value."""
    for number in range(100, 112):
        Table(store).upsert(trips({"k": (number, "sf")}), properties=NO_CLEAN)
        if not [found for found in Table(store).timeline if found.action is action]:
            return number
    pytest.fail(f"no {action} was archived")


def test_cleaned_versions_are_told_with_the_oldest_instant() -> None:
    """By a clean on the timeline, and by one in the archive."""
    lived = Lived()
    claim_clean(Table(lived.store), lived.instants[12], lived.instants[12])
    with pytest.raises(HistoryLostError, match=lived.instants[12]) as error:
        Table(lived.store).changes(lived.instants[0], lived.instants[5])
    assert error.value.oldest_instant == lived.instants[12]
    with pytest.raises(HistoryLostError, match=lived.instants[12]):
        Table(lived.store).to_arrow(as_of=lived.instants[5])
    assert model_of(Table(lived.store).to_arrow(as_of=lived.instants[12])) == lived.past[12]
    # Without `until` only the newest versions are needed.
    assert model_of(Table(lived.store).changes(lived.instants[0])) == lived.changed_in(1, 15)
    with pytest.warns(HoodieWarning, match="all rows of the table are returned"):
        found = Table(lived.store).changes_since(lived.instants[0], lived.instants[5], fallback="snapshot")
    assert found.is_snapshot
    assert model_of(found.rows) == lived.past[15]
    assert Table(lived.store).changes_since(found.until).rows.num_rows == 0
    with pytest.raises(InvalidConfigError, match="fallback"):
        Table(lived.store).changes_since(fallback="none")
    write_until_archived(lived.store, Action.CLEAN)
    with pytest.raises(HistoryLostError, match=lived.instants[12]):
        Table(lived.store).to_arrow(as_of=lived.instants[5])


def test_changes_across_a_restore_are_refused() -> None:
    lived = Lived(commits=3)
    Table(lived.store).restore(lived.instants[1])
    with pytest.raises(HistoryLostError, match="restored"):
        Table(lived.store).changes(lived.instants[2])
    # A consumer that had read up to the commit that was restored has nothing that is gone.
    assert model_of(Table(lived.store).changes(lived.instants[0])) == lived.changed_in(1, 1)
    assert Table(lived.store).changes(lived.instants[1]).num_rows == 0
    with pytest.warns(HoodieWarning, match="restored"):
        found = Table(lived.store).changes_since(lived.instants[2], fallback="snapshot")
    assert found.is_snapshot
    assert Table(lived.store).changes_since(found.until).rows.num_rows == 0


@pytest.mark.parametrize("table_type", TYPES)
def test_a_commit_that_was_read_and_rolled_back_is_told(table_type: str) -> None:
    lived = Lived(table_type, commits=3)
    table = Table(lived.store)
    place = table.changes_since(lived.instants[0]).until
    table.rollback(lived.instants[2])
    with pytest.raises(HistoryLostError, match=f"commit {lived.instants[2]} of .* was rolled back") as error:
        table.changes(place)
    # A consumer that never read the commit has nothing to take back, and the oldest instant that is told works.
    assert model_of(table.changes(lived.instants[0])) == lived.changed_in(1, 1)
    assert table.changes(error.value.oldest_instant).num_rows == 0
    with pytest.warns(HoodieWarning, match="rolled back"):
        found = table.changes_since(place, fallback="snapshot")
    assert found.is_snapshot
    assert model_of(found.rows) == lived.past[1]
    assert table.changes_since(found.until).rows.num_rows == 0
    assert table.changes_since(table.changes_since().until).rows.num_rows == 0
    last = write_until_archived(lived.store, Action.ROLLBACK)
    with pytest.raises(HistoryLostError, match="rolled back"):
        Table(lived.store).changes(place)
    assert model_of(Table(lived.store).changes(found.until)) == {"k": (last, "sf")}


def test_the_rollback_of_a_dead_write_loses_no_history() -> None:
    lived = Lived(commits=3)
    calls = run_until(copy_of(lived.store), lambda table: table.upsert(trips({"d": (1, "sf")})), None).calls
    last = next(number for number, call in enumerate(calls, 1) if call.path.endswith(".deltacommit.requested"))
    dead = run_until(lived.store, lambda table: table.upsert(trips({"d": (1, "sf")})), last)
    assert dead.crashed
    place = Table(lived.store).timeline.instants[-1].requested_time
    assert place > lived.instants[-1]
    Table(lived.store).upsert(trips({"e": (2, "sf")}))
    assert [found.action for found in Table(lived.store).timeline].count(Action.ROLLBACK) == 1
    assert model_of(Table(lived.store).changes(place)) == {"e": (2, "sf")}


def test_the_schema_of_an_archived_commit_counts() -> None:
    store = trips_store(properties=OFTEN)
    first = Table(store).upsert(trips({"a": (1, "sf")})).instant
    wider = trips({"b": (2, "sf")}).append_column("more", pa.array([5]))
    second = Table(store).upsert(wider).instant
    while not {first, second} <= {*archived_times(store)}:
        Table(store).upsert(wider, properties=NO_CLEAN)
    assert "more" not in Table(store).to_arrow(as_of=first).schema.names
    assert "more" in Table(store).to_arrow(as_of=second).schema.names


@pytest.mark.parametrize("table_type", TYPES)
def test_a_state_that_was_read_once_never_changes(table_type: str) -> None:
    """The first writer was requested early, and completed late: no read as of an earlier time shows its rows."""
    store = trips_store({"x": (0, "oslo")}, table_type=table_type)
    table = Table(store)
    finish = held_before_commit(lambda: Table(store).insert(trips({"a": (1, "sf")})))
    second = table.insert(trips({"b": (1, "nyc")})).instant
    finish()
    first = table.timeline.instants[-2].requested_time
    expected = {
        second: ["b", "x"],
        first: ["a", "b", "x"],
        # Hudi's rule, by requested times.
        f"requested:{second}": ["a", "b", "x"],
        f"requested:{first}": ["a", "x"],
    }
    for as_of, keys in expected.items():
        assert sorted(table.to_arrow(as_of=as_of)["id"].to_pylist()) == keys, as_of
    assert table.count(as_of=second) == 2
    found = table.record_locations(["a", "b"], as_of=second)["partition_path"].to_pylist()
    assert found == [None, "city=nyc"]
