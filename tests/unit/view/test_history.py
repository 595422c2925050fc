"""Unit tests of hoodie/view/history.py."""

from __future__ import annotations

import pytest

from hoodie.commit.steps import Step
from hoodie.errors import HistoryLostError
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.view.history import oldest_readable_instant
from tests.crash.tables import new_table, trips
from tests.support.cleans import claim_clean
from tests.support.fault_store import FaultStore
from tests.support.steps import once_at

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


def test_the_instant_of_an_error_can_be_read_where_writers_overlapped() -> None:
    """A write completes after the oldest retained commit, which was requested later: a state between is refused."""
    store = MemoryStore()
    new_table(store, properties=KEPT)
    table = Table(store)
    table.upsert(trips({"a": (1, "sf"), "b": (1, "nyc")}))
    with once_at(Step.BEGUN, lambda: Table(store).upsert(trips({"b": (3, "nyc")}))):
        late = table.upsert(trips({"a": (2, "sf")})).instant
    retained = Table(store).timeline.writes().completed().instants[-1].requested_time
    newest = table.upsert(trips({"b": (4, "nyc")})).instant
    assert late is not None
    assert newest is not None
    assert late < retained
    claim_clean(table, earliest=retained, last=newest)
    with pytest.raises(HistoryLostError) as refused:
        Table(store).to_arrow(as_of=retained)
    assert refused.value.oldest_instant == late
    found = Table(store).to_arrow(as_of=late).select(["id", "ts"]).to_pylist()
    assert {row["id"]: row["ts"] for row in found} == {"a": 2, "b": 3}
    # By requested times, the retained commit is the oldest.
    assert Table(store).to_arrow(as_of=f"requested:{retained}").num_rows == 2


def test_the_oldest_readable_instant_can_be_archived() -> None:
    store = MemoryStore()
    new_table(store, properties={**KEPT, "hoodie.metadata.compact.max.delta.commits": "2"})
    table = Table(store)
    times = [_upsert(table, number) for number in range(10)]
    claim_clean(table, earliest=times[2], last=times[9])
    few = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}
    table.archive(properties=few)
    assert times[2] not in {found.requested_time for found in Table(store).timeline}
    assert Table(store).to_arrow(as_of=times[2])["ts"].to_pylist() == [2]
    with pytest.raises(HistoryLostError, match=times[2]):
        Table(store).to_arrow(as_of=times[1])
