"""An expiry that dies at any storage call: all partitions are there, or all expired ones are gone."""

from __future__ import annotations

import time
from functools import partial

from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import InstantClock
from tests.crash.tables import Rows, check_recovery, deaths, new_table, rows_of, trips

DAY_MS = 86_400_000
WEEK = {"hoodie.partition.ttl.strategy.days.retain": "7"}
START: Rows = {"a": (1, "sf"), "b": (1, "nyc"), "c": (1, "oslo")}
LEFT: Rows = {"a": (1, "sf")}
_DEATHS = 5
"""Calls at which the deletion dies in a normal run."""


def aged_table() -> MemoryStore:
    """Two partitions are a month old."""
    store = MemoryStore()
    new_table(store)
    table = Table(store)
    zone, now_ms = table.view().layout.zone, time.time_ns() // 1_000_000
    for age_days, keys in ((30, "bc"), (0, "a")):
        table._context.state.clock = InstantClock(zone, now_ms=partial(int, now_ms - age_days * DAY_MS))
        table.upsert(trips({key: START[key] for key in keys}))
    return store


def expire(table: Table) -> object:
    return table.expire_partitions(properties=WEEK)


def test_an_expiry_that_dies() -> None:
    count = 0
    for death in deaths(aged_table(), expire, keep=_DEATHS):
        try:
            check_recovery(death.store, START, LEFT)
            expire(Table(death.store))
            found = rows_of(death.store)
            assert {key: found[key] for key in LEFT} == LEFT
            assert "b" not in found
        except BaseException as error:
            error.add_note(str(death))
            raise
        count += 1
    assert count >= _DEATHS
