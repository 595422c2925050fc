from __future__ import annotations

import pytest

import hoodie
from hoodie.errors import InvalidConfigError
from hoodie.table import Table
from hoodie.timeline import LockOptions, TableLock
from hoodie.timeline.locks import file_system, storage_based
from hoodie.timeline.owner import Owner
from tests.support.tables import PLAIN, new_table, rows


def locks(table: Table) -> list[tuple[str, bool, bool]]:
    """Provider, whether it is ours, whether it is held."""
    rows = table.inspect.locks().to_pylist()
    return [(row["provider"], row["is_ours"], row["holder"] is not None) for row in rows]


def test_the_default_and_a_lock_that_is_held() -> None:
    table = new_table(PLAIN)
    store = table.view().store
    assert locks(table) == [("FileSystemBasedLockProvider", True, False)]
    with TableLock(store):
        (row,) = table.inspect.locks().to_pylist()
        assert row["holder"].startswith("process ")
        assert (row["until"] - row["written"]).seconds == 30
    store.create(".hoodie/lock", Owner.new().to_bytes())
    assert "ended without releasing" in table.inspect.locks().to_pylist()[0]["holder"]
    store.replace(".hoodie/lock", b"")
    (row,) = table.inspect.locks().to_pylist()
    assert (row["holder"], row["until"]) == ("another writer", None)


def test_a_table_whose_writers_use_another_provider() -> None:
    table = new_table(PLAIN)
    with TableLock(table.view().store, LockOptions(provider=storage_based.NAME)):
        assert locks(table) == [("StorageBasedLockProvider", True, True)]
        (row,) = table.inspect.locks().to_pylist()
        assert row["until"] > row["written"]
        ours = table.inspect.locks({"hoodie.write.lock.provider": file_system.NAME}).to_pylist()
        assert [(row["provider"], row["is_ours"]) for row in ours] == [
            ("StorageBasedLockProvider", False),
            ("FileSystemBasedLockProvider", True),
        ]
    assert locks(table) == [("StorageBasedLockProvider", True, False)]


def test_the_provider_is_an_option_of_a_handle() -> None:
    uri = new_table(PLAIN).path
    table = hoodie.open(uri, lock={"hoodie.write.lock.provider": storage_based.NAME})
    assert locks(table) == [("StorageBasedLockProvider", True, False)]
    table.upsert(rows("a"))
    assert b'"expired":true' in table.view().store.read(".hoodie/.locks/table_lock.json")
    with pytest.raises(InvalidConfigError, match=r"found hoodie\.parquet\.max\.file\.size"):
        hoodie.open(uri, lock={"hoodie.parquet.max.file.size": "1"})


def test_the_provider_is_a_property_of_the_table() -> None:
    table = new_table(PLAIN, properties={"hoodie.write.lock.provider": storage_based.NAME})
    assert locks(table) == [("StorageBasedLockProvider", True, False)]
    table.upsert(rows("a"))
    assert table.view().store.head(".hoodie/.locks/table_lock.json") is not None
