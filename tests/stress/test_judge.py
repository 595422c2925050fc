"""The judge of a stress finds what it looks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import hoodie
from hoodie.table import Table
from hoodie.timeline import Action, forget_all
from tests.stress.journal import DONE, INTENT, Journal, Line, read_journal
from tests.stress.judge import Completed, Told, judge, possible_rows
from tests.stress.run import create
from tests.stress.worker import OPERATION, rows_of


def intent(operation: str, kind: str, *keys: str) -> Line:
    return Line(state=INTENT, operation=operation, kind=kind, keys=keys)


def write(table: Table, operation: str, *keys: str) -> Line:
    """An acknowledged upsert."""
    done = table.upsert(rows_of(keys, operation), extra_metadata={OPERATION: operation})
    return Line(state=DONE, operation=operation, instant=done.instant)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    create(tmp_path / "table", "copy_on_write")
    return hoodie.open(tmp_path / "table")


@pytest.fixture
def told(table: Table) -> Told:
    """Two writes of one key, and their journals."""
    intents = {"first": intent("first", "upsert", "a", "b"), "second": intent("second", "upsert", "a")}
    done = {"first": write(table, "first", "a", "b"), "second": write(table, "second", "a")}
    return Told(intents, done)


def test_a_right_table(table: Table, told: Told) -> None:
    assert judge(table, told) == 2


def lose_an_operation(table: Table, told: Told) -> None:
    told.intents["third"] = intent("third", "upsert", "c")
    told.done["third"] = Line(state=DONE, operation="third", instant="20260101000000000")


def refuse_what_happened(table: Table, told: Told) -> None:
    told.refused["second"] = told.done.pop("second")


def forget_an_intent(table: Table, told: Told) -> None:
    del told.intents["first"], told.done["first"]


def write_a_row_of_nobody(table: Table, told: Told) -> None:
    table.upsert(rows_of(["other"], "other"))


def lose_a_row(table: Table, told: Told) -> None:
    table.delete(rows_of(["a"], "").select(["id", "city"]))


def double_a_row(table: Table, told: Told) -> None:
    table.insert(rows_of(["b"], "first"))


WRONG: dict[Callable[[Table, Told], None], str] = {
    lose_an_operation: "acknowledged operations that are not on the timeline",
    refuse_what_happened: "refused operations that are on the timeline",
    forget_an_intent: "no worker intended",
    write_a_row_of_nobody: "keys that no completed operation wrote",
    lose_a_row: "rows and what they may be",
    double_a_row: "a key has two rows",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_what_is_wrong_is_found(table: Table, told: Told, wrong: Callable[[Table, Told], None]) -> None:
    wrong(table, told)
    with pytest.raises(AssertionError, match=WRONG[wrong]):
        judge(table, told)


def test_a_compaction_that_a_jvm_runs_after_its_write_is_no_second_write(tmp_path: Path) -> None:
    """It has the extra metadata of the write."""
    create(tmp_path / "table", "merge_on_read")
    table = hoodie.open(tmp_path / "table")
    intents = {name: intent(name, "upsert", "a") for name in ("first", "second")}
    done = {name: write(table, name, "a") for name in intents}
    assert table.schedule_compaction() is not None
    table.compact()
    view = table.view()
    (compaction,) = (found for found in view.completed_writes() if found.action is Action.COMMIT)
    commit = view.commit_metadata(compaction)
    name = f"{compaction.requested_time}_{compaction.completion_time}.commit"
    changed = replace(commit, extra_metadata={**commit.extra_metadata, OPERATION: "second"})
    (tmp_path / "table/.hoodie/timeline" / name).write_bytes(changed.to_bytes(view.config.version))
    forget_all()
    assert judge(hoodie.open(tmp_path / "table"), Told(intents, done)) == 2


def test_what_the_row_of_a_deleted_key_may_be() -> None:
    intents = {
        "insert": intent("insert", "upsert", "a", "b"),
        "delete": intent("delete", "delete", "a", "b"),
        "again": intent("again", "upsert", "b"),
    }
    insert, again = Completed("insert", "20", "40"), Completed("again", "70", "80")
    late, early = Completed("delete", "50", "60"), Completed("delete", "30", "60")
    assert possible_rows([insert, late, again], intents) == {"a": {None}, "b": {"again"}}
    assert possible_rows([insert, early, again], intents) == {"a": {None, "insert"}, "b": {"again"}}


def test_a_line_that_a_kill_cut(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(path) as journal:
        journal.note(intent("first", "upsert", "a"))
        journal.note(intent("second", "upsert", "a"))
    path.write_bytes(path.read_bytes()[:-5])
    assert list(read_journal(path)) == [intent("first", "upsert", "a")]
