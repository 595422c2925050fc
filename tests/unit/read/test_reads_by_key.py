"""Reads by key open only the files that hold the keys, and give the rows that a scan of everything gives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import SchemaMismatchError
from hoodie.files.base_rows import row_groups_with_keys
from hoodie.files.table_properties import read_table_config, update_table_config
from tests.unit.read.counted import Counted, counting, new_table


@pytest.fixture
def counted() -> Iterator[Counted]:
    """A table of 40 rows in 8 partitions."""
    with counting(new_table()) as found:
        yield found


def test_keys_open_only_the_files_that_hold_them(counted: Counted) -> None:
    assert sorted(counted.table.read_keys(["k01", "k09", "k02", "nobody"])["x"].to_pylist()) == [1, 2, 9]
    assert counted.partitions() == ["city=c1", "city=c2"]
    assert counted.table.read_keys(["nobody"]).num_rows == 0
    assert counted.opened() == []


WHERES: dict[str, tuple[str, list[int], list[str]]] = {
    "equal": ("id = 'k01'", [1], ["c1"]),
    "turned around": ("'k01' = ID", [1], ["c1"]),
    "meta column": ("_hoodie_record_key = 'k01'", [1], ["c1"]),
    "null-safe": ("id <=> 'k01'", [1], ["c1"]),
    "in": ("id IN ('k01', 'k09', NULL, 'k02')", [1, 2, 9], ["c1", "c2"]),
    "and": ("id = 'k01' AND x > 0", [1], ["c1"]),
    "and that fails": ("x > 5 AND (id = 'k01')", [], ["c1"]),
    "or of keys": ("(id = 'k01' OR _hoodie_record_key IN ('k02')) AND x IS NOT NULL", [1, 2], ["c1", "c2"]),
    "contradiction": ("id = 'k01' AND id = 'k02'", [], []),
    "other partition": ("id = 'k01' AND city = 'c2'", [], []),
    "unknown": ("id = 'nobody'", [], []),
    "empty text": ("id = ''", [], []),
    "null": ("id = NULL", [], []),
}


@pytest.mark.parametrize("case", WHERES)
def test_a_condition_on_the_key_opens_only_the_files_that_hold_it(counted: Counted, case: str) -> None:
    where, expected, cities = WHERES[case]
    assert sorted(counted.table.to_arrow(where=where)["x"].to_pylist()) == expected
    assert counted.partitions() == [f"city={city}" for city in cities]
    assert counted.table.count(where) == len(expected)
    assert counted.table.head(where=where).num_rows == len(expected)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id = 'k01' OR x = 2", [1, 2]),
        ("NOT id = 'k01' AND x < 3", [0, 2]),
        ("id > 'k38'", [39]),
        ("id <> 'k01' AND x = 1", []),
        ("upper(id) = 'K01'", [1]),
        ("id NOT IN ('k01') AND x < 2", [0]),
    ],
)
def test_conditions_that_do_not_name_keys_look_at_all_files(counted: Counted, where: str, expected: list[int]) -> None:
    assert sorted(counted.table.to_arrow(where=where)["x"].to_pylist()) == expected
    assert len(counted.partitions()) == 8


def test_a_condition_with_an_unknown_column_is_refused_still(counted: Counted) -> None:
    with pytest.raises(SchemaMismatchError, match="idd"):
        counted.table.to_arrow(where="id = 'k01' AND idd = 'k01'")


def test_what_exists_is_told_without_data_files(counted: Counted) -> None:
    rows = pa.table({"id": ["k01", "new", "k02", "new"], "city": ["c1", "c1", "c7", "c2"], "x": [1, 2, 3, 4]})
    assert counted.table.filter_exists(rows)["x"].to_pylist() == [2, 4]
    assert counted.table.filter_exists(pa.table({"id": ["k01", "other"]}))["id"].to_pylist() == ["other"]
    assert counted.table.filter_exists(rows.slice(0, 0)).num_rows == 0
    assert counted.opened() == []


def test_the_past_is_read_by_key_too() -> None:
    table = new_table()
    first = table.timeline.instants[-1].requested_time
    moved = table.upsert(pa.table({"id": ["k01"], "city": ["c5"], "x": [100]})).instant
    deleted = table.delete(["k01"]).instant
    with counting(table) as counted:
        for as_of, expected, cities in ((first, [1], ["c1"]), (moved, [100], ["c5"]), (deleted, [], [])):
            assert counted.table.to_arrow(where="id = 'k01'", as_of=as_of)["x"].to_pylist() == expected
            assert counted.partitions() == [f"city={city}" for city in cities]
        assert counted.table.to_arrow(where="id = 'k01'")["x"].to_pylist() == []
        assert counted.opened() == []
    assert table.read_keys(["k01"]).num_rows == 0


TYPED: dict[str, tuple[pa.DataType, list[Any], str]] = {
    "int": (pa.int32(), list(range(8)), "3"),
    "int by text": (pa.int32(), list(range(8)), "'3'"),
    "long": (pa.int64(), [1 << 40 | number for number in range(8)], str(1 << 40 | 3)),
    "decimal literal": (pa.int64(), list(range(8)), "3.0"),
    "date": (pa.date32(), [date(2024, 1, 1 + number) for number in range(8)], "DATE '2024-01-04'"),
    "date by text": (pa.date32(), [date(2024, 1, 1 + number) for number in range(8)], "'2024-01-04'"),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [datetime(2024, 1, 1, number, tzinfo=UTC) for number in range(8)],
        "TIMESTAMP '2024-01-01 03:00:00Z'",
    ),
    "decimal": (pa.decimal128(10, 2), [Decimal(number) / 4 for number in range(8)], "0.75"),
    "text": (pa.string(), [f"é😀{number}" for number in range(8)], "'é😀3'"),
}


@pytest.mark.parametrize("case", TYPED)
def test_keys_of_every_type_are_found_by_their_value(case: str) -> None:
    key_type, keys, literal = TYPED[case]
    rows = pa.table({"id": pa.array(keys, key_type), "city": [f"c{n}" for n in range(8)], "x": list(range(8))})
    with counting(new_table(rows)) as counted:
        assert counted.table.to_arrow(where=f"id = {literal}")["x"].to_pylist() == [3]
        assert counted.partitions() == ["city=c3"]
        assert counted.table.to_arrow(where=f"id IN ({literal}, {literal})")["x"].to_pylist() == [3]
        assert counted.partitions() == ["city=c3"]
        counted.table.read_keys([keys[3]])
        assert counted.partitions() == ["city=c3"]


def test_keys_of_several_columns_are_named_by_the_meta_column() -> None:
    table = new_table(record_key=["id", "x"])
    with counting(table) as counted:
        assert counted.table.to_arrow(where="_hoodie_record_key = 'id:k03,x:3'")["x"].to_pylist() == [3]
        assert counted.partitions() == ["city=c3"]
        assert counted.table.to_arrow(where="id = 'k03'")["x"].to_pylist() == [3]
        assert len(counted.partitions()) == 8


def test_a_key_with_its_name_in_it_is_found_by_its_value() -> None:
    table = new_table(key_generator="complex")
    with counting(table) as counted:
        assert counted.table.to_arrow(where="id = 'k03'")["_hoodie_record_key"].to_pylist() == ["id:k03"]
        assert counted.partitions() == ["city=c3"]


@pytest.mark.parametrize("name", ["", "BLOOM", "SIMPLE", "GLOBAL_BLOOM", "FLINK_STATE"])
def test_tables_of_other_indexes_look_into_the_data_files(name: str) -> None:
    """JVM writers keep a record index beside such an index, but two partitions may hold a key of which it knows one."""
    table = new_table(index="record" if name else "simple")
    store = table.view().store
    if name:
        assert "record_index" in read_table_config(store).metadata_partitions
        update_table_config(store, {"hoodie.index.type": name})
    with counting(table) as counted:
        assert counted.table.to_arrow(where="id = 'k01'")["x"].to_pylist() == [1]
        assert counted.table.read_keys(["k01"])["x"].to_pylist() == [1]
        assert counted.table.record_locations(["k01", "nobody"])["partition_path"].to_pylist() == ["city=c1", None]
        assert len(counted.partitions()) == 8


def test_row_groups_are_told_by_the_range_of_their_keys() -> None:
    keys = pa.table({"_hoodie_commit_time": ["1"] * 9, "_hoodie_record_key": [f"k{n}" for n in range(8)] + ["é😀"]})
    sink = pa.BufferOutputStream()
    pq.write_table(keys, sink, row_group_size=3)
    file = pq.ParquetFile(pa.BufferReader(sink.getvalue()))

    def groups(*wanted: str) -> list[int]:
        return sorted(row_groups_with_keys(file, pa.array(wanted)))

    assert [groups("k0"), groups("k5"), groups("k3", "k7"), groups("é")] == [[0], [1], [1, 2], [2]]
    assert [groups("a"), groups("k25"), groups("é😀😀")] == [[]] * 3


def test_row_groups_with_bounds_that_are_no_text_are_read() -> None:
    """Writers may cut a long bound inside a character."""
    cut = pa.array([b"k", "é".encode()[:1]], pa.binary()).view(pa.string())
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"_hoodie_record_key": cut}), sink)
    file = pq.ParquetFile(pa.BufferReader(sink.getvalue()))
    assert row_groups_with_keys(file, pa.array(["k0"])) == {0}


def test_a_table_changes_between_two_reads_of_one_handle() -> None:
    table = new_table()
    other = hoodie.open(table.path, spark=False)
    for number in range(4):
        table.upsert(pa.table({"id": ["k01"], "city": [f"c{number}"], "x": [number]}))
        assert other.read_keys(["k01"])["x"].to_pylist() == [number]
        assert other.record_locations(["k01"])["partition_path"].to_pylist() == [f"city=c{number}"]
