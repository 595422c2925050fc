"""A write that was requested long ago completes while another runs, and a clean follows: no key is stored twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hoodie.commit.steps import Step
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.view.listing import list_files
from hoodie.view.slices import list_slices
from tests.support.overtaken import held_before_commit
from tests.support.steps import once_at
from tests.support.tables import rows_of, trips, trips_store

FEW = {"hoodie.clean.commits.retained": "2", "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
START = {"k": (1, "sf"), "l": (1, "sf"), "b": (1, "nyc")}


def table_of(table_type: str, index: str) -> tuple[MemoryStore, Table]:
    store = trips_store(START, table_type=table_type, index=index, properties=FEW)
    return store, Table(store)


def commits(store: MemoryStore, number: int) -> None:
    for version in range(number):
        Table(store).upsert(trips({"b": (2 + version, "nyc")}))


@contextmanager
def completed_and_cleaned(store: MemoryStore, finish: Callable[[], object], **policy: Any) -> Iterator[None]:
    """When an instant of the body begins, the older write completes, and a clean follows."""

    def act() -> None:
        finish()
        Table(store).clean(**policy)

    with once_at(Step.BEGUN, act):
        yield


@pytest.mark.parametrize("index", ["record", "simple"])
@pytest.mark.parametrize("overtaken", ["upsert", "compaction"])
@pytest.mark.parametrize("properties", [{}, ONE_VERSION], ids=["commits", "versions"])
def test_keys_stay_unique(overtaken: str, index: str, properties: dict[str, str]) -> None:
    store, table = table_of("copy_on_write" if overtaken == "upsert" else "merge_on_read", index)
    finish: Callable[[], object]
    if overtaken == "upsert":
        finish = held_before_commit(lambda: Table(store).upsert(trips({"l": (2, "sf")})))
    else:
        table.upsert(trips({"l": (2, "sf")}))
        table.schedule_compaction()
        finish = Table(store).compact
    commits(store, 4)
    with completed_and_cleaned(store, finish, properties=properties):
        result = table.upsert(trips({"k": (9, "sf")}))
    assert (result.inserted, result.updated) == (0, 1)
    assert rows_of(store) == {"k": (9, "sf"), "l": (2, "sf"), "b": (5, "nyc")}
    assert table.to_arrow().num_rows == 3


def test_a_deleted_partition_has_no_row_left() -> None:
    store, table = table_of("copy_on_write", "simple")
    finish = held_before_commit(lambda: Table(store).upsert(trips({"l": (2, "sf")})))
    commits(store, 4)
    with completed_and_cleaned(store, finish, properties=ONE_VERSION):
        table.delete_partitions(["city=sf"])
    assert rows_of(store) == {"b": (5, "nyc")}


def test_what_an_overtaken_write_replaced_goes_in_its_turn() -> None:
    """It stays while the snapshot of a retained commit reads it, and later cleans find it."""
    store, table = table_of("copy_on_write", "simple")
    finish = held_before_commit(lambda: Table(store).upsert(trips({"l": (2, "sf")})))
    commits(store, 4)
    finish()
    before = table.view()
    kept = before.as_completed_by(before.completed_writes()[-2].completion_time or "")
    old = min(found.base_instant_time for found in list_slices(kept) if found.partition_path == "city=sf")
    table.clean()
    assert any(old in name for name in list_files(table.view(), ["city=sf"])["city=sf"])
    commits(store, 3)
    assert table.clean().counts["files_deleted"]
    assert not any(old in name for name in list_files(table.view(), ["city=sf"])["city=sf"])


def test_an_index_build_ends_beside_writes_that_are_cleaned() -> None:
    store, table = table_of("copy_on_write", "simple")

    def others() -> None:
        for version in range(4):
            Table(store).upsert(trips({"l": (2 + version, "sf")}), properties={"hoodie.clean.automatic": "true"})

    with once_at(Step.BEGUN, others):
        assert table.index.build("record").counts["entries"] == len(START)
    assert not table.index.verify().findings
