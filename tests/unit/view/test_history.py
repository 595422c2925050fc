"""Unit tests of hoodie/view/history.py."""

from __future__ import annotations

import pytest

from hoodie.commit.steps import Step
from hoodie.errors import HistoryLostError
from hoodie.table import Table
from hoodie.view.history import oldest_readable_instant
from tests.support.cleans import claim_clean
from tests.support.fault_store import FaultStore
from tests.support.steps import once_at
from tests.support.tables import made_once, model_of, trips, trips_store

KEPT = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


@made_once
def written(commits: int) -> Table:
    """A table whose commit `n` sets the row `a` to `n`, from 0 on."""
    properties = {**KEPT, "hoodie.metadata.compact.max.delta.commits": "2"}
    return Table(trips_store(*({"a": (number, "sf")} for number in range(commits)), properties=properties))


def times_of(table: Table) -> list[str]:
    return [found.requested_time for found in table.timeline.writes()]


@pytest.mark.parametrize("retained", [1, 2, 3])
def test_only_cleans_that_can_raise_the_bound_are_read(retained: int) -> None:
    """Each of seven cleans retains some commits: of the cleans before the oldest retained commit, none is read."""
    table = written(3)
    store = FaultStore(table.view().store, count_reads=True)
    for number in range(3, 10):
        table.upsert(trips({"a": (number, "sf")}))
        times = times_of(table)
        claim_clean(table, earliest=times[-retained], last=times[-1])
    view = Table(store).view()
    store.calls.clear()
    assert oldest_readable_instant(view) == times[-retained]
    assert len([call for call in store.calls if call.path.endswith(".clean")]) == retained


def test_an_older_clean_that_retained_less_still_counts() -> None:
    """The bound is the highest of all cleans, not that of the newest."""
    table = written(5)
    times = times_of(table)
    claim_clean(table, earliest=times[4], last=times[4])
    claim_clean(table, earliest=times[1], last=times[4])
    assert oldest_readable_instant(table.view()) == times[4]


def test_the_instant_of_an_error_can_be_read_where_writers_overlapped() -> None:
    """A write completes after the oldest retained commit, which was requested later: a state between is refused."""
    store = trips_store({"a": (1, "sf"), "b": (1, "nyc")}, properties=KEPT)
    table = Table(store)
    with once_at(Step.BEGUN, lambda: Table(store).upsert(trips({"b": (3, "nyc")}))):
        late = table.upsert(trips({"a": (2, "sf")})).instant
    retained = Table(store).timeline.writes().completed().instants[-1].requested_time
    newest = table.upsert(trips({"b": (4, "nyc")})).instant
    assert late < retained
    claim_clean(table, earliest=retained, last=newest)
    with pytest.raises(HistoryLostError) as refused:
        Table(store).to_arrow(as_of=retained)
    assert refused.value.oldest_instant == late
    assert model_of(table.to_arrow(as_of=late)) == {"a": (2, "sf"), "b": (3, "nyc")}
    # By requested times, the retained commit is the oldest.
    assert Table(store).to_arrow(as_of=f"requested:{retained}").num_rows == 2


def test_the_oldest_readable_instant_can_be_archived() -> None:
    table = written(7)
    times = times_of(table)
    claim_clean(table, earliest=times[2], last=times[6])
    few = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}
    table.archive(properties=few)
    assert times[2] not in times_of(table)
    assert table.to_arrow(as_of=times[2])["ts"].to_pylist() == [2]
    with pytest.raises(HistoryLostError, match=times[2]):
        table.to_arrow(as_of=times[1])
