"""Bucket tables that this library and the JVM write in turn: a key goes to the same bucket, whoever writes it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError
from hoodie.format.filenames import bucket_of_file_id
from tests.interop.judges import Jvm, read_with_hudi_rs
from tests.support.rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("city", pa.string())])
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
TEXTS = ("a", "k é", "漢字", "😀😀", "x,y", "1:2", "2014-10-22 13:50:42", "", "a,b c", "__null__x")
# Where the last column of the key is no hash field, a colon in its value sends the JVM into an endless loop.
PARTS = ("a", "k é", "漢字", "x,y", "", "a,b c", "😀")
TYPES = ["copy_on_write", "merge_on_read"]


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
    found = [(each.partition_path, bucket_of_file_id(each.file_id)) for each in hoodie.open(path).view().slices()]
    assert len(set(found)) == len(found)
    assert all(bucket is not None and bucket < count for _, bucket in found)


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("fields", ["id", "part", "id,part"])
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
