"""A build, rebuild or drop of the record index that dies at any storage call: nobody believes half an index."""

from __future__ import annotations

import pytest

from hoodie.index.record.file_groups import list_index_files
from hoodie.index.record.state import record_index
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.write.create import CreateOptions, create_table
from tests.crash.tables import DEATHS_KEPT, SCHEMA, Death, Rows, check_tidy, copy_of, deaths, rows_of, run_until, trips
from tests.support.fault_store import CrashPoint

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc"), "d": (1, "la"), "e": (1, "sf")}
CHANGE: Rows = {"a": (2, "sf"), "c": (2, "la"), "x": (1, "oslo")}


def table_of(index: str, buckets: int | None = None) -> MemoryStore:
    """A table with the rows of `START`."""
    store = MemoryStore()
    wanted = CreateOptions(record_key="id", partition_by="city", ordering="ts", index=index)
    create_table(store, SCHEMA, wanted)
    Table(store).upsert(trips(START))
    if buckets is not None:
        Table(store).index.build(buckets=buckets)
    return store


def write_and_check(store: MemoryStore) -> Rows:
    """The next writer does its work at once, moves a record, and an index that is on knows of it."""
    Table(store).upsert(trips({**CHANGE, "b": (2, "sf")}, deleted=("b",)))
    new = {key: row for key, row in {**START, **CHANGE}.items() if key != "b"}
    assert rows_of(store) == new
    if record_index(Table(store).view()) is not None:
        report = Table(store).index.verify()
        assert report.ok, str(report)
    return new


def check_no_leftovers(store: MemoryStore) -> None:
    """All files of the index's folder are believed, and no build is on the timeline."""
    state = record_index(Table(store).view())
    check_tidy(store, has_record_index=state is not None)
    believed = set() if state is None else {info.path for bucket in state.file_groups for info in bucket.files}
    found = {path for path in list_index_files(store) if not path.endswith(".hoodie_partition_metadata")}
    assert found == believed


def check_build(death: Death, buckets: int, before: int | None) -> None:
    """After a death: the old index or none or the new one, all whole; writers go on; the next build ends well."""
    store = death.store
    state = record_index(Table(store).view())
    assert (None if state is None else len(state.file_groups)) in (before, buckets, None), death
    assert rows_of(store) == START
    new = write_and_check(store)
    Table(store).index.build(buckets=buckets)
    state = record_index(Table(store).view())
    assert state is not None
    assert len(state.file_groups) == buckets
    report = Table(store).index.verify()
    assert report.ok, f"{death}: {report}"
    assert report.checked["entries"] == len(new)
    assert rows_of(store) == new
    check_no_leftovers(store)


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize(("before", "buckets"), [(None, 2), (3, 2)], ids=["first build", "fewer buckets"])
def test_a_build_that_dies(before: int | None, buckets: int) -> None:
    store = table_of("global_simple" if before is None else "record", before)
    count = 0
    for death in deaths(store, lambda table: table.index.build(buckets=buckets)):
        check_build(death, buckets, before)
        count += 1
    assert count >= DEATHS_KEPT


def test_a_drop_that_dies() -> None:
    count = 0
    for death in deaths(table_of("record", 2), lambda table: table.index.drop()):
        assert rows_of(death.store) == START
        write_and_check(death.store)
        Table(death.store).index.drop()
        assert record_index(Table(death.store).view()) is None
        assert list_index_files(death.store) == {}
        Table(death.store).index.build(buckets=2)
        assert Table(death.store).index.verify().ok
        check_no_leftovers(death.store)
        count += 1
    assert count > 5


def test_a_drop_takes_back_a_build_that_died() -> None:
    for death in deaths(table_of("global_simple"), lambda table: table.index.build(buckets=2)):
        if Table(death.store).timeline.pending().instants:
            Table(death.store).index.drop()
            assert list_index_files(death.store) == {}
            assert record_index(Table(death.store).view()) is None
            check_no_leftovers(death.store)


def test_a_build_that_dies_while_it_takes_up_one_that_died() -> None:
    """The second process finds base files of the first, and log files of a round that it does not know."""
    store = table_of("global_simple")
    calls = run_until(copy_of(store), lambda table: table.index.build(buckets=2), None).calls
    number = next(n for n, call in enumerate(calls, 1) if call.path.endswith(".hfile"))
    run_until(store, lambda table: table.index.build(buckets=2), number, CrashPoint.AFTER)
    Table(store).upsert(trips({"x": (1, "sf")}))
    count = 0
    for death in deaths(store, lambda table: table.index.build(buckets=2)):
        Table(death.store).delete(["a"])
        Table(death.store).index.build(buckets=2)
        report = Table(death.store).index.verify()
        assert report.ok, f"{death}: {report}"
        assert report.checked["entries"] == len(START)
        check_no_leftovers(death.store)
        count += 1
    assert count >= DEATHS_KEPT
