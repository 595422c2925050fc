"""Golden tables in memory, as cheap to copy as a dict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie.storage import MemoryStore, Store
from hoodie.timeline import InstantClock
from tests.support.fake_commits import FakeTable

InMemory = Callable[[str], FakeTable]


def copy_of(store: Store) -> MemoryStore:
    """Another store with the same files."""
    copied = MemoryStore()
    for info in store.list("", recursive=True):
        copied.create(info.path, store.read(info.path))
    return copied


@pytest.fixture
def in_memory(golden_tables: Path) -> InMemory:
    def load(name: str) -> FakeTable:
        store = MemoryStore()
        root = golden_tables / name
        for path in sorted(root.rglob("*")):
            if path.is_file() and not path.name.endswith(".crc"):
                store.create(path.relative_to(root).as_posix(), path.read_bytes())
        return FakeTable(store, InstantClock())

    return load


@pytest.fixture
def table(in_memory: InMemory) -> FakeTable:
    """The golden table v9_cow with a metadata table that we built, one delta commit old."""
    found = in_memory("v9_cow")
    found.rebuild_metadata_table()
    return found
