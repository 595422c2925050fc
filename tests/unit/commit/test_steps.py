"""The named steps of pending instants: every kind of instant reaches them in one order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step, watching
from hoodie.index.record.index import RecordIndexUpdate

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])
COMPLETED = [Step.BEGUN, Step.WRITTEN, Step.LOCATED, Step.CHECKED, Step.RECORDED]
WRITE = [Step.PREPARED, Step.REQUESTED, *COMPLETED]


def rows(*keys: str, ts: int = 1) -> pa.Table:
    return pa.table({"id": list(keys), "ts": [ts] * len(keys)}, schema=SCHEMA)


def steps_of(act: Callable[[], object]) -> list[Step]:
    steps: list[Step] = []
    with watching(steps.append):
        act()
    return steps


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite", "delete"])
def test_steps_of_writes(tmp_path: Path, operation: str) -> None:
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", spark=False)
    table.upsert(rows("a", "b"))
    assert steps_of(lambda: getattr(table, operation)(rows("b"))) == WRITE


def test_steps_of_a_compaction_and_of_an_index_build(tmp_path: Path) -> None:
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", type="merge_on_read", index="simple", spark=False)
    table.upsert(rows("a", "b"))
    table.upsert(rows("b", ts=2))
    assert table.schedule_compaction() is not None
    assert steps_of(table.compact) == COMPLETED
    built = steps_of(lambda: table.index.build("record"))
    assert built == [Step.REQUESTED, Step.BEGUN, Step.WRITTEN, Step.CHECKED, Step.RECORDED]


def test_an_error_at_a_step_undoes_the_write(tmp_path: Path) -> None:
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", spark=False)
    table.upsert(rows("a"))
    for step in WRITE[:-1]:

        def fail(reached: Step, at: Step = step) -> None:
            if reached is at:
                raise KeyboardInterrupt

        with watching(fail), pytest.raises(KeyboardInterrupt):
            table.upsert(rows("b"))
        assert [instant.requested_time for instant in table.timeline.pending()] == [], step
        assert table.to_arrow(columns=["id"])["id"].to_pylist() == ["a"]


def test_index_files_that_cannot_be_deleted_are_left_to_the_next_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its instant nothing would name them."""
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", spark=False)
    table.upsert(rows("a"))

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
    index = tmp_path / ".hoodie" / "metadata" / "record_index"
    assert list(index.glob(f".*_{pending.requested_time}.log*")) != []
    assert table.upsert(rows("c")).notes != ()
    assert list(index.glob(f".*_{pending.requested_time}.log*")) == []
    assert sorted(table.to_arrow(columns=["id"])["id"].to_pylist()) == ["a", "c"]
