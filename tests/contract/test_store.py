"""What every store promises, over all of them (S3 by moto's server)."""

from __future__ import annotations

import pickle
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import obstore.store
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import PartitionPathError
from hoodie.storage import FileInfo, LocalStore, MemoryStore, ObjectStore, Store, StoreSpec, open_store
from tests.support.fault_store import FaultStore

HARD_NAMES = [
    "a b",
    "città=però",
    "x%20y%2Fz",
    "q?#&+,;",
    "{1}[2]*^~!",
    "__HIVE_DEFAULT_PARTITION__",
    "..dots",
    "'\"`$\\",
]


STORES = ["local", "memory", "objects", "s3", "fault"]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return make_store(request.param, request, tmp_path)


@pytest.fixture(params=["local", "memory", "s3", "fault"])
def reopenable_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """All but obstore's memory store, which lives in one object."""
    store = make_store(request.param, request, tmp_path)
    if isinstance(store, FaultStore):
        store.register()
    yield store
    if isinstance(store, FaultStore):
        store.unregister()


def make_store(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    match kind:
        case "local":
            return LocalStore(tmp_path / "deep" / "table")
        case "memory":
            return MemoryStore()
        case "objects":
            return ObjectStore(obstore.store.MemoryStore(), StoreSpec("s3://not/there"))
        case "s3":
            options = request.getfixturevalue("s3_options")
            return open_store(f"s3://{request.getfixturevalue('s3_bucket')}/{uuid.uuid4().hex}/t", options)
        case _:
            return FaultStore(MemoryStore())


def paths(infos: list[FileInfo]) -> list[str]:
    return [info.path for info in infos]


def test_many_files_are_deleted_at_once(store: Store) -> None:
    names = [f"{name}/file" for name in HARD_NAMES]
    for path in (*names, "kept/file"):
        store.create(path, b"1")
    store.delete_all([])
    store.delete_all([*names, "never/there"])
    assert paths(store.list("", recursive=True)) == ["kept/file"]
    with pytest.raises(PartitionPathError):
        store.delete_all(["kept/file", "../outside"])


def test_more_files_are_deleted_than_one_request_takes() -> None:
    store = ObjectStore(obstore.store.MemoryStore(), StoreSpec("s3://not/there"))
    names = [f"f{number}" for number in range(1001)]
    for name in names:
        store.create(name, b"")
    store.delete_all(names)
    assert store.list("") == []


def test_an_empty_table_has_nothing(store: Store) -> None:
    assert store.list("") == []
    assert store.list("a/b", recursive=True) == []
    assert store.folders("") == []
    assert store.head("a/b") is None


def test_create_makes_a_whole_file(store: Store) -> None:
    for name, data in (("empty", b""), ("one byte", b"x"), ("1.3 MB", bytes(range(256)) * 5000)):
        store.create(f"{name}/b/file", data)
        assert store.read(f"{name}/b/file") == data
        info = store.head(f"{name}/b/file")
        assert info is not None
        assert (info.path, info.name, info.size_bytes) == (f"{name}/b/file", "file", len(data))
        assert store.list(name, recursive=True) == [info]


def test_create_refuses_an_existing_file(store: Store) -> None:
    store.create("f", b"first")
    for data in (b"", b"second"):
        with pytest.raises(FileExistsError):
            store.create("f", data)
    assert store.read("f") == b"first"


def test_one_of_many_creators_wins(store: Store) -> None:
    won: list[bytes] = []
    barrier = threading.Barrier(4)

    def contend(name: bytes) -> None:
        barrier.wait()
        try:
            store.create("dir/lock", name)
        except FileExistsError:
            return
        won.append(name)

    threads = [threading.Thread(target=contend, args=(f"writer {n}".encode(),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert store.read("dir/lock") == won[0]
    assert paths(store.list("dir")) == ["dir/lock"]


def test_replace_creates_and_overwrites(store: Store) -> None:
    store.replace("p/f", b"long content")
    store.replace("p/f", b"short")
    assert store.read("p/f") == b"short"
    assert paths(store.list("p")) == ["p/f"]
    assert 1_700_000_000_000 < _modified_ms(store, "p/f") < 10_000_000_000_000
    with store.open_output("p/f"):
        pass
    assert store.read("p/f") == b""


def test_refresh_renews_the_change_time_of_its_own_content_only(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """All stores in one test, because it waits: change times of object stores are whole seconds."""
    stores = [make_store(kind, request, tmp_path) for kind in STORES]
    for store in stores:
        assert not store.refresh("a/lock", b"mine")
        assert store.head("a/lock") is None
        store.create("a/lock", b"mine")
    before = [_modified_ms(store, "a/lock") for store in stores]
    time.sleep(1.1)
    for store, created in zip(stores, before, strict=True):
        assert not store.refresh("a/lock", b"min")
        assert not store.refresh("a/lock", b"mine too")
        assert _modified_ms(store, "a/lock") == created
        assert store.refresh("a/lock", b"mine")
        assert _modified_ms(store, "a/lock") > created
        assert store.read("a/lock") == b"mine"


def _modified_ms(store: Store, path: str) -> int:
    info = store.head(path)
    assert info is not None
    return info.modified_ms


def test_move_fails_if_the_source_is_gone(store: Store) -> None:
    store.replace("a/prepared", b"content")
    store.move("a/prepared", "b/deep/done")
    assert store.read("b/deep/done") == b"content"
    assert store.head("a/prepared") is None
    store.replace("a/prepared", b"content")
    store.delete("a/prepared")
    with pytest.raises(FileNotFoundError):
        store.move("a/prepared", "b/again")
    assert store.head("b/again") is None


def test_list_is_flat_or_recursive_and_sorted(store: Store) -> None:
    for path in ["f", "a/2", "a/1", "a/b/3", "ab/4", ".hoodie/x", ".f.log.1_0"]:
        store.create(path, b"12")
    assert paths(store.list("")) == [".f.log.1_0", "f"]
    assert paths(store.list("a")) == ["a/1", "a/2"]
    assert paths(store.list("a", recursive=True)) == ["a/1", "a/2", "a/b/3"]
    assert paths(store.list("", recursive=True)) == [".f.log.1_0", ".hoodie/x", "a/1", "a/2", "a/b/3", "ab/4", "f"]
    assert store.folders("") == [".hoodie", "a", "ab"]
    assert store.folders("a") == ["a/b"]
    assert store.folders("a/b") == []


def test_sidecars_and_half_written_files_are_not_listed(store: Store) -> None:
    for name in ["f", ".f.crc", "..f.log.1_0.crc", ".tmp-123", "g.crc", ".tmpx"]:
        store.create(f"p/{name}", b"1")
    assert paths(store.list("p")) == ["p/.tmpx", "p/f", "p/g.crc"]
    assert paths(store.list("", recursive=True)) == ["p/.tmpx", "p/f", "p/g.crc"]


def test_names_are_kept_as_they_are(store: Store) -> None:
    for name in HARD_NAMES:
        store.create(f"{name}/{name}.parquet", b"1")
        with store.open_output(f"{name}/streamed") as file:
            file.write(b"22")
    assert store.folders("") == sorted(HARD_NAMES)
    expected = [path for name in HARD_NAMES for path in (f"{name}/{name}.parquet", f"{name}/streamed")]
    assert paths(store.list("", recursive=True)) == sorted(expected)
    for name in HARD_NAMES:
        assert store.read(f"{name}/{name}.parquet") == b"1"
        assert store.read_range(f"{name}/streamed", 0, 2) == b"22"
        store.delete(f"{name}/{name}.parquet")
        assert paths(store.list(name)) == [f"{name}/streamed"]


RANGES = {(0, 10): b"0123456789", (3, 4): b"3456", (8, 5): b"89", (10, 1): b"", (50, 3): b"", (0, 0): b"", (4, 0): b""}


def test_read_range(store: Store) -> None:
    store.create("f", b"0123456789")
    assert {(start, length): store.read_range("f", start, length) for start, length in RANGES} == RANGES


def test_missing_files_raise(store: Store) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.read("d/missing"),
        lambda: store.read_range("d/missing", 0, 5),
        lambda: store.read_range("d/missing", 0, 0),
        lambda: store.open_input("d/missing").read(1),
    ]
    for call in calls:
        with pytest.raises(FileNotFoundError):
            call()


def test_delete(store: Store) -> None:
    store.create("a/f", b"1")
    store.create("a/g", b"1")
    store.delete("a/f")
    store.delete("a/f")
    store.delete("not/there")
    assert paths(store.list("", recursive=True)) == ["a/g"]
    store.create("a/f", b"again")
    assert store.read("a/f") == b"again"


def test_delete_folder(store: Store) -> None:
    for path in ["a/f", "a/b/g", "a/b/.g.crc", "ab/h"]:
        store.create(path, b"1")
    store.delete_folder("a")
    store.delete_folder("a")
    assert paths(store.list("", recursive=True)) == ["ab/h"]
    assert store.folders("") == ["ab"]
    assert store.head("a/b/.g.crc") is None


BAD_PATHS = ["../x", "a/../../x", "/etc/passwd", "a//b", "a/", "a/./b", ".", "..", "a\0b"]


def test_paths_that_leave_the_table_are_refused(store: Store) -> None:
    attempts: list[Callable[[str], object]] = [
        lambda path: store.create(path, b"x"),
        lambda path: store.replace(path, b"x"),
        store.read,
        lambda path: store.read_range(path, 0, 1),
        store.head,
        store.delete,
        store.delete_folder,
        store.list,
        store.folders,
        store.open_input,
        lambda path: store.open_output(path).close(),
        store.uri,
    ]
    for path in BAD_PATHS:
        for attempt in attempts:
            with pytest.raises(PartitionPathError):
                attempt(path)


def test_the_base_path_is_not_a_file_and_is_not_deleted(store: Store) -> None:
    store.create("f", b"1")
    for attempt in (lambda: store.read(""), lambda: store.create("", b""), lambda: store.delete_folder("")):
        with pytest.raises(PartitionPathError):
            attempt()
    assert store.read("f") == b"1"


def test_parquet_streams_out_and_in(store: Store) -> None:
    table = pa.table({"key": [f"k{n:05}" for n in range(20_000)], "value": range(20_000)})
    with store.open_output("p/data.parquet") as sink, pq.ParquetWriter(sink, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=5000):
            writer.write_batch(batch)
    info = store.head("p/data.parquet")
    assert info is not None
    assert info.size_bytes == len(store.read("p/data.parquet"))
    with store.open_input("p/data.parquet") as source:
        assert source.size() == info.size_bytes
        file = pq.ParquetFile(source, pre_buffer=True)
        assert file.num_row_groups == 4
        assert file.read_row_group(2, columns=["value"]).column("value").to_pylist() == list(range(10_000, 15_000))
    with store.open_input("p/data.parquet") as source:
        assert pq.read_table(source).equals(table)


def test_spec_travels_and_opens_the_same_files(reopenable_store: Store) -> None:
    reopenable_store.create("a/f", b"1")
    spec = pickle.loads(pickle.dumps(reopenable_store.spec))
    assert spec == reopenable_store.spec
    assert hash(spec) == hash(reopenable_store.spec)
    again = open_store(spec)
    assert again.read("a/f") == b"1"
    assert again.spec == spec
    assert again.uri("a/f") == reopenable_store.uri("a/f")
    if isinstance(reopenable_store, FaultStore):
        assert again is reopenable_store


def test_names_are_those_of_the_listing_and_uris_nest(store: Store) -> None:
    for path in ("a/2", "a/1", "a/.f.log.1_0", "a/b/3", "c"):
        store.create(path, b"x")
    assert store.names("a") == [info.name for info in store.list("a")] == [".f.log.1_0", "1", "2"]
    assert store.names("nowhere") == []
    assert store.uri("p/f").startswith(store.uri("p") + "/")
    assert store.uri("p") == f"{store.uri('')}/p"
