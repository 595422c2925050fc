"""Views of one table share what they read: the next one costs two requests, and parses what is new."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.commit import call
from hoodie.engine import LocalEngine
from hoodie.errors import InvalidConfigError, TableNotFoundError
from hoodie.files.table_properties import PROPERTIES, update_table_config
from hoodie.table import Table
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from tests.support.fault_store import Call, FaultStore
from tests.support.tables import new_table

ROWS = pa.table({"id": ["a", "b"], "x": [1, 2]})


@pytest.fixture
def table() -> Table:
    """A table with one commit."""
    return new_table(ROWS.schema, ROWS)


def test_a_refreshed_view_costs_two_requests(table: Table) -> None:
    store = FaultStore(table.view().store, count_reads=True)
    view = TableView.load(TableState(store))
    store.calls.clear()
    again = view.refreshed()
    assert store.calls == [Call("read", PROPERTIES), Call("names", ".hoodie/timeline")]
    assert again.config is view.config
    assert again.timeline is view.timeline


def test_a_refreshed_view_sees_the_next_commit(table: Table) -> None:
    view = table.view()
    second = table.upsert(ROWS).instant
    again = view.refreshed()
    latest = again.timeline.latest()
    assert latest is not None
    assert latest.requested_time == second
    assert view.timeline.get(second) is None
    assert again.timeline.get(view.timeline.instants[0].requested_time) is view.timeline.instants[0]


def test_a_refreshed_view_of_the_past_is_one_of_now(table: Table) -> None:
    first = table.view().timeline.instants[0]
    table.upsert(ROWS)
    past = table.view().as_completed_by(str(first.completion_time))
    assert [len(past.timeline), len(past.completed_later)] == [1, 1]
    assert [len(past.refreshed().timeline), len(past.refreshed().completed_later)] == [2, 0]


def test_changed_properties_are_parsed_again(table: Table) -> None:
    view = table.view()
    update_table_config(view.store, {"hoodie.table.name": "other"})
    assert view.refreshed().config.name == "other"
    view.store.create(".hoodie/elsewhere/history/.keep", b"")
    update_table_config(view.store, {"hoodie.timeline.path": "elsewhere"})
    assert len(view.refreshed().timeline) == 0


def test_a_table_that_is_gone_is_not_found(table: Table) -> None:
    view = table.view()
    for info in view.store.list("", recursive=True):
        view.store.delete(info.path)
    with pytest.raises(TableNotFoundError):
        view.refreshed()


def test_the_choice_of_an_engine_reads_nothing_of_its_own(table: Table) -> None:
    store = FaultStore(table.view().store, count_reads=True)
    state, large = TableState(store), LocalEngine()
    engine_for = call.Call(state=state, engine=large).engine_for
    TableView.load(state)
    store.calls.clear()
    assert engine_for(1 << 50) is large
    assert engine_for(0) is not large
    assert store.calls == []
    update_table_config(store, {"hoodie.python.local.bytes.max": "1"})
    TableView.load(state)
    assert engine_for(2) is large
    with pytest.raises(InvalidConfigError, match=r"bytes\.max='much'"):
        call.Call(state=state, properties={"hoodie.python.local.bytes.max": "much"})
