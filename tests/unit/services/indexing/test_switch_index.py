"""A table gets another index: what is checked, what is stored, and writers that run meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from hoodie.commit.steps import Step
from hoodie.config import indexes, writes
from hoodie.errors import CommitConflictError, HoodieError, InvalidConfigError, RecordKeyError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.format.table import table_keys
from hoodie.index import index_of_view
from hoodie.index.bucket import WRITE_KEY_FIELDS
from hoodie.services.indexing import change, key_check
from hoodie.table import Table
from tests.support.index_check import check_index
from tests.support.refusals import refused
from tests.support.steps import once_at
from tests.support.tables import PLAIN, TYPES, new_table, rows, values_of

both_types = pytest.mark.parametrize("table_type", TYPES)
FEW = indexes.RECORD_INDEX_BUCKETS_MIN.key
KINDS = ("simple", "global_simple", "record", "bucket", "bloom", "global_bloom")


def made(
    index: str,
    *writes: pa.Table,
    table_type: str = "copy_on_write",
    key: tuple[str, ...] = ("id", "city"),
    properties: Mapping[str, str] | None = None,
) -> Table:
    given: dict[str, Any] = {"record_key": key, "type": table_type, "properties": {FEW: "2", **(properties or {})}}
    return new_table(PLAIN, *writes, partition_by="city", ordering="ts", index=index, **given)


def index_properties(table: Table) -> dict[str, str]:
    names = ("index", "update.partition.path")
    raw = table.view().config.raw
    without = (table_keys.INDEX_DEFINITIONS_PATH, FEW)
    return {key: value for key, value in raw.items() if any(name in key for name in names) and key not in without}


@pytest.mark.matrix(keep=14)
@both_types
@pytest.mark.parametrize("old", KINDS)
@pytest.mark.parametrize("new", ["simple", "global_simple", "record", "global_bloom"])
def test_every_index_becomes_every_other(table_type: str, old: str, new: str) -> None:
    """The key has the partition column, so that each way is safe. The table is then as one that was created so."""
    table = made(old, rows("a", "b"), rows("a", "c", ts=2, city="la"), table_type=table_type)
    assert table.index.switch(new, dry_run=True).dry_run
    assert index_of_view(table.view()).name == old
    result = table.index.switch(new)
    assert "now; it was" in str(result) or old == new
    assert index_of_view(Table(table.view().store).view()).name == new
    table.upsert(rows("a", "d", ts=3))
    table.delete(rows("c", city="la").select(["id", "city"]))
    assert values_of(table) == [("a", 2, "la"), ("a", 3, "sf"), ("b", 1, "sf"), ("d", 3, "sf")]
    created = made(new, rows("a"), table_type=table_type)
    told = {indexes.INDEX_TYPE_KEY: "SIMPLE"} if (old, new) == ("bucket", "simple") else {}
    assert index_properties(table) == index_properties(created) | told
    if new == "record":
        check_index(table.view())
    else:
        assert not table.view().store.list(".hoodie/metadata/record_index")
    assert table.verify(full=True).ok
    before = table.view().config.raw
    assert "already" in str(table.index.switch(new))
    assert table.view().config.raw == before


@both_types
def test_a_key_in_two_partitions_has_no_index_of_the_whole_table(table_type: str) -> None:
    table = made("simple", rows("a", "b", "c"), rows("a", "b", city="la"), table_type=table_type, key=("id",))
    before = index_properties(table)
    for name in ("global_simple", "record"):
        with pytest.raises(RecordKeyError, match=r"2 (keys|rows)"):
            table.index.switch(name)
    with pytest.raises(RecordKeyError, match=r"2 keys of .* are in several partitions, e\.g\. \['[ab]', '[ab]'\]"):
        table.index.switch("global_simple", dry_run=True)
    assert index_properties(table) == before
    table.delete(rows("a", "b", city="la").select(["id", "city"]))
    assert table.index.switch("global_simple").counts == {"rows_checked": 3}


@pytest.mark.parametrize("old", ["global_simple", "record"])
def test_a_key_that_may_change_its_partition_needs_an_index_of_the_whole_table(old: str) -> None:
    table = made(old, rows("a", "b"), key=("id",))
    with pytest.raises(UnsupportedError, match="another value of city would store its key a second time"):
        table.index.switch("simple")
    assert table.index.switch("simple", key_keeps_partition=True).counts == {"rows_checked": 2}
    table.upsert(rows("a", ts=2))
    assert values_of(table) == [("a", 2, "sf"), ("b", 1, "sf")]


def test_rows_that_stayed_in_their_first_partition_are_found() -> None:
    """An index that moves no records left a row where an index of single partitions would not look for it."""
    stays = {writes.UPDATE_PARTITION_PATH.key: "false"}
    table = made("global_simple", rows("a", "b"), rows("a", ts=2, city="la"), key=("id",), properties=stays)
    with pytest.raises(UnsupportedError, match=r"1 rows of .* are in another partition .* the keys \['a'\]"):
        table.index.switch("simple", key_keeps_partition=True)
    assert table.index.switch("record").notes[-1].startswith("the index is 'record' now")
    assert index_properties(table)[indexes.RECORD_UPDATE_PARTITION_PATH.key] == "false"


def test_keys_that_no_file_stores_are_made_of_their_columns() -> None:
    without = {"hoodie.populate.meta.fields": "false"}
    table = made("simple", rows("a", "b"), rows("a", "c", city="la"), key=("id",), properties=without)
    with pytest.raises(RecordKeyError, match=r"1 keys of .* are in several partitions, e\.g\. \['a'\]"):
        table.index.switch("global_simple", dry_run=True)
    table.delete(rows("a", city="la").select(["id", "city"]))
    assert table.index.switch("global_simple", dry_run=True).counts == {"rows_checked": 3}
    assert table.index.switch("global_simple").counts == {"rows_checked": 3}
    table.upsert(rows("a", ts=2, city="la"))
    assert values_of(table) == [("a", 2, "la"), ("b", 1, "sf"), ("c", 1, "la")]
    stays = without | {writes.UPDATE_PARTITION_PATH.key: "false"}
    table = made("global_simple", rows("a", "b"), rows("a", ts=2, city="la"), key=("id",), properties=stays)
    with pytest.raises(UnsupportedError, match=r"1 rows of .* are in another partition .* the keys \['a'\]"):
        table.index.switch("simple", key_keeps_partition=True)


def test_partition_columns_that_no_file_stores_are_those_of_the_path() -> None:
    without = {"hoodie.datasource.write.drop.partition.columns": "true"}
    table = made("global_simple", rows("a", "b"), rows("c", city="la"), properties=without)
    assert table.index.switch("simple").counts == {"rows_checked": 3}
    table.upsert(rows("a", ts=2))
    assert values_of(table) == [("a", 2, "sf"), ("b", 1, "sf"), ("c", 1, "la")]


def test_buckets_are_stored_for_a_table_that_obeys_them() -> None:
    """As a table of the JVM's DataFrame writer: the file ids have buckets, and the properties do not name them."""
    table = made("bucket", rows(*"abcdefgh"), properties={indexes.BUCKET_COUNT.key: "4"})
    expected = index_properties(table)
    update_table_config(table.view().store, dict.fromkeys(key for key in expected if "metadata" not in key))
    table = Table(table.view().store)
    with pytest.raises(InvalidConfigError, match="buckets is missing"):
        table.index.switch("bucket")
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"buckets": 8}, r"keys of .* are not in the file group of their bucket"),
        ({"buckets": 2}, r"belongs to none of the 2 buckets.*write the rows to it with bulk_insert"),
        ({"buckets": 4, "hash_field": "city"}, "are not in the file group of their bucket"),
    )
    for arguments, message in cases:
        with pytest.raises(UnsupportedError, match=message):
            table.index.switch("bucket", **arguments)
    assert table.index.switch("bucket", buckets=4).counts == {"rows_checked": 8}
    assert index_properties(table) == expected
    table.upsert(rows("a", ts=2))
    assert table.count() == 8
    with pytest.raises(InvalidConfigError, match="is fixed when the table is created"):
        table.index.switch("bucket", buckets=8)
    # A table of an earlier release lacks what procedures of the JVM need.
    update_table_config(table.view().store, {WRITE_KEY_FIELDS: None})
    assert "already" in str(table.index.switch("bucket", buckets=4))
    assert table.view().config.raw[WRITE_KEY_FIELDS] == "id,city"


