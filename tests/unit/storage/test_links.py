"""No read, write or delete of a local table follows a symbolic link out of the table's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hoodie
from hoodie.errors import HoodieError, PartitionPathError
from hoodie.storage import LocalStore, Store
from tests.support.tables import FEW_BUCKETS, SCHEMA, new_table, rows_of, trips


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of somebody else."""
    folder = tmp_path / "outside"
    (folder / "1700000000000").mkdir(parents=True)
    (folder / "1700000000000" / "f").write_bytes(b"precious")
    (folder / "stage-x-1-1").mkdir()
    (folder / "f").write_bytes(b"precious")
    (folder / ".f.crc").write_bytes(b"precious")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    store = LocalStore(tmp_path / "table")
    store.create("p/own", b"1")
    return store


def table_in(root: Path) -> None:
    """A table with one row."""
    new_table(SCHEMA, trips({"a": (1, "sf")}), path=root, partition_by="city", ordering="ts", properties=FEW_BUCKETS)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


CALLS: dict[str, Callable[[Store, str], object]] = {
    "list": lambda store, folder: store.list(folder),
    "list recursively": lambda store, folder: store.list("", recursive=True),
    "names": lambda store, folder: store.names(folder),
    "folders": lambda store, folder: store.folders(folder),
    "folders of the parent": lambda store, folder: store.folders(""),
    "head": lambda store, folder: store.head(f"{folder}/f"),
    "read": lambda store, folder: store.read(f"{folder}/f"),
    "read_range": lambda store, folder: store.read_range(f"{folder}/f", 0, 1),
    "open_input": lambda store, folder: store.open_input(f"{folder}/f"),
    "create": lambda store, folder: store.create(f"{folder}/g", b"1"),
    "create in a new folder": lambda store, folder: store.create(f"{folder}/new/g", b"1"),
    "create nothing": lambda store, folder: store.create(f"{folder}/g", b""),
    "replace": lambda store, folder: store.replace(f"{folder}/f", b"1"),
    "open_output": lambda store, folder: store.open_output(f"{folder}/f"),
    "delete": lambda store, folder: store.delete(f"{folder}/f"),
    "delete_folder": lambda store, folder: store.delete_folder(f"{folder}/1700000000000"),
    "check_links": lambda store, folder: store.check_links([f"{folder}/f"]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("is_relative", [False, True])
def test_a_folder_that_leads_outside(
    store: LocalStore, tmp_path: Path, outside: Path, call: Callable[[Store, str], object], is_relative: bool
) -> None:
    (tmp_path / "table" / "linked").symlink_to("../outside" if is_relative else outside)
    before = content(outside)
    with pytest.raises(PartitionPathError, match=r"linked leads to .*outside, outside the table's folder"):
        call(store, "linked")
    assert content(outside) == before
    assert not (outside / "new").exists()


def test_a_file_that_leads_outside(store: LocalStore, tmp_path: Path, outside: Path) -> None:
    linked = tmp_path / "table" / "p" / "f"
    linked.symlink_to(outside / "f")
    reads: list[Callable[[], object]] = [
        lambda: store.read("p/f"),
        lambda: store.head("p/f"),
        lambda: store.open_input("p/f"),
        lambda: store.list("p"),
        lambda: store.open_output("p/f"),
        lambda: store.check_links(["p/own", "p/f"]),
    ]
    for read in reads:
        with pytest.raises(PartitionPathError, match="outside the table's folder"):
            read()
    with pytest.raises(FileExistsError):
        store.create("p/f", b"1")
    store.replace("p/f", b"ours")  # the link itself is replaced
    assert not linked.is_symlink()
    assert store.read("p/f") == b"ours"
    linked.unlink()
    linked.symlink_to(outside / "f")
    store.delete("p/f")  # the link itself is deleted
    assert not linked.is_symlink()
    assert content(outside)["f"] == b"precious"


def test_a_folder_is_deleted_without_what_its_links_lead_to(store: LocalStore, tmp_path: Path, outside: Path) -> None:
    (tmp_path / "table" / "p" / "linked").symlink_to(outside)
    (tmp_path / "table" / "p" / "f").symlink_to(outside / "f")
    (tmp_path / "table" / "whole").symlink_to(outside)
    before = content(outside)
    store.delete_folder("p")
    store.delete_folder("whole")
    assert [path.name for path in (tmp_path / "table").iterdir()] == []
    assert content(outside) == before


def test_links_in_a_circle_and_to_nothing(store: LocalStore, tmp_path: Path) -> None:
    table = tmp_path / "table"
    (table / "a").symlink_to("b")
    (table / "b").symlink_to("a")
    with pytest.raises(PartitionPathError, match="goes in a circle"):
        store.list("", recursive=True)
    with pytest.raises(PartitionPathError, match="goes in a circle"):
        store.read("a/f")
    (table / "a").unlink()
    with pytest.raises(PartitionPathError, match="leads to nothing"):
        store.head("b")
    (table / "b").unlink()
    (table / "p" / "up").symlink_to("..")
    with pytest.raises(PartitionPathError, match=r"goes in a circle: it leads to .*, which contains it"):
        store.list("", recursive=True)


def test_two_links_that_lead_to_each_other_end_a_listing(store: LocalStore, tmp_path: Path) -> None:
    table = tmp_path / "table"
    for here, there in (("a", "b"), ("b", "a")):
        (table / here).mkdir()
        for name in ("x", "y"):
            (table / here / name).symlink_to(f"../{there}")
    with pytest.raises(HoodieError, match="second symbolic link"):
        store.list("", recursive=True)


def test_links_that_stay_inside_are_followed(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "table" / "q").symlink_to("p")
    (tmp_path / "table" / "p" / "again").symlink_to("own")
    assert store.read("q/own") == b"1"
    assert store.read("p/again") == b"1"
    assert store.folders("") == ["p", "q"]
    store.create("q/new", b"2")
    assert store.read("p/new") == b"2"
    store.delete("q/new")
    assert store.head("p/new") is None


def test_the_base_path_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "base").symlink_to("real")
    root = tmp_path / "base" / "table"
    table_in(root)
    (tmp_path / "shortcut").symlink_to(root)
    hoodie.open(tmp_path / "shortcut").upsert(trips({"b": (1, "sf")}))
    assert rows_of(LocalStore(root)) == {"a": (1, "sf"), "b": (1, "sf")}
    (root / "inner").symlink_to("city=sf")
    assert LocalStore(tmp_path / "shortcut").names("inner") == LocalStore(root).names("city=sf")


@pytest.mark.parametrize("name", [".temp", ".heartbeat", ".locks", "timeline", "metadata"])
def test_a_write_empties_no_folder_of_others(tmp_path: Path, outside: Path, name: str) -> None:
    root = tmp_path / "table"
    table_in(root)
    linked = root / ".hoodie" / name
    if linked.exists():
        linked.rename(tmp_path / "moved")
    linked.symlink_to(outside)
    before = content(outside)
    with pytest.raises(PartitionPathError, match=rf"{name} leads to .*outside the table's folder"):
        hoodie.open(root).upsert(trips({"b": (1, "sf")}))
    assert content(outside) == before


def test_a_partition_of_others_is_not_read(tmp_path: Path) -> None:
    roots = [tmp_path / "table", tmp_path / "other"]
    for root in roots:
        table_in(root)
        hoodie.open(root).upsert(trips({"b": (1, "nyc")}))
    (roots[0] / "city=sf").rename(tmp_path / "moved")
    (roots[0] / "city=sf").symlink_to(tmp_path / "moved")
    table = hoodie.open(roots[0])
    with pytest.raises(PartitionPathError, match="outside the table's folder"):
        table.to_arrow()
    assert table.to_arrow(columns=["id"], where="city = 'nyc'").to_pylist() == [{"id": "b"}]
