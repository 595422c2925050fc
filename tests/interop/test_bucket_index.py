"""Bucket tables that this library and the JVM write in turn: a key goes to the same bucket, whoever writes it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CommitConflictError, InvalidConfigError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.format.buckets import CONSISTENT_HASHING_FOLDER, HASHING_CONFIG_FOLDER
from hoodie.format.filenames import bucket_of_file_id
from hoodie.storage import LocalStore
from hoodie.timeline import Action
from hoodie.view.slices import list_slices
from tests.interop.judges import HIVE, Jvm, create_trips, read_with_hudi_rs
from tests.support.index_check import check_index
from tests.support.rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("city", pa.string())])
TEXTS = ("a", "k é", "漢字", "😀😀", "x,y", "1:2", "2014-10-22 13:50:42", "", "a,b c", "__null__x")
# Where the last column of the key is no hash field, a colon in its value sends the JVM into an endless loop.
PARTS = ("a", "k é", "漢字", "x,y", "", "a,b c", "😀")
BUCKETED = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}


def _rows(numbers: range, ts: int) -> pa.Table:
    rows = [
        {"id": f"{TEXTS[n % 10]}{n}", "part": f"p{n % 3}{PARTS[(n // 3) % 7]}", "ts": ts, "city": ("sf", "ny")[n % 2]}
        for n in numbers
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _assert_all_read(jvm: Jvm, path: Path, expected: pa.Table, key: list[str]) -> None:
    assert_same_rows(hoodie.open(path).to_arrow(SCHEMA.names), expected, key=key)
    assert_same_rows(jvm.read(path, SCHEMA.names), expected, key=key)
    assert_same_rows(read_with_hudi_rs(path).select(SCHEMA.names), expected, key=key)


def _assert_one_file_group_each(path: Path, count: int) -> None:
    found = [(each.partition_path, bucket_of_file_id(each.file_id)) for each in list_slices(hoodie.open(path).view())]
    assert len(set(found)) == len(found)
    assert all(bucket is not None and bucket < count for _, bucket in found)


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize(
    ("table_type", "fields"), [("copy_on_write", "id"), ("merge_on_read", "part"), ("merge_on_read", "id,part")]
)
def test_writers_take_turns(jvm: Jvm, tmp_path: Path, table_type: str, fields: str) -> None:
    """The JVM goes on without options: the table stores them. Each goes on with file groups of the other."""
    path = tmp_path / "trips"
    table = hoodie.create(
        path, SCHEMA, record_key=["id", "part"], partition_by="city", ordering="ts", name="trips", index="bucket",
        type=table_type, spark=False,
        properties={"hoodie.bucket.index.num.buckets": "5", "hoodie.bucket.index.hash.field": fields},
    )  # fmt: skip
    table.upsert(_rows(range(0, 20), 1))

    def jvm_write(rows: pa.Table, operation: str = "upsert", **options: str) -> None:
        jvm.write(
            rows, path, table_name="trips", key=["id", "part"], partition="city", ordering="ts", operation=operation,
            table_type=table_type.upper(), options={**HIVE, **options},
        )  # fmt: skip

    jvm_write(_rows(range(10, 60), 2))
    table.upsert(_rows(range(50, 70), 3))
    jvm_write(_rows(range(60, 64), 4), "delete")
    table.delete(_rows(range(0, 2), 0).select(["id", "part", "city"]))
    table.insert(_rows(range(70, 75), 5))
    jvm_write(_rows(range(75, 80), 5), "insert")
    changes = {2: range(20, 50), 3: range(50, 60), 5: range(70, 80)}
    expected = pa.concat_tables(
        [_rows(range(2, 10), 1), _rows(range(10, 20), 2), _rows(range(64, 70), 3)]
        + [_rows(numbers, ts) for ts, numbers in changes.items()]
    )
    _assert_all_read(jvm, path, expected, ["id", "part"])
    _assert_one_file_group_each(path, 5)
    with pytest.raises(InvalidConfigError, match=r"hoodie.bucket.index.num.buckets=6 is fixed"):
        table.upsert(_rows(range(1), 9), properties={"hoodie.bucket.index.num.buckets": "6"})


def _simple_rows(numbers: range, ts: int) -> pa.Table:
    rows = [{"id": f"k{n}", "part": f"k{n}", "ts": ts, "city": ("sf", "ny")[n % 2]} for n in numbers]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_table_of_the_jvm_is_continued(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    """Its DataFrame writer stores no index: a write of ours asks for it, until `t.index.switch` stores it."""
    path = tmp_path / "trips"

    def jvm_write(rows: pa.Table, **options: str) -> None:
        jvm.write_trips(rows, path, table_type=table_type.upper(), options={**HIVE, **options})

    jvm_write(_simple_rows(range(0, 12), 1), **BUCKETED)
    table = hoodie.open(path)
    assert "hoodie.index.type" not in table.view().config.raw
    with pytest.raises(UnsupportedError, match=r"which the table's properties do not name"):
        table.upsert(_simple_rows(range(6), 2))
    table.upsert(_simple_rows(range(6, 14), 2), properties=BUCKETED)
    with pytest.raises(UnsupportedError, match=r"buckets"):
        table.index.switch("bucket", buckets=4)
    table.index.switch("bucket", buckets=3)
    table.upsert(_simple_rows(range(10, 16), 3))
    jvm_write(_simple_rows(range(14, 20), 4))
    newest = {1: range(0, 6), 2: range(6, 10), 3: range(10, 14), 4: range(14, 20)}
    expected = pa.concat_tables([_simple_rows(numbers, ts) for ts, numbers in newest.items()])
    _assert_all_read(jvm, path, expected, ["id"])
    _assert_one_file_group_each(path, 3)


def test_the_jvm_goes_on_after_a_switch(jvm: Jvm, tmp_path: Path) -> None:
    """It takes the new index from the properties: one of the whole table moves a record, one of partitions does not."""
    path = tmp_path / "trips"
    table = create_trips(path, SCHEMA, index="simple", spark=False)
    table.upsert(_simple_rows(range(8), 1))

    def jvm_write(number: int, ts: int, city: str) -> pa.Table:
        row = pa.Table.from_pylist([{"id": f"k{number}", "part": "moved", "ts": ts, "city": city}], schema=SCHEMA)
        jvm.write_trips(row, path, options=HIVE)
        return row

    table.index.switch("global_simple")
    rows = [jvm_write(0, 2, "ny")]
    table.index.switch("record")
    rows.append(jvm_write(1, 3, "sf"))
    check_index(table.view())
    _assert_all_read(jvm, path, pa.concat_tables([*rows, _simple_rows(range(2, 8), 1)]), ["id"])
    table.index.switch("simple", key_keeps_partition=True)
    rows.append(jvm_write(2, 4, "ny"))
    expected = pa.concat_tables([*rows, _simple_rows(range(2, 8), 1)])
    _assert_all_read(jvm, path, expected, ["id", "city"])
    assert "record_index" not in table.view().config.metadata_partitions


def test_numbers_of_buckets_by_partition(jvm: Jvm, tmp_path: Path) -> None:
    """The JVM takes them from the table's file too, whatever the properties say; both put a key into one bucket."""
    path = tmp_path / "trips"
    table = create_trips(path, SCHEMA, index="bucket", spark=False, properties={"hoodie.bucket.index.num.buckets": "3"})
    alone = {"hoodie.upsert.shuffle.parallelism": "1", **HIVE}

    def jvm_write(rows: pa.Table) -> None:
        # In one task: two tasks that parse the patterns first can fail with a ConcurrentModificationException.
        frame = jvm.frame(rows).coalesce(1)
        jvm.write_trips(frame, path, options=alone)

    content = {
        "expressions": "=sf$,5", "defaultBucketNumber": 2, "rule": "regex", "version": 1, "instant": "00000000000000",
    }  # fmt: skip
    LocalStore(path).create(f"{HASHING_CONFIG_FOLDER}/00000000000000.hashing_config", json.dumps(content).encode())
    jvm_write(_simple_rows(range(0, 40), 1))
    table.upsert(_simple_rows(range(30, 60), 2))
    jvm_write(_simple_rows(range(50, 70), 3))
    expected = [_simple_rows(range(0, 30), 1), _simple_rows(range(30, 50), 2), _simple_rows(range(50, 70), 3)]
    _assert_all_read(jvm, path, pa.concat_tables(expected), ["id"])
    assert [len(list_slices(table.view(), [f"city={city}"])) for city in ("sf", "ny")] == [5, 2]


