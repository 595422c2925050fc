"""Tables with a bucket index: where rows go, what the counts say, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from hoodie.commit.steps import Step
from hoodie.errors import CommitConflictError, InvalidConfigError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.format.buckets import CONSISTENT_HASHING_FOLDER, HASHING_CONFIG_FOLDER, bucket_of_keys
from hoodie.format.filenames import bucket_of_file_id
from hoodie.table import Table
from hoodie.view.slices import list_slices
from tests.support import tables
from tests.support.steps import ONE_TRY, once_at
from tests.support.tables import PLAIN, TYPES, new_table, values_of

COUNT = "hoodie.bucket.index.num.buckets"
BUCKETED = {"hoodie.index.type": "BUCKET", COUNT: "4"}
EACH_TYPE = pytest.mark.parametrize("table_type", TYPES)


def table_of(table_type: str = "copy_on_write", *writes: pa.Table, buckets: int = 4, **options: Any) -> Table:
    """A table with a bucket index, unless another `index` is given."""
    wanted = {"index": "bucket", "partition_by": "city", "ordering": "ts", "type": table_type, **options}
    counts = {COUNT: str(buckets)} if wanted["index"] == "bucket" else {}
    return new_table(PLAIN, *writes, **{**wanted, "properties": {**counts, **options.get("properties", {})}})


def rows(numbers: range, ts: int = 1, city: str = "sf") -> pa.Table:
    return tables.rows(*(f"k{n}" for n in numbers), ts=ts, city=city)


def stored(table: Table) -> dict[str, int]:
    found = values_of(table, "id", "ts")
    assert len(dict(found)) == len(found)
    return dict(found)


def store_counts(table: Table, name: str, content: Mapping[str, object]) -> None:
    """Store numbers of buckets by partition, as the JVM does."""
    text = json.dumps({"defaultBucketNumber": 4, "rule": "regex", **content})
    table.view().store.create(f"{HASHING_CONFIG_FOLDER}/{name}.hashing_config", text.encode())


def check_places(table: Table, counts: Mapping[str, int] | int) -> None:
    """Each bucket has one file group at most, and each key is in that of its bucket."""
    groups = [(found.partition_path, bucket_of_file_id(found.file_id)) for found in list_slices(table.view())]
    assert len(set(groups)) == len(groups)
    meta = table.to_arrow(["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"])
    for key, path, name in zip(*(column.to_pylist() for column in meta.columns), strict=True):
        count = counts if isinstance(counts, int) else counts[path]
        assert bucket_of_file_id(name) == bucket_of_keys(pa.array([key]), ["id"], count)[0]


@EACH_TYPE
def test_every_write_puts_rows_into_their_buckets(table_type: str) -> None:
    table = table_of(table_type)
    assert table.upsert(rows(range(20))).inserted == 20
    table.upsert(rows(range(10, 25), 2))
    table.insert(rows(range(30, 40), 3))
    table.bulk_insert(rows(range(40, 50), 3))
    assert table.delete(rows(range(0, 5)).select(["id", "city"])).deleted == 5
    expected = dict.fromkeys([f"k{n}" for n in range(5, 10)], 1) | dict.fromkeys([f"k{n}" for n in range(10, 25)], 2)
    expected |= dict.fromkeys([f"k{n}" for n in range(30, 50)], 3)
    assert stored(table) == expected
    check_places(table, 4)
    assert len(list_slices(table.view())) == 4
    table.update({"ts": "ts + 5"}, "id = 'k7'")
    assert stored(table) == {**expected, "k7": 6}
    if table_type == "merge_on_read":
        assert any(found.log_files for found in list_slices(table.view()))
        assert table.schedule_compaction()
        table.compact()
        assert not any(found.log_files for found in list_slices(table.view()))
    assert stored(table) == {**expected, "k7": 6}
    check_places(table, 4)
    assert table.verify(full=True).ok


@EACH_TYPE
def test_overwritten_partitions_get_new_file_groups(table_type: str) -> None:
    table = table_of(table_type, rows(range(20)), rows(range(20, 30), city="la"))
    before = {found.file_id for found in list_slices(table.view())}
    assert table.insert_overwrite(rows(range(8), 2)).inserted == 8
    after = {found.file_id for found in list_slices(table.view(), ["city=sf"])}
    assert not after & before
    table.upsert(rows(range(4, 12), 3))
    expected = {**dict.fromkeys(range(4), 2), **dict.fromkeys(range(4, 12), 3), **dict.fromkeys(range(20, 30), 1)}
    assert stored(table) == {f"k{n}": ts for n, ts in expected.items()}
    check_places(table, 4)
    table.delete_partitions(["city=sf"])
    table.upsert(rows(range(3), 4))
    table.insert_overwrite_table(rows(range(2), 5))
    assert stored(table) == {"k0": 5, "k1": 5}


def test_what_inserts_do_with_known_keys() -> None:
    """Copy-on-write adds a further row, as with every index; logged rows are merged with those of their key."""
    table = table_of("copy_on_write", rows(range(3)))
    assert table.insert(rows(range(1), 2)).inserted == 1
    assert table.to_arrow().num_rows == 4
    logged = table_of("merge_on_read", rows(range(3)))
    logged.insert(rows(range(1), 2))
    assert stored(logged) == {"k0": 2, "k1": 1, "k2": 1}
    for policy in ("drop", "fail"):
        with pytest.raises(UnsupportedError, match="does not look up whether the table has a key; use upsert"):
            table.insert(rows(range(1), 2), properties={"hoodie.datasource.insert.dup.policy": policy})


def test_many_rows_of_one_bucket_are_written_in_parts() -> None:
    """Rows of a new bucket are read in ranges of key hashes, so that they need not be in memory together."""
    table = table_of(buckets=2)
    wide = pa.table({"id": [f"{n:060}" for n in range(3000)], "ts": [1] * 3000, "city": ["sf"] * 3000}, schema=PLAIN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hoodie.write.files.task_changes._PART_BYTES", 16 * 1024)
        assert table.upsert(wide).inserted == 3000
    assert len(list_slices(table.view())) == 2
    assert table.to_arrow().num_rows == 3000
    check_places(table, 2)


@EACH_TYPE
def test_two_writers_of_a_new_bucket_conflict(table_type: str) -> None:
    """Else the bucket would have two file groups; writers of other buckets do not disturb each other."""
    table = table_of(table_type)
    mine, other = rows(range(1)), rows(range(20))

    def write_beside() -> None:
        Table(table.view().store).upsert(other)

    with once_at(Step.LOCATED, write_beside):
        result = table.upsert(mine)
    assert result.notes[0].startswith("retried once")
    check_places(table, 4)
    assert table.to_arrow().num_rows == 20
    one, two = (
        next(n for n in range(100, 200) if bucket_of_keys(pa.array([f"k{n}"]), ["id"], 4)[0] == bucket)
        for bucket in (1, 2)
    )
    with once_at(Step.LOCATED, lambda: Table(table.view().store).upsert(rows(range(one, one + 1)))):
        assert table.upsert(rows(range(two, two + 1))).notes == ()


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"hoodie.bucket.index.hash.field": "city"}, "expected columns of the record key, id"),
        ({"hoodie.bucket.index.num.buckets": "0"}, "above 0"),
        ({"hoodie.bucket.index.num.buckets": "100000000"}, "fewer than 100,000,000 buckets"),
        ({"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, "creates tables with simple buckets only"),
        ({"hoodie.bucket.index.partition.expressions": "a,3"}, "one number of buckets for all partitions"),
    ],
)
def test_tables_that_are_not_created(properties: dict[str, str], message: str) -> None:
    with pytest.raises((InvalidConfigError, UnsupportedError), match=message):
        table_of(properties=properties)


def test_options_of_another_index_are_refused() -> None:
    with pytest.raises(InvalidConfigError, match=f"{COUNT} is an option of index='bucket'; this table has 'simple'"):
        table_of(index="simple", properties={COUNT: "4"})


def test_what_a_new_table_stores() -> None:
    raw = table_of(buckets=7).view().config.raw
    other = ("hoodie.index.type", "hoodie.datasource.write.recordkey.field")
    assert {key: value for key, value in raw.items() if "bucket" in key or key in other} == {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "SIMPLE",
        "hoodie.bucket.index.num.buckets": "7",
        "hoodie.bucket.index.hash.field": "id",
        "hoodie.datasource.write.recordkey.field": "id",
    }
    assert new_table(PLAIN, index="bucket").view().config.raw[COUNT] == "16"


@pytest.mark.parametrize(
    "option",
    [{COUNT: "5"}, {"hoodie.bucket.index.hash.field": "ts"}, {"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}],
)
def test_no_write_changes_the_buckets(option: dict[str, str]) -> None:
    table = table_of()
    with pytest.raises(InvalidConfigError, match=r"is fixed when the table is created"):
        table.upsert(rows(range(2)), properties=option)
    table.upsert(rows(range(2)), properties={COUNT: "4"})
    assert len(table.timeline.completed()) == 1


def test_clustering_and_sorting_are_refused() -> None:
    table = table_of("copy_on_write", rows(range(2)))
    with pytest.raises(UnsupportedError, match="rows cannot go to other file groups"):
        table.cluster()
    with pytest.raises(InvalidConfigError, match="decides the file group of each row; omit sort"):
        table.bulk_insert(rows(range(2)), sort="ts")


def test_file_groups_that_do_not_obey_are_named_and_read() -> None:
    """File groups of a writer without the bucket index: first one without a bucket, then two of one bucket."""
    table = table_of("copy_on_write", rows(range(20)), index="simple")
    one = {**BUCKETED, COUNT: "1"}
    with pytest.raises(UnsupportedError, match="belongs to none of the 1 buckets: a writer without the bucket index"):
        table.upsert(rows(range(2)), properties=one)
    update_table_config(table.view().store, {**BUCKETED, "hoodie.index.bucket.engine": "SIMPLE"})
    assert table.to_arrow(where="id = 'k7'").num_rows == 1
    doubled = table_of("copy_on_write", rows(range(8)), buckets=2)
    update_table_config(doubled.view().store, {"hoodie.index.type": None, COUNT: "1"})
    with pytest.raises(UnsupportedError, match="belongs to none of the 1 buckets"):
        doubled.upsert(rows(range(8)), properties=one)


@EACH_TYPE
def test_a_read_of_some_keys_opens_only_their_buckets(table_type: str) -> None:
    both = pa.concat_tables([rows(range(100)), rows(range(100), city="la")])
    table = table_of(table_type, both, rows(range(50), 2), buckets=16)
    first = table.timeline.instants[0].requested_time
    everything = table.to_arrow(PLAIN.names).to_pylist()
    buckets = {f"k{n}": int(bucket_of_keys(pa.array([f"k{n}"]), ["id"], 16)[0]) for n in range(100)}
    for keys in (["k7"], ["k7", "k61"], [f"k{n}" for n in range(100)], ["k7", "?"]):
        where = f"id IN ({', '.join(map(repr, keys))})"
        found = table.to_arrow(PLAIN.names, where=where).to_pylist()
        expected = [row for row in everything if row["id"] in keys]
        assert sorted(found, key=str) == sorted(expected, key=str), where
        assert len(found) >= 2
        told = table.explain(where)
        wanted = {*bucket_of_keys(pa.array(keys), ["id"], 16).tolist()}
        assert told.file_slices == 2 * len(wanted & {*buckets.values()})
        assert told.skipped.by_bucket == told.all_file_slices - told.file_slices
        assert table.read_keys(pa.array(keys)).num_rows == len(found)
    assert "30 by the bucket of the keys" in str(table.explain("id = 'k7'"))
    assert table.explain("id = 'k7' AND city = 'sf'").file_slices == 1
    assert table.explain("id = 'k7' AND id = 'k8'").file_slices == 0
    assert table.explain("id = 'k7' OR ts = 2").skipped.by_bucket == 0
    assert table.explain("id > 'k7'").skipped.by_bucket == 0
    # An earlier state may be that before a switch.
    assert table.to_arrow(where="id = 'k7' AND city = 'sf'", as_of=first)["ts"].to_pylist() == [1]


def test_numbers_that_a_partition_may_have_leave_no_file_group_out() -> None:
    table = table_of("copy_on_write", rows(range(30)), buckets=3)
    store_counts(table, "00000000000000", {"expressions": "sf,9", "version": 1, "instant": "0"})
    assert {table.to_arrow(where=f"id = 'k{n}'").num_rows for n in range(30)} == {1}


def test_a_table_of_the_jvm_that_stores_no_index() -> None:
    """The JVM's DataFrame writer stores no index: a write of ours without the option would break the buckets."""
    table = table_of("copy_on_write", rows(range(8)))
    store = table.view().store
    keys = ("hoodie.index.type", "hoodie.index.bucket.engine", COUNT, "hoodie.bucket.index.hash.field")
    update_table_config(store, dict.fromkeys(keys))
    with pytest.raises(UnsupportedError, match=r't\.index\.switch\("bucket", buckets=…\)'):
        Table(store).upsert(rows(range(8), 2))
    Table(store).upsert(rows(range(8), 2), properties=BUCKETED)
    assert stored(Table(store)) == {f"k{n}": 2 for n in range(8)}
    check_places(Table(store), 4)


