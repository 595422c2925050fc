"""When a compaction is due."""

from __future__ import annotations

import pytest

from hoodie.services.compaction.plan import Trigger, deltas_since_compaction, deltas_since_request
from hoodie.table import Table
from hoodie.timeline import parse_instant_time
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from tests.support.fault_store import FaultStore
from tests.support.tables import trips, trips_store


def table_with(deltas: int) -> Table:
    """A table with so many delta commits."""
    return Table(trips_store(*({"a": (number, "sf")} for number in range(deltas)), table_type="merge_on_read"))


def due(table: Table, strategy: str, *, commits: int = 3, seconds: int = 10**6, after: float = 0.0) -> bool:
    """Whether a compaction is due `after` seconds after the last compaction, or the first delta commit."""
    view = table.view()
    first = (view.timeline.filter(lambda found: found.action.value == "commit").latest()) or view.timeline.instants[0]
    began = parse_instant_time(first.requested_time, view.layout.zone).timestamp()
    trigger = Trigger(strategy=strategy, delta_commits=commits, delta_seconds=seconds)
    return trigger.is_due(view, now_seconds=began + after)


def test_by_commits_since_the_last_completed_compaction() -> None:
    table = table_with(2)
    assert not due(table, "num_commits")
    table.upsert(trips({"a": (9, "sf")}))
    assert due(table, "num_commits")
    table.schedule_compaction()
    assert due(table, "num_commits")
    assert not due(table, "num_commits_after_last_request")
    table.compact()
    assert not due(table, "num_commits")
    assert not due(table, "num_commits_after_last_request")
    table.upsert(trips({"a": (10, "sf")}))
    assert due(table, "num_commits", commits=1)
    assert due(table, "num_commits_after_last_request", commits=1)


@pytest.mark.parametrize(
    ("commits", "after", "both", "either"),
    [(3, 59, False, False), (2, 59, False, True), (3, 60, False, True), (2, 60, True, True)],
)
def test_by_time_by_both_and_by_either(commits: int, after: float, both: bool, either: bool) -> None:
    table = table_with(2)
    assert due(table, "time_elapsed", seconds=60, after=after) is (after >= 60)
    assert due(table, "num_and_time", commits=commits, seconds=60, after=after) is both
    assert due(table, "num_or_time", commits=commits, seconds=60, after=after) is either


def test_by_bytes_of_logs() -> None:
    table = table_with(3)
    logs = sum(row["log_size_bytes"] for row in table.inspect.slices().to_pylist())
    assert logs > 0
    assert Trigger(strategy="log_size", delta_bytes=logs).is_due(table.view())
    assert not Trigger(strategy="log_size", delta_bytes=logs + 1).is_due(table.view())


def test_a_table_without_delta_commits_is_never_due() -> None:
    view = table_with(0).view()
    for strategy in ("num_commits", "num_commits_after_last_request", "time_elapsed", "num_or_time", "log_size"):
        assert not Trigger(strategy=strategy, delta_commits=1, delta_seconds=1, delta_bytes=1).is_due(view)


def test_the_properties_of_hudi_choose_it() -> None:
    trigger = Trigger.of(
        {
            "hoodie.compact.inline.trigger.strategy": "NUM_OR_TIME",
            "hoodie.compact.inline.max.delta.commits": "7",
            "hoodie.compact.inline.max.delta.seconds": "8",
        }
    )
    assert (trigger.strategy, trigger.delta_commits, trigger.delta_seconds) == ("num_or_time", 7, 8)


def test_asking_reads_no_file() -> None:
    counted = FaultStore(table_with(3).view().store, count_reads=True)
    view = TableView.load(TableState(counted))
    before = len(counted.calls)
    for strategy in ("num_commits", "num_commits_after_last_request", "time_elapsed", "num_or_time", "num_and_time"):
        Trigger(strategy=strategy, delta_commits=3).is_due(view)
    assert len(counted.calls) == before


def test_a_write_that_completes_after_the_plan_counts_as_after_it() -> None:
    """What a plan did not see counts for the next one, though it was requested before."""
    table = table_with(2)
    scheduled = table.schedule_compaction()
    assert scheduled is not None
    late = table.upsert(trips({"a": (9, "sf")})).instant
    table.compact()
    timeline = table.timeline
    assert [found.requested_time for found in deltas_since_compaction(timeline)] == [late]
    assert [found.requested_time for found in deltas_since_request(timeline)] == [late]