CONSISTENT = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "4",
    "hoodie.bucket.index.min.num.buckets": "2",
    "hoodie.bucket.index.max.num.buckets": "8",
}


def test_consistent_hashing_of_the_jvm_is_read_and_not_written(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    for ts, numbers in ((1, range(20)), (2, range(10, 25))):
        jvm.write_trips(_simple_rows(numbers, ts), path, table_type="MERGE_ON_READ", options={**HIVE, **CONSISTENT})
    expected = pa.concat_tables([_simple_rows(range(10), 1), _simple_rows(range(10, 25), 2)])
    # hudi-rs finds no rows: it does not know file groups without a base file.
    assert_same_rows(hoodie.open(path).to_arrow(SCHEMA.names), expected, key=["id"])
    assert_same_rows(jvm.read(path, SCHEMA.names), expected, key=["id"])
    assert LocalStore(str(path)).folders(CONSISTENT_HASHING_FOLDER) == [
        f"{CONSISTENT_HASHING_FOLDER}/city={city}" for city in ("ny", "sf")
    ]
    table = hoodie.open(path)
    before = table.view().timeline
    stored: dict[str, str | None] = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
    consistent = {**BUCKETED, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
    given: list[dict[str, str]] = [{}, BUCKETED, consistent]
    for options in given:
        with pytest.raises(UnsupportedError, match="consistent hashing"):
            table.upsert(_simple_rows(range(3), 3), properties=options)
    with pytest.raises(UnsupportedError, match="consistent hashing"):
        table.index.switch("bucket", buckets=4)
    update_table_config(table.view().store, stored)
    with pytest.raises(UnsupportedError, match="consistent hashing"):
        hoodie.open(path).upsert(_simple_rows(range(3), 3))
    assert hoodie.open(path).to_arrow(where="id = 'k12'")["ts"].to_pylist() == [2]
    assert hoodie.open(path).view().timeline == before


def test_what_the_jvm_does_with_all_rows_of_a_partition(jvm: Jvm, tmp_path: Path) -> None:
    """An insert overwrite makes new file groups, which both continue; a clustering is refused."""
    path = tmp_path / "trips"
    table = create_trips(path, SCHEMA, index="bucket", spark=False, properties={"hoodie.bucket.index.num.buckets": "2"})
    table.upsert(_simple_rows(range(12), 1))
    before = {found.file_id for found in list_slices(table.view())}

    def jvm_write(rows: pa.Table, operation: str = "upsert", **options: str) -> None:
        jvm.write_trips(rows, path, operation=operation, options={**HIVE, **options})

    jvm_write(_simple_rows(range(8), 2), "insert_overwrite")
    assert not before & {found.file_id for found in list_slices(hoodie.open(path).view())}
    table.upsert(_simple_rows(range(6, 14), 3))
    expected = pa.concat_tables([_simple_rows(range(6), 2), _simple_rows(range(6, 14), 3)])
    _assert_all_read(jvm, path, expected, ["id"])
    _assert_one_file_group_each(path, 2)
    with pytest.raises(
        Exception, match="SparkExecuteClusteringCommitActionExecutor is not compatible with table layout"
    ):
        jvm_write(
            _simple_rows(range(2), 4),
            **{"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"},
        )
    # The write is complete; the plan stays until it is rolled back.
    (plan,) = [found for found in hoodie.open(path).view().timeline.pending() if found.action is Action.CLUSTERING]
    with pytest.raises(CommitConflictError, match=r"or roll it back \(t.rollback\(instant\)\)"):
        table.upsert(_simple_rows(range(2), 5))
    table.rollback(plan.requested_time)
    table.upsert(_simple_rows(range(2), 6))
    expected = pa.concat_tables(
        [_simple_rows(range(2), 6), _simple_rows(range(2, 6), 2), _simple_rows(range(6, 14), 3)]
    )
    _assert_all_read(jvm, path, expected, ["id"])
