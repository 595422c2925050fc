"""One plan that fails, with an error of any library, does not stop the other plans, and its error is raised."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest

from hoodie.commit.call import Call
from hoodie.services.clustering.clustering import CLUSTERING, cluster
from hoodie.services.clustering.schedule import Wish
from hoodie.services.compaction.compaction import COMPACTION, compact_inline
from hoodie.services.planned.executor import execute_waiting
from hoodie.services.results import ServiceResult
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from tests.crash.tables import new_table, rows_of, trips
from tests.support.merge_on_read import EngineThen

ROWS = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc"), "d": (1, "nyc")}


@dataclass
class Fails:
    """Fails the first so many times that it is called."""

    times: int = 1

    def __call__(self) -> None:
        self.times -= 1
        if self.times >= 0:
            raise pa.ArrowInvalid(f"a damaged row group, {self.times}")


def logged_table() -> tuple[Table, list[str]]:
    """A table with a pending compaction in each of two partitions."""
    store, plans = MemoryStore(), []
    new_table(store, table_type="merge_on_read", properties={"hoodie.compact.inline": "false"})
    table = Table(store)
    table.upsert(trips(ROWS))
    for key, city in (("a", "sf"), ("c", "nyc")):
        table.upsert(trips({key: (2, city)}))
        plans.append(table.schedule_compaction() or "")
    assert table.pending_compactions().instants == plans
    return table, plans


ON_ENGINE = {"hoodie.python.local.bytes.max": "0"}


def small_files() -> tuple[Table, list[str]]:
    """A table with a pending clustering in each of two partitions."""
    store, plans = MemoryStore(), []
    new_table(store, properties={"hoodie.parquet.small.file.limit": "0"})
    table = Table(store)
    for key, row in ROWS.items():
        table.insert(trips({key: row}))
    for city in ("sf", "nyc"):
        chosen = {"hoodie.clustering.plan.strategy.partition.selected": f"city={city}"}
        plans.append(table.schedule_clustering(properties=chosen) or "")
    assert table.pending_clusterings().instants == plans
    return table, plans


def test_compactions_go_on_after_one_that_failed() -> None:
    table, plans = logged_table()
    engine, told = EngineThen(then=Fails()), list[ServiceResult]()
    call = Call(state=TableState(table.view().store), engine=engine, properties=ON_ENGINE)
    with pytest.raises(pa.ArrowInvalid, match="damaged row group"):
        execute_waiting(COMPACTION, call, report=told.append)
    assert [result.instant for result in told] == plans[1:]
    assert table.pending_compactions().instants == plans[:1]


def test_all_errors_are_told() -> None:
    table, plans = logged_table()
    engine = EngineThen(then=Fails(times=2))
    call = Call(state=TableState(table.view().store), engine=engine, properties=ON_ENGINE)
    with pytest.raises(pa.ArrowInvalid, match="row group, 1") as raised:
        execute_waiting(COMPACTION, call)
    assert raised.value.__notes__ == ["another plan failed too: ArrowInvalid: a damaged row group, 0"]
    assert table.pending_compactions().instants == plans


def test_a_compaction_that_is_due_after_a_write_does_not_wait_for_one_that_fails() -> None:
    table, plans = logged_table()
    table.upsert(trips({"e": (1, "oslo")}))
    table.upsert(trips({"e": (2, "oslo")}))
    engine = EngineThen(then=Fails())
    inline = {**ON_ENGINE, "hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    done = compact_inline(Call(state=TableState(table.view().store), engine=engine, properties=inline))
    assert done is not None
    assert "damaged row group" in done.notes[0]
    assert table.pending_compactions().instants == plans[:1]
    (oslo,) = (found for found in list_slices(table.view()) if found.partition_path == "city=oslo")
    assert oslo.log_files == ()


def test_clusterings_go_on_after_one_that_failed() -> None:
    table, plans = small_files()
    fails = Fails()
    engine = EngineThen(then=fails)
    call = Call(state=TableState(table.view().store), engine=engine, properties=ON_ENGINE)
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
