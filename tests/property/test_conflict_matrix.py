"""Every cell of the conflict matrix: what the first of two does, and that the rows are those of one after the other."""

from __future__ import annotations

import pytest

from hoodie.commit.steps import Step
from hoodie.errors import CommitConflictError
from hoodie.table import Table
from tests.support.conflict_matrix import Act, Outcome, acts, cells, outcome
from tests.support.conflict_tables import NEEDY, first_state, one_after_the_other, rows
from tests.support.deaths import check_tidy
from tests.support.index_check import check_index
from tests.support.samples import sample_numbers
from tests.support.steps import ONE_TRY, once_at
from tests.support.tables import copy_of

OURS, THEIRS = acts(10), acts(20, ONE_TRY)
ALL = list(cells())
CELLS = [ALL[number] for number in sample_numbers(range(len(ALL)), 26)]
"""`make test-all` runs every cell; other runs a sample that HOODIE_TEST_SEED chooses."""


@pytest.mark.parametrize(("table_type", "ours", "theirs"), CELLS)
def test_cell(table_type: str, ours: str, theirs: str) -> None:
    start = first_state(table_type, ours, theirs)
    store = copy_of(start)
    table, notes = Table(store), ()
    refused: list[CommitConflictError] = []

    def act() -> None:
        try:
            done = THEIRS[theirs](Table(store))
            assert theirs not in NEEDY or getattr(done, "counts", True), f"{theirs} had nothing to do"
        except CommitConflictError as error:
            refused.append(error)

    with once_at(Step.BEGUN, act):
        try:
            notes = getattr(OURS[ours](table), "notes", ())
            found = Outcome.RETRIES if any("retried" in note for note in notes) else Outcome.GOES_ON
        except CommitConflictError:
            found = Outcome.CONFLICTS
    found = Outcome.REFUSES if refused and found is Outcome.GOES_ON else found
    assert found is outcome(table_type, ours, theirs), notes
    orders: dict[Outcome, list[tuple[Act, ...]]] = {
        Outcome.GOES_ON: [(THEIRS[theirs], OURS[ours]), (OURS[ours], THEIRS[theirs])],
        Outcome.RETRIES: [(THEIRS[theirs], OURS[ours])],
        Outcome.CONFLICTS: [(THEIRS[theirs],)],
        Outcome.REFUSES: [(OURS[ours],)],
    }
    left = rows(Table(store))
    assert any(left == one_after_the_other(start, *order) for order in orders[found])
    view = Table(store).view()
    check_index(view)
    check_tidy(store)
    if "column_stats" in view.config.metadata_partitions:
        report = Table(store).index.verify("column_stats")
        assert report.ok, report