def test_numbers_of_buckets_by_partition() -> None:
    """Of the newest file whose replace commit is not pending; they take precedence over the properties."""
    table = table_of(buckets=3)
    for instant, expressions in (("00000000000000", "x,9"), ("20260101000000000", "=sf$,5; l[ab],2")):
        store_counts(table, instant, {"expressions": expressions, "version": 1, "instant": instant})
    for city in ("sf", "la", "oslo"):
        table.upsert(rows(range(30), city=city))
    counts = {"city=sf": 5, "city=la": 2, "city=oslo": 4}
    check_places(table, counts)
    for path, count in counts.items():
        assert len(list_slices(table.view(), [path])) == count


@pytest.mark.parametrize("expressions", ["sf", "sf,x", "sf,0", "(,3", "a,b,3"])
def test_numbers_that_are_not_understood(expressions: str) -> None:
    table = table_of()
    store_counts(table, "0", {"expressions": expressions})
    with pytest.raises(UnsupportedError, match="is not understood"):
        table.upsert(rows(range(2)))


@pytest.mark.parametrize("index", ["bucket", "simple"])
def test_consistent_hashing_is_read_and_not_written(index: str) -> None:
    table = table_of("merge_on_read", rows(range(2)), index=index)
    table.view().store.create(f"{CONSISTENT_HASHING_FOLDER}/city=sf/00000000000000.hashing_meta", b"{}")
    with pytest.raises(UnsupportedError, match=r"consistent hashing, .* reads such tables and does not write them"):
        table.upsert(rows(range(2)))
    assert stored(table) == {"k0": 1, "k1": 1}


