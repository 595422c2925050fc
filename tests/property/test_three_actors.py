"""Three writes or services at once: the first requested completes last, the last requested completes first.

Each of them succeeds or raises CommitConflictError; the rows are those of the ones that succeeded, in some order one
after the other. tests/support/conflict_matrix.py says what two of them do.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import pytest

from hoodie.commit.steps import Step
from hoodie.config import concurrency
from hoodie.errors import CommitConflictError, HoodieError
from hoodie.storage import Store
from hoodie.table import Table
from tests.support.conflict_matrix import OPERATIONS, acts, outcome
from tests.support.conflict_tables import first_state, one_after_the_other, rows
from tests.support.deaths import check_tidy
from tests.support.index_check import check_index
from tests.support.samples import IS_WHOLE, draw
from tests.support.steps import ONE_TRY, once_at
from tests.support.tables import copy_of

LAST = (*OPERATIONS, "archive", "savepoint")
"""What completes first may be a service that runs under the lock."""
ACTS = (acts(10), acts(20, {concurrency.CONFLICT_RETRIES.key: "2"}), acts(30, ONE_TRY))
"""The second may meet both others; more tries would wait long for one that never ends before it."""


def can_meet(table_type: str, *names: str) -> bool:
    """Whether each two of the three can run at the same time."""
    pairs = [(first, second) for number, first in enumerate(names) for second in names[number + 1 :]]
    return all(outcome(table_type, *pair) is not None for pair in pairs)


def cells() -> Iterator[tuple[str, str, str, str]]:
    """Table type, and the three in the order of their requests."""
    for table_type in ("copy_on_write", "merge_on_read"):
        for names in product(OPERATIONS, OPERATIONS, LAST):
            if can_meet(table_type, *names):
                yield table_type, *names


CELLS = draw(list(cells()), 300 if IS_WHOLE else 14, "three actors")


@pytest.mark.parametrize(("table_type", "first", "second", "third"), CELLS)
def test_the_first_requested_completes_last(table_type: str, first: str, second: str, third: str) -> None:
    names = (first, second, third)
    start = first_state(table_type, *names)
    store = copy_of(start)
    began: set[int] = set()
    succeeded: set[int] = set()

    def run(number: int) -> None:
        """Run one of the three on a handle of its own; when it is inflight, the next one runs."""
        began.add(number)
        try:
            if number == len(names) - 1:
                ACTS[number][names[number]](Table(store))
            else:
                with once_at(Step.BEGUN, lambda: run(number + 1)):
                    ACTS[number][names[number]](Table(store))
            succeeded.add(number)
        except CommitConflictError:
            pass

    run(0)
    if len(names) - 1 not in began:
        run(len(names) - 1)  # the second was refused before it was inflight
    assert succeeded
    found = rows(Table(store))
    assert any(found == wanted for wanted in serial_rows(start, names, succeeded)), succeeded
    view = Table(store).view()
    check_index(view)
    check_tidy(store)
    if "column_stats" in view.config.metadata_partitions:
        report = Table(store).index.verify("column_stats")
        assert report.ok, report


def serial_rows(start: Store, names: tuple[str, ...], succeeded: set[int]) -> Iterator[list[tuple[str, int]]]:
    """The rows after the acts that succeeded, in each order in which they run one after the other."""
    for order in permutations(sorted(succeeded)):
        try:
            yield one_after_the_other(start, *(ACTS[number][names[number]] for number in order))
        except HoodieError:
            continue
