"""A table is deleted whole, or not at all while a writer runs; a death in between never shows a part of its rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import hoodie
from hoodie.commit.steps import Step, watching
from hoodie.storage import open_store
from hoodie.view.table_state import TableState
from hoodie.write.drop_table import drop_table


def filled(path: Path) -> hoodie.Table:
    table = hoodie.create(path, {"id": [1], "p": ["x"]}, record_key="id", partition_by="p", spark=False)
    table.upsert({"id": [1, 2], "p": ["x", "y"]})
    return table


def test_all_files_go_but_the_staged_rows(tmp_path: Path) -> None:
    filled(tmp_path / "t")
    store = open_store(str(tmp_path / "t"))
    store.replace(".hoodie/.temp/stage-rows-1/a.arrow", b"rows")
    store.replace("of the user.txt", b"text")
    drop_table(TableState(store), kept=".hoodie/.temp/stage-rows-1")
    assert [info.path for info in store.list("", recursive=True)] == [".hoodie/.temp/stage-rows-1/a.arrow"]
    with pytest.raises(hoodie.TableNotFoundError):
        hoodie.open(tmp_path / "t", spark=False)
    filled(tmp_path / "t")
    assert hoodie.open(tmp_path / "t", spark=False).count() == 2


def test_a_running_writer_keeps_its_table(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    store = open_store(str(tmp_path / "t"))
    refused: list[str] = []

    def drop(step: Step) -> None:
        if step is Step.WRITTEN:
            with pytest.raises(hoodie.CommitConflictError, match="runs; try again when it has ended") as caught:
                drop_table(TableState(store))
            refused.append(str(caught.value))

    with watching(drop):
        table.upsert({"id": [3], "p": ["x"]})
    assert len(refused) == 1
    assert table.count() == 3


@pytest.mark.parametrize("damage", ["p=x", ".hoodie/timeline", ".hoodie/metadata"])
def test_a_damaged_table_is_deleted_too(tmp_path: Path, damage: str) -> None:
    filled(tmp_path / "t")
    store = open_store(str(tmp_path / "t"))
    store.delete_folder(damage)
    drop_table(TableState(store))
    assert store.list("", recursive=True) == []
