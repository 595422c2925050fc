"""Reads that skip files believe no statistics that may be wrong, and open few files where they may."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.files import column_ranges
from hoodie.format.metadata_table.column_stats import ColumnRange
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.support.fault_store import FaultStore

ON = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.parquet.small.file.limit": "0"}


def table_of(rows: pa.Table, **options: Any) -> Table:
    made = hoodie.create(MemoryStore().uri(""), rows.schema, record_key="id", index="simple", properties=ON, **options)
    made.upsert(rows)
    return made


def found(table: Table, where: str) -> list[str]:
    return sorted(table.to_arrow("id", where=where)["id"].to_pylist())


def as_the_jvm(metadata: pq.FileMetaData, types: Mapping[str, Any]) -> tuple[ColumnRange, ...]:
    """The ranges that JVM Hudi 1.2.0 stores of a file with NaN, and with texts above 4096 bytes."""
    ours = column_ranges.footer_ranges(metadata, types)
    told = {one.column: one for one in ours}
    rows = metadata.num_rows
    told["f"] = replace(told.get("f") or ours[0], column="f", type=types["f"], low=0.0, high=0.0, values=rows, nulls=0)
    told["s"] = ColumnRange(column="s", type=types["s"], values=rows, nulls=rows, uncompressed_bytes=6000)
    return tuple(told.values())


@pytest.mark.parametrize("partition_by", [(), "p"])
def test_ranges_that_the_jvm_stores_wrong_are_not_believed(monkeypatch: pytest.MonkeyPatch, partition_by: Any) -> None:
    def ranges(self: column_ranges.RangeObserver, metadata: pq.FileMetaData) -> tuple[ColumnRange, ...]:
        return as_the_jvm(metadata, self.types)

    monkeypatch.setattr(column_ranges.RangeObserver, "ranges", ranges)
    rows = pa.table({"id": ["a", "b"], "p": ["x", "x"], "f": [float("nan"), -7.5], "s": ["z" * 5000, "y" * 5000]})
    table = table_of(rows, partition_by=partition_by)
    assert found(table, "f < -7") == ["b"]
    assert found(table, "f = CAST('NaN' AS DOUBLE)") == ["a"]
    assert found(table, "s LIKE 'yyy%'") == ["b"]
    assert found(table, "s IS NOT NULL") == ["a", "b"]
    assert table.explain("id = 'zz'").file_slices == 0


def test_times_are_compared_with_a_day_to_spare() -> None:
    """The condition is evaluated by Spark, in the time zone of its session."""
    rows = pa.table({"id": ["a"], "t": pa.array([dt.datetime(1969, 12, 31, 20)], pa.timestamp("us", tz="UTC"))})
    table = table_of(rows)
    assert table.explain("t > '1970-01-01 05:00:00'").file_slices == 1
    assert table.explain("t > '1970-01-02 05:00:00'").file_slices == 0


def test_a_slice_is_kept_while_one_of_its_files_can_match() -> None:
    rows = pa.table({"id": ["a", "b"], "ts": [5, 5], "x": [1, 2]})
    table = table_of(rows, type="merge_on_read", ordering="ts")
    table.upsert(pa.table({"id": ["a"], "ts": [9], "x": [50]}))
    # An older version: reads show the version in the base file.
    table.upsert(pa.table({"id": ["b"], "ts": [1], "x": [70]}))
    assert found(table, "x = 1") == []
    assert found(table, "x = 50") == ["a"]
    assert found(table, "x = 2") == ["b"]
    assert found(table, "x = 70") == []
    assert table.explain("x = 30").file_slices == 1
    assert table.explain("x > 70").file_slices == 0
    assert table.explain("x > 2", view="read_optimized").file_slices == 0


def test_a_partial_update_keeps_the_columns_that_it_does_not_have() -> None:
    rows = pa.table({"id": ["a", "b"], "x": [1, 2], "y": [10, 20]})
    table = table_of(rows, type="merge_on_read")
    table.update({"x": "5"}, where="id = 'a'")
    assert found(table, "x = 5 AND y = 10") == ["a"]
    assert found(table, "y = 10") == ["a"]
    assert found(table, "x > 5") == []


def test_a_merge_function_may_make_any_value() -> None:
    def summed(older: pa.Table, newer: pa.Table) -> pa.Table:
        total = pa.compute.add(older["x"], newer["x"])
        return newer.set_column(newer.schema.get_field_index("x"), "x", total)

    rows = pa.table({"id": ["a"], "x": [1]})
    table = table_of(rows, type="merge_on_read", merge_mode=summed)
    table.upsert(pa.table({"id": ["a"], "x": [2]}))
    assert found(table, "x = 3") == ["a"]
    assert found(table, "x = 1") == []


def test_few_rows_of_the_statistics_are_read() -> None:
    """A point query reads the log and base files of the statistics, and the one file that can match."""
    store = MemoryStore()
    rows = pa.table(
        {"id": [f"k{n:03d}" for n in range(200)], "p": [f"p{n:03d}" for n in range(200)], "x": [*range(200)]}
    )
    table = hoodie.create(store.uri(""), rows.schema, record_key="id", partition_by="p", index="simple", properties=ON)
    table.upsert(rows)
    told = table.explain("x = 77")
    assert (told.all_file_slices, told.file_slices, told.skipped.by_partition_stats) == (200, 1, 199)
    counting = FaultStore(store, count_reads=True)
    counting.register()
    assert Table(counting).to_arrow("id", where="x = 77")["id"].to_pylist() == ["k077"]
    opened = {call.path for call in counting.calls if call.path.endswith(".parquet")}
    assert len(opened) == 1
    assert len([call for call in counting.calls if "_stats/" in call.path]) < 12


def test_explain_counts_what_each_step_leaves_out() -> None:
    rows = pa.table({"id": ["a", "b", "c"], "p": ["x", "y", "y"], "x": [1, 2, 3]})
    table = hoodie.create(
        MemoryStore().uri(""), rows.schema, record_key="id", partition_by="p", index="record", properties=ON
    )
    table.upsert(rows.slice(0, 2))
    table.insert(rows.slice(2))
    assert "left out: 2 by partition" in str(table.explain("p = 'x'"))
    assert table.explain("id = 'a'").skipped.by_record_index == table.explain().file_slices - 1
    assert table.explain("p = 'y' AND x = 9").file_slices == 0
    assert "skipped by partition stats" in table.explain("x = 9")._repr_html_()
