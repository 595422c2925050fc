from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from hoodie.storage import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


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
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["created", "replaced", "streamed"]


def test_sidecar_of_a_hidden_log_file(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "..f-0_1.log.1_0-0-0.crc").write_bytes(b"crc")
    store.create(".f-0_1.log.1_0-0-0", b"log")
    assert [entry.name for entry in tmp_path.iterdir()] == [".f-0_1.log.1_0-0-0"]


def test_create_leaves_no_temporary_file_when_it_loses(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(b"first")
    # As if the other writer created the file between our look and our link.
    monkeypatch.setattr(Path, "exists", lambda self: False)
    with pytest.raises(FileExistsError) as caught:
        store.create("f", b"second")
    assert caught.value.filename == str(tmp_path / "f")
    assert [e.name for e in tmp_path.iterdir()] == ["f"]
    assert store.read("f") == b"first"


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP])
def test_create_without_hard_links(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    store.create("a/f", b"whole")
    assert store.read("a/f") == b"whole"
    with pytest.raises(FileExistsError):
        store.create("a/f", b"other")
    assert [e.name for e in (tmp_path / "a").iterdir()] == ["f"]


def test_other_link_errors_are_not_swallowed(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    with pytest.raises(OSError, match="full"):
        store.create("f", b"1")
    assert not list(tmp_path.iterdir())


def test_relative_paths_stay_where_they_were_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = LocalStore("x/../table")
    monkeypatch.chdir("/")
    store.create("f", b"1")
    assert (tmp_path / "table" / "f").read_bytes() == b"1"
    assert store.spec.uri == str(tmp_path / "table")


def test_files_that_vanish_during_a_listing_are_left_out(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "f").write_bytes(b"1")
    assert [info.path for info in store.list("")] == ["f"]
    assert store.head("gone") is None


def test_a_folder_is_not_a_file(store: LocalStore) -> None:
    store.create("d/f", b"1")
    assert store.head("d") is None
    assert store.list("d/f") == []


def test_files_obey_the_umask(store: LocalStore, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        store.create("f", b"1")
    finally:
        os.umask(before)
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640
