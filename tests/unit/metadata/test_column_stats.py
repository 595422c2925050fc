"""Column statistics of tables of the JVM: the same keys, bytes of values, and ranges of the same files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from hoodie.files.slices import BaseFile, LogFile
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.metadata_table.column_stats import ColumnRange, StatsRow, column_stats_key, partition_stats_key
from hoodie.format.metadata_table.metadata_record import RecordType, metadata_schema
from hoodie.format.metadata_table.value_types import ValueKind, ValueType, promoted
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.delta_commit import FileGroupDelta
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.column_stats import ColumnStatsKind, statistics_columns
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.kinds.partition_stats import PartitionStatsKind, _folded
from hoodie.metadata.kinds.statistics import base_file_ranges, log_file_ranges, stats_deltas
from hoodie.metadata.row_readers import StatsReader
from hoodie.metadata.slices import SliceReader
from hoodie.table import Table
from hoodie.timeline import Timeline
from hoodie.view.listing import list_files
from hoodie.view.slices import list_slices
from tests.support.tables import new_table
from tests.unit.metadata.conftest import InMemory

NAMES = ("v8_cow", "v8_mor", "v9_cow", "v9_mor")
KINDS: dict[RecordType, PartitionKind] = {
    RecordType.COLUMN_STATS: ColumnStatsKind(),
    RecordType.PARTITION_STATS: PartitionStatsKind(),
}


def visible(table: Table) -> tuple[MetadataFolder, Timeline]:
    view = table.view()
    folder = MetadataFolder(view.store, view.config)
    return folder, visible_instants(folder.existing_timeline(), view.whole_timeline())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("record_type", list(KINDS))
def test_rows_of_the_jvm_are_encoded_again_byte_by_byte(
    in_memory: InMemory, name: str, record_type: RecordType
) -> None:
    table = Table(in_memory(name).store)
    folder, timeline = visible(table)
    kind = KINDS[record_type]
    contents = SliceReader(folder.store).read(kind, timeline)
    partitions = list_files(table.view())
    is_typed = table.view().config.version.has_typed_statistics
    count = 0
    for number, content in enumerate(contents):
        pieces = [(block.keys, block.values, block.schema_json) for block in content.blocks]
        pieces += [] if content.base is None else [(*content.base.entries(), content.base_schema_json)]
        for keys, values, schema_json in pieces:
            if values is None:
                continue
            assert schema_json == metadata_schema()
            for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True):
                row = StatsRow.parse(value, schema_json=schema_json, path="golden")
                is_compacted = value[4] == 2
                assert is_compacted or row.to_bytes(record_type, typed=is_typed) == value
                column = row.range.column
                expected = [partition_stats_key(column, row.name)]
                if record_type is RecordType.COLUMN_STATS:
                    expected = [column_stats_key(column, path, row.name) for path in partitions]
                assert key.decode() in expected
                assert file_group_index(pa.array([key.decode()]), len(contents))[0] == number
                count += 1
    assert count > 10


@pytest.mark.parametrize("name", NAMES)
def test_ranges_are_those_of_the_jvm(in_memory: InMemory, name: str) -> None:
    table = Table(in_memory(name).store)
    view = table.view()
    columns = statistics_columns(view.store, view.config.version)
    assert columns is not None
    folder, timeline = visible(table)
    reader = StatsReader(folder.store, ColumnStatsKind(), timeline)
    compared = 0

    def encoded(found: ColumnRange) -> bytes:
        row = StatsRow(name="file", range=found)
        return row.to_bytes(RecordType.COLUMN_STATS, typed=view.config.version.has_typed_statistics)

    for found in list_slices(view):
        files: list[BaseFile | LogFile] = [*found.log_files]
        files += [found.base_file] if found.base_file is not None else []
        for file in files:
            if isinstance(file, BaseFile):
                file_name, ranges = file.name, base_file_ranges(view.store, file, columns)
            else:
                file_name, ranges = file.name.name, log_file_ranges(view.store, file, columns, view.slice_read())
            keys = {column_stats_key(one.column, found.partition_path, file_name): one for one in ranges}
            rows = reader.rows_at(keys)
            assert {key: encoded(row.range) for key, row in rows.items()} == {key: encoded(keys[key]) for key in rows}
            assert rows
            compared += len(rows)
    assert compared > 20


def test_bounds_of_widened_columns_hold_the_converted_values() -> None:
    integer, double = ValueType(ValueKind.INT), ValueType(ValueKind.DOUBLE)
    assert promoted(-3, 5, integer, ValueType(ValueKind.LONG)) == (-3, 5)
    assert promoted(-3, 5, integer, double) == (-3.0, 5.0)
    # 0.1 as a 32-bit float becomes the double 0.1, as rows of the file do.
    assert promoted(0.10000000149011612, 1.0, ValueType(ValueKind.FLOAT), double) == (0.1, 1.0)
    assert promoted(5, 7, integer, ValueType(ValueKind.DECIMAL, "12,2")) == (500, 700)
    low, high = promoted(5, 70, integer, ValueType(ValueKind.STRING))
    assert low <= "5" <= "70" <= high
    money = ValueType(ValueKind.DECIMAL, "6,2")
    assert promoted(0.1, 2.675, double, money) == (10, 268)
    assert promoted(0.1, float("nan"), double, money) == (-999999, 999999)


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        (("INT", None, 1, 2), ("LONG", None, 3, 2**40), ("LONG", None, 1, 2**40)),
        (("FLOAT", None, 0.10000000149011612, 1.0), ("DOUBLE", None, 0.25, 0.5), ("DOUBLE", None, 0.1, 1.0)),
        (("DECIMAL", "4,2", 100, 250), ("DECIMAL", "8,4", 5, 9), ("DECIMAL", "8,4", 5, 25000)),
        (("NULL", None, None, None), ("INT", None, 1, 2), ("INT", None, 1, 2)),
        (("INT", None, 1, 2), ("STRING", None, "a", "b"), ("STRING", None, "", "\U0010ffff" * 4)),
        (("DATE", None, 1, 2), ("STRING", None, "a", "b"), ("STRING", None, "", "\U0010ffff" * 4)),
    ],
)
def test_files_of_a_widened_column_are_folded_in_any_order(older: Any, newer: Any, expected: Any) -> None:
    def made(kind: str, details: str | None, low: Any, high: Any) -> ColumnRange:
        values = 0 if low is None else 2
        return ColumnRange(column="c", type=ValueType(ValueKind[kind], details), low=low, high=high, values=values)

    for files in ([made(*older)], [made(*newer)]), ([made(*newer)], [made(*older)]):
        (found,) = _folded(files)
        assert found.type is not None
        assert (found.type.kind.name, found.type.details, found.low, found.high) == expected


def test_ranges_of_a_partition_cover_all_files() -> None:
    text = ValueType(ValueKind.STRING)
    one = ColumnRange(column="s", type=text, low="b", high="c", values=3, nulls=1, size_bytes=10, uncompressed_bytes=20)
    # UTF-16 would order these two the other way round.
    two = ColumnRange(column="s", type=text, low="\uffff", high="\U0001f600", values=2)
    (found,) = _folded([[one], [two]])
    assert (found.low, found.high, found.values, found.nulls, found.size_bytes) == ("b", "\U0001f600", 5, 1, 10)


def test_a_table_of_the_jvm_keeps_its_statistics(in_memory: InMemory) -> None:
    store = in_memory("v9_cow").store
    table = Table(store)
    before = set(table.view().config.metadata_partitions)
    rows = table.to_arrow().select(table.view().schema().arrow.names).slice(0, 1)
    table.upsert(rows)
    view = table.view()
    assert {"column_stats", "partition_stats"} <= before & set(view.config.metadata_partitions)
    folder, timeline = visible(table)
    reader = StatsReader(folder.store, ColumnStatsKind(), timeline)
    columns = statistics_columns(view.store, view.config.version)
    assert columns is not None
    for found in list_slices(view):
        assert found.base_file is not None
        ranges = {one.column: one for one in base_file_ranges(view.store, found.base_file, columns)}
        keys = {column_stats_key(name, found.partition_path, found.base_file.name): name for name in ranges}
        assert {keys[key]: row.range for key, row in reader.rows_at(keys).items()} == ranges


def test_rows_that_are_not_tight_are_joined_with_older_ones() -> None:
    number = ValueType(ValueKind.LONG)

    def row(low: int, high: int, *, is_tight: bool) -> StatsRow:
        return StatsRow(name="p", range=ColumnRange(column="x", type=number, low=low, high=high), is_tight=is_tight)

    data = pa.table({"id": ["a"], "p": ["p"], "x": [1]})
    on = {"hoodie.metadata.index.column.stats.enable": "true"}
    table = new_table(data.schema, partition_by="p", index="simple", properties=on)
    for written in (row(0, 3, is_tight=True), row(10, 20, is_tight=True), row(30, 40, is_tight=False)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PartitionStatsKind, "rows_of", _only(written))
            table.upsert(data)
    folder, timeline = visible(table)
    reader, key = StatsReader(folder.store, PartitionStatsKind(), timeline), partition_stats_key("x", "p")
    for found in (reader.rows_at([key])[key], reader.rows_below([key])[key]):
        assert (found.range.low, found.range.high) == (10, 40)


def _only(row: StatsRow) -> Callable[..., list[FileGroupDelta]]:
    def rows_of(self: PartitionStatsKind, changes: object, table: object, visible: object) -> list[FileGroupDelta]:
        key = partition_stats_key(row.range.column, row.name)
        return stats_deltas(self, ["partition-stats-0000-0"], {key: row}, version=TableVersion.NINE)

    return rows_of
