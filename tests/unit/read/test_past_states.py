"""Reads of the past: commits that overlap, cleaned snapshots, schemas of archived commits."""

from __future__ import annotations

import polars
import pyarrow as pa
import pytest

import hoodie
from hoodie.config import indexes, writes
from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.format.table import table_keys as keys
from hoodie.read.plan import plan_scan
from hoodie.records.condition import Condition
from hoodie.table import Table
from tests.support.archived import OFTEN
from tests.support.cleans import claim_clean
from tests.support.refusals import all_refused
from tests.support.switched import KEYS, with_other_buckets, with_rows_elsewhere
from tests.support.tables import PLAIN, new_table, rows

TIMELINE = ".hoodie/timeline"


@pytest.fixture
def table() -> Table:
    """An empty table."""
    return new_table(PLAIN, partition_by="city")


@pytest.fixture
def with_a() -> Table:
    """A table with one row."""
    return new_table(PLAIN, rows("a"), partition_by="city")


def ids(found: pa.Table) -> list[str]:
    """Keys of rows, sorted."""
    return sorted(found["id"].to_pylist())


def overlap(table: Table, first: hoodie.WriteResult, second: hoodie.WriteResult) -> Table:
    """Let the first write have completed after the second."""
    store = table.view().store
    old, last = (
        next(name for name in store.names(TIMELINE) if name.startswith(f"{done.instant}_")) for done in (first, second)
    )
    later = int(last.partition("_")[2].partition(".")[0]) + 1
    store.move(f"{TIMELINE}/{old}", f"{TIMELINE}/{first.instant}_{later}.{old.rpartition('.')[2]}")
    return Table(store)


def test_changes_show_each_row_once_where_commits_overlap(table: Table) -> None:
    table.insert(rows("0"))
    first, second = table.bulk_insert(rows("a")), table.bulk_insert(rows("b"))
    table = overlap(table, first, second)
    assert ids(table.changes(until=second.instant)) == ["0", "b"]
    assert ids(table.changes(since=second.instant)) == ["a"]
    assert ids(table.changes(since=second.instant, until=first.instant)) == ["a"]
    assert ids(table.changes(until=first.instant)) == ["0", "a", "b"]


def test_a_replacement_that_completed_later_does_not_hide_rows(table: Table) -> None:
    table.insert(rows("0"))
    first = table.insert_overwrite_table(rows("a"))
    second = table.bulk_insert(rows("b"))
    table = overlap(table, first, second)
    assert ids(table.changes(until=second.instant)) == ["0", "b"]
    assert ids(table.changes(since=second.instant)) == ["a"]


def test_snapshots_that_a_clean_by_versions_damaged_are_refused(table: Table) -> None:
    """A later clean does not give back what an earlier one took."""
    first, second, third = (table.upsert(rows(name)) for name in "abc")
    claim_clean(table, "", second.instant)
    all_refused(
        UnsupportedError,
        second.instant,
        lambda: table.to_arrow(as_of=first.instant),
        lambda: table.changes(until=first.instant),
    )
    assert ids(table.to_arrow(as_of=second.instant)) == ["a", "b"]
    assert ids(table.changes(until=third.instant)) == ["a", "b", "c"]
    claim_clean(table, first.instant, second.instant)
    with pytest.raises(UnsupportedError, match=second.instant):
        table.to_arrow(as_of=first.instant)


def test_before_the_oldest_commit_its_schema_counts(with_a: Table) -> None:
    """In a table as older JVM writers create it, without a schema in its properties."""
    with_a.upsert(rows("b").append_column("more", pa.array([1])))
    update_table_config(with_a.view().store, {keys.CREATE_SCHEMA: None})
    with pytest.warns(hoodie.HoodieWarning, match="before"):
        found = with_a.to_arrow(as_of="2001-01-01")
    for empty in (found, with_a.changes(until="2001-01-01")):
        assert (empty.num_rows, empty.schema.names[5:]) == (0, ["id", "ts", "city"])


def test_deleted_partitions_say_nothing_of_the_schema(with_a: Table) -> None:
    with_a.delete_partitions(["city=sf"])
    facts = [with_a.view().commit_facts(instant) for instant in with_a.view().completed_writes()]
    assert [found.changes_schema for found in facts] == [True, False]


