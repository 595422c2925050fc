"""Writes whose services of the metadata table die: compaction, cleaning and archiving at each of their storage calls.

A small limit through the option of the table makes a service due at nearly every write. Archiving needs 31 commits.
"""

from __future__ import annotations

import pytest

from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.paths import METADATA_HISTORY
from hoodie.metadata.services.context import ServiceLimits
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import TimelineArchive
from tests.crash.tables import Rows, Write, check_recovery, copy_of, deaths, new_table, rows_of, run_until, trips
from tests.support.fault_store import Call

SMALL = {"hoodie.metadata.compact.max.delta.commits": "1"}
CHANGE: Rows = {"a": (1000, "sf"), "x": (1, "la")}
_DEATHS = 6
"""Calls of a write at which it dies in a normal run."""
_WRITES_MAX = 80
"""Writes in which every service becomes due."""
SERVICES = {
    "compaction": ".compaction.requested",
    "cleaning": ".clean.requested",
    "archiving": "/history/",
}


def write(table: Table) -> object:
    return table.upsert(trips(CHANGE))


def calls_of(store: MemoryStore, some_write: Write) -> list[Call]:
    """The storage calls that change something."""
    return run_until(copy_of(store), some_write, None).calls


def runs(service: str, calls: list[Call]) -> bool:
    return any("/metadata/.hoodie/" in call.path and SERVICES[service] in call.path for call in calls)


@pytest.fixture(scope="module")
def tables() -> dict[str, MemoryStore]:
    """For each service a table whose next write runs it."""
    store = MemoryStore()
    new_table(store, properties=SMALL)
    found: dict[str, MemoryStore] = {}
    for number in range(_WRITES_MAX):
        Table(store).upsert(trips({"a": (number, "sf"), "b": (number, "nyc")}))
        calls = calls_of(store, write)
        for service in SERVICES:
            if runs(service, calls) and number > ServiceLimits().commits_retained:
                found.setdefault(service, copy_of(store))
        if len(found) == len(SERVICES):
            return found
    raise AssertionError(f"only {sorted(found)} ran in {_WRITES_MAX} writes")


@pytest.mark.parametrize("service", SERVICES)
def test_a_write_whose_service_dies(tables: dict[str, MemoryStore], service: str) -> None:
    """All instants of the metadata table stay, active or archived, and the next writes finish the service."""
    start = tables[service]
    old = rows_of(start)
    known = metadata_instants(start)
    count = 0
    for death in deaths(start, write, keep=_DEATHS):
        try:
            assert known <= metadata_instants(death.store)
            check_recovery(death.store, old, {**old, **CHANGE})
            assert known <= metadata_instants(death.store)
            check_next_writes(death.store)
        except BaseException as error:
            error.add_note(str(death))
            raise
        count += 1
    assert count >= _DEATHS


def check_next_writes(store: MemoryStore) -> None:
    """Two more writes run the services that are due; no instant of the metadata table stays pending."""
    rows = rows_of(store)
    for number in (1, 2):
        Table(store).upsert(trips({"a": (2000 + number, "sf")}))
    assert rows_of(store) == {**rows, "a": (2002, "sf")}
    assert list(MetadataFolder(store, Table(store).view().config).timeline().pending()) == []
    report = Table(store).index.verify()
    assert report.ok, str(report)


def metadata_instants(store: MemoryStore) -> set[str]:
    """Requested times of all completed instants of the metadata table, active and archived."""
    folder = MetadataFolder(store, Table(store).view().config)
    archived = {found.requested_time for found in TimelineArchive(folder.store, METADATA_HISTORY).instants()}
    return archived | {found.requested_time for found in folder.timeline().completed()}