def test_the_time_is_stored_since_which_rows_are_where_the_index_looks() -> None:
    """Only if rows of earlier states may be elsewhere: reads of these skip no files by the new index."""
    stays = {writes.UPDATE_PARTITION_PATH.key: "false"}
    since = {indexes.BUCKETS_SINCE.key, indexes.COLUMNS_SINCE.key}
    for old, new, properties in (
        ("simple", "global_simple", {}),
        ("global_simple", "bloom", {}),
        ("bucket", "simple", {}),
        ("global_simple", "record", stays),
    ):
        table = made(old, rows("a"), properties=properties)
        table.index.switch(new)
        assert not since & table.view().config.raw.keys(), (old, new)
    of_buckets: dict[str, Any] = {"buckets": 2}
    placed = made("bucket", rows("a"), properties={indexes.BUCKET_COUNT.key: "2"})
    placed.index.switch("simple")
    for table, new, arguments, key in (
        (placed, "bucket", of_buckets, indexes.BUCKETS_SINCE.key),
        (made("global_simple", rows("a"), properties=stays), "simple", {}, indexes.COLUMNS_SINCE.key),
    ):
        table.index.switch(new, dry_run=True, **arguments)
        assert not since & table.view().config.raw.keys()
        table.index.switch(new, **arguments)
        raw = table.view().config.raw
        assert since & raw.keys() == {key}
        assert raw[key] > max(found.completion_time or "" for found in table.timeline)
        table.index.switch(new)  # as after a crash
        assert table.view().config.raw == raw
        with pytest.raises(InvalidConfigError, match="belongs to an index"):
            table.alter.set_properties({key: "0"})
    placed.index.switch("simple")
    assert not since & placed.view().config.raw.keys()


