"""A table of trips that this library and the JVM write in turn, and the checks that all readers agree on its rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import hoodie
from tests.interop.judges import HIVE, Jvm, assert_all_read, create_trips
from tests.support.index_check import check_index

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float64()), ("city", pa.string())])
STATISTICS = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
}
FEW_BUCKETS = {"hoodie.metadata.record.index.min.filegroup.count": "2"}
"""The JVM reads each bucket in a task of its own: ten of them take half of the time of a small write."""
TYPES = ["copy_on_write", "merge_on_read"]


def trips(numbers: range, ts: int) -> pa.Table:
    rows = [{"id": f"k{n:03}", "ts": ts, "fare": n + ts / 8, "city": ("sf", "nyc")[n % 2]} for n in numbers]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def newest_of(changes: dict[int, range]) -> pa.Table:
    """The newest version of each key; a greater ts is newer."""
    newest = {number: ts for ts in sorted(changes) for number in changes[ts]}
    return pa.concat_tables([trips(range(number, number + 1), ts) for number, ts in newest.items()])


def new_table(path: Path, table_type: str, properties: Mapping[str, str] | None = None) -> hoodie.Table:
    return create_trips(path, SCHEMA, type=table_type, spark=False, properties={**FEW_BUCKETS, **(properties or {})})


def jvm_write(
    jvm: Jvm,
    path: Path,
    table_type: str,
    rows: pa.Table | DataFrame,
    *,
    operation: str = "upsert",
    options: Mapping[str, str] | None = None,
) -> None:
    jvm.write_trips(rows, path, operation=operation, table_type=table_type.upper(), options={**HIVE, **(options or {})})


def check_both(jvm: Jvm, path: Path, expected: pa.Table, *, has_index: bool = True) -> None:
    """Three readers agree, with and without metadata table, and the JVM's look-up in the record index is the data."""
    assert_all_read(jvm, path, expected)
    if not has_index:
        return
    table = hoodie.open(path, spark=False)
    check_index(table.view())
    keys = expected["id"].to_pylist()
    ours = table.record_locations(keys)
    names = ("_hoodie_record_key", "partition_path", "file_id")
    rows = zip(*(ours[name].to_pylist() for name in names), strict=True)
    assert jvm.locations(path, keys) == {key: (partition, file_id) for key, partition, file_id in rows}


def both_go_on(jvm: Jvm, path: Path, table_type: str, changes: dict[int, range], *, jvm_first: bool) -> None:
    """Both engines write in turn, and read the same."""
    known = dict(changes)
    for number, is_jvm in enumerate((jvm_first, not jvm_first, jvm_first)):
        ts = 100 + number
        rows = trips(range(number, 12 + number), ts)
        if is_jvm:
            jvm_write(jvm, path, table_type, rows)
        else:
            hoodie.open(path, spark=False).upsert(rows)
        known[ts] = range(number, 12 + number)
    check_both(jvm, path, newest_of(known))
    if table_type == "merge_on_read":
        jvm.compact(path)
        check_both(jvm, path, newest_of(known))
