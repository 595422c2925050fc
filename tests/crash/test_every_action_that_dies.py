"""Every action on every kind of table dies at storage calls, and so does its recovery: no row and no file is wrong.

A run tries a sample of the matrix (tests/support/actions.py), with each action in it, and of the special states in
which actions die (tests/support/special_states.py). `make test-all` runs every cell: of the third that covers the
matrix every call, of the others some. The head of a run says how to repeat its sample.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from hoodie.table import Table
from hoodie.timeline import Action, forget_all
from tests.support.actions import CELLS, COVER, Cell, one_kind_each
from tests.support.deaths import run_until
from tests.support.fault_store import Call
from tests.support.recoveries import check_deaths, check_recovery, noted, numbers_of_calls, prepared, recover
from tests.support.samples import IS_WHOLE, draw, sample_of
from tests.support.special_states import COMPACTED, SPECIAL, one_special_each
from tests.support.tables import copy_of

pytestmark = [
    pytest.mark.timeout(900),  # for all calls of a cell in `make test-all`
    pytest.mark.filterwarnings("ignore::hoodie.HoodieWarning"),  # of tables without their metadata table
]

_DEATHS = 1
"""Calls of an action at which it dies in a normal run."""
_SPECIAL_DEATHS = 3
"""The same for an action in a special state: a few of its calls are about that state."""
_OTHERS = 3
"""Calls of an action in a cell that the covering third does not have, in `make test-all`."""
_TWICE = 3
"""Cells whose recovery dies too in a normal run, besides those of restores and rollbacks."""
TAKEN_BACK = [
    draw([cell for cell in (*CELLS, *SPECIAL) if cell.action.name == name], 1, f"recovery of {name}")[0]
    for name in ("restore", "rollback of the newest commit", f"restore, {COMPACTED}")
]


@pytest.mark.parametrize("cell", CELLS if IS_WHOLE else one_kind_each(), ids=str)
def test_an_action_that_dies(cell: Cell) -> None:
    check_deaths(cell, _DEATHS, whole=None if cell in COVER else _OTHERS)


@pytest.mark.later
@pytest.mark.parametrize("cell", SPECIAL if IS_WHOLE else one_special_each(), ids=str)
def test_an_action_in_a_special_state_that_dies(cell: Cell) -> None:
    check_deaths(cell, _SPECIAL_DEATHS)


@pytest.mark.later
@pytest.mark.parametrize(
    "cell",
    [*TAKEN_BACK, *sample_of([cell for cell in COVER if cell not in TAKEN_BACK], _TWICE, "recoveries")],
    ids=str,
)
def test_a_recovery_that_dies(cell: Cell) -> None:
    start = prepared(cell)
    for number in draw(numbers_of_calls(cell, start), 1, f"first death of {cell}"):
        first = copy_of(start)
        run_until(first, cell.action.act, number)
        forget_all()
        come = partial(recover, cell, writes_first=number % 2 == 0)
        calls = run_until(copy_of(first), come, None).calls
        for second in draw(range(1, len(calls) + 1), 2, f"second death of {cell}"):
            store = copy_of(first)
            died = run_until(store, come, second)
            forget_all()
            with noted(f"{cell}: death before call {number}, then before call {second}, {calls[second - 1]}"):
                assert died.crashed
                check_recovery(cell, store, second)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        # The next writer deleted the log file that the rollback had hidden by a block, and listed.
        ("write_batch, merge_on_read, simple, version 6", 12, lambda call: call.operation == "delete_folder"),
        # The write that rolled back the dead one was refused, as its keys were staged for the index that it dropped.
        ("drop of statistics, merge_on_read, record, version 6", 2, lambda call: call.path.endswith(".deltacommit")),
    ],
    ids=["rollback before it deletes the markers", "write after a rollback that drops the record index"],
)
def test_deaths_that_a_seed_found(name: str, first: int, second: Callable[[Call], bool]) -> None:
    cell = next(one for one in CELLS if str(one) == name)
    start = prepared(cell)
    run_until(start, cell.action.act, first)
    forget_all()
    come = partial(recover, cell, writes_first=True)
    calls = run_until(copy_of(start), come, None).calls
    place = next(number for number, call in enumerate(calls, 1) if second(call))
    assert run_until(start, come, place).crashed
    forget_all()
    check_recovery(cell, start, place)


@pytest.mark.parametrize("kind", ["copy_on_write, simple", "merge_on_read, global_bloom, version 6"])
def test_a_rollback_by_name_completes_the_rollback_that_was_begun(kind: str) -> None:
    """Found by a seed: a second rollback of the instant left a log file of the first one that no listing names."""
    cell = next(one for one in CELLS if str(one) == f"rollback of a dead write, {kind}")
    start = prepared(cell)
    calls = run_until(copy_of(start), cell.action.act, None).calls
    assert run_until(
        start, cell.action.act, max(n for n, call in enumerate(calls, 1) if call.operation == "move")
    ).crashed
    forget_all()
    cell.action.take_up(Table(start))
    assert len([found for found in Table(start).timeline if found.action is Action.ROLLBACK]) == 1