def test_other_file_groups_are_no_buckets() -> None:
    table = made("simple", rows("a"))
    with pytest.raises(UnsupportedError, match="create a table with index='bucket'") as refusal:
        table.index.switch("bucket", buckets=4)
    assert "file groups of this table do not obey these buckets" in str(refusal.value)
    assert "roll" not in str(refusal.value)  # its writes are sound
    empty = made("simple")
    empty.index.switch("bucket")
    assert index_properties(empty)[indexes.BUCKET_COUNT.key] == "16"
    empty.upsert(rows("a"))
    with pytest.raises(InvalidConfigError, match="is fixed when the table is created"):
        empty.upsert(rows("a"), properties={indexes.BUCKET_COUNT.key: "8"})


def test_what_cannot_be_switched() -> None:
    table = made("simple", rows("a"))
    refusals: tuple[tuple[str, dict[str, Any], type[HoodieError], str], ...] = (
        ("hbase", {}, UnsupportedError, "t.index.build('hbase', properties={…}), which does both"),
        ("partitioned_record", {}, UnsupportedError, "this release cannot build it for a table"),
        ("global_simple", {"buckets": 4}, InvalidConfigError, "are arguments of index='bucket'"),
        ("btree", {}, InvalidConfigError, "is no index"),
    )
    for name, arguments, error, told in refusals:
        with refused(table, told, error=error):
            table.index.switch(name, **arguments)
    assert index_of_view(table.view()).name == "simple"


def test_a_write_that_began_under_the_old_index_cannot_commit() -> None:
    """It would store a key in a second partition. The other way it may: a key that is unique stays unique."""
    table = made("simple", rows("a"), key=("id",))
    switch = Table(table.view().store).index.switch
    with (
        once_at(Step.LOCATED, lambda: switch("global_simple")),
        pytest.raises(CommitConflictError, match=r"the index of .* was switched"),
    ):
        table.upsert(rows("a", ts=2, city="la"))
    table.upsert(rows("a", ts=2, city="la"))
    assert values_of(table) == [("a", 2, "la")]
    with once_at(Step.LOCATED, lambda: switch("simple", key_keeps_partition=True)):
        table.upsert(rows("b"))
    assert values_of(table) == [("a", 2, "la"), ("b", 1, "sf")]


def test_a_write_during_the_check_asks_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made("simple", rows("a"), key=("id",))
    other = Table(table.view().store)
    writes = [rows("b"), rows("a", city="la")]
    real = key_check.check_one_partition_each

    def check(*arguments: object) -> int:
        found = real(*arguments)  # type: ignore[arg-type]
        if writes:
            other.upsert(writes.pop(0))
        return found

    monkeypatch.setattr(change, "check_one_partition_each", check)
    with pytest.raises(RecordKeyError, match="1 keys of"):
        table.index.switch("global_simple")
    writes += [rows("x", ts=n) for n in range(3)]
    other.delete(rows("a", city="la").select(["id", "city"]))
    with pytest.raises(CommitConflictError, match="during each of 3 checks"):
        table.index.switch("global_simple")
    table.index.switch("global_simple")


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_dry_run_finds_keys_of_several_rows(partitioned: bool) -> None:
    """An insert looks up no keys; the record index has one location for a key."""
    options: dict[str, Any] = {"partition_by": "city"} if partitioned else {}
    table = new_table(PLAIN, rows("a", "b"), index="simple", **options)
    table.insert(rows("a", ts=2))
    for dry_run in (True, False):
        with pytest.raises(RecordKeyError, match="'a'"):
            table.index.switch("record", dry_run=dry_run)
    assert table.index.switch("global_simple", dry_run=True).dry_run
    table.delete(rows("a").select(["id", "city"]))
    assert table.index.switch("record", dry_run=True).counts == {"rows_checked": 1}
    assert index_of_view(table.view()).name == "simple"
    assert table.index.switch("record").notes[-1].startswith("the index is 'record' now")


def test_a_dry_run_refuses_tables_without_a_record_index() -> None:
    table = new_table(PLAIN, rows("a"), index="simple", properties={"hoodie.populate.meta.fields": "false"})
    for dry_run in (True, False):
        with pytest.raises(UnsupportedError, match="stores no record keys"):
            table.index.switch("record", dry_run=dry_run)


@pytest.mark.parametrize("new", ["record", "global_simple"])
def test_a_dry_run_refuses_a_build_that_runs(new: str) -> None:
    table = made("simple", rows("a"))
    store = table.view().store

    def while_it_builds() -> None:
        for dry_run in (True, False):
            with pytest.raises(CommitConflictError, match="is being built"):
                Table(store).index.switch(new, dry_run=dry_run)

    with once_at(Step.BEGUN, while_it_builds):
        table.index.build("column_stats")
