"""The record index of version 6: a write stages its log files, and its commit names them by their newest slice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hoodie.commit.steps import Step
from hoodie.errors import UnsupportedError
from hoodie.files.markers import TEMP_FOLDER
from hoodie.format.filenames import BaseFileName, LogFileName
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.support.steps import once_at
from tests.support.tables import PLAIN, TYPES, new_table, rows, values_of

FOLDER = ".hoodie/metadata/record_index"


def new(table_type: str = "copy_on_write", index: str = "record", **properties: str) -> tuple[MemoryStore, Table]:
    table = new_table(
        PLAIN, partition_by="city", ordering="ts", type=table_type, index=index, table_version=6, properties=properties
    )
    store = table.view().store
    assert isinstance(store, MemoryStore)
    return store, table


def logs(store: MemoryStore) -> Iterator[LogFileName]:
    for name in store.names(FOLDER):
        found = LogFileName.parse(name)
        if found is not None:
            yield found


def check(store: MemoryStore, expected: dict[str, int]) -> None:
    assert values_of(Table(store), "id", "ts") == sorted(expected.items())
    report = Table(store).verify(full=True)
    assert report.ok, report


def test_log_files_are_named_by_their_slice_and_follow_each_other() -> None:
    store, table = new(**{"hoodie.metadata.compact.max.delta.commits": "4"})
    for ts in range(1, 10):
        table.upsert(rows("a", "b", f"k{ts}", ts=ts))
    initial = {log.instant_time for log in logs(store) if log.version == 1}
    assert {"00000000000000011"} <= initial
    bases = {base.instant_time for base in map(BaseFileName.parse, store.names(FOLDER)) if base}
    assert bases
    assert all(time.endswith("001") for time in bases)
    assert {log.instant_time for log in logs(store)} <= {"00000000000000011", *bases}
    # Only log files with entries are written: those of keys that are new.
    versions = sorted(log.version for log in logs(store) if log.instant_time == "00000000000000011")
    assert versions.count(1) == 10
    assert not [folder for folder in store.folders(TEMP_FOLDER) if "stage" in folder]
    check(store, {"a": 9, "b": 9, **{f"k{ts}": ts for ts in range(1, 10)}})


@pytest.mark.parametrize("table_type", TYPES)
def test_two_writers_do_not_store_one_key_twice(table_type: str) -> None:
    store, table = new(table_type)
    table.upsert(rows("a"))
    with once_at(Step.LOCATED, lambda: Table(store).upsert(rows("b", "c", ts=2))):
        result = table.upsert(rows("b", "d", ts=3, city="la"))
    assert any(note.startswith("retried once") for note in result.notes)
    with once_at(Step.LOCATED, lambda: Table(store).upsert(rows("x", ts=4))):
        assert table.upsert(rows("y", ts=5, city="rome")).notes == ()
    check(store, {"a": 1, "b": 3, "c": 2, "d": 3, "x": 4, "y": 5})


def test_entries_go_behind_a_compaction_that_ran_meanwhile() -> None:
    store, table = new(**{"hoodie.metadata.compact.max.delta.commits": "3"})
    table.upsert(rows("a", "b"))

    def other() -> None:
        for ts in range(2, 7):
            Table(store).upsert(rows(f"o{ts}", ts=ts))

    with once_at(Step.LOCATED, other):
        table.upsert(rows("n", ts=7))
    table.upsert(rows("n", "a", ts=8))
    check(store, {"a": 8, "b": 1, "n": 8, **{f"o{ts}": ts for ts in range(2, 7)}})


def test_a_write_is_repeated_after_a_build_that_ran_meanwhile() -> None:
    store, table = new(index="global_simple")
    table.upsert(rows("a"))
    with once_at(Step.LOCATED, lambda: Table(store).index.build("record")):
        result = table.upsert(rows("b", ts=2))
    assert any("retried" in note for note in result.notes)
    check(store, {"a": 1, "b": 2})
    assert table.view().config.metadata_partitions == ("files", "record_index")


def test_a_rollback_of_a_completed_write_takes_its_entries_back() -> None:
    store, table = new("merge_on_read")
    table.upsert(rows("a", "b"))
    wrong = table.upsert(rows("b", "c", ts=2)).instant
    table.rollback(wrong)
    check(store, {"a": 1, "b": 1})
    table.upsert(rows("c", ts=3, city="la"))
    check(store, {"a": 1, "b": 1, "c": 3})


def test_entries_of_the_past() -> None:
    _, table = new(**{"hoodie.metadata.compact.max.delta.commits": "3"})
    instants = [table.upsert(rows("a", f"k{ts}", ts=ts)).instant for ts in range(1, 6)]
    before = table.inspect.index(as_of=instants[3])["key"].to_pylist()
    assert sorted(before) == ["a", "k1", "k2", "k3", "k4"]
    changes = table.inspect.index_changes(since=instants[3])
    assert changes["key"].to_pylist() == ["k5"]


def test_what_a_build_has_of_later_writes_is_not_known() -> None:
    store, table = new(index="global_simple")
    instants = [table.upsert(rows("a", f"k{ts}", ts=ts)).instant for ts in range(1, 3)]
    table.index.build("record")
    with pytest.raises(UnsupportedError, match="cannot be read"):
        table.inspect.index(as_of=instants[0])
    assert table.to_arrow(columns=["id"], as_of=instants[0]).num_rows == 2
    later = table.upsert(rows("z", ts=9)).instant
    assert table.rollback(later).counts["instants"] == 1
    table.upsert(rows("y", ts=9))
    check(store, {"a": 2, "k1": 1, "k2": 2, "y": 9})
