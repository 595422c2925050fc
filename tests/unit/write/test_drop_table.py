"""A table is deleted whole, or not at all while a writer runs; a death in between never shows a part of its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.view.table_state import TableState
from hoodie.write.drop_table import drop_table
from tests.support.steps import once_at
from tests.support.tables import new_table

ROWS = pa.table({"id": [1, 2], "p": ["x", "y"]})
STAGED = ".hoodie/.temp/stage-rows-1"


def filled() -> hoodie.Table:
    return new_table(ROWS.schema, ROWS, partition_by="p")


def test_all_files_go_but_the_staged_rows() -> None:
    store = filled().view().store
    store.replace(f"{STAGED}/a.arrow", b"rows")
    store.replace("of the user.txt", b"text")
    drop_table(TableState(store), kept=STAGED)
    assert [info.path for info in store.list("", recursive=True)] == [f"{STAGED}/a.arrow"]
    with pytest.raises(hoodie.TableNotFoundError):
        hoodie.open(store.uri(""), spark=False)
    again = hoodie.create(store.uri(""), ROWS.schema, record_key="id", partition_by="p", spark=False)
    assert again.upsert(ROWS).inserted == again.count() == 2


def test_a_running_writer_keeps_its_table() -> None:
    table = filled()

    def drop() -> None:
        with pytest.raises(hoodie.CommitConflictError, match="runs; try again when it has ended"):
            drop_table(TableState(table.view().store))

    with once_at(Step.WRITTEN, drop):
        table.upsert({"id": [3], "p": ["x"]})
    assert table.count() == 3


@pytest.mark.parametrize("damage", ["p=x", ".hoodie/timeline", ".hoodie/metadata"])
def test_a_damaged_table_is_deleted_too(damage: str) -> None:
    store = filled().view().store
    store.delete_folder(damage)
    drop_table(TableState(store))
    assert store.list("", recursive=True) == []


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("lock", [{}, {"hoodie.write.lock.num_retries": "1"}], ids=["", "options of a lock"])
def test_a_handle_notices_that_another_table_was_adopted(version: int, lock: dict[str, str], tmp_path: Path) -> None:
    """The commit of an adoption always has the same requested time, by which commits are remembered."""
    target = tmp_path / "t"
    for name, rows in (("a", ROWS), ("b", ROWS.append_column("w", pa.array(["v", "w"])))):
        (tmp_path / name).mkdir()
        pq.write_table(rows, tmp_path / name / "f.parquet")
    wanted: dict[str, Any] = {"record_key": "id", "mode": "metadata_only", "dry_run": False, "table_version": version}
    hoodie.adopt(tmp_path / "a", target, **wanted)
    kept = hoodie.open(target, spark=False)
    assert kept.schema.names == ["id", "p"]
    assert kept.upsert({"id": [1], "p": ["z"]}, properties=lock).updated == 1
    drop_table(TableState(kept.view().store))
    hoodie.adopt(tmp_path / "b", target, **wanted)
    with pytest.raises(hoodie.SchemaMismatchError, match="column 'w'"):
        kept.upsert({"id": [1], "p": ["z"]}, properties=lock)
    assert kept.to_arrow().column("w").to_pylist() == ["v", "w"]


def test_a_handle_notices_another_table_when_it_is_still_empty(tmp_path: Path) -> None:
    kept = new_table(ROWS.schema, ROWS, path=tmp_path)
    state = kept.view().state
    assert kept.count() == 2
    first = kept.timeline.instants[0]
    assert state.commits.get(first.requested_time) is not None
    drop_table(TableState(kept.view().store))
    new_table(ROWS.schema, path=tmp_path)
    assert kept.count() == 0
    assert state.commits.get(first.requested_time) is None
