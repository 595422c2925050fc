"""hoodie.properties survive a writer that dies while it changes them."""

from __future__ import annotations

import pytest

from hoodie.errors import CorruptFileError, TableNotFoundError
from hoodie.files.table_properties import (
    BACKUP,
    PROPERTIES,
    finish_update,
    read_table_config,
    table_exists,
    update_table_config,
)
from hoodie.storage import MemoryStore
from tests.support.fault_store import CrashError, CrashPoint, FaultStore
from tests.support.tables import copy_of, trips_store

CHANGE: dict[str, str | None] = {"hoodie.table.metadata.partitions": "files"}


@pytest.fixture
def store() -> MemoryStore:
    return trips_store()


@pytest.mark.parametrize("point", CrashPoint)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_update_that_dies(store: MemoryStore, number: int, point: CrashPoint) -> None:
    before = dict(read_table_config(store).raw)
    with pytest.raises(CrashError):
        update_table_config(FaultStore(store, number, crash_point=point), CHANGE)
    found = dict(read_table_config(store).raw)
    assert found in (before, {**before, **CHANGE})
    finish_update(store)
    assert dict(read_table_config(store).raw) == found
    assert store.head(BACKUP) is None


@pytest.mark.parametrize("damage", [None, b"", b"hoodie.table.name=half"])
def test_the_backup_is_the_truth_while_the_file_is_replaced(store: MemoryStore, damage: bytes | None) -> None:
    whole = store.read(PROPERTIES)
    store.replace(BACKUP, whole)
    store.delete(PROPERTIES)
    if damage is not None:
        store.create(PROPERTIES, damage)
    assert table_exists(store)
    assert read_table_config(store).name
    finish_update(store)
    assert store.read(PROPERTIES) == whole
    assert store.head(BACKUP) is None


def test_neither_file_is_whole(store: MemoryStore) -> None:
    store.replace(PROPERTIES, b"")
    store.replace(BACKUP, b"")
    with pytest.raises(CorruptFileError):
        read_table_config(store)
    with pytest.raises(CorruptFileError):
        finish_update(store)
    assert store.head(BACKUP) is not None


def test_a_half_written_backup_is_dropped(store: MemoryStore) -> None:
    store.replace(BACKUP, b"hoodie.ta")
    finish_update(copied := copy_of(store))
    assert copied.head(BACKUP) is None
    assert read_table_config(copied).raw == read_table_config(store).raw


def test_no_table() -> None:
    with pytest.raises(TableNotFoundError):
        read_table_config(MemoryStore())
    assert not table_exists(MemoryStore())