def test_a_handle_keeps_the_whole_metadata_of_few_commits(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoodie.view.commit_cache._COMMITS_KEPT", 2)
    for name in "abcd":
        table.upsert(rows(name))
    table.insert_overwrite_table(rows("e"))
    view = table.view()
    times = [instant.requested_time for instant in view.completed_writes()]
    assert ids(table.to_arrow()) == ["e"]
    assert [view.state.commits.get(time) is not None for time in times].count(True) == 2
    assert {view.commit_facts(instant).schema for instant in view.completed_writes()} == {view.schema().avro}
    assert [view.state.commits.get(time) is not None for time in times].count(True) == 2


def test_tables_with_rows_elsewhere_are_not_read(with_a: Table) -> None:
    update_table_config(with_a.view().store, {keys.BASE_FILE_FORMAT: "ORC"})
    all_refused(
        UnsupportedError,
        "ORC",
        with_a.to_arrow,
        with_a.changes,
        lambda: with_a.read_keys("a"),
        lambda: with_a.filter_exists(rows("a")),
    )


def test_tables_without_meta_fields_are_read_but_not_by_key_or_commit(with_a: Table) -> None:
    first = with_a.timeline.instants[0].requested_time
    update_table_config(with_a.view().store, {keys.POPULATE_META_FIELDS: "false"})
    assert ids(with_a.to_arrow()) == ids(with_a.changes(until=first)) == ["a"]
    all_refused(
        UnsupportedError,
        "without meta fields",
        lambda: with_a.changes(since="2001-01-01"),
        lambda: with_a.read_keys("a"),
        lambda: with_a.filter_exists(rows("a")),
    )


def test_an_orc_file_in_a_table_of_several_formats_is_refused(with_a: Table) -> None:
    store = with_a.view().store
    (base,) = (name for name in store.names("city=sf") if name.endswith(".parquet"))
    store.move(f"city=sf/{base}", f"city=sf/{base.replace('.parquet', '.orc')}")
    update_table_config(store, {keys.METADATA_PARTITIONS: None})
    with pytest.raises(UnsupportedError, match="Parquet base files only"):
        with_a.to_arrow()


def test_conditions_are_planned_for_whoever_runs_them(with_a: Table) -> None:
    assert len(plan_scan(with_a.view(), where=Condition.parse("city AND true")).files) == 1
    with pytest.raises(SchemaMismatchError, match="'city'"):
        with_a.to_arrow(where="city AND true")
    for where in ("q = 1", "city = 'x' AND q = 1"):
        with pytest.raises(SchemaMismatchError, match="'q'"):
            plan_scan(with_a.view(), where=Condition.parse(where))


def test_columns_are_at_least_one(with_a: Table) -> None:
    assert with_a.to_arrow("id").column_names == ["id"]
    with pytest.raises(InvalidConfigError, match="no columns"):
        with_a.to_arrow([])


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("index", ["record", "simple", "bloom", "bucket", "global_bloom"])
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_the_past_by_key_of_a_commit_with_a_savepoint(table_type: str, index: str, version: int) -> None:
    """A savepoint has the time of its commit and completes later: the record index of that state lacked the commit."""
    table = new_table(PLAIN, rows("a", "b"), partition_by="city", type=table_type, index=index, table_version=version)
    saved = table.savepoint().instant
    assert saved is not None
    table.upsert(rows("a", "c"))
    assert ids(table.to_arrow(as_of=saved, where="id = 'a'")) == ["a"]
    assert ids(table.to_arrow(as_of=saved, where="id in ('b', 'c')")) == ["b"]
    table.restore(saved)
    assert ids(table.to_arrow(as_of=saved, where="id = 'b'")) == ["b"]


@pytest.mark.parametrize("version", [8, 9])
def test_the_past_by_key_from_before_a_rebuild_whose_writes_are_archived(version: int) -> None:
    """The new index has the entries of all writes before it; none of them is on a timeline any more."""
    options = {**OFTEN, "hoodie.archive.beyond.savepoint": "true"}
    table = new_table(PLAIN, rows("a", "b"), partition_by="city", index="record", table_version=version)
    saved = table.savepoint().instant
    table.delete(rows("b").select(["id", "city"]))
    for rebuilds in (True, False):
        for ts in range(8):
            table.upsert(rows("a", ts=ts), properties={"hoodie.clean.automatic": "false"})
        table.clean(properties=options)
        assert table.archive(properties=options).counts["commits"]
        if rebuilds:
            table.index.rebuild()
    assert ids(table.to_arrow(as_of=saved)) == ["a", "b"]
    assert ids(table.to_arrow(as_of=saved, where="id = 'b'")) == ["b"]


SOME = "id in ('k2', 'k6', 'k7')"
both_types = pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])


