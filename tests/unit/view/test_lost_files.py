"""Earlier states whose files somebody deleted are refused, also when the listing was built anew without them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hoodie.errors import MissingFileError
from hoodie.format.filenames import instant_of_data_file
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.support.fault_store import FaultStore
from tests.support.replaced_groups import ALONE, ENDS, ONE, three_commits
from tests.support.tables import TYPES, made_once, model_of, rows_of, trips, trips_store

EACH_TYPE = pytest.mark.parametrize("table_type", TYPES)
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])


@made_once
def written(table_type: str, version: int) -> MemoryStore:
    """A table of three commits of `a`, of which the logs are compacted, and a later commit of `b`."""
    store = three_commits(table_type, version)
    Table(store).upsert(trips({"b": (2, "la")}))
    return store


def instants_of(store: MemoryStore) -> list[str]:
    return [found.requested_time for found in Table(store).timeline.writes()]


def lose(store: MemoryStore, instant: str) -> str:
    """Delete the last file of `city=sf` with the instant in its name, and build the listing anew; return its path."""
    *_, path = [info.path for info in store.list("city=sf") if instant_of_data_file(info.path) == instant]
    store.delete(path)
    Table(store).index.rebuild()
    return path


@EACH_TYPE
@VERSIONS
def test_a_base_file(table_type: str, version: int) -> None:
    store = written(table_type, version)
    instants, rows = instants_of(store), rows_of(store)
    path = lose(store, instants[0])
    reads: tuple[Callable[[Table], object], ...] = (
        lambda table: table.to_arrow(as_of=instants[0]),
        lambda table: table.to_arrow(as_of=f"requested:{instants[0]}"),
        lambda table: table.to_arrow(as_of=instants[0], where="city = 'sf'"),
        lambda table: table.changes(until=instants[0]),
        lambda table: table.savepoint(instants[0]),
    )
    for read in reads:
        with pytest.raises(MissingFileError, match=f"{path}: this file of an earlier state does not exist"):
            read(Table(store))
    assert model_of(Table(store).to_arrow(as_of=instants[0], where="city = 'la'")) == {"b": (1, "la")}
    assert rows_of(store) == rows
    assert model_of(Table(store).to_arrow(as_of=instants[-1])) == rows


@pytest.mark.parametrize("version", [8, 9])
def test_a_log_file_that_a_compaction_merged(version: int) -> None:
    store = written("merge_on_read", version)
    instants = instants_of(store)
    path = lose(store, instants[1])
    for when in instants[1:3]:
        with pytest.raises(MissingFileError, match=path):
            Table(store).to_arrow(as_of=when)
    assert model_of(Table(store).to_arrow(as_of=instants[0])) == ONE
    assert model_of(Table(store).to_arrow(as_of=instants[3]))["a"] == (3, "sf")


@EACH_TYPE
@pytest.mark.parametrize("end", ENDS)
def test_file_groups_that_were_replaced(end: str, table_type: str) -> None:
    store = trips_store({**ONE, "c": (1, "sf")}, table_type=table_type, properties=ALONE)
    ENDS[end](Table(store))
    first, *_ = instants_of(store)
    path = lose(store, first)
    with pytest.raises(MissingFileError, match=path):
        Table(store).to_arrow(as_of=first)


@EACH_TYPE
@VERSIONS
def test_every_state_of_a_whole_table_is_read(table_type: str, version: int) -> None:
    """Also behind a clean, a rollback and a restore, and beside groups that later commits began."""
    store = written(table_type, version)
    Table(store).upsert(trips({"c": (1, "nyc")}))
    Table(store).insert_overwrite(trips({"c": (2, "nyc")}))
    Table(store).rollback(instants_of(store)[-1])
    Table(store).upsert(trips({"a": (5, "sf"), "d": (1, "sf")}))
    Table(store).clean(properties={"hoodie.clean.commits.retained": "4"})
    Table(store).upsert(trips({"a": (6, "sf")}))
    Table(store).restore(instants_of(store)[-2])
    Table(store).index.rebuild()
    states = [model_of(Table(store).to_arrow(as_of=instant)) for instant in instants_of(store)[-4:]]
    assert states[-1] == {"a": (5, "sf"), "b": (2, "la"), "c": (1, "nyc"), "d": (1, "sf")}
    assert [state["a"][0] for state in states] == [3, 3, 3, 5]


def test_what_it_costs() -> None:
    """Each commit after the state is read once by a handle; none for the newest state."""
    store = written("copy_on_write", 9)
    instants = instants_of(store)
    counting = FaultStore(store, count_reads=True)
    table = Table(counting)
    assert _commits_read(counting, lambda: table.to_arrow()) == 1  # the schema
    assert _commits_read(counting, lambda: table.to_arrow(as_of=instants[0])) == len(instants) - 1
    assert _commits_read(counting, lambda: [table.to_arrow(as_of=when) for when in instants]) == 0


def _commits_read(store: FaultStore, read: Callable[[], object]) -> int:
    del store.calls[:]
    read()
    return sum(call.operation == "read" and call.path.endswith(".commit") for call in store.calls)
