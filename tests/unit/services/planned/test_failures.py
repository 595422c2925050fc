"""One plan that fails, with an error of any library, does not stop the other plans, and its error is raised."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest

from hoodie.commit.call import Call
from hoodie.results import ServiceResult
from hoodie.services.clustering.clustering import CLUSTERING, cluster
from hoodie.services.clustering.schedule import Wish
from hoodie.services.compaction.compaction import COMPACTION, compact_inline
from hoodie.services.planned.executor import execute_waiting
from hoodie.table import Table
from hoodie.view.slices import list_slices
from tests.support.merge_on_read import EngineThen, on_engine
from tests.support.tables import made_once, rows_of, trips, trips_store

ROWS = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc"), "d": (1, "nyc")}


@dataclass
class Fails:
    """Fails the first so many times that it is called."""

    times: int = 1

    def __call__(self) -> None:
        self.times -= 1
        if self.times >= 0:
            raise pa.ArrowInvalid(f"a damaged row group, {self.times}")


@made_once
def logged_table() -> Table:
    """A table with a pending compaction in each of two partitions."""
    table = Table(trips_store(ROWS, table_type="merge_on_read", properties={"hoodie.compact.inline": "false"}))
    for key, city in (("a", "sf"), ("c", "nyc")):
        table.upsert(trips({key: (2, city)}))
        table.schedule_compaction()
    return table


@made_once
def small_files() -> Table:
    """A table with a pending clustering in each of two partitions."""
    small = {"hoodie.parquet.small.file.limit": "0"}
    table = Table(trips_store(*({key: row} for key, row in ROWS.items()), properties=small))
    for city in ("sf", "nyc"):
        table.schedule_clustering(partitions=f"city={city}")
    return table


def call_of(table: Table, fails: Fails, **properties: str) -> Call:
    """A call whose tasks fail at their end."""
    return on_engine(table.view().store, EngineThen(then=fails), properties)


def test_compactions_go_on_after_one_that_failed() -> None:
    table, told = logged_table(), list[ServiceResult]()
    plans = table.pending_compactions().instants
    with pytest.raises(pa.ArrowInvalid, match="damaged row group"):
        execute_waiting(COMPACTION, call_of(table, Fails()), report=told.append)
    assert [result.instant for result in told] == plans[1:]
    assert table.pending_compactions().instants == plans[:1]


def test_all_errors_are_told() -> None:
    table = logged_table()
    plans = table.pending_compactions().instants
    with pytest.raises(pa.ArrowInvalid, match="row group, 1") as raised:
        execute_waiting(COMPACTION, call_of(table, Fails(times=2)))
    assert raised.value.__notes__ == ["another plan failed too: ArrowInvalid: a damaged row group, 0"]
    assert table.pending_compactions().instants == plans


def test_a_compaction_that_is_due_after_a_write_does_not_wait_for_one_that_fails() -> None:
    table = logged_table()
    plans = table.pending_compactions().instants
    for ts in (1, 2):
        table.upsert(trips({"e": (ts, "oslo")}))
    inline = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    done = compact_inline(call_of(table, Fails(), **inline))
    assert done is not None
    assert "damaged row group" in done.notes[0]
    assert table.pending_compactions().instants == plans[:1]
    (oslo,) = (found for found in list_slices(table.view()) if found.partition_path == "city=oslo")
    assert oslo.log_files == ()


def test_clusterings_go_on_after_one_that_failed() -> None:
    table, fails = small_files(), Fails()
    plans, call = table.pending_clusterings().instants, call_of(table, fails)
    with pytest.raises(pa.ArrowInvalid, match="damaged row group"):
        execute_waiting(CLUSTERING, call)
    assert table.pending_clusterings().instants == plans[:1]
    for key in ("e", "f"):
        table.insert(trips({key: (1, "oslo")}))
    fails.times = 1
    with pytest.raises(pa.ArrowInvalid, match="damaged row group"):
        cluster(call, Wish())
    assert sum(found.partition_path == "city=oslo" for found in list_slices(table.view())) == 1, "no new clustering"
    assert rows_of(table.view().store) == {**ROWS, "e": (1, "oslo"), "f": (1, "oslo")}