@pytest.mark.matrix(keep=6)
@both_types
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("by", ["simple", "record"])
def test_no_key_of_the_past_is_sought_in_the_buckets_of_today(by: str, version: int, table_type: str) -> None:
    """The table had two buckets, then another index, and has four buckets now: keys of then are in others."""
    table, first = with_other_buckets(by=by, type=table_type, table_version=version)
    for as_of in (first, f"requested:{first}"):
        assert ids(table.to_arrow(where=SOME, as_of=as_of)) == ["k2", "k6", "k7"]
        assert [table.count(f"id = '{key}'", as_of=as_of) for key in KEYS] == [1] * len(KEYS)
        assert sorted(table.to_polars(as_of=as_of).filter(polars.col("id") == "k2").collect()["id"]) == ["k2"]
        assert table.explain(SOME, as_of=as_of).skipped.by_bucket == 0
    assert len(table.to_duckdb(as_of=first).filter("id = 'k2'").fetchall()) == 1
    assert table.record_locations(pa.table({"id": [*KEYS]}), as_of=first)["file_id"].null_count == 0
    assert ids(table.changes(until=first, where=SOME)) == ["k2", "k6", "k7"]
    changed = table.changes(mode="cdc", where=SOME)
    assert sorted(changed["op"].to_pylist()) == ["d", "d", "d", "i", "i", "i"]
    # The state of today is read by its buckets, and so is each state since the switch.
    last = table.upsert(rows("k2", ts=3)).instant
    for when in (None, last):
        assert ids(table.to_arrow(where=SOME, as_of=when)) == ["k2"]
        assert table.explain(SOME, as_of=when).skipped.by_bucket > 0


@pytest.mark.parametrize("version", [6, 9])
def test_the_past_of_a_table_that_always_had_its_buckets_is_read_by_them(version: int) -> None:
    properties = {indexes.BUCKET_COUNT.key: "4"}
    table = new_table(PLAIN, rows(*KEYS), index="bucket", properties=properties, table_version=version)
    first = table.timeline.writes().instants[-1].requested_time
    table.delete(rows(*KEYS))
    for as_of in (first, f"requested:{first}"):
        assert table.count("id = 'k2'", as_of=as_of) == 1
        assert table.explain("id = 'k2'", as_of=as_of).skipped.by_bucket == 3


@pytest.mark.matrix(keep=8)
@both_types
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("index", ["global_simple", "global_bloom", "record"])
def test_no_row_of_the_past_is_sought_in_the_partition_of_its_columns(
    index: str, version: int, table_type: str
) -> None:
    """Row `a` stayed in its first partition when its city changed; the index of today would not leave it there."""
    table, first, moved = with_rows_elsewhere(index, type=table_type, table_version=version)
    where = "city = 'la'"
    for as_of in (moved, f"requested:{moved}"):
        assert ids(table.to_arrow(where=where, as_of=as_of)) == ["a"]
        assert ids(table.to_arrow(where="city = 'sf'", as_of=as_of)) == ["b"]
        assert sorted(table.to_polars(as_of=as_of).filter(polars.col("city") == "la").collect()["id"]) == ["a"]
    assert len(table.to_duckdb(as_of=moved).filter(where).fetchall()) == 1
    assert table.record_locations(rows("a", city="la"), as_of=moved)["partition_path"].to_pylist() == ["city=sf"]
    assert ids(table.changes(until=moved, where=where)) == ["a"]
    operations = ["u", "d", "i"]  # the update and the delete of `a`, then the insert of `c`
    assert table.changes(since=first, mode="cdc", where=where)["op"].to_pylist() == operations
    assert table.changes(mode="cdc", where=where)["op"].to_pylist() == operations
    # Since the switch, partitions are left out.
    last = table.upsert(rows("d", city="nyc")).instant
    assert ids(table.to_arrow(where=where)) == ids(table.to_arrow(where=where, as_of=last)) == ["c"]
    assert table.explain(where, as_of=last).skipped.by_partition_path > 0


def test_the_last_state_before_a_switch_obeys_it() -> None:
    table = new_table(PLAIN, rows("a"), rows("b", city="la"), partition_by="city", index="global_simple")
    update_table_config(table.view().store, {writes.UPDATE_PARTITION_PATH.key: "false"})
    table = Table(table.view().store)
    first, last = (found.requested_time for found in table.timeline.writes())
    table.index.switch("simple", key_keeps_partition=True)
    table.delete(rows("b", city="la"))
    assert table.explain("city = 'la'", as_of=last).skipped.by_partition_path == 1
    assert table.explain("city = 'la'", as_of=first).skipped.by_partition_path == 0
    assert ids(table.to_arrow(where="city = 'la'", as_of=last)) == ["b"]
