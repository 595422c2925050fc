"""Tables whose file groups were replaced several times, and what ends a file group: for tests that lose old files."""

from __future__ import annotations

from collections.abc import Callable

from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.support.tables import trips, trips_store

ONE = {"a": (1, "sf"), "b": (1, "la")}
ALONE = {"hoodie.compact.inline": "false", "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
ENDS: dict[str, Callable[[Table], object]] = {
    "insert_overwrite": lambda table: table.insert_overwrite(trips({"x": (1, "sf")})),
    "delete_partitions": lambda table: table.delete_partitions(["city=sf"]),
    "cluster": lambda table: table.cluster("ts"),
}


def three_commits(table_type: str, version: int, *, compacts: bool = True) -> MemoryStore:
    """A table of three commits of `a`; in a merge-on-read table the logs are compacted afterwards."""
    store = trips_store(ONE, table_type=table_type, table_version=version, properties=ALONE)
    for ts in (2, 3):
        Table(store).upsert(trips({"a": (ts, "sf")}))
    if compacts and table_type == "merge_on_read":
        Table(store).schedule_compaction(strategy="unbounded")
        Table(store).compact()
    return store
