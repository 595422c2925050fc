"""A read loads the view of its table once: one read of the properties, one listing of the timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import hoodie
from hoodie.merge_into.by_condition import plan_matching_keys, plan_update
from hoodie.read.local import read_table
from hoodie.records.condition import Condition
from tests.unit.read.counted import ROWS, Counted, counting, new_table

BY_KEY = "id IN ('k01', 'k02') AND city = 'c1'"
READS: dict[str, Callable[[hoodie.Table], object]] = {
    "to_arrow": lambda table: table.to_arrow(),
    "to_arrow by key": lambda table: table.to_arrow(where=BY_KEY),
    "to_arrow as of an instant": lambda table: table.to_arrow(as_of=table_start(table)),
    "head": lambda table: table.head(3),
    "count": lambda table: table.count(),
    "count by key": lambda table: table.count(BY_KEY),
    "read_keys of values": lambda table: table.read_keys(["k01", "k02"]),
    "read_keys of rows": lambda table: table.read_keys(ROWS.slice(0, 3)),
    "record_locations": lambda table: table.record_locations(["k01", "nobody"]),
    "filter_exists": lambda table: table.filter_exists(ROWS),
    "changes": lambda table: table.changes(),
    "schema": lambda table: table.schema,
    "timeline": lambda table: table.timeline,
    "history": lambda table: table.history(),
    "inspect.files": lambda table: table.inspect.files(),
    "inspect.slices": lambda table: table.inspect.slices(),
    "inspect.partitions": lambda table: table.inspect.partitions(),
    "inspect.statistics": lambda table: table.inspect.statistics(),
    "inspect.index": lambda table: table.inspect.index(),
    "inspect.index_changes": lambda table: table.inspect.index_changes(None),
}
_STARTS: dict[str, str] = {}


def table_start(table: hoodie.Table) -> str:
    """The first instant, which the fixture looked up."""
    return _STARTS[table.path]


@pytest.fixture(scope="module", params=["copy_on_write", "merge_on_read"])
def counted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    """A table of 40 rows, one of them updated, on a store that counts."""
    table = new_table(tmp_path_factory.mktemp(request.param) / "t", type=request.param)
    table.upsert(pa.table({"id": ["k01"], "city": ["c1"], "x": [100]}))
    with counting(table) as found:
        _STARTS[found.table.path] = found.table.timeline.instants[0].requested_time
        yield found


@pytest.mark.parametrize("read", READS)
def test_a_read_loads_the_view_once(counted: Counted, read: str) -> None:
    counted.view_loads()
    READS[read](counted.table)
    assert counted.view_loads() == (1, 1)


def test_the_plans_of_deletes_and_updates_use_the_view_that_they_are_given(counted: Counted) -> None:
    counted.view_loads()
    view = counted.table.view()
    where = Condition.parse(BY_KEY)
    assert read_table(plan_matching_keys(view, where)).num_rows == 1
    assert read_table(plan_update(view, {"x": "x + 1"}, where, {}).scan).num_rows == 1
    assert counted.view_loads() == (1, 1)
