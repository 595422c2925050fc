"""Every action on every kind of table dies at storage calls, and so does its recovery: no row and no file is wrong.

A run tries a sample of the matrix (tests/crash/actions.py), with each action in it; `make test-all` tries every call,
and a recovery that dies in every cell. The head of a run says how to repeat its sample.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import hoodie
from hoodie.index.record.state import partitioned_index, record_index
from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from hoodie.timeline import forget_all
from tests.crash.actions import CELLS, START, Cell, is_restoring, moved, one_kind_each, whole_run
from tests.crash.tables import Rows, check_tidy, rows_of, run_until, trips
from tests.support.samples import IS_WHOLE, draw, sample_of

pytestmark = pytest.mark.timeout(900)  # for all calls of a cell in `make test-all`

_DEATHS = 1
"""Calls of an action at which it dies in a normal run."""
_TWICE = 5
"""Cells whose recovery dies too in a normal run."""

NEXT: Rows = {"next": (1, "rome")}
LAST: Rows = {"last": (1, "rome")}


def prepared(cell: Cell) -> MemoryStore:
    store = MemoryStore()
    cell.make(store)
    assert rows_of(store) == START
    return store


def numbers_of_calls(cell: Cell, store: MemoryStore) -> range:
    """The calls of the action by number; a run to its end gives the rows that the case promises."""
    copied = moved(store)
    count = len(whole_run(cell, copied).calls)
    assert rows_of(copied) == cell.rows
    return range(1, count + 1)


def recover(cell: Cell, table: Table, *, writes_first: bool) -> None:
    """The next writer comes, and what takes the action up; which one comes first differs from death to death."""
    if cell.action.needs_it:
        if is_restoring(table):
            cell.action.take_up(table)
    elif not writes_first:
        cell.action.take_up(table)
    table.upsert(trips(NEXT))
    if not cell.action.needs_it and writes_first:
        cell.action.take_up(table)


def check_recovery(cell: Cell, store: MemoryStore, number: int) -> None:
    """Rows of before or after; the recovery keeps them; then nothing of the dead process is left."""
    allowed = cell.possible_rows
    if is_restoring(Table(store)):
        with pytest.raises(hoodie.UnsupportedError, match=r"t\.restore"):
            Table(store).upsert(trips(NEXT))
        allowed = [cell.rows]
    else:
        found = rows_of(store)
        assert without(found, NEXT) in allowed
        if cell.action.method != "rollback":  # the next writer completes a rollback that was begun
            allowed = [without(found, NEXT)]
    recover(cell, Table(store), writes_first=number % 2 == 0)
    after = rows_of(store)
    assert after in [{**rows, **NEXT} for rows in allowed]
    Table(store).upsert(trips(LAST))
    assert rows_of(store) == {**after, **LAST}
    check_table(cell, store)


def without(rows: Rows, others: Rows) -> Rows:
    return {key: row for key, row in rows.items() if key not in others}


def check_table(cell: Cell, store: MemoryStore) -> None:
    """Nothing is pending or orphaned; index, listing and statistics agree with the data."""
    view = Table(store).view()
    has_index = record_index(view) is not None or partitioned_index(view) is not None
    # `rebuild` says in its notes that it does not build a partitioned index.
    assert (
        has_index
        or not cell.kind.has_record_index
        or cell.action.method in ("index.drop", "index.rebuild", "index.switch", "downgrade", "drop_old_timeline")
    )
    check_tidy(store, has_record_index=has_index)
    report = Table(store).verify(full=True)
    assert report.ok, str(report)


def check_deaths(cell: Cell, deaths: int, also: Callable[[Store], None] = lambda store: None) -> None:
    """Let the action die at a sample of its storage calls, and check each recovery; `also` is checked after it."""
    start = prepared(cell)
    for number in sample_of(numbers_of_calls(cell, start), deaths, f"calls of {cell}"):
        store = moved(start)
        died = run_until(store, cell.action.act, number)
        forget_all()
        try:
            assert died.crashed
            check_recovery(cell, store, number)
            also(store)
        except BaseException as error:
            error.add_note(f"{cell}: death before call {number}, {died.calls[number - 1]}")
            raise


@pytest.mark.parametrize("cell", CELLS if IS_WHOLE else one_kind_each(), ids=str)
def test_an_action_that_dies(cell: Cell) -> None:
    check_deaths(cell, _DEATHS)


@pytest.mark.parametrize("cell", sample_of(CELLS, _TWICE, "recoveries"), ids=str)
def test_a_recovery_that_dies(cell: Cell) -> None:
    start = prepared(cell)
    for number in draw(numbers_of_calls(cell, start), 1, f"first death of {cell}"):
        first = moved(start)
        run_until(first, cell.action.act, number)
        forget_all()

        def come(table: Table, number: int = number) -> None:
            recover(cell, table, writes_first=number % 2 == 0)

        calls = run_until(moved(first), come, None).calls
        for second in draw(range(1, len(calls) + 1), 2, f"second death of {cell}"):
            store = moved(first)
            assert run_until(store, come, second).crashed
            forget_all()
            try:
                check_recovery(cell, store, second)
            except BaseException as error:
                error.add_note(f"{cell}: death before call {number}, then before call {second}, {calls[second - 1]}")
                raise
