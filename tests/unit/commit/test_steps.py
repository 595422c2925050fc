"""The named steps of pending instants: every kind of instant reaches them in one order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hoodie.commit.steps import Step, watching
from hoodie.index.index_write import IndexWrite
from hoodie.index.record.index import RecordIndexUpdate
from tests.support.tables import PLAIN, new_table, rows, values_of

COMPLETED = [Step.BEGUN, Step.WRITTEN, Step.LOCATED, Step.CHECKED, Step.RECORDED]
WRITE = [Step.PREPARED, Step.REQUESTED, *COMPLETED]


def steps_of(act: Callable[[], object]) -> list[Step]:
    steps: list[Step] = []
    with watching(steps.append):
        act()
    return steps


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite", "delete"])
def test_steps_of_writes(operation: str) -> None:
    table = new_table(PLAIN, rows("a", "b"))
    assert steps_of(lambda: getattr(table, operation)(rows("b"))) == WRITE


def test_steps_of_a_compaction_and_of_an_index_build() -> None:
    table = new_table(PLAIN, rows("a", "b"), rows("b", ts=2), type="merge_on_read", index="simple")
    assert table.schedule_compaction() is not None
    assert steps_of(table.compact) == COMPLETED
    built = steps_of(lambda: table.index.build("record"))
    assert built == [Step.REQUESTED, Step.BEGUN, Step.WRITTEN, Step.CHECKED, Step.RECORDED]


def test_an_error_at_a_step_undoes_the_write() -> None:
    table = new_table(PLAIN, rows("a"))
    for step in WRITE[:-1]:

        def fail(reached: Step, at: Step = step) -> None:
            if reached is at:
                raise KeyboardInterrupt

        with watching(fail), pytest.raises(KeyboardInterrupt):
            table.upsert(rows("b"))
        assert [instant.requested_time for instant in table.timeline.pending()] == [], step
        assert values_of(table, "id") == [("a",)]


def test_index_files_that_cannot_be_deleted_are_left_to_the_next_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its instant nothing would name them."""
    table = new_table(PLAIN, rows("a"))
    store = table.view().store

    def fail(*_: object) -> None:
        raise OSError("no answer")

    def die(reached: Step) -> None:
        if reached is Step.LOCATED:
            raise KeyboardInterrupt

    monkeypatch.setattr(RecordIndexUpdate, "discard", fail)
    with watching(die), pytest.raises(KeyboardInterrupt):
        table.upsert(rows("b"))
    monkeypatch.undo()
    (pending,) = table.timeline.pending()

    def left() -> list[str]:
        ending = f"_{pending.requested_time}.log"
        return [name for name in store.names(".hoodie/metadata/record_index") if ending in name]

    assert left() != []
    assert table.upsert(rows("c")).notes != ()
    assert left() == []
    assert values_of(table, "id") == [("a",), ("c",)]


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_whose_index_cannot_begin_leaves_no_instant(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next writer would wait until the heartbeat of the process is old."""
    table = new_table(PLAIN, rows("a"), table_version=version)

    def fail(*_: object) -> None:
        raise OSError("no answer")

    monkeypatch.setattr(IndexWrite, "begin", fail)
    with pytest.raises(OSError, match="no answer"):
        table.upsert(rows("b"))
    monkeypatch.undo()
    assert len(table.timeline.pending()) == 0
    assert table.view().store.list(".hoodie/.heartbeat") == []
    assert table.upsert(rows("c")).notes == ()
