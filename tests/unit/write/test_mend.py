"""A table is mended before a write; a table that is whole costs nothing."""

from __future__ import annotations

import pytest

from hoodie.commit.call import Call
from hoodie.commit.data_commit import REBUILT_NOTE
from hoodie.metadata.paths import METADATA_FOLDER
from hoodie.table import Table
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from hoodie.write.mend import mend
from hoodie.write.setup import check_write
from tests.support.fault_store import FaultStore
from tests.support.tables import trips, trips_store

ROWS = {"a": (1, "sf"), "b": (1, "nyc")}


@pytest.mark.parametrize("looks_up", [False, True])
def test_a_whole_table_costs_what_the_look_up_reads(looks_up: bool) -> None:
    counting = FaultStore(trips_store(ROWS), count_reads=True)
    counting.register()
    setup = check_write(Call(state=TableState(counting)), None)
    del counting.calls[:]
    assert mend(setup.call, setup.view, looks_up=looks_up) == (setup.view, ())
    assert bool(counting.calls) is looks_up
    setup.index.key_stage(setup.merger)
    read = [(call.operation, call.path) for call in counting.calls]
    assert len(read) == len(set(read)), "each is read once"
    counting.unregister()


def test_a_missing_metadata_table_is_built_anew_with_its_index() -> None:
    store = trips_store(ROWS)
    store.delete_folder(METADATA_FOLDER)
    state = TableState(store)
    view = TableView.load(state)
    assert mend(Call(state=state), view) == (view, ()), "a write without a look-up does not ask"
    mended, notes = mend(Call(state=state), view, looks_up=True)
    assert mended is not view
    assert notes == (REBUILT_NOTE, "the record index was missing and was built again, with 2 entries")
    assert mend(Call(state=state), mended, looks_up=True) == (mended, ())


def test_a_commit_that_builds_the_metadata_table_anew_builds_the_index_after_it() -> None:
    store = trips_store(ROWS)
    store.delete_folder(METADATA_FOLDER)
    notes = Table(store).bulk_insert(trips({"c": (1, "sf")})).notes
    assert notes == (REBUILT_NOTE, "the record index was missing and was built again, with 3 entries")
    assert Table(store).verify().ok
