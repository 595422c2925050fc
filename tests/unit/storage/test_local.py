from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import hoodie
from hoodie.errors import StorageError, UnsupportedError
from hoodie.storage import ExistingFileError, LocalStore, Store, UnsyncedError
from tests.support.disks import CountingDisk, DiskWithoutLinks, FailingDisk, PausingDisk, local_double
from tests.support.fault_store import Call
from tests.support.tables import FEW_BUCKETS, SCHEMA, create_in, new_table, rows_of, trips


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("content", [b"", b"new"])
def test_sidecars_of_written_files_are_removed(store: LocalStore, tmp_path: Path, content: bytes) -> None:
    for name in ["created", "replaced", "streamed", "deleted"]:
        (tmp_path / f".{name}.crc").write_bytes(b"crc of an older file")
    store.create("created", content)
    store.replace("replaced", content)
    with store.open_output("streamed") as file:
        file.write(content)
    (tmp_path / "deleted").write_bytes(b"1")
    store.delete("deleted")
    (tmp_path / "..f-0_1.log.1_0-0-0.crc").write_bytes(b"crc")
    store.create(".f-0_1.log.1_0-0-0", content)
    assert names(tmp_path) == [".f-0_1.log.1_0-0-0", "created", "replaced", "streamed"]


def test_create_leaves_no_temporary_file_when_it_loses(tmp_path: Path) -> None:
    # The other writer creates the file between our look and our link, which is the second call.
    other = PausingDisk(2, lambda: LocalStore(tmp_path).create("f", b"first"))
    store = LocalStore(tmp_path, disk=other)
    with pytest.raises(ExistingFileError, match=re.escape(f"{tmp_path / 'f'} exists")):
        store.create("f", b"second")
    assert [call.operation for call in other.calls] == ["write_new", "link", "unlink"]
    assert names(tmp_path) == ["f"]
    assert store.read("f") == b"first"


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP])
def test_without_hard_links_a_rename_creates_whole_files(tmp_path: Path, code: int) -> None:
    disk = DiskWithoutLinks(code)
    store = LocalStore(tmp_path, disk=disk)
    store.create("a/f", b"whole")
    assert store.read("a/f") == b"whole"
    with pytest.raises(FileExistsError):
        store.create("a/f", b"other")
    assert store.read("a/f") == b"whole"
    assert names(tmp_path / "a") == ["f"]
    assert "write_stream" not in {call.operation for call in disk.calls}
    # The final name is never opened for writing: it appears with the rename.
    assert [call.operation for call in disk.calls if call.path.endswith("/f")] == ["rename_new"]


def test_the_rename_replaces_no_file_of_another_writer(tmp_path: Path) -> None:
    class Racing(DiskWithoutLinks):
        def rename_new(self, source: str, target: str) -> None:
            Path(target).write_bytes(b"first")
            super().rename_new(source, target)

    store = LocalStore(tmp_path, disk=Racing(errno.EPERM))
    with pytest.raises(FileExistsError):
        store.create("f", b"second")
    assert store.read("f") == b"first"
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize("rename_code", [errno.EINVAL, errno.ENOSYS, errno.ENOTSUP])
def test_with_neither_a_file_is_not_created(tmp_path: Path, rename_code: int) -> None:
    store = LocalStore(tmp_path, disk=DiskWithoutLinks(errno.EPERM, rename_code))
    with pytest.raises(UnsupportedError, match="neither hard links nor a rename that replaces nothing"):
        store.create("f", b"1")
    assert names(tmp_path) == []
    store.create("empty", b"")  # complete as soon as it exists
    with pytest.raises(FileExistsError):
        store.create("empty", b"")


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_table_there_is_read_but_not_written(tmp_path: Path) -> None:
    root = tmp_path / "table"
    new_table(SCHEMA, trips({"a": (1, "sf")}), path=root, partition_by="city", ordering="ts", properties=FEW_BUCKETS)
    before = [path for path in tree(root) if not path.startswith(".hoodie/.temp")]
    with local_double(root, DiskWithoutLinks(errno.EPERM, errno.EINVAL)) as store:
        table = hoodie.Table(store)
        assert rows_of(store) == {"a": (1, "sf")}
        for write in (table.upsert, table.bulk_insert, table.insert_overwrite):
            with pytest.raises(UnsupportedError, match="can be read, but not written"):
                write(trips({"b": (1, "sf")}))
        with pytest.raises(UnsupportedError):
            table.delete_partitions(["city=sf"])
        assert rows_of(store) == {"a": (1, "sf")}
    assert [path for path in tree(root) if not path.startswith(".hoodie/.temp")] == before


def test_a_table_is_not_created_there(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "deep" / "table", disk=DiskWithoutLinks(errno.EPERM, errno.EINVAL))
    with pytest.raises(UnsupportedError, match=str(tmp_path)):
        create_in(store)
    assert tree(tmp_path) == []


def test_a_link_whose_answer_was_lost_is_ours(tmp_path: Path) -> None:
    class Twice(CountingDisk):
        """As a network file system that repeats a call whose answer it did not get."""

        def link(self, source: str, target: str) -> None:
            super().link(source, target)
            super().link(source, target)

    store = LocalStore(tmp_path, disk=Twice())
    store.create("f", b"ours")
    assert store.read("f") == b"ours"
    assert names(tmp_path) == ["f"]


CODES = {
    errno.ENOSPC: "No space left on device; free some space",
    errno.EACCES: "Permission denied; give this user access",
    errno.EROFS: "Read-only file system; mount",
    errno.EIO: "Input/output error; check the disk",
}


