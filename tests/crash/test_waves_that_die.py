"""Requests of a wave happen in any order, and a process dies between them: rows of before or after, nothing is left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hoodie.table import Table
from hoodie.timeline import forget_all
from tests.support.actions import CELLS, FORMS, Cell
from tests.support.cloud_store import CloudStore
from tests.support.recoveries import check_recovery, noted
from tests.support.samples import IS_WHOLE, draw, sample_of
from tests.support.tables import copy_of, rows_of

pytestmark = pytest.mark.timeout(900)  # for all calls of a cell in `make test-all`

_CELLS = [cell for cell in CELLS if cell.kind.index != "hbase" and not cell.action.until]
_DEATHS = 4
"""Calls of an action at which it dies in a normal run."""


def cells() -> Iterator[Cell]:
    """Each action on each type and version in test-all; else a few of all, and those of writes among them."""
    if IS_WHOLE:
        yield from (cell for cell in FORMS if cell in _CELLS)
        return
    for name in ("upsert", "insert_overwrite", "clean"):
        yield from draw([cell for cell in _CELLS if cell.action.name == name], 1, f"waves of {name}")
    yield from draw(_CELLS, 8, "waves")


@pytest.mark.parametrize("cell", list({str(cell): cell for cell in cells()}.values()), ids=str)
def test_an_action_in_an_object_store(cell: Cell) -> None:
    start = cell.prepared()
    done = copy_of(start)
    whole = CloudStore(done, seed=f"waves of {cell}")
    whole.run(cell.action.act)
    assert not whole.crashed
    assert rows_of(done) == cell.rows
    assert Table(done).verify(full=True).ok
    for number in sample_of(range(1, len(whole.calls) + 1), _DEATHS, f"deaths in waves of {cell}"):
        store = copy_of(start)
        dying = CloudStore(store, number, seed=f"{cell} {number}")
        dying.run(cell.action.act)
        forget_all()
        with noted(f"{cell}: death at request {number}, {dying.calls[-1]}"):
            check_recovery(cell, store, number)
