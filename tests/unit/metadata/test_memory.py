"""What handles and processes remember of the metadata table, and what they must notice."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CorruptFileError, MetadataPartitionMissingError, MissingFileError
from hoodie.metadata.paths import METADATA_FOLDER
from hoodie.metadata.slice_content import written_logs
from hoodie.metadata.slices import log_content
from hoodie.storage import LocalStore, MemoryStore
from tests.support.cloud_store import CloudStore
from tests.support.fault_store import FaultStore

INDEX = ".hoodie/metadata/record_index"


def rows(*ids: str) -> pa.Table:
    return pa.table({"id": [*ids], "x": [1] * len(ids)})


def made(folder: Path) -> hoodie.Table:
    table = hoodie.create(folder, rows("a").schema, record_key="id")
    for name in ("a", "b", "c"):
        table.upsert(rows(name))
    return table


def test_a_file_is_read_once_in_a_process(tmp_path: Path) -> None:
    made(tmp_path / "t")
    store = FaultStore(LocalStore(tmp_path / "t"), count_reads=True)
    store.register()
    for _ in range(2):
        table = hoodie.Table(store, spark=False)
        for _ in range(2):
            table.upsert(rows("a"))
    store.unregister()
    read = Counter(call.path for call in store.calls if call.operation.startswith("read"))
    files = {path: count for path, count in read.items() if path.startswith(".hoodie/metadata/files/")}
    assert len(files) > 4
    assert {*files.values()} == {1}


def test_log_files_that_the_process_wrote_are_known_as_a_reader_would_parse_them(tmp_path: Path) -> None:
    properties = {
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
    }
    table = hoodie.create(
        tmp_path / "t", rows("a").schema, record_key="id", type="merge_on_read", properties=properties
    )
    for name in ("a", "b"):
        table.upsert(rows(name, "c"))
    table.delete(["c"])
    compared: Counter[str] = Counter()
    for path in (tmp_path / "t/.hoodie/metadata").rglob(".*.log.*"):
        data = path.read_bytes()
        known, parsed = written_logs.find(data), log_content(data, path=str(path))
        if known is None:
            continue
        compared[path.parent.name] += 1
        assert (known.block_count, known.undone) == (parsed.block_count, parsed.undone)
        for ours, theirs in zip(known.blocks, parsed.blocks, strict=True):
            assert ours.keys.equals(theirs.keys)
            assert ours.values == theirs.values
            assert (ours.schema_json, ours.instant_time, ours.replaces) == (
                theirs.schema_json,
                theirs.instant_time,
                theirs.replaces,
            )
            found = [block.find(theirs.keys, seek=True) for block in (ours, theirs)]
            assert [*found[0][0]] == [*found[1][0]]
            assert found[0][1] == found[1][1]
    assert {"files", "record_index", "column_stats"} <= compared.keys()


def test_in_an_object_store_log_files_of_this_process_are_not_read() -> None:
    folder = MemoryStore("logs-of-this-process")
    hoodie.create("memory://logs-of-this-process", rows("a").schema, record_key="id")
    store = CloudStore(folder, seed="logs", count_reads=True)
    store.register()
    try:
        for name in ("a", "b", "a", "c"):
            hoodie.Table(store, spark=False).upsert(rows(name))
        read = [call.path for call in store.calls if call.operation == "read" and "/files/.files" in call.path]
        # The log file that creates the file group, by the first of these handles.
        assert [path.partition(".log.")[0][-17:] for path in read] == ["0" * 17]
        log = [info for info in folder.list(f"{METADATA_FOLDER}/files") if ".log." in info.path][-1]
        folder.replace(log.path, log.size_bytes * b"?")
        with pytest.raises(CorruptFileError):
            hoodie.Table(store, spark=False).to_arrow()
    finally:
        store.unregister()


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


def test_a_metadata_table_that_was_built_anew_is_read_anew(tmp_path: Path) -> None:
    """Its first files have the names of the old ones."""
    folder = tmp_path / "t"
    table = hoodie.create(folder, rows("a").schema, record_key="id")
    table.upsert(rows("a", "b", "c"))
    table.index.rebuild()
    assert table.count() == 3
    other = hoodie.open(folder, spark=False)
    other.upsert(pa.table({"id": ["a", "d"], "x": [9, 2]}))
    other.index.rebuild()
    assert table.to_arrow(["id", "x"]).sort_by("id")["x"].to_pylist() == [9, 1, 1, 2]
    assert table.upsert(pa.table({"id": ["d"], "x": [5]})).updated == 1
    assert hoodie.open(folder, spark=False).count() == 4


def test_a_timeline_that_is_lost_after_the_creation_is_noticed(tmp_path: Path) -> None:
    table = hoodie.create(tmp_path / "t", rows("a").schema, record_key="id")
    hoodie.open(tmp_path / "t", spark=False).upsert(rows("a", "b"))
    shutil.rmtree(tmp_path / "t/.hoodie/timeline")
    for call in (table.count, lambda: table.upsert(rows("c"))):
        with pytest.raises(CorruptFileError, match="folder of the timeline"):
            call()
