"""`t.verify(full=True)` compares the HBase index with the data, and `t.index.switch` leaves it."""

from __future__ import annotations

import time

import pytest

from hoodie.commit.steps import Step
from hoodie.errors import CommitConflictError, IndexIncompleteError, InvalidConfigError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.index import index_of_view
from hoodie.index.hbase.client import HBaseClient
from hoodie.index.hbase.versions import deleted_cells, location_cells
from hoodie.view.slices import list_slices
from tests.hbase.rows import KINDS, START, again, check, settings_of, started
from tests.support.steps import ONE_TRY, once_at
from tests.support.tables import rows_of, trips
from tests.support.zookeeper_server import free_port

each_kind = pytest.mark.parametrize("table_type", KINDS)
LATE = 10**13
"""A time stamp that is later than all others."""


@each_kind
def test_a_full_check_asks_hbase(options: dict[str, str], table_type: str) -> None:
    table = started(options, table_type)
    table.upsert(trips({"a": (2, "la"), "d": (2, "sf")}))
    assert str(table.verify(full=True)).count("hbase") == 0
    newest = table.timeline.completed().writes().instants[-1].requested_time
    sf = next(found.file_id for found in list_slices(table.view(), ["city=sf"]))
    with HBaseClient(settings_of(table.view().store)) as client:
        wrong = [(b"c", location_cells(newest, "city=sf", sf)), (b"z", location_cells(newest, "city=sf", sf))]
        client.put([(b"b", deleted_cells(newest)), *wrong], LATE)
        client.put([(b"y", location_cells("29991231000000000", "city=sf", sf))], LATE)
    assert table.verify().ok
    problems = {kind: count for kind, count in table.index.verify().problems.items() if count}
    assert problems == {"keys without an entry": 1, "entries of another file group": 1, "entries without a key": 1}
    report = table.verify(full=True)
    assert report.problems == {"hbase-differs": 3}
    assert {found.key for found in report.findings} == {"b", "c", "z"}
    assert {found.remedy for found in report.findings} == {
        f"hoodie index build {table.path.removeprefix('file://')} hbase"
    }
    table.index.build("hbase")
    assert table.verify(full=True).ok


def test_a_full_check_of_an_index_that_is_not_there(options: dict[str, str]) -> None:
    """A finding if HBase says so; a note if HBase cannot be asked. Keys of several rows are found in both cases."""
    table = started(options, "copy_on_write")
    with HBaseClient(settings_of(table.view().store)) as client:
        client.truncate_table()
    with pytest.raises(IndexIncompleteError, match="dropped or emptied"):
        table.upsert(trips({"a": (3, "sf")}))
    assert not table.index.verify().ok
    table.index.build("hbase")
    check(table, START)
    table.bulk_insert(trips({"c": (200, "sf")}))
    assert table.verify(full=True).problems == {"key-doubled": 1}
    with HBaseClient(settings_of(table.view().store)) as client:
        client.truncate_table()
    report = table.verify(full=True)
    assert report.problems == {"hbase-differs": 1, "key-doubled": 1}
    assert any("dropped or emptied" in str(found) for found in report.findings)
    update_table_config(table.view().store, {"hoodie.index.hbase.thrift.port": str(free_port())})
    report = again(table).verify(full=True)
    assert report.problems == {"key-doubled": 1}
    assert any("was not compared" in note and "cannot be reached" in note for note in report.notes)


def test_writes_and_checks_keep_the_limit_of_keys_in_a_second(options: dict[str, str]) -> None:
    table = started(options, "copy_on_write", **{"hoodie.index.hbase.max.qps.per.region.server": "100"})
    small = {"hoodie.index.hbase.get.batch.size": "10", "hoodie.index.hbase.put.batch.size": "10"}
    done = table.upsert(trips({f"k{number}": (1, "sf") for number in range(57)}), properties=small)
    assert done.seconds["tag"] >= 0.5
    assert done.seconds["index"] >= 0.02
    update_table_config(table.view().store, {"hoodie.index.hbase.max.qps.per.region.server": "30"})
    began = time.monotonic()
    assert again(table).index.verify().ok
    assert time.monotonic() - began >= 1.0


@pytest.mark.parametrize(
    ("name", "table_type"),
    [*zip(("record", "simple", "global_simple", "bloom", "global_bloom", "record"), KINDS * 3, strict=True)],
)
def test_hbase_is_left_for_another_index_and_built_again(options: dict[str, str], table_type: str, name: str) -> None:
    """No property of HBase stays, the new index finds every record, and HBase takes the table back with its writes.

    Each index with one type of table, the record index with both: the others read base files and logs as every scan.
    """
    table = started(options, table_type)
    table.upsert(trips({"a": (2, "la")}))
    table.delete(trips({"b": (9, "x")}).select(["id"]))
    fixed = name in ("simple", "bloom")
    if fixed:
        with pytest.raises(UnsupportedError, match="another value of city would store its key a second time"):
            table.index.switch(name)
    assert table.index.switch(name, key_keeps_partition=fixed, dry_run=True).dry_run
    assert index_of_view(again(table).view()).name == "hbase"
    table.index.switch(name, key_keeps_partition=fixed)
    table = again(table)
    assert index_of_view(table.view()).name == name
    assert not [key for key in table.view().config.raw if "hbase" in key]
    with pytest.raises(UnsupportedError, match=r"call t\.index\.build\('hbase'"):
        table.index.switch("hbase")
    done = table.upsert(trips({"a": (3, "la"), "b": (3, "nyc"), "c": (3, "la" if fixed else "sf")}))
    assert (done.inserted, done.updated) == (1, 2)
    rows = {"a": (3, "la"), "b": (3, "nyc"), "c": (3, "la" if fixed else "sf")}
    assert rows_of(table.view().store) == rows
    assert table.verify(full=True).ok
    with pytest.raises(InvalidConfigError, match="no HBase index"):
        table.index.drop("hbase")
    table.index.build("hbase", properties=options)
    check(again(table), rows)
    assert again(table).verify(full=True).ok


@pytest.mark.parametrize("name", ["record", "global_simple", "simple"])
def test_a_write_that_began_before_hbase_was_left(options: dict[str, str], name: str) -> None:
    """It commits if the new index has its keys, and is refused where it could put a key into a second partition."""
    table = started(options, "copy_on_write")
    late = again(table)
    with once_at(Step.WRITTEN, lambda: again(table).index.switch(name, key_keeps_partition=True)):
        try:
            late.upsert(trips({"a": (2, "la"), "new": (2, "sf")}), properties=ONE_TRY)
            rows = {**START, "a": (2, "la"), "new": (2, "sf")}
        except CommitConflictError:
            rows = dict(START)
    table = again(table)
    assert rows_of(table.view().store) == rows
    kept = {key: (ts + 10, city) for key, (ts, city) in rows.items()}
    assert table.upsert(trips(kept)).inserted == 0
    assert rows_of(table.view().store) == kept
    assert table.verify(full=True).ok
