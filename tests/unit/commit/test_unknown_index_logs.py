"""Log files of the record index that a dead write left, and that the engine that rolled it back does not know."""

from __future__ import annotations

import pytest

from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from hoodie.timeline import forget_all
from tests.support.deaths import check_tidy, run_until
from tests.support.tables import rows_of, trips, trips_store

FOLDER = ".hoodie/metadata/record_index"


def logs(store: Store) -> dict[str, bytes]:
    return {info.path: store.read(info.path) for info in store.list(FOLDER) if ".log." in info.name}


def dead_upsert(store: MemoryStore) -> dict[str, bytes]:
    """Let an upsert die before its delta commit begins; return the log files that it leaves."""
    before = logs(store)
    calls = run_until(trips_store({"a": (1, "sf")}), upsert, None).calls
    number = next(
        n
        for n, call in enumerate(calls, 1)
        if call.path.endswith(".deltacommit.requested") and "/metadata/" in call.path
    )
    assert run_until(store, upsert, number).crashed
    forget_all()
    return {path: data for path, data in logs(store).items() if path not in before}


def upsert(table: Table) -> object:
    return table.upsert(trips({"b": (2, "nyc"), "c": (2, "sf")}))


@pytest.mark.parametrize("version", [8, 9])
def test_the_next_write_removes_what_the_rollback_of_another_engine_left(version: int) -> None:
    store = trips_store({"a": (1, "sf")}, table_version=version)
    left = dead_upsert(store)
    assert left
    Table(store).upsert(trips({"d": (3, "sf")}))  # rolls the dead write back, and deletes its log files
    assert not logs(store).keys() & left.keys()
    for path, data in left.items():
        store.create(path, data)  # as after a rollback by JVM Hudi
    Table(store).upsert(trips({"e": (4, "sf")}))
    assert not logs(store).keys() & left.keys()
    assert rows_of(store).keys() == {"a", "d", "e"}
    check_tidy(store)


def test_log_files_of_a_running_write_stay() -> None:
    store = trips_store({"a": (1, "sf")})
    dead_upsert(store)
    Table(store).upsert(trips({"d": (3, "sf")}))
    kept = logs(store)
    Table(store).upsert(trips({"e": (4, "sf")}))
    assert kept.keys() <= logs(store).keys()
