"""Golden tables in memory, as cheap to copy as a dict."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from hoodie.storage import MemoryStore
from hoodie.timeline import InstantClock
from tests.support.fake_commits import FakeTable
from tests.support.tables import copy_of

InMemory = Callable[[str], FakeTable]


@pytest.fixture(scope="session")
def in_memory(golden_tables: Path) -> InMemory:
    @cache
    def loaded(name: str) -> MemoryStore:
        store, root = MemoryStore(), golden_tables / name
        for path in sorted(root.rglob("*")):
            if path.is_file() and not path.name.endswith(".crc"):
                store.create(path.relative_to(root).as_posix(), path.read_bytes())
        return store

    return lambda name: FakeTable(copy_of(loaded(name)), InstantClock())


@pytest.fixture(scope="session")
def rebuilt(in_memory: InMemory) -> FakeTable:
    """The golden table v9_cow with a metadata table that we built, one delta commit old."""
    found = in_memory("v9_cow")
    found.rebuild_metadata_table()
    return found


@pytest.fixture
def table(rebuilt: FakeTable) -> FakeTable:
    """A copy of `rebuilt`."""
    return FakeTable(copy_of(rebuilt.store), InstantClock())
