"""Every cell of the conflict matrix: what the first of two does, and that the rows are those of one after the other."""

from __future__ import annotations

import time
from functools import cache

import pytest

from hoodie.commit.steps import Step
from hoodie.errors import CommitConflictError
from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from hoodie.timeline import InstantClock
from hoodie.write.create import CreateOptions, create_table
from tests.crash.tables import FEW_BUCKETS, check_tidy, copy_of
from tests.support.conflict_matrix import ARCHIVABLE, EXPIRY, SCHEMA, Act, Outcome, acts, cells, outcome, trips
from tests.support.index_check import check_index
from tests.support.samples import sample_numbers
from tests.support.steps import ONE_TRY, once_at

OURS, THEIRS = acts(10), acts(20, ONE_TRY)
ALL = list(cells())
CELLS = [ALL[number] for number in sample_numbers(range(len(ALL)), 40)]
"""`make test-all` runs every cell; other runs a sample that HOODIE_TEST_SEED chooses."""


@cache
def _first_state(table_type: str, needs: frozenset[str]) -> MemoryStore:
    """A table with a file group in each of two partitions, and what the services in `needs` need.

    That are the plan of a (log) compaction, files that a clean deletes, commits that may be archived, partitions that
    have expired.
    """
    store = MemoryStore()
    properties = {**FEW_BUCKETS, **(ARCHIVABLE if "archive" in needs else {})}
    options = CreateOptions(
        record_key="id", partition_by="city", type=table_type, index="record", properties=properties
    )
    create_table(store, SCHEMA, options)
    table = Table(store)
    if EXPIRY in needs:
        table._context.state.clock = InstantClock(table.view().layout.zone, now_ms=_a_month_ago)
    table.upsert(trips(("a", 1, "sf"), ("b", 1, "sf"), ("c", 1, "nyc")))
    for ts in (2, 3, 4, 5):
        table.upsert(trips(("a", ts, "sf"), ("b", ts, "sf")))
        if ts == 3 and needs & {"clean", "archive"} and table_type == "merge_on_read":
            assert table.schedule_compaction() is not None
            table.compact()
    if "compaction" in needs:
        assert table.schedule_compaction() is not None
    elif "log compaction" in needs:
        assert table.schedule_log_compaction(blocks_min=2) is not None
    return store


def _a_month_ago() -> int:
    return time.time_ns() // 1_000_000 - 30 * 86_400_000


NEEDY = {"compaction", "log compaction", "clean", "archive", EXPIRY}


def first_state(table_type: str, *acting: str) -> MemoryStore:
    """A copy of the table in which all can run."""
    return copy_of(_first_state(table_type, frozenset(NEEDY.intersection(acting))))


def rows(table: Table) -> list[tuple[str, int]]:
    found = table.to_arrow(columns=["id", "ts"]).to_pylist()
    return sorted((row["id"], row["ts"]) for row in found)


def one_after_the_other(store: Store, *both: Act) -> list[tuple[str, int]]:
    table = Table(copy_of(store))
    for act in both:
        act(table)
    return rows(table)


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
    assert rows(Table(store)) in [one_after_the_other(start, *order) for order in orders[found]]
    check_index(Table(store).view())
    check_tidy(store)
