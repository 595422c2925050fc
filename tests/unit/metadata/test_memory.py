"""What a handle remembers of the metadata table: the files of its partitions, as long as their names are the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import MetadataPartitionMissingError, MissingFileError
from hoodie.storage import LocalStore
from tests.support.fault_store import FaultStore

INDEX = ".hoodie/metadata/record_index"


def rows(*ids: str) -> pa.Table:
    return pa.table({"id": [*ids], "x": [1] * len(ids)})


def made(folder: Path, index: str = "record") -> hoodie.Table:
    table = hoodie.create(folder, rows("a").schema, record_key="id", index=index)
    for name in ("a", "b", "c"):
        table.upsert(rows(name))
    return table


def test_files_are_listed_once_while_their_names_stay(tmp_path: Path) -> None:
    made(tmp_path / "t")
    store = FaultStore(LocalStore(tmp_path / "t"), count_reads=True)
    store.register()
    table = hoodie.Table(store, spark=False)
    table.upsert(rows("a"))
    del store.calls[:]
    table.upsert(rows("a"))
    store.unregister()
    listed = [call.path for call in store.calls if call.operation == "list"]
    assert not [path for path in listed if path.startswith(".hoodie/metadata")]
    read = [call.path for call in store.calls if call.operation.startswith("read")]
    assert not [path for path in read if path.startswith(".hoodie/metadata/files")]


def test_files_of_another_writer_are_seen(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    other = hoodie.open(tmp_path / "t", spark=False)
    for number in range(12):  # with a compaction and a clean of the metadata table
        other.upsert(rows(f"n{number}", "a"))
        assert table.upsert(rows("a", f"n{number}")).updated == 2
    assert table.count() == 15
    assert table.verify(full=True).ok


@pytest.mark.parametrize("index", ["record", "partitioned_record"])
def test_an_index_whose_folder_was_deleted_is_noticed(tmp_path: Path, index: str) -> None:
    """The handle has all of its files in memory, and its next log file must not be the only file of the folder."""
    folder = tmp_path / "t"
    table = hoodie.create(folder, {"id": ["a"], "p": ["x"]}, record_key="id", partition_by="p", index=index)
    for _ in range(2):
        table.upsert({"id": ["a", "b"], "p": ["x", "x"]})
    shutil.rmtree(folder / INDEX)
    if index == "record":
        assert any("built again" in note for note in table.upsert({"id": ["b", "c"], "p": ["x", "x"]}).notes)
        assert table.count() == 3
        assert table.verify(full=True).ok
    else:
        with pytest.raises(MetadataPartitionMissingError, match=r"index\.drop"):
            table.upsert({"id": ["b", "c"], "p": ["x", "x"]})
        assert table.count() == 2


def test_files_that_were_put_back_are_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    made(folder)
    table = hoodie.open(folder, spark=False)
    (log,) = sorted((folder / ".hoodie/metadata/files").glob(".files*.log.1*"))[-1:]
    shutil.copy(log, tmp_path / "copy")
    log.unlink()
    with pytest.raises(MissingFileError):
        table.count()
    shutil.copy(tmp_path / "copy", log)
    assert table.count() == 3
    assert table.upsert(rows("a")).updated == 1
