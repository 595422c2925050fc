"""When an update of the HBase index reads its keys again; tests/hbase has the results of a real server."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hoodie.engine import TaskContext
from hoodie.index.hbase.client import HBaseSettings
from hoodie.index.hbase.index import ENTRY_GROUPS, HBaseUpdate
from hoodie.index.record.entries import EntryStage, EntryWriter
from hoodie.table import Table
from hoodie.timeline import Action, Instant, State
from tests.support.tables import trips_store

OWN = "20261130120000000"


@pytest.mark.parametrize("deletes", [False, True])
def test_only_a_deletion_reads_the_keys_again_because_of_an_older_write(deletes: bool) -> None:
    """An insert of many keys would read them all again under the table's lock."""
    store, reads = trips_store({"a": (1, "sf")}), list[int]()
    older, other, later = (
        Instant(requested_time=time, action=Action.COMMIT, state=State.COMPLETED, completion_time=time)
        for time in ("20261130110000000", "20261130110000001", "20261130130000000")
    )

    class Server:
        def run(self, read: Any, tasks: Any) -> Any:
            reads.append(len(tasks))
            return [(frozenset({older.requested_time, later.requested_time}), frozenset({older.requested_time}))]

    engine: Any = Server()
    settings = HBaseSettings.of({"hoodie.index.hbase.table": "t"}, {})
    update = HBaseUpdate(Table(store).view(), OWN, lambda _bytes: engine, settings)
    writer = EntryWriter(store, EntryStage(".hoodie/.temp/stage-test", ENTRY_GROUPS), TaskContext(0, 0, 0))
    writer.put(pa.array(["a"]), "city=sf", "0-0")
    if deletes:
        writer.delete(pa.array(["b", "c"]), "city=sf")
    staged = writer.close()
    assert staged is not None
    assert staged.deletes == (2 if deletes else 0)
    update._entries.append(staged)

    assert update.would_lose_to(update.view, older) == deletes
    assert not update.would_lose_to(update.view, other)
    assert len(reads) == deletes
    assert update.would_lose_to(update.view, later)
    assert len(reads) == 1
