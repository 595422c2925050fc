"""A clean between the load of a timeline and the listing: a read is planned again or refused, never short of rows."""

from __future__ import annotations

import pytest

from hoodie.errors import HistoryLostError
from hoodie.read.changes import plan_changes
from hoodie.read.plan import plan_scan
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.crash.tables import new_table, trips
from tests.support.cleaned_tables import NO_CLEAN

ONE = {"hoodie.clean.commits.retained": "1"}


def upserts(store: MemoryStore, *versions: int) -> list[str]:
    return [Table(store).upsert(trips({"a": (version, "sf")})).instant or "" for version in versions]


def test_plans_on_an_overtaken_view_are_refused() -> None:
    store = MemoryStore()
    new_table(store, properties=NO_CLEAN)
    instants = upserts(store, 1, 2, 3)
    view = Table(store).view()
    assert len(plan_scan(view).slices) == 1
    # Nothing that the view reads is gone: the clean deletes what was replaced before it.
    Table(store).clean(properties=ONE)
    assert len(plan_scan(view).slices) == 1
    with pytest.raises(HistoryLostError):
        plan_scan(view, as_of=instants[0])
    with pytest.raises(HistoryLostError):
        plan_changes(view, instants[0], instants[0])
    upserts(store, 4, 5, 6)
    Table(store).clean(properties=ONE)
    with pytest.raises(HistoryLostError):
        plan_scan(view)
    assert Table(store).to_arrow(columns=["ts"]).to_pydict() == {"ts": [6]}
