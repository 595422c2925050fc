"""Reads that skip files believe no statistics that are wrong, of other commits or of another order; they open few."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from itertools import product
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.commit.steps import Step, watching
from hoodie.engine import TaskContext
from hoodie.files import column_ranges
from hoodie.format.metadata_table import column_stats
from hoodie.format.metadata_table.column_stats import ColumnRange
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.kinds.column_stats import statistics_columns
from hoodie.read import plan
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.view.slices import list_slices
from hoodie.write import plan as write_plan
from tests.support import tables
from tests.support.fault_store import FaultStore
from tests.support.tables import PLAIN, new_table

ON = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.parquet.small.file.limit": "0"}


def table_of(*writes: pa.Table, **options: Any) -> Table:
    return new_table(writes[0].schema, *writes, **{"index": "simple", "properties": ON, **options})


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
    table = new_table(rows.schema, index="simple", partition_by=partition_by, properties=ON)
    table.upsert(rows)
    assert found(table, "f < -7") == ["b"]
    assert found(table, "f = CAST('NaN' AS DOUBLE)") == ["a"]
    assert found(table, "s LIKE 'yyy%'") == ["b"]
    assert found(table, "s IS NOT NULL") == ["a", "b"]
    assert table.explain("id = 'zz'").file_slices == 0


def test_a_text_of_half_the_bound_may_be_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """parquet-mr leaves bounds out that have 4096 bytes together, and the JVM then counts the values as nulls."""

    def ranges(self: column_ranges.RangeObserver, metadata: pq.FileMetaData) -> tuple[ColumnRange, ...]:
        stored = column_ranges.footer_ranges(metadata, self.types)
        return tuple(
            replace(one, low=None, high=None, nulls=1, uncompressed_bytes=2100) if one.column == "s" else one
            for one in stored
        )

    monkeypatch.setattr(column_ranges.RangeObserver, "ranges", ranges)
    rows = pa.table({"id": ["a"], "s": ["z" * 2048]})
    table = new_table(rows.schema, index="simple", properties=ON)
    table.upsert(rows)
    assert found(table, "s IS NOT NULL") == ["a"]
    assert found(table, "s LIKE 'z%'") == ["a"]


def test_times_are_compared_with_a_day_to_spare() -> None:
    """The condition is evaluated by Spark, in the time zone of its session."""
    rows = pa.table({"id": ["a"], "t": pa.array([dt.datetime(1969, 12, 31, 20)], pa.timestamp("us", tz="UTC"))})
    table = table_of(rows)
    assert table.explain("t > '1970-01-01 05:00:00'").file_slices == 1
    assert table.explain("t > '1970-01-02 05:00:00'").file_slices == 0


def test_a_slice_is_kept_while_one_of_its_files_can_match() -> None:
    rows = pa.table({"id": ["a", "b"], "ts": [5, 5], "x": [1, 2]})
    newer = pa.table({"id": ["a"], "ts": [9], "x": [50]})
    older = pa.table({"id": ["b"], "ts": [1], "x": [70]})  # reads show the version in the base file
    table = table_of(rows, newer, older, type="merge_on_read", ordering="ts")
    for number, keys in {1: [], 50: ["a"], 2: ["b"], 70: []}.items():
        assert found(table, f"x = {number}") == keys
    assert table.explain("x = 30").file_slices == 1
    assert table.explain("x > 70").file_slices == 0
    assert table.explain("x > 2", view="read_optimized").file_slices == 0


@pytest.mark.parametrize("index", ["simple", "record"])
def test_values_that_share_a_partition(index: str) -> None:
    """A version that lost never shows."""
    first = tables.table_of(PLAIN, ("a", 10, ""), ("b", 10, ""))
    second = tables.table_of(PLAIN, ("a", 5, None), ("b", 15, None))
    table = new_table(PLAIN, first, second, partition_by="city", ordering="ts", type="merge_on_read", index=index)
    assert any(found.log_files for found in list_slices(table.view()))
    for where, kept in (("city is null", ["b"]), ("city = ''", ["a"]), ("city is null and id = 'a'", [])):
        assert table.to_arrow(where=where)["id"].to_pylist() == kept, where


def test_a_partial_update_keeps_the_columns_that_it_does_not_have() -> None:
    rows = pa.table({"id": ["a", "b"], "x": [1, 2], "y": [10, 20]})
    table = table_of(rows, type="merge_on_read")
    table.update({"x": "5"}, where="id = 'a'")
    assert found(table, "x = 5 AND y = 10") == ["a"]
    assert found(table, "y = 10") == ["a"]
    assert found(table, "x > 5") == []


def test_a_merge_function_may_make_any_value() -> None:
    def summed_bounds(older: pa.Table, newer: pa.Table) -> pa.Table:
        total = pa.compute.add(older["x"], newer["x"])
        return newer.set_column(newer.schema.get_field_index("x"), "x", total)

    rows = pa.table({"id": ["a"], "x": [1]})
    options: dict[str, Any] = {
        "type": "merge_on_read",
        "index": "simple",
        "merge_mode": summed_bounds,
        "properties": ON,
    }
    table = hoodie.create(MemoryStore().uri(""), rows.schema, record_key="id", **options)
    table.upsert(rows)
    table.upsert(pa.table({"id": ["a"], "x": [2]}))
    assert found(table, "x = 3") == ["a"]
    assert found(table, "x = 1") == []


def test_few_rows_of_the_statistics_are_read() -> None:
    """A point query reads the log and base files of the statistics, and the one file that can match."""
    numbers = range(60)
    rows = pa.table({"id": [f"k{n}" for n in numbers], "p": [f"p{n}" for n in numbers], "x": [*numbers]})
    table = table_of(rows, partition_by="p")
    told = table.explain("x = 7")
    assert (told.all_file_slices, told.file_slices, told.skipped.by_partition_stats) == (60, 1, 59)
    counting = FaultStore(table.view().store, count_reads=True)
    counting.register()
    assert Table(counting).to_arrow("id", where="x = 7")["id"].to_pylist() == ["k7"]
    opened = {call.path for call in counting.calls if call.path.endswith(".parquet")}
    assert len(opened) == 1
    assert len([call for call in counting.calls if "_stats/" in call.path]) < 12


def test_explain_counts_what_each_step_leaves_out() -> None:
    rows = pa.table({"id": ["a", "b", "c"], "p": ["x", "y", "y"], "x": [1, 2, 3]})
    table = table_of(rows.slice(0, 2), partition_by="p", index="record")
    table.insert(rows.slice(2))
    assert "left out: 2 by partition" in str(table.explain("p = 'x'"))
    assert table.explain("id = 'a'").skipped.by_record_index == table.explain().file_slices - 1
    assert table.explain("p = 'y' AND x = 9").file_slices == 0
    assert "skipped by partition stats" in table.explain("x = 9")._repr_html_()


SCHEMA = pa.schema([("id", pa.string()), ("x", pa.int64()), ("p", pa.string())])
rows = partial(tables.table_of, SCHEMA)


def partitioned(first: pa.Table) -> Table:
    table = new_table(first.schema, index="simple", partition_by="p", properties=ON)
    table.insert(first)
    return table


def overwrite(table: Table) -> None:
    table.insert_overwrite(rows(("c", 900, "p")))


def overwrite_all(table: Table) -> None:
    table.insert_overwrite_table(rows(("c", 900, "p"), ("d", 1, "q")))


def overwrite_and_rebuild(table: Table) -> None:
    overwrite(table)
    table.index.rebuild()


def overwrite_and_die(table: Table) -> None:
    def die(step: Step) -> None:
        if step is Step.RECORDED:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), watching(die):
        overwrite(table)


@pytest.mark.parametrize("write", [overwrite, overwrite_all, overwrite_and_rebuild, overwrite_and_die])
def test_a_read_keeps_the_rows_that_a_write_replaces_meanwhile(
    monkeypatch: pytest.MonkeyPatch, write: Callable[[Table], None]
) -> None:
    table = partitioned(rows(("a", 1, "p"), ("b", 2, "q")))
    assert table.explain("x = 1").skipped.by_partition_stats == 1
    slices = plan._slices
    writes = [write]

    def beside_a_write(*args: Any, **named: Any) -> Any:
        found = slices(*args, **named)
        while writes:
            writes.pop()(Table(table.view().store))
        return found

    monkeypatch.setattr(plan, "_slices", beside_a_write)
    assert table.to_arrow("id", where="x = 1")["id"].to_pylist() == ["a"]
    if write is overwrite_and_die:
        assert table.to_arrow("id", where="x = 1")["id"].to_pylist() == ["a"]


def test_files_of_one_name_in_two_partitions_have_their_own_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskContext, "write_token", "0-0-0")
    monkeypatch.setattr(write_plan, "new_file_id", lambda *_: f"{UUID(int=0)}-0")
    table = partitioned(rows(("a", 1, "p"), ("b", 2, "q")))
    names = table.to_arrow("_hoodie_file_name")["_hoodie_file_name"].to_pylist()
    assert len(names) == 2
    assert len(set(names)) == 1
    table.index.drop("partition_stats")
    for number, expected in ((1, ["a"]), (2, ["b"]), (3, [])):
        assert table.to_arrow("id", where=f"x = {number}")["id"].to_pylist() == expected
        assert table.explain(f"x = {number}").file_slices == len(expected)


def test_ranges_that_were_joined_in_the_order_of_java_are_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    def order_in_java(raw: Any) -> Any:
        if isinstance(raw, bytes):
            return [byte - 256 if byte > 127 else byte for byte in raw]
        return raw.encode("utf-16-be", "surrogatepass") if isinstance(raw, str) else raw

    given = [("a", "\uff21bc", b"\x05\x01"), ("b", "\U0001f600", b"\x05\xf0"), ("c", "x", b"\x00")]
    tables = [
        pa.table({"id": [key], "s": [text], "y": pa.array([data], pa.binary()), "p": ["p"]})
        for key, text, data in given
    ]
    with monkeypatch.context() as patched:
        patched.setattr(column_stats, "order_of", order_in_java)
        table = partitioned(tables[0])
        for one in tables[1:]:
            table.insert(one)
    for (key, text, data), where in product(given, ("s = '{text}'", "y = X'{data}'", "s LIKE '{text}%'")):
        asked = where.format(text=text, data=data.hex())
        assert table.to_arrow("id", where=asked)["id"].to_pylist() == [key], asked


@pytest.mark.parametrize("partition_by", ["d", ()])
def test_times_with_a_zone_skip_no_date_or_time_without_one(partition_by: Any) -> None:
    """Spark compares them in the time zone of its session."""
    given = pa.table({"id": ["a"], "d": [date(2024, 1, 1)], "t": pa.array([datetime(2024, 1, 1)], pa.timestamp("us"))})
    table = new_table(given.schema, given, partition_by=partition_by, properties=ON)
    for where in ("d > TIMESTAMP '2024-01-01 05:00:00Z'", "t < TIMESTAMP '2023-12-31 15:00:00Z'"):
        assert table.explain(where).file_slices == 1, where
    for where in ("d > DATE '2024-01-01'", "t < TIMESTAMP '2023-12-30 15:00:00Z'"):
        assert table.explain(where).file_slices == 0, where


def test_a_build_keeps_the_columns_that_an_earlier_build_was_given() -> None:
    first = pa.table({"id": ["a"], "x": [1], "y": [1], "z": [1]})
    table = new_table(first.schema, first)
    store = table.view().store
    table.index.build("column_stats", columns=["y"])
    chosen = statistics_columns(store, TableVersion.NINE)
    assert chosen is not None
    assert chosen[-1] == "y"
    table.index.rebuild()
    assert statistics_columns(store, TableVersion.NINE) == chosen
    table.index.build("column_stats")
    assert statistics_columns(store, TableVersion.NINE) == chosen
    table.index.build("column_stats", columns=["id", "x", "y"])
    table.index.build("column_stats")
    assert (statistics_columns(store, TableVersion.NINE) or ())[-4:] == ("id", "x", "y", "z")


def test_a_commit_reads_the_index_definitions_as_often_for_many_partitions_as_for_few() -> None:
    def reads(partitions: int) -> int:
        table = partitioned(rows(*((f"k{number}", number, f"p{number}") for number in range(partitions))))
        counting = FaultStore(table.view().store, count_reads=True)
        counting.register()
        Table(counting).delete_partitions([f"p=p{number}" for number in range(partitions)])
        return len([call for call in counting.calls if call.path.endswith("index.json")])

    assert reads(2) == reads(9)
