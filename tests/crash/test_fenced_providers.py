"""A writer is stopped at any storage call for so long that another one takes its lock over, whatever provider it has.

As test_fenced_writers.py, with the storage-based and the in-process lock; ZooKeeper needs a server: its test is
tests/interop/test_locks.py.
"""

from __future__ import annotations

import json

import pytest

from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from hoodie.timeline import forget_all
from hoodie.timeline.locks import in_process, storage_based
from hoodie.write.create import CreateOptions, create_table
from tests.crash.tables import FEW_BUCKETS, SCHEMA, trips
from tests.crash.test_fenced_writers import OURS, START, THEIRS, check, stops

JSON = ".hoodie/.locks/table_lock.json"


def new_table(provider: str, table_type: str) -> MemoryStore:
    store = MemoryStore()
    stored = {**FEW_BUCKETS, "hoodie.write.lock.provider": provider}
    wanted = CreateOptions(record_key="id", partition_by="city", ordering="ts", type=table_type, properties=stored)
    create_table(store, SCHEMA, wanted)
    Table(store).upsert(trips(START))
    return store


def usurp(store: Store) -> None:
    """The lock's time is over and the heartbeat is old: another writer takes over and commits."""
    forget_all()
    if store.head(JSON) is not None:
        found = json.loads(store.read(JSON))
        store.replace(JSON, json.dumps({**found, "validUntil": 1}).encode())
    Table(store).upsert(trips(THEIRS))


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("provider", [storage_based.NAME, in_process.NAME])
def test_an_upsert_that_is_stopped_anywhere(provider: str, table_type: str) -> None:
    refused = 0
    start = new_table(provider, table_type)
    for number, store, error in stops(start, lambda table: table.upsert(trips(OURS)), usurp):
        ours = OURS if error is None else {}
        check(store, {**START, **THEIRS, **ours}, f"stopped at call {number}: {error}")
        refused += error is not None
        assert store.head(".hoodie/lock") is None
    assert refused > 3


def test_the_lock_of_a_writer_that_died_ends_by_itself() -> None:
    """No person is needed: a later writer waits until the validity is over, and rolls the dead write back."""
    store = new_table(storage_based.NAME, "copy_on_write")
    table = Table(store)
    with pytest.raises(ZeroDivisionError), table.view().state.table_lock():
        _ = 1 / 0
    assert json.loads(store.read(JSON))["expired"] is True
    lock = table.view().state.table_lock()
    lock.acquire()
    text = store.read(JSON)
    forget_all()
    del lock
    store.replace(JSON, text.replace(str(json.loads(text)["validUntil"]).encode(), b"1"))
    table.upsert(trips(OURS))
    check(store, {**START, **OURS}, "after a dead holder")
