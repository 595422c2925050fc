"""Retries of a write after conflicts: how often, how long in between, and what the result says."""

from __future__ import annotations

import pytest

import hoodie
from hoodie.commit.steps import Step, watching
from hoodie.errors import CommitConflictError
from hoodie.table import Table
from hoodie.write.attempt import Retries, not_repeated
from tests.support.deaths import check_tidy
from tests.support.index_check import check_index
from tests.support.steps import ONE_TRY, once_at
from tests.support.tables import TYPES, values_of
from tests.unit.write.tables import FIRST, ids_of, new_table, trips

RETRIES = "hoodie.write.num.retries.on.conflict.failures"


def failing(times: int, took: float = 0.001) -> tuple[Retries, list[float], list[int]]:
    """Retries whose waits are noted, after `times` attempts that met a conflict; the first one `took` some seconds."""
    waits: list[float] = []
    attempts: list[int] = []
    moments = iter([0.0, took])
    retries = Retries(3, sleep=waits.append, random=lambda: 0.5, clock=lambda: next(moments))

    def attempt(number: int) -> int:
        attempts.append(number)
        if number < times:
            raise CommitConflictError(f"met {number}; try again", retry_cause=f"met {number}")
        return number

    try:
        assert retries.run(attempt) == times
    finally:
        assert attempts == list(range(len(attempts)))
    return retries, waits, attempts


def test_waits_double_and_the_note_names_the_last_cause() -> None:
    retries, waits, _ = failing(3)
    assert waits == [0.05, 0.1, 0.2]
    assert retries.notes == ("retried 3 times: met 2",)
    assert failing(3, took=0.3)[1] == [0.3, 0.6, 1.2]
    assert failing(3, took=60.0)[1] == [1.0, 2.0, 4.0]
    assert failing(1)[0].notes == ("retried once: met 0",)
    assert failing(0)[0].notes == ()


def test_waits_have_an_upper_bound() -> None:
    waits: list[float] = []
    retries = Retries(40, sleep=waits.append, random=lambda: 1.0)

    def attempt(_number: int) -> None:
        raise CommitConflictError("met", retry_cause="met")

    with pytest.raises(CommitConflictError, match=rf"tried 41 times \({RETRIES}\): let fewer writers"):
        retries.run(attempt)
    assert max(waits) == 15.0
    assert len(waits) == 40


def test_the_last_error_says_how_often_it_was_tried() -> None:
    with pytest.raises(CommitConflictError, match=r"met 3; .* tried 4 times .* other partitions") as found:
        failing(4)
    assert found.value.retry_cause is None


def test_an_error_without_a_cause_is_not_retried() -> None:
    waits: list[float] = []

    def attempt(_number: int) -> None:
        raise CommitConflictError("the outcome is not known")

    with pytest.raises(CommitConflictError, match="not known"):
        Retries(3, sleep=waits.append).run(attempt)
    with pytest.raises(CommitConflictError, match=r"^the outcome is not known$"), not_repeated("bulk_insert"):
        attempt(0)
    assert waits == []


NEWER = trips(("a", 2, 2.0, "sf"), ("x", 2, 2.0, "sf"))
"""What another writer writes meanwhile: a newer version, and a new row."""


def pair(table_type: str = "copy_on_write") -> tuple[Table, Table]:
    """Two handles of one table with two rows."""
    table = new_table(FIRST, type=table_type)
    return table, hoodie.open(table.path, spark=False)


@pytest.mark.parametrize("table_type", TYPES)
def test_staged_rows_are_tagged_again(table_type: str) -> None:
    """What was an insert at the first attempt is an update at the second; the data are read once."""
    table, other = pair(table_type)
    rows = trips(("a", 3, 3.0, "sf"), ("x", 3, 3.0, "sf"), ("y", 3, 3.0, "la"))
    with once_at(Step.WRITTEN, lambda: other.upsert(NEWER)):
        result = table.upsert(rows.to_reader())
    assert (result.inserted, result.updated) == (1, 2)
    assert result.notes[0].startswith("retried once: ")
    assert "completed while this write ran" in result.notes[0]
    assert values_of(table, "id", "ts") == [("a", 3), ("b", 1), ("x", 3), ("y", 3)]
    check_tidy(table.view().store)
    check_index(table.view())


def test_a_write_that_always_meets_another_gives_up() -> None:
    table, other = pair()
    number = 1

    def act(step: Step) -> None:
        nonlocal number
        if step is Step.BEGUN:
            number += 1
            with watching(lambda _step: None):
                other.upsert(trips(("a", number, 2.0, "sf")))

    with pytest.raises(CommitConflictError, match="tried 3 times"), watching(act):
        table.upsert(trips(("a", 9, 9.0, "sf")), properties={RETRIES: "2"})
    assert number == 4
    assert values_of(table, "id", "ts") == [("a", 4), ("b", 1)]
    check_tidy(table.view().store)


@pytest.mark.parametrize("operation", ["bulk_insert", "insert_overwrite"])
def test_a_stream_is_not_repeated(operation: str) -> None:
    table, other = pair()
    act = once_at(Step.BEGUN, lambda: other.upsert(NEWER))
    with pytest.raises(CommitConflictError, match=f"{operation} streams its data") as found, act:
        getattr(table, operation)(trips(("x", 3, 3.0, "sf")))
    assert found.value.retry_cause is None
    assert values_of(table, "id", "ts") == [("a", 2), ("b", 1), ("x", 2)]


def test_partitions_are_deleted_with_what_came_meanwhile() -> None:
    table, other = pair()
    with once_at(Step.BEGUN, lambda: other.upsert(NEWER)):
        result = table.delete_partitions(["city=sf"])
    assert result.deleted == 2
    assert result.notes[0].startswith("retried once: ")
    assert ids_of(table) == ["b"]
    with pytest.raises(CommitConflictError), once_at(Step.BEGUN, lambda: other.upsert(trips(("b", 2, 2.0, "nyc")))):
        table.delete_partitions(["city=nyc"], properties=ONE_TRY)