def test_a_switch_of_the_index_while_a_write_runs() -> None:
    """A write that began under another index would put rows into file groups of no bucket."""
    table = table_of(index="simple")

    def switch() -> None:
        update_table_config(table.view().store, dict(BUCKETED))

    with once_at(Step.LOCATED, switch), pytest.raises(CommitConflictError, match=r"the index of .* was switched"):
        table.upsert(rows(range(2)))
    assert len(table.timeline) == 0


def test_numbers_that_change_before_a_write_begins_decide_its_buckets() -> None:
    table = table_of()
    store_counts(table, "0", {"expressions": ""})
    with once_at(
        Step.PREPARED, lambda: store_counts(table, "20260101000000000", {"expressions": "", "defaultBucketNumber": 8})
    ):
        assert table.upsert(rows(range(20))).inserted == 20
    check_places(table, 8)
    assert table.upsert(rows(range(20), 2)).updated == 20
    assert stored(table) == {f"k{n}": 2 for n in range(20)}


@pytest.mark.parametrize("options", [ONE_TRY, {}], ids=["one try", "retried"])
def test_numbers_that_change_while_a_write_runs(options: Mapping[str, str]) -> None:
    """JVM Hudi completes a replace commit with the new numbers; here it replaces nothing that the write has."""
    table = table_of("copy_on_write", rows(range(2), city="nyc"))

    def rescale() -> None:
        Table(table.view().store).delete_partitions(["city=nyc"])
        store_counts(table, "20260101000000000", {"expressions": "", "defaultBucketNumber": 8})

    with once_at(Step.WRITTEN, rescale):
        if options:
            with pytest.raises(CommitConflictError, match=r"numbers of buckets of .* changed while this write ran"):
                table.upsert(rows(range(20)), properties=options)
            return
        done = table.upsert(rows(range(20)))
    assert done.notes[0].startswith("retried once: the numbers of buckets")
    check_places(table, 8)
