"""Tables in which the acts of the conflict matrix can run, and the rows that one after the other make."""

from __future__ import annotations

import time
from functools import cache

from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from hoodie.timeline import InstantClock
from hoodie.write.create import CreateOptions, create_table
from tests.support.conflict_matrix import ARCHIVABLE, EXPIRY, SCHEMA, Act, trips
from tests.support.tables import FEW_BUCKETS, copy_of

NEEDY = {"compaction", "log compaction", "clean", "archive", EXPIRY}
"""Services that need something in the table."""


@cache
def _first_state(table_type: str, needs: frozenset[str]) -> MemoryStore:
    """A table with a file group in each of two partitions, and what the services in `needs` need.

    That are the plan of a (log) compaction, files that a clean deletes, commits that may be archived, partitions that
    have expired.
    """
    store = MemoryStore()
    properties = {**FEW_BUCKETS, **(ARCHIVABLE if "archive" in needs else {})}
    options = CreateOptions(
        record_key="id", partition_by="city", type=table_type, index="record", properties=properties
    )
    create_table(store, SCHEMA, options)
    table = Table(store)
    if EXPIRY in needs:
        table._context.state.clock = InstantClock(table.view().layout.zone, now_ms=_a_month_ago)
    table.upsert(trips(("a", 1, "sf"), ("b", 1, "sf"), ("c", 1, "nyc")))
    for ts in (2, 3, 4, 5):
        table.upsert(trips(("a", ts, "sf"), ("b", ts, "sf")))
        if ts == 3 and needs & {"clean", "archive"} and table_type == "merge_on_read":
            assert table.schedule_compaction() is not None
            table.compact()
    if "compaction" in needs:
        assert table.schedule_compaction() is not None
    elif "log compaction" in needs:
        assert table.schedule_log_compaction(blocks_min=2) is not None
    return store


def _a_month_ago() -> int:
    return time.time_ns() // 1_000_000 - 30 * 86_400_000


def first_state(table_type: str, *acting: str) -> MemoryStore:
    """A copy of the table in which all can run."""
    return copy_of(_first_state(table_type, frozenset(NEEDY.intersection(acting))))


def rows(table: Table) -> list[tuple[str, int]]:
    found = table.to_arrow(columns=["id", "ts"]).to_pylist()
    return sorted((row["id"], row["ts"]) for row in found)


def one_after_the_other(store: Store, *both: Act) -> list[tuple[str, int]]:
    table = Table(copy_of(store))
    for act in both:
        act(table)
    return rows(table)
