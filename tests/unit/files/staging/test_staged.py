"""Staged changes: runs of one partition each, and folders that tell whose they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import obstore.store
import pyarrow as pa
import pytest

from hoodie.files.markers import TEMP_FOLDER
from hoodie.files.staging import staged
from hoodie.files.staging.staged import (
    StageReader,
    StageWriter,
    is_dead_stage_folder,
    split_by_partition,
    stage_folder,
    write_hits,
)
from hoodie.records.change import PARTITION_PATH, RECORD_KEY, change_schema
from hoodie.records.keys.sorting import spread
from hoodie.storage import MemoryStore, ObjectStore, StoreSpec
from hoodie.timeline import forget_all
from hoodie.timeline.owner import Owner
from tests.support.fault_store import FaultStore

SCHEMA = change_schema(pa.schema([("v", pa.int64())]))
DAY_MS = 24 * 60 * 60 * 1000


def batch(paths: str, first: int = 0) -> pa.RecordBatch:
    count = len(paths)
    values = list(range(first, first + count))
    return pa.record_batch([[0] * count, [str(value) for value in values], list(paths), values], schema=SCHEMA)


@pytest.mark.parametrize("memory", [None, "in-memory:runs"])
def test_runs_keep_the_order_of_their_partition(memory: str | None) -> None:
    store = MemoryStore()
    assert StageWriter(store, "nothing.arrow", SCHEMA, memory=memory).close() == []
    writer = StageWriter(store, "s.arrow", SCHEMA, flush_bytes=1, memory=memory)
    for part in (batch("pqpq"), batch(""), batch("qq", 4)):
        writer.write(part)
    runs = writer.close()
    assert [(run.partition_path, run.rows, run.batch) for run in runs] == [("p", 2, 0), ("q", 2, 1), ("q", 2, 2)]
    with StageReader(store) as reader:
        assert [reader.read(run)["v"].to_pylist() for run in runs] == [[0, 2], [1, 3], [4, 5]]
        assert reader.read_some(runs[1], np.array([1]))["v"].to_pylist() == [3]
    with StageReader(store, ["v"]) as reader:
        assert reader.read(runs[1]).schema.names == ["v"]
    assert (store.list("", recursive=True) == []) == (memory is not None)


@pytest.mark.parametrize("memory", [None, "in-memory:large"])
def test_large_runs_are_split(memory: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged, "_FLUSH_BYTES", 4000)
    monkeypatch.setattr(staged, "_HASHED_BYTES_MIN", 1000)
    rows = batch("pqqq" * 250)
    store, listener = MemoryStore(), Listener()
    writer = StageWriter(store, "s.arrow", SCHEMA, listener, flush_bytes=4000, memory=memory)
    writer.write(rows)
    runs = writer.close()
    with StageReader(store) as reader:
        found = [reader.read(run) for run in runs]
    assert sorted(value for part in found for value in part["v"].to_pylist()) == list(range(1000))
    for run, part in zip(runs, found, strict=True):
        hashes = spread(part[RECORD_KEY])
        assert {*part[PARTITION_PATH].to_pylist()} == {run.partition_path}
        assert run.hash_start <= hashes.min() <= hashes.max() < run.hash_end
        assert run.size_bytes < 8000
    assert len({run.hash_start for run in runs}) > 1
    assert listener.seen == [(part[RECORD_KEY].to_pylist(), part["v"].to_pylist()) for part in found]


def test_rows_that_do_not_fit_in_memory_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(staged, "_HELD_BYTES_MAX", 3 * batch("p" * 10, 10).nbytes)
    store, listener = MemoryStore(), Listener()
    writer = StageWriter(store, "s.arrow", SCHEMA, listener, flush_bytes=1, memory="in-memory:some")
    for start in range(0, 60, 10):
        writer.write(batch("pq" * 5, start))
    runs = writer.close()
    assert [run.path for run in runs] == ["in-memory:some/held-s.arrow"] * 6 + ["s.arrow"] * 6
    with StageReader(store) as reader:
        found = [reader.read(run)["v"].to_pylist() for run in runs]
    assert found == [[*range(start + half, start + 10, 2)] for start in range(0, 60, 10) for half in (0, 1)]
    assert [values for _, values in listener.seen] == found


def test_sizes_are_those_of_the_rows_of_a_partition() -> None:
    schema = change_schema(pa.schema([("v", pa.string())]))
    values, paths = ["x" * 100_000] * 20 + ["y"] * 20, ["p"] * 20 + ["q"] * 20
    rows = pa.record_batch([[0] * 40, [f"{number:02}" for number in range(40)], paths, values], schema=schema)
    writer = StageWriter(MemoryStore(), "s.arrow", schema, by_hash=False, memory="in-memory:wide")
    writer.write(rows)
    large, small = writer.close()
    assert large.size_bytes > 2_000_000
    assert small.size_bytes < 2_000


class Listener:
    """Notes keys and places of rows; the value of a row is its place."""

    columns = (RECORD_KEY,)

    def __init__(self) -> None:
        self.seen: list[tuple[list[str], list[int]]] = []

    def add(self, batch: pa.RecordBatch, places: pa.Int64Array) -> None:
        self.seen.append((batch.column(RECORD_KEY).to_pylist(), places.to_pylist()))

    def flush(self) -> None:
        """Do nothing."""


def test_columns_in_one_memory_are_split_as_others() -> None:
    texts = pa.array([f"{number:02}" for number in range(12)])
    paths = pa.array(list("pqpqqp"))
    schema = pa.schema([(name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH, "key", "later", "path")])
    columns = [texts[:6], paths, texts[:6], texts[6:], paths]
    whole = pa.Table.from_arrays(columns, schema=schema)
    chunked = pa.concat_tables([whole.slice(0, 2), whole.slice(2, 1), whole.slice(3)])
    for rows in (whole, chunked):
        found = {path: part.to_pydict() for path, part in split_by_partition(rows)}
        expected = {"p": (["00", "02", "05"], ["06", "08", "11"]), "q": (["01", "03", "04"], ["07", "09", "10"])}
        for path, (keys, later) in expected.items():
            assert [*found.pop(path).values()] == [keys, [path] * 3, keys, later, [path] * 3]
        assert found == {}


def test_hits_come_back() -> None:
    store = MemoryStore()
    found = [("p", "f", np.array([1, 5]), np.array([0, 1], np.int8)), ("p", "g", np.array([2]), np.array([2], np.int8))]
    hits = write_hits(store, "h.arrow", found)
    assert [(hit.file_id, hit.updates, hit.moves) for hit in hits] == [("f", 1, 1), ("g", 0, 0)]
    with StageReader(store) as reader:
        assert reader.read(hits[0]).to_pydict() == {"row": [1, 5], "route": [0, 1]}


def test_an_object_store_gets_no_staged_files_of_a_write_in_this_process() -> None:
    store = ObjectStore(obstore.store.MemoryStore(), StoreSpec("s3://not/there"))
    with stage_folder(store, in_process=True) as folder:
        writer = StageWriter(store, f"{folder}/1/s.arrow", SCHEMA)
        writer.write(batch("pp"))
        (run,) = writer.close()
        with StageReader(store) as reader:
            assert reader.read(run)["v"].to_pylist() == [0, 1]
        assert store.list("", recursive=True) == []
        local = Path(folder.removeprefix("scratch:"))
        assert (local / "1" / "s.arrow").exists()
    assert not local.exists()
    with stage_folder(store) as folder:
        StageWriter(store, f"{folder}/s.arrow", SCHEMA).close()
        assert [info.path for info in store.list("", recursive=True)] == [f"{folder}/s.arrow"]
    assert store.list("", recursive=True) == []


def stage_one(store: MemoryStore) -> str:
    """A folder with a file in it whose writer could not remove it."""
    dying = FaultStore(store, 2)
    with stage_folder(dying) as folder:
        dying.replace(f"{folder}/rows", b"x")
    assert dying.crashed
    return folder


def test_a_folder_lives_as_long_as_its_writer() -> None:
    store = MemoryStore()
    with stage_folder(store) as folder:
        store.replace(f"{folder}/rows", b"x")
        assert not is_dead_stage_folder(store, folder, now_ms=10**15)
    assert store.folders(TEMP_FOLDER) == []
    for others in ("20240101000000000", "hoodie-checkpoint"):
        assert not is_dead_stage_folder(store, f"{TEMP_FOLDER}/{others}", now_ms=10**15)
    elsewhere = MemoryStore(now_ms=lambda: 5)
    for name in ("stage-0123456789abcdef-1-7-" + "0" * 32, "stage-of-an-older-release"):
        elsewhere.replace(f"{TEMP_FOLDER}/{name}/rows", b"x")
        # A folder of another machine is dead after a day.
        dead = [is_dead_stage_folder(elsewhere, f"{TEMP_FOLDER}/{name}", now_ms=DAY_MS + after) for after in (5, 6)]
        assert dead == [False, True]


def test_a_folder_of_a_writer_that_ended_in_this_process_is_dead_at_once() -> None:
    store = MemoryStore()
    assert is_dead_stage_folder(store, stage_one(store), now_ms=0)
    with stage_folder(store) as folder:
        forget_all()
        assert is_dead_stage_folder(store, folder, now_ms=0)


def test_a_folder_of_a_process_that_ended_is_dead_at_once() -> None:
    program = "from hoodie.timeline.owner import Owner; print(Owner.new().short_name)"
    name = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    store = MemoryStore()
    store.replace(f"{TEMP_FOLDER}/stage-{name}/rows", b"x")
    assert is_dead_stage_folder(store, f"{TEMP_FOLDER}/stage-{name}", now_ms=0)


def test_short_names_of_owners() -> None:
    owner = Owner.new()
    found = Owner.parse_short_name(owner.short_name)
    assert found is not None
    assert (found.pid, found.token, found.process_start) == (owner.pid, owner.token, owner.process_start)
    assert found.is_running() is False
    owner.run()
    assert found.is_running() is True
    owner.forget()