@pytest.mark.parametrize(("code", "message"), CODES.items())
def test_errors_of_the_system_are_one_sentence(tmp_path: Path, code: int, message: str) -> None:
    writes: dict[str, Callable[[Store], object]] = {
        "create": lambda store: store.create("d/f", b"1"),
        "replace": lambda store: store.replace("d/f", b"1"),
        "open_output": lambda store: store.open_output("d/f"),
        "delete": lambda store: store.delete("d/g"),
        "delete_folder": lambda store: store.delete_folder("d"),
    }
    for name, write in writes.items():
        (tmp_path / name / "d").mkdir(parents=True)
        (tmp_path / name / "d" / "g").write_bytes(b"1")
        disk = FailingDisk(code, 1)
        with pytest.raises(StorageError, match=message) as caught:
            write(LocalStore(tmp_path / name, disk=disk))
        assert caught.value.errno == code
        assert "\n" not in str(caught.value)
        assert names(tmp_path / name / "d") == ["g"]


def test_a_file_in_the_place_of_the_table(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"1")
    for place in (tmp_path / "f", tmp_path / "f" / "deeper"):
        calls: list[Callable[[Path], object]] = [
            lambda place: hoodie.open(place),
            lambda place: hoodie.exists(place),
            lambda place: create_in(LocalStore(place)),
            lambda place: LocalStore(place).list(""),
            lambda place: LocalStore(place).create("x", b"1"),
        ]
        for call in calls:
            with pytest.raises(StorageError, match="is a file: expected the folder of a table"):
                call(place)
    assert tree(tmp_path) == ["f"]


def test_relative_paths_stay_where_they_were_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = LocalStore("x/../table")
    monkeypatch.chdir("/")
    store.create("f", b"1")
    assert (tmp_path / "table" / "f").read_bytes() == b"1"
    assert store.spec.uri == str(tmp_path / "table")


def test_a_folder_is_not_a_file(store: LocalStore) -> None:
    store.create("d/f", b"1")
    assert store.head("d") is None
    assert store.list("d/f") == []


def test_files_obey_the_umask(store: LocalStore, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        store.create("f", b"1")
        store.create("empty", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "empty").stat().st_mode & 0o777 == 0o640


def test_a_durable_store_syncs_bytes_before_names_and_folders_after(tmp_path: Path) -> None:
    disk = CountingDisk()
    store = LocalStore(tmp_path, durable=True, disk=disk)
    store.create("p/f", b"1")
    first = next(number for number, call in enumerate(disk.calls) if call.operation == "make_folder")
    temporary = next(call.path for call in disk.calls[first:] if call.operation == "write_new")
    folder = str(tmp_path / "p")
    expected = [
        Call("make_folder", folder),
        Call("sync_folder", str(tmp_path)),
        Call("write_new", temporary),
        Call("sync_file", temporary),
        Call("link", f"{folder}/f"),
        Call("unlink", temporary),
        Call("sync_folder", folder),
    ]
    assert disk.calls[first:] == expected
    disk.calls.clear()
    with store.open_output("p/g") as file:
        file.write(b"22")
    assert [call.operation for call in disk.calls] == ["open_stream", "write_stream", "sync_file", "sync_folder"]


def test_the_last_step_of_an_instant_syncs_its_bytes_once_and_one_folder(tmp_path: Path) -> None:
    disk = CountingDisk()
    store = LocalStore(tmp_path, durable=True, disk=disk)
    store.create("timeline/0", b"")
    prepared = ".hoodie/.locks/prepared-x"
    store.replace(prepared, b"0")
    disk.calls.clear()
    store.replace(prepared, b"1")
    store.move(prepared, "timeline/1")
    assert [call for call in disk.calls if call.operation != "write_new"] == [
        Call("rename", str(tmp_path / prepared)),
        Call("sync_file", str(tmp_path / prepared)),
        Call("rename", str(tmp_path / "timeline/1")),
        Call("sync_folder", str(tmp_path / "timeline")),
    ]


def test_a_move_that_cannot_be_synced_says_that_it_was_done(tmp_path: Path) -> None:
    class Unsyncable(CountingDisk):
        def sync_folder(self, path: str) -> None:
            if path.endswith("timeline"):
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    store = LocalStore(tmp_path, durable=True, disk=Unsyncable())
    store.replace("prepared", b"1")
    with pytest.raises(UnsyncedError, match="timeline/1"):
        store.move("prepared", "timeline/1")
    assert store.read("timeline/1") == b"1"


def test_durability_travels_with_the_spec(tmp_path: Path) -> None:
    store = hoodie.storage.open_store(tmp_path, {"durable": "true"})
    assert store.spec.options == (("durable", "true"),)
    for same in (hoodie.storage.open_store(store.spec), hoodie.storage.open_store(tmp_path).as_durable()):
        assert same.spec == store.spec
    assert hoodie.storage.open_store(tmp_path, {"durable": "false"}).spec.options == ()


@pytest.mark.parametrize(
    "path", [".hoodie/.heartbeat/2026", ".hoodie/.temp/stage-x/rows.arrow", ".hoodie/.locks/prepared-x"]
)
def test_what_only_a_running_writer_needs_is_not_synced(tmp_path: Path, path: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    disk = CountingDisk()
    store = LocalStore(tmp_path, durable=True, disk=disk)
    store.create(path, b"1")
    store.delete(path)
    assert not {call.operation for call in disk.calls} & {"sync_file", "sync_folder"}
