"""What `verify` says of locks: of each provider what can be seen from the table's folder."""

from __future__ import annotations

import time

import pytest

from hoodie.files.table_properties import update_table_config
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline.locks import storage_based, zookeeper
from tests.unit.services.check.wounds import aged, sound

HOUR_MS = 3_600_000
PREPARED = ".hoodie/.locks/prepared-0000"


def with_lock(*, is_released: bool, ends_in_ms: int) -> MemoryStore:
    store = aged(sound())
    lock = storage_based.LockFile(is_released, time.time_ns() // 1_000_000 + ends_in_ms, "4b2f")
    store.create(f".hoodie/.locks/{storage_based.FILE_NAME}", lock.to_bytes())
    return store


@pytest.mark.parametrize(
    ("is_released", "ends_in_ms", "is_told"),
    [
        (True, -50 * HOUR_MS, False),
        (True, HOUR_MS, False),
        (False, HOUR_MS, False),
        (False, -60_000, False),
        (False, -2 * HOUR_MS, True),
    ],
    ids=["released", "released before its end", "held", "just ended", "not released"],
)
def test_a_storage_based_lock_is_no_finding(is_released: bool, ends_in_ms: int, is_told: bool) -> None:
    report = Table(with_lock(is_released=is_released, ends_in_ms=ends_in_ms)).verify()
    assert report.ok
    assert not report.warnings
    assert ["was not released by the writer 4b2f" in note for note in report.notes] == [True] * is_told


@pytest.mark.parametrize("is_held", [True, False])
def test_a_prepared_file_belongs_to_the_holder_of_a_storage_based_lock(is_held: bool) -> None:
    store = with_lock(is_released=False, ends_in_ms=HOUR_MS if is_held else -60_000)
    store.create(PREPARED, b"x")
    found = Table(aged(store)).verify().warnings
    assert found == ({} if is_held else {"leftover-lock": 1})


def test_a_lock_in_zookeeper_is_not_looked_at() -> None:
    store = sound()
    update_table_config(store, {"hoodie.write.lock.provider": zookeeper.NAME})
    report = Table(aged(store)).verify()
    assert report.ok
    assert [note for note in report.notes if "ZooKeeper was not looked at" in note]
