"""Incremental reads and time travel across archived instants: the rows, the work, and what is told if they are gone."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import HistoryLostError, HoodieWarning, InvalidConfigError
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action
from tests.crash.tables import Rows, copy_of, new_table, rows_of, run_until, trips
from tests.support.archived import OFTEN, archived_times
from tests.support.cleans import claim_clean
from tests.support.fault_store import FaultStore

NO_CLEAN = {"hoodie.clean.automatic": "false"}


class Lived:
    """A table that archived most of its commits: its store, its instants, and its rows as of each."""

    def __init__(self, table_type: str, commits: int = 16, properties: Mapping[str, str] | None = None) -> None:
        self.store = MemoryStore()
        new_table(self.store, table_type=table_type, properties={**OFTEN, **(properties or {})})
        self.instants: list[str] = []
        self.past: list[Rows] = []
        self.changed: list[Rows] = []
        rows = Rows()
        for number in range(commits):
            change: Rows = {f"k{number % 5}": (number, "sf"), f"n{number}": (number, "nyc")}
            rows |= change
            self.instants.append(Table(self.store).upsert(trips(change), properties=NO_CLEAN).instant)
            self.past.append(dict(rows))
            self.changed.append(change)

    def changed_in(self, first: int, last: int) -> Rows:
        """Rows that commits `first` to `last` changed, as of the last."""
        keys = {key for change in self.changed[first : last + 1] for key in change}
        written = {key: max(n for n in range(last + 1) if key in self.changed[n]) for key in keys}
        return {key: self.past[last][key] for key in keys if written[key] >= first}


def model(found: pa.Table) -> Rows:
    """Rows as a model."""
    rows = found.select(["id", "ts", "city"]).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: (row["ts"], row["city"]) for row in rows}


@pytest.fixture(scope="module", params=["copy_on_write", "merge_on_read"])
def lived(request: pytest.FixtureRequest) -> Lived:
    """A table of each type; nothing in it was cleaned."""
    found = Lived(request.param)
    assert len(archived_times(found.store)) >= 10
    return found


def test_changes_since_any_instant(lived: Lived) -> None:
    for first, last in ((0, 15), (3, 15), (9, 12), (14, 15), (2, 5)):
        since, until = lived.instants[first], lived.instants[last]
        assert model(Table(lived.store).changes(since, until)) == lived.changed_in(first + 1, last), (first, last)
    assert model(Table(lived.store).changes(lived.instants[4])) == lived.changed_in(5, 15)


def test_the_table_as_of_any_instant(lived: Lived) -> None:
    for number in (0, 2, 7, 13, 15):
        for as_of in (lived.instants[number], f"requested:{lived.instants[number]}"):
            assert model(Table(lived.store).to_arrow(as_of=as_of)) == lived.past[number], (number, as_of)
    found = Table(lived.store).to_arrow(as_of=lived.instants[3], where="id = 'n2'")
    assert model(found) == {"n2": (2, "nyc")}
    (located,) = Table(lived.store).record_locations(["n9"], as_of=lived.instants[3])["file_id"].to_pylist()
    assert located is None


def test_a_consumer_keeps_its_place_while_instants_are_archived() -> None:
    lived = Lived("copy_on_write", commits=1)
    table, mine = Table(lived.store), Rows()
    place: str | None = None
    for number in range(1, 14):
        if number % 3 == 1:
            found = Table(lived.store).changes_since(place)
            assert found.is_snapshot == (place is None)
            mine |= model(found.rows)
            place = found.until
            assert mine == rows_of(lived.store)
            assert Table(lived.store).changes_since(place).rows.num_rows == 0
            assert Table(lived.store).changes_since(place).until == place
        table.upsert(trips({f"k{number % 4}": (number, "sf")}))
    found = Table(lived.store).changes_since(lived.instants[0])
    assert found.commits == 13
    assert not found.is_snapshot


def test_the_place_in_a_table_without_commits() -> None:
    store = MemoryStore()
    new_table(store)
    found = Table(store).changes_since()
    assert found.rows.num_rows == 0
    Table(store).upsert(trips({"a": (1, "sf")}))
    assert model(Table(store).changes_since(found.until).rows) == {"a": (1, "sf")}


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


def test_cleaned_versions_are_told_with_the_oldest_instant() -> None:
    lived = Lived("copy_on_write")
    claim_clean(Table(lived.store), lived.instants[12], lived.instants[12])
    with pytest.raises(HistoryLostError, match=lived.instants[12]) as error:
        Table(lived.store).changes(lived.instants[0], lived.instants[5])
    assert error.value.oldest_instant == lived.instants[12]
    with pytest.raises(HistoryLostError, match=lived.instants[12]):
        Table(lived.store).to_arrow(as_of=lived.instants[5])
    assert model(Table(lived.store).to_arrow(as_of=lived.instants[12])) == lived.past[12]
    # Without `until` only the newest versions are needed.
    assert model(Table(lived.store).changes(lived.instants[0])) == lived.changed_in(1, 15)
    with pytest.warns(HoodieWarning, match="all rows of the table are returned"):
        found = Table(lived.store).changes_since(lived.instants[0], lived.instants[5], fallback="snapshot")
    assert found.is_snapshot
    assert model(found.rows) == lived.past[15]
    assert Table(lived.store).changes_since(found.until).rows.num_rows == 0
    with pytest.raises(InvalidConfigError, match="fallback"):
        Table(lived.store).changes_since(fallback="none")


def test_an_archived_clean_counts_too() -> None:
    lived = Lived("copy_on_write", commits=9)
    claim_clean(Table(lived.store), lived.instants[6], lived.instants[6])
    for number in range(9, 20):
        Table(lived.store).upsert(trips({"k": (number, "sf")}), properties=NO_CLEAN)
    actions = {instant.action for instant in Table(lived.store).view().timeline}
    if Action.CLEAN not in actions:
        with pytest.raises(HistoryLostError, match=lived.instants[6]):
            Table(lived.store).to_arrow(as_of=lived.instants[2])
    else:
        pytest.fail("the clean was not archived")


def test_changes_across_a_restore_are_refused() -> None:
    lived = Lived("copy_on_write", commits=3)
    Table(lived.store).restore(lived.instants[1])
    with pytest.raises(HistoryLostError, match="restored"):
        Table(lived.store).changes(lived.instants[2])
    # A consumer that had read up to the commit that was restored has nothing that is gone.
    assert model(Table(lived.store).changes(lived.instants[0])) == lived.changed_in(1, 1)
    assert Table(lived.store).changes(lived.instants[1]).num_rows == 0
    with pytest.warns(HoodieWarning, match="restored"):
        found = Table(lived.store).changes_since(lived.instants[2], fallback="snapshot")
    assert found.is_snapshot
    assert Table(lived.store).changes_since(found.until).rows.num_rows == 0


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_commit_that_was_read_and_rolled_back_is_told(table_type: str) -> None:
    lived = Lived(table_type, commits=3)
    table = Table(lived.store)
    place = table.changes_since(lived.instants[0]).until
    table.rollback(lived.instants[2])
    with pytest.raises(HistoryLostError, match=f"commit {lived.instants[2]} of .* was rolled back") as error:
        table.changes(place)
    # A consumer that never read the commit has nothing to take back, and the oldest instant that is told works.
    assert model(table.changes(lived.instants[0])) == lived.changed_in(1, 1)
    assert table.changes(error.value.oldest_instant).num_rows == 0
    with pytest.warns(HoodieWarning, match="rolled back"):
        found = table.changes_since(place, fallback="snapshot")
    assert found.is_snapshot
    assert model(found.rows) == lived.past[1]
    assert table.changes_since(found.until).rows.num_rows == 0
    assert table.changes_since(table.changes_since().until).rows.num_rows == 0
    for number in range(10, 22):
        table.upsert(trips({"k": (number, "sf")}), properties=NO_CLEAN)
    assert not [found for found in table.timeline if found.action is Action.ROLLBACK], "the rollback was archived"
    with pytest.raises(HistoryLostError, match="rolled back"):
        Table(lived.store).changes(place)
    assert model(Table(lived.store).changes(found.until)) == {"k": (21, "sf")}


def test_the_rollback_of_a_dead_write_loses_no_history() -> None:
    lived = Lived("copy_on_write", commits=2)
    calls = run_until(copy_of(lived.store), lambda table: table.upsert(trips({"d": (1, "sf")})), None).calls
    last = next(number for number, call in enumerate(calls, 1) if call.path.endswith(".deltacommit.requested"))
    dead = run_until(lived.store, lambda table: table.upsert(trips({"d": (1, "sf")})), last)
    assert dead.crashed
    place = Table(lived.store).timeline.instants[-1].requested_time
    assert place > lived.instants[-1]
    Table(lived.store).upsert(trips({"e": (2, "sf")}))
    assert [found.action for found in Table(lived.store).timeline].count(Action.ROLLBACK) == 1
    assert model(Table(lived.store).changes(place)) == {"e": (2, "sf")}


def test_the_schema_of_an_archived_commit_counts() -> None:
    store = MemoryStore()
    new_table(store, properties=OFTEN)
    first = Table(store).upsert(trips({"a": (1, "sf")})).instant
    wider = trips({"b": (2, "sf")}).append_column("more", pa.array([5]))
    second = Table(store).upsert(wider).instant
    for number in range(8):
        Table(store).upsert(wider.set_column(1, "ts", pa.array([10 + number])), properties=NO_CLEAN)
    assert {first, second} <= {*archived_times(store)}
    assert "more" not in Table(store).to_arrow(as_of=first).schema.names
    assert "more" in Table(store).to_arrow(as_of=second).schema.names


def overlapping(table_type: str) -> tuple[MemoryStore, str, str]:
    """Two writers: the second one begins and completes while the first one runs."""
    store = MemoryStore()
    new_table(store, table_type=table_type)
    Table(store).upsert(trips({"x": (0, "oslo")}))
    first = Table(store).insert(trips({"a": (1, "sf")})).instant
    second = Table(store).insert(trips({"b": (1, "nyc")})).instant
    (name,) = (name for name in store.names(".hoodie/timeline") if name.startswith(f"{first}_"))
    (other,) = (name for name in store.names(".hoodie/timeline") if name.startswith(f"{second}_"))
    later = str(int(other.partition("_")[2].partition(".")[0]) + 5)
    store.move(f".hoodie/timeline/{name}", f".hoodie/timeline/{first}_{later}.{name.rpartition('.')[2]}")
    return store, first, second


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_state_that_was_read_once_never_changes(table_type: str) -> None:
    """The first writer was requested early, and completed late: no read as of an earlier time shows its rows."""
    store, first, second = overlapping(table_type)
    table = Table(store)
    assert sorted(table.to_arrow(as_of=second)["id"].to_pylist()) == ["b", "x"]
    assert sorted(table.to_arrow(as_of=first)["id"].to_pylist()) == ["a", "b", "x"]
    assert table.count(as_of=second) == 2
    # Hudi's rule, by requested times.
    assert sorted(table.to_arrow(as_of=f"requested:{second}")["id"].to_pylist()) == ["a", "b", "x"]
    assert sorted(table.to_arrow(as_of=f"requested:{first}")["id"].to_pylist()) == ["a", "x"]
    found = table.record_locations(["a", "b"], as_of=second)["partition_path"].to_pylist()
    assert found == [None, "city=nyc"]
    assert hoodie.HistoryLostError is HistoryLostError
