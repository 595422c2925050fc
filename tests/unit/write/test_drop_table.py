"""A table is deleted whole, or not at all while a writer runs; a death in between never shows a part of its rows."""

from __future__ import annotations

import pyarrow as pa
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
