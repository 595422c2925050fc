"""What a call does once: it loads the view of its table, and parses its condition, whatever it prunes by it."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import hoodie
from hoodie.errors import InvalidConfigError
from hoodie.merge_into.by_condition import plan_matching_keys, plan_update
from hoodie.read.local import SliceScan, read_table
from hoodie.read.plan import plan_scan
from hoodie.records.condition import Condition
from hoodie.records.sql import parse
from tests.support.refusals import all_refused
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
def counted(request: pytest.FixtureRequest) -> Iterator[Counted]:
    """A table of 40 rows, one of them updated, on a store that counts."""
    with counting(new_table(ROWS, [{"id": "k01", "city": "c1", "x": 100}], type=request.param)) as found:
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


BY_KEY_AND_PARTITION = "id = 'k01' AND city = 'c1' AND x >= 0"


class CountedDialect:
    """Spark's dialect; counts how often it takes each text apart."""

    def __init__(self) -> None:
        self._dialect = parse._SPARK
        self.parsed: Counter[str] = Counter()

    def tokenize(self, text: str) -> Any:
        """Each parse begins here."""
        self.parsed[text] += 1
        return self._dialect.tokenize(text)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each text is parsed from now on."""
    counted = CountedDialect()
    monkeypatch.setattr(parse, "_SPARK", counted)
    return counted.parsed


CALLS: dict[str, Callable[[hoodie.Table], object]] = {
    "to_arrow": lambda table: table.to_arrow(where=BY_KEY_AND_PARTITION),
    "head": lambda table: table.head(where=BY_KEY_AND_PARTITION),
    "count": lambda table: table.count(BY_KEY_AND_PARTITION),
    "delete_where": lambda table: table.delete_where(BY_KEY_AND_PARTITION),
    "update": lambda table: table.update({"x": "x + 1"}, BY_KEY_AND_PARTITION),
}


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_parses_its_condition_once(parsed: Counter[str], kind: str, call: str) -> None:
    logged = [[{"id": "k01", "city": "c1", "x": 1}]] if kind == "merge_on_read" else []
    table = new_table(ROWS, *logged, type=kind)
    CALLS[call](table)
    assert parsed[BY_KEY_AND_PARTITION] == 1


def test_a_scan_that_goes_to_a_worker_is_translated_already(parsed: Counter[str]) -> None:
    table = new_table()
    plan = plan_scan(table.view(), where=Condition.parse(BY_KEY_AND_PARTITION))
    scan = pickle.loads(pickle.dumps(SliceScan.of(plan)))
    assert [batch.num_rows for batch in scan.batches(table.view().store, plan.slices[0])] == [1]
    assert parsed[BY_KEY_AND_PARTITION] == 1


def test_text_that_does_not_parse_is_refused_by_the_call() -> None:
    table = new_table()
    all_refused(
        InvalidConfigError,
        "not a Spark SQL expression",
        lambda: table.to_arrow(where="id = "),
        lambda: table.head(where="id = "),
        lambda: table.count("id = "),
        lambda: table.delete_where("id = "),
        lambda: table.update({"x": "1"}, "id = "),
    )
