"""Actions on tables with an HBase index die at their storage calls, and such a table lives at random beside a dict.

HBase is not copied with the table: the locations of the dead copies are in it for all later ones. They do not count.
"""

from __future__ import annotations

import uuid

import pytest

from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from hoodie.timeline import forget_all
from tests.property.machine import new_run
from tests.property.model import Rules
from tests.property.test_random_operations import live
from tests.support.actions import ACTIONS, Cell, Kind
from tests.support.deaths import check_tidy, deaths
from tests.support.recoveries import check_deaths
from tests.support.samples import draw, sample_of
from tests.support.seeds import seeded
from tests.support.tables import Rows, create_in, rows_of, trips

_DEATHS = 2
_ACTIONS = 6
"""Actions of a normal run; `make test-all` has all."""


def cells(options: dict[str, str]) -> list[Cell]:
    kinds = [Kind(table_type, "hbase", options) for table_type in ("copy_on_write", "merge_on_read")]
    # The services of the metadata table, and other indexes, do not ask HBase.
    found = [Cell(action, kind) for action in ACTIONS for kind in kinds if action.fits(kind)]
    return [cell for cell in found if not cell.action.method.startswith("index.")]


@pytest.mark.timeout(600)
def test_actions_that_die(options: dict[str, str]) -> None:
    found = cells(options)
    names = sorted({cell.action.name for cell in found})
    for name in sample_of(names, _ACTIONS, "actions with an HBase index"):
        (cell,) = draw([cell for cell in found if cell.action.name == name], 1, f"kind for {name}, hbase")
        check_deaths_with_hbase(cell, options)


def check_deaths_with_hbase(cell: Cell, options: dict[str, str]) -> None:
    """Rows of before or after, a recovery, a tidy table, and an index that agrees with the data."""
    own = Kind(cell.kind.table_type, "hbase", {**options, "hoodie.index.hbase.table": f"t{uuid.uuid4().hex}"})
    check_deaths(Cell(cell.action, own), _DEATHS, check_index)


def check_index(store: Store) -> None:
    """The index agrees with the data."""
    report = Table(store).index.verify()
    assert report.ok, str(report)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_an_upsert_that_dies_at_any_call(options: dict[str, str], table_type: str) -> None:
    """Moves, inserts, updates and deletes in one write; after each death the same write succeeds."""
    store = MemoryStore()
    create_in(store, table_type=table_type, index="hbase", properties=options)
    old: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "la")}
    Table(store).upsert(trips(old))
    changed: Rows = {"a": (2, "la"), "b": (2, "sf"), "d": (2, "nyc")}
    new = {**old, **changed}
    for death in deaths(store, lambda table: table.upsert(trips(changed)), keep=10):
        forget_all()
        assert rows_of(death.store) in (old, new), str(death)
        Table(death.store).upsert(trips(changed))
        assert rows_of(death.store) == new, str(death)
        assert Table(death.store).index.verify().ok, str(death)
        check_tidy(death.store, has_record_index=False)


@pytest.mark.timeout(600)
@seeded(1306)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_life_with_an_hbase_index(options: dict[str, str], table_type: str, seed: int) -> None:
    rules = Rules(True, "hbase", is_merge_on_read=table_type == "merge_on_read", version=9, late=False)
    run = new_run(rules, seed, "services", options)
    live(run, "services")
    report = Table(run.store).index.verify()
    assert report.ok, str(report)
