"""Unit tests of hoodie/view/cleaned.py."""

from __future__ import annotations

import pytest

from hoodie.storage import FaultStore, MemoryStore
from hoodie.table import Table
from hoodie.view.cleaned import oldest_readable_instant
from tests.crash.tables import new_table, trips
from tests.support.cleans import claim_clean

KEPT = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def _upsert(table: Table, number: int) -> str:
    result = table.upsert(trips({"a": (number, "sf")}))
    assert result.instant is not None
    return result.instant


@pytest.mark.parametrize("retained", [1, 2, 3])
def test_only_cleans_that_can_raise_the_bound_are_read(retained: int) -> None:
    """Each of seven cleans retains some commits: of the cleans before the oldest retained commit, none is read."""
    store = FaultStore(MemoryStore(), count_reads=True)
    store.register()
    new_table(store, properties=KEPT)
    table = Table(store)
    times = [_upsert(table, number) for number in range(3)]
    for number in range(3, 10):
        times.append(_upsert(table, number))
        claim_clean(table, earliest=times[-retained], last=times[-1])
    view = Table(store).view()
    store.calls.clear()
    assert oldest_readable_instant(view) == times[-retained]
    read = [call.path for call in store.calls if call.path.endswith(".clean")]
    assert len(read) == retained


def test_an_older_clean_that_retained_less_still_counts() -> None:
    """The bound is the highest of all cleans, not that of the newest."""
    store = MemoryStore()
    new_table(store, properties=KEPT)
    table = Table(store)
    times = [_upsert(table, number) for number in range(5)]
    claim_clean(table, earliest=times[4], last=times[4])
    claim_clean(table, earliest=times[1], last=times[4])
    assert oldest_readable_instant(Table(store).view()) == times[4]
